"""An untrusted recommender: ratings and profiles stay with the people they belong to, and sums leave masked.

`messages` are what passes, `channels` keep relays from reading it, `user`, `recommender` and `third_party` are the
parties: state machines that take a message and return messages, without network or clock. `simulation` runs all of
them in one process.
"""
