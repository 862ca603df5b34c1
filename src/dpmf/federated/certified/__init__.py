"""The protocol of an untrusted recommender with a proof: private least squares whose noise people add themselves.

Everybody answers the questions of `dpmf.methods.certified.questions` for themselves, adds a share of noise and a mask,
and sends it to the third party; so neither it nor the recommender sees anybody's answer. See docs/proofs/federated.md.
`agreement` is what everybody knows beforehand, `inquiries` are the messages, `user`, `recommender` and `third_party`
the parties, state machines without network or clock; `simulation` runs all of them in one process.
"""
