"""Audits: attempts to refute a guarantee, by exact arithmetic where that is possible and by experiment where it is not.

`dpmf.audit.run` brings the parts together; each part is a module that returns a `Finding`. An audit can show that a
guarantee is wrong, and how far an attack gets. That a guarantee is right is shown by a proof: docs/proofs.
"""
