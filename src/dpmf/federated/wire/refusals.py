"""Messages that are refused: counted and logged, and the round goes on without them."""

from __future__ import annotations

import logging
from collections import Counter

from dpmf.errors import DpmfError

logger = logging.getLogger(__name__)


class Refused(DpmfError):
    """A message that is not what it should be. Its text says what is wrong, and nothing of what the message holds."""


class Refusals:
    """What a party refused, by reason.

    >>> refusals = Refusals("the third party")
    >>> refusals.note(Refused("wrong length"))
    >>> refusals.by_reason["wrong length"]
    1
    """

    def __init__(self, party: str) -> None:
        self._party = party
        self.by_reason: Counter[str] = Counter()

    def note(self, refusal: Refused) -> None:
        """Count and log it: the reason alone, for senders and contents are nobody's business."""
        self.by_reason[str(refusal)] += 1
        logger.info("%s refused a message: %s", self._party, refusal)

    def __repr__(self) -> str:
        return f"Refusals({self._party!r}, {sum(self.by_reason.values())})"
