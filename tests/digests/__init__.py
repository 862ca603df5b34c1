"""Digests of seeded releases: nothing but a deliberate change may change a bit of them."""
