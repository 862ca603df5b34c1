"""The certified protocol between organisations: two servers, and people's devices, over TLS WebSockets.

The state machines of `dpmf.federated.certified` do what they do in one process. Around them are, without network or
clock, `recommender_host`, `third_party_host` and `device`, which know who is connected, when a round ends and what has
to be on a disk first; `agreement_file` and `admission` say what everybody signs and who may take part. `transport` is
the only module that knows WebSockets; `services` and `joining` run the three programs on it. See docs/federated.md for
how to operate them, and docs/federated-protocol.md for every byte.
"""
