"""Epochs of a run that certifies nothing, one after the other: entered into a ledger once, kept, ended, gone on with.

A run with a paper's claim releases what it has at its end, so nothing is lost by going on from a snapshot with other
noise. But what it would draw after it was ended would be another release, which nobody paid for: an end is kept too.

>>> records = carry_out(None, dict, lambda epoch: EpochRecord(epoch, 0.1, 1.0), lambda history: len(history) == 2)
>>> [record.epoch for record in records]
[1, 2]
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf.engine.checkpoints import Snapshots
from dpmf.engine.tensorfile import Tensor
from dpmf.errors import InvalidArgument
from dpmf.methods.snapshots import keep, take_up
from dpmf.model import EpochRecord
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger


@dataclass(frozen=True)
class ClaimedRelease:
    """What a private run owes: what it claims, under which name, and where that is entered."""

    guarantee: Guarantee
    label: str
    ledger: Ledger | None

    def enter(self, kept: dict[str, Any]) -> None:
        """Enter the run into the ledger, once, however often it is resumed; a ledger that lacks it is charged."""
        if self.ledger is None:
            if kept["entered"]:
                raise InvalidArgument("the run was entered into a ledger: name that ledger to go on")
            return
        self.ledger.spend(self.label, self.guarantee, run=kept["run"])
        kept["entered"] = True


def carry_out(
    snapshots: Snapshots | None,
    state: Callable[[], Mapping[str, Tensor]],
    advance: Callable[[int], EpochRecord],
    is_done: Callable[[Sequence[EpochRecord]], bool],
    callbacks: Sequence[Callable[[EpochRecord], bool | None]] = (),
    claim: ClaimedRelease | None = None,
) -> list[EpochRecord]:
    """Carry out what is left of a run, and return the records of all its epochs.

    Args:
        snapshots: where to keep the state; None for a run that is not to be resumed.
        state: returns the arrays to keep, which are overwritten with what was kept.
        advance: carries out an epoch, counted from 1.
        is_done: tells from the records whether the run is at its end.
        callbacks: each gets the record of an epoch; one that returns True ends the run.
        claim: None for a run that is not private, which may be gone on with after its end.
    """
    kept: dict[str, Any] = {"run": secrets.token_hex(16), "entered": False, "ended": False}
    history = take_up(snapshots, state(), lambda found: kept.update({name: found.facts[name] for name in kept}))
    if claim is not None:
        claim.enter(kept)
    while not (is_done(history) or kept["ended"]):
        history.append(advance(len(history) + 1))
        stops = [callback(history[-1]) is True for callback in callbacks]  # every one is called
        kept["ended"] = claim is not None and any(stops)
        is_last = kept["ended"] or is_done(history)
        if snapshots is not None and (is_last or snapshots.is_due(len(history))):
            keep(snapshots, state(), history, **kept)
        if any(stops):
            break
    return history
