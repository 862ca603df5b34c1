"""A run on the workers of a cluster, whose state is in portions there: repeated from a snapshot when one is lost.

Factors of users never come to whoever leads the run; workers write and read snapshots by themselves. When a worker is
lost, all go back to the newest snapshot, or to the start where there is none, and repeat the epochs since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from dpmf.engine.checkpoints import Snapshots
from dpmf.engine.cluster import WorkerLost
from dpmf.engine.portions import Portions, State
from dpmf.errors import DamagedFile, DpmfError
from dpmf.methods.base import Callback
from dpmf.model import EpochRecord

_MOST_LOSSES = 20  # without an epoch in between that got further than any before


class Progress(Protocol):
    """What whoever leads a run has to remember of it, beside its history."""

    def facts(self) -> dict[str, Any]:
        """Return it in JSON values."""

    def restore(self, facts: Mapping[str, Any] | None) -> None:
        """Return to these facts, or to the start without any; KeyError, TypeError or ValueError if they are damaged."""


class SpreadRun:
    """The epochs of a run.

    Args:
        portions: the state.
        snapshots: of the run, if any.
        n_epochs: how many there are.
        advance: carries out the epoch of a number, from 1, and returns its record.
        progress: what else has to be remembered, if anything.
    """

    def __init__(
        self,
        portions: Portions,
        snapshots: Snapshots | None,
        n_epochs: int,
        advance: Callable[[int], EpochRecord],
        progress: Progress | None = None,
    ) -> None:
        self._portions, self._snapshots = portions, snapshots
        self._n_epochs, self._carry_out_epoch, self._progress = n_epochs, advance, progress
        self._history: list[EpochRecord] = []

    def carry_out(self, callbacks: tuple[Callback, ...]) -> tuple[EpochRecord, ...]:
        """Carry out all epochs, and return a record of each."""
        self.steadily(self._restore)
        while len(self._history) < self._n_epochs:
            self.steadily(self._advance)
            stops = [callback(self._history[-1]) is True for callback in callbacks]  # every one is called
            if any(stops):
                break
        return tuple(self._history)

    def tiers(self) -> list[State]:
        """Return the state of all tiers."""
        found: list[State] = []
        self.steadily(lambda: found.extend(self._portions.tiers()))
        return found

    def steadily(self, work: Callable[[], object]) -> None:
        """Do something that needs all workers; if one is lost, let all return to where the run is, and repeat it."""
        reached, losses, lost = len(self._history), 0, False
        while True:
            try:
                if lost:
                    self._restore()
                    while len(self._history) < reached:
                        self._advance()
                work()
                return
            except WorkerLost as why:
                lost, losses = True, losses + 1
                if losses > _MOST_LOSSES:
                    raise DpmfError(
                        f"workers were lost {losses} times before epoch {reached + 1} was over ({why}): give them more "
                        "memory, or use more of them"
                    ) from None

    def _restore(self) -> None:
        """Let all workers load the newest snapshot, or begin."""
        found = None if self._snapshots is None else self._snapshots.latest_parts()
        if found is None:
            self._portions.begin()
            self._history = []
            if self._progress is not None:
                self._progress.restore(None)
            return
        try:
            self._history = [EpochRecord(**record) for record in found.facts["history"]]
            if len(self._history) != found.epoch:
                raise ValueError(f"{len(self._history)} records of {found.epoch} epochs")
            if self._progress is not None:
                self._progress.restore(found.facts)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"the checkpoint of epoch {found.epoch} is damaged: {error}") from None
        self._portions.load(found.folder, found.checksums)

    def _advance(self) -> None:
        """Carry out an epoch, and take a snapshot if one is due."""
        epoch, snapshots = len(self._history) + 1, self._snapshots
        history = [*self._history, self._carry_out_epoch(epoch)]
        if snapshots is not None and (snapshots.is_due(epoch) or epoch == self._n_epochs):
            more = {} if self._progress is None else self._progress.facts()
            facts: dict[str, Any] = {"history": [asdict(one) for one in history], **more}
            snapshots.save_parts(epoch, self._portions.save, facts)
        self._history = history
