"""Where it is shown that the software does what it says: pages of the documentation and tests, by their paths."""

from __future__ import annotations

_PROVEN = ("als", "ease", "joint", "sgld", "gaussian", "sketch", "objective", "federated")


def proof_of(method: str) -> str | None:
    """Return the page with the proof of a method; None if dpmf has none.

    >>> proof_of("als"), proof_of("of-somebody-else")
    ('docs/proofs/als.md', None)
    """
    return f"docs/proofs/{method}.md" if method in _PROVEN else None
