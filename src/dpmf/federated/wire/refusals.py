"""Refused messages: counted and logged, while the round goes on without them."""

from __future__ import annotations

import logging
from collections import Counter

from dpmf.errors import DpmfError

logger = logging.getLogger(__name__)


class Refused(DpmfError):
    """A message is not what it should be. The text says what is wrong, and reveals nothing of the content."""


class Refusals:
    """How many messages a party refused, by reason.

    >>> refusals = Refusals("the third party")
    >>> refusals.note(Refused("wrong length"))
    >>> refusals.by_reason["wrong length"]
    1
    """

    def __init__(self, party: str) -> None:
        self._party = party
        self.by_reason: Counter[str] = Counter()

    def note(self, refusal: Refused) -> None:
        """Count and log a refusal: only the reason, never the sender or the content."""
        self.by_reason[str(refusal)] += 1
        logger.info("%s refused a message: %s", self._party, refusal)

    def __repr__(self) -> str:
        return f"Refusals({self._party!r}, {sum(self.by_reason.values())})"
