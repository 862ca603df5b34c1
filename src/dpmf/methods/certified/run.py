"""Carrying out the stages of a private run, so that it may be stopped at any moment and gone on with.

Noise that is drawn twice for the same sum costs twice. So before a stage draws any, the journal has it on the disk that
it was started, and what was started is never drawn again. A stage that was started and not finished is lost: it stays
charged, and the run goes on with the next one, with noise of a new key. Nothing but what noisy sums are made into is
kept; everybody's own part is computed from it again.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshot, Snapshots
from dpmf.engine.journal import Journal, locked, open_journal
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.methods.als.plan import Stage
from dpmf.model import EpochRecord
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]


class Rounds(Protocol):
    """What a run is made of; `CentralRounds` and `ObservedRounds` say more."""

    mechanism: Mechanism

    def measure(self, stage: Stage) -> None:
        """Release what a stage releases."""

    def settle(self, stage: Stage) -> None:
        """Let everybody compute their own part after a stage."""

    def solve_users(self, *, final: bool = False) -> None:
        """Let everybody compute their own part from what is public."""

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned."""

    def training_error(self) -> float:
        """Return a figure for the holder of the data."""


class PrivateRun:
    """The stages of a run, and how many of them are behind it.

    Args:
        stages: all of them, in order.
        seeded: whether noise is the same every time, so that a stage that was lost can be carried out again to the
            same bits. There is no guarantee to keep then.
        journal: what was started; None for a run that is not to be resumed.
        snapshots: where to keep what was found; None likewise.
        found: the newest snapshot.

    Raises:
        BudgetExceeded: the budget is spent, and nothing is left to go on from.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        seeded: bool,
        journal: Journal | None = None,
        snapshots: Snapshots | None = None,
        found: Snapshot | None = None,
    ) -> None:
        self._stages, self._journal, self._snapshots, self._found = stages, journal, snapshots, found
        self._ledger: Ledger | None = None
        self._finished = 0 if found is None else found.epoch
        started = 0 if journal is None else journal.started
        if not self._finished <= started <= len(stages):
            raise DamagedFile(f"the checkpoint has stage {self._finished} of {len(stages)}, and {started} were started")
        if started and not self._finished and not seeded:
            raise BudgetExceeded(
                "the run was stopped before anything of it was kept, and its budget is spent: begin a new run in "
                "another folder, which is charged anew"
            )
        self._next = self._finished if seeded else started

    def enter(self, ledger: Ledger | None, label: str, guarantee: Guarantee) -> None:
        """Enter the run into the ledger, once, however often it is resumed; a ledger that lacks it is charged."""
        journal = self._journal
        if ledger is None:
            if journal is not None and journal.entered:
                raise InvalidArgument("the run was entered into a ledger: name that ledger to go on")
            return
        ledger.spend(label, guarantee, run=None if journal is None else journal.run)
        if journal is not None:
            journal.enter()
            self._ledger = ledger

    def carry_out(self, state: Rounds, callbacks: Sequence[Callback]) -> tuple[EpochRecord, ...]:
        """Carry out what is left, and return the records of all rounds that were not lost."""
        history = self._go_on(state)
        for place in range(self._next, len(self._stages)):
            if self._journal is not None and place >= self._journal.started:
                self._journal.start(place)
                if self._ledger is not None:  # a journal can be copied, and every copy would say that it may
                    self._ledger.start(self._journal.run, place)
            began = time.perf_counter()
            state.measure(self._stages[place])
            seconds = time.perf_counter() - began
            self._keep(place, state, seconds, history)
            rounds = len(history)
            self._settle(place, state, seconds, history)
            if self._snapshots is not None:
                self._snapshots.finish()  # before the next stage is started: else both would be lost
            for callback in callbacks if len(history) > rounds else ():
                callback(history[-1])
        if self._finished < self._next == len(self._stages):
            state.solve_users(final=True)  # the last stage is lost, and it would have done so
        return tuple(history)

    def _go_on(self, state: Rounds) -> list[EpochRecord]:
        """Take up the snapshot, and give up what earlier processes released or lost."""
        for place, stage in enumerate(self._stages[: self._next]):
            for what in stage.releases:
                state.mechanism.forfeit(what)
            if place >= self._finished:
                logger.warning("%s was lost when the run was stopped: it stays charged, and is left out", stage.name)
        if self._found is None:
            return []
        try:
            history = [EpochRecord(**record) for record in self._found.facts["history"]]
            state.take_up(self._found.tensors)
            seconds = float(self._found.facts["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"the checkpoint of stage {self._finished} is damaged: {error}") from None
        self._settle(self._finished - 1, state, seconds, history)
        return history

    def _settle(self, place: int, state: Rounds, seconds: float, history: list[EpochRecord]) -> None:
        """Compute what users have of a stage, and append the record of a round."""
        stage, began = self._stages[place], time.perf_counter()
        state.settle(stage)
        seconds += time.perf_counter() - began
        if stage.round is not None:
            history.append(EpochRecord(stage.round + 1, seconds, state.training_error()))

    def _keep(self, place: int, state: Rounds, seconds: float, history: list[EpochRecord]) -> None:
        """Keep what a stage found at once, before users compute their part: it cannot be found again."""
        if self._snapshots is not None:
            facts = {"history": [asdict(record) for record in history], "seconds": seconds}
            self._snapshots.save(place + 1, state.released(), facts)


@contextlib.contextmanager
def private_run(
    plan: Checkpoint | None, identity: Callable[[], Mapping[str, Any]], stages: Sequence[Stage], seeded: bool
) -> Iterator[PrivateRun]:
    """Yield a run, where it was stopped if there is a checkpoint of it, and keep other processes from it meanwhile."""
    if plan is None:
        yield PrivateRun(stages, seeded)
        return
    same = identity()
    with locked(plan.folder), Snapshots(plan, same) as snapshots:
        found = snapshots.latest()  # before the journal: it can say in what another run differs
        yield PrivateRun(stages, seeded, open_journal(plan, same), snapshots, found)
