"""The epochs of a run without a certificate: entered into a ledger once, saved, ended and resumed.

A run with a paper's claim releases its final state only, so resuming from a snapshot with other noise costs nothing.
But continuing after a run has ended would be a second release, which the ledger does not cover: the end is saved too.

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
from dpmf.methods.snapshots import restore, save
from dpmf.model import EpochRecord
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger


@dataclass(frozen=True)
class ClaimedRelease:
    """The release that a private run will make: its claimed guarantee, its name in the ledger, and the ledger."""

    guarantee: Guarantee
    label: str
    ledger: Ledger | None

    def enter(self, progress: dict[str, Any]) -> None:
        """Enter the run into the ledger, once, however often it is resumed; a ledger without it is charged."""
        if self.ledger is None:
            if progress["entered"]:
                raise InvalidArgument("the run was entered into a ledger: name that ledger to resume it")
            return
        self.ledger.spend(self.label, self.guarantee, run=progress["run"])
        progress["entered"] = True


def carry_out(
    snapshots: Snapshots | None,
    state: Callable[[], Mapping[str, Tensor]],
    advance: Callable[[int], EpochRecord],
    is_done: Callable[[Sequence[EpochRecord]], bool],
    callbacks: Sequence[Callable[[EpochRecord], bool | None]] = (),
    claim: ClaimedRelease | None = None,
) -> list[EpochRecord]:
    """Carry out the remaining epochs of a run, and return the records of all its epochs.

    Args:
        snapshots: where to save the state; None for a run that cannot be resumed.
        state: returns the arrays to save, and to restore in place.
        advance: carries out an epoch, counted from 1.
        is_done: tells from the records whether the run has ended.
        callbacks: each gets the record of an epoch; one that returns True ends the run.
        claim: None for a run that is not private, which may continue after its end.
    """
    progress: dict[str, Any] = {"run": secrets.token_hex(16), "entered": False, "ended": False}
    history = restore(snapshots, state(), lambda found: progress.update({name: found.facts[name] for name in progress}))
    if claim is not None:
        claim.enter(progress)
    while not (is_done(history) or progress["ended"]):
        history.append(advance(len(history) + 1))
        stops = [callback(history[-1]) is True for callback in callbacks]  # every one is called
        progress["ended"] = claim is not None and any(stops)
        is_last = progress["ended"] or is_done(history)
        if snapshots is not None and (is_last or snapshots.is_due(len(history))):
            save(snapshots, state(), history, **progress)
        if any(stops):
            break
    return history
