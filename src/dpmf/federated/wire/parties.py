"""The addresses of the parties, and messages on their way.

>>> Outgoing(THIRD_PARTY, b"sealed")
Outgoing(to=-2, 6 bytes)
"""

from __future__ import annotations

from typing import NamedTuple

RECOMMENDER, THIRD_PARTY = -1, -2
"""Addresses of the parties that are not users; users are numbered from 0, by numbers that reveal nothing about them."""


class Outgoing(NamedTuple):
    """A sealed message, which any relay may deliver.

    Attributes:
        to: `RECOMMENDER`, `THIRD_PARTY` or the number of a user.
        message: sealed.
    """

    to: int
    message: bytes

    def __repr__(self) -> str:
        return f"Outgoing(to={self.to}, {len(self.message)} bytes)"
