"""Who sends what to whom.

>>> Outgoing(THIRD_PARTY, b"sealed")
Outgoing(to=-2, 6 bytes)
"""

from __future__ import annotations

from typing import NamedTuple

RECOMMENDER, THIRD_PARTY = -1, -2
"""Where a message goes that is not for a user; users are numbered from 0, by a number that says nothing of them."""


class Outgoing(NamedTuple):
    """A sealed message, to be delivered by anybody.

    Attributes:
        to: `RECOMMENDER`, `THIRD_PARTY` or the number of a user.
        message: sealed.
    """

    to: int
    message: bytes

    def __repr__(self) -> str:
        return f"Outgoing(to={self.to}, {len(self.message)} bytes)"
