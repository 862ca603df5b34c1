"""A certified run, stage by stage: entered into a ledger, checkpointed, stopped at any moment and resumed.

Noise that is drawn twice for the same sum costs twice. So before a stage draws any, the journal has it on disk that it
was started, and what was started is never drawn again. A stage that was started and not finished is lost: it stays
charged, and the run resumes with the next one, with noise of a new key. What is stored is the public state, which noisy
sums are made into, and training errors, which are for the holder of the data; everybody's own part is computed again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshot, Snapshots
from dpmf.engine.journal import Journal, locked, open_journal
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.methods.base import Callback
from dpmf.methods.certified.conversation import Partner, PublicHalf, converse, lose
from dpmf.methods.certified.plan import Stage
from dpmf.model import EpochRecord
from dpmf.model.ranking import LARGEST_FACTOR
from dpmf.privacy import Guarantee
from dpmf.privacy.ledger import Ledger


class StagedRun:
    """The stages of a run, and how many of them are behind it.

    Args:
        stages: all of them, in order.
        repeatable: whether a stage that was started can be carried out again: noise is from a seed, and there is no
            guarantee to keep, or people answer for themselves, who draw no noise twice.
        journal: what was started; None for a run that is not to be resumed.
        snapshots: where to store what was found; None likewise.
        found: the newest snapshot.

    Raises:
        BudgetExceeded: the budget is spent, and nothing is left to resume from.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        repeatable: bool,
        journal: Journal | None = None,
        snapshots: Snapshots | None = None,
        found: Snapshot | None = None,
    ) -> None:
        self._stages, self._journal, self._snapshots, self._found = stages, journal, snapshots, found
        self._ledger: Ledger | None = None
        self.released: dict[str, float] | None = {}  # numbers of people; None if an older version did not store them
        self._finished = 0 if found is None else found.epoch
        started = 0 if journal is None else journal.started
        if not self._finished <= started <= len(stages):
            raise DamagedFile(f"the checkpoint has stage {self._finished} of {len(stages)}, and {started} were started")
        if started and not self._finished and not repeatable:
            raise BudgetExceeded(
                "the run was stopped before anything of it was stored, and its budget is spent: begin a new run in "
                "another folder, which is charged again"
            )
        self._next = self._finished if repeatable else started

    def enter(self, ledger: Ledger | None, label: str, guarantee: Guarantee) -> None:
        """Enter the run into the ledger, once, however often it is resumed; a ledger that lacks it is charged."""
        journal = self._journal
        if ledger is None:
            if journal is not None and journal.entered:
                raise InvalidArgument("the run was entered into a ledger: name that ledger to resume it")
            return
        ledger.spend(label, guarantee, run=None if journal is None else journal.run)
        if journal is not None:
            journal.enter()
            self._ledger = ledger

    def carry_out(
        self,
        public: PublicHalf,
        partner: Partner,
        callbacks: Sequence[Callback] = (),
        before: Callable[[int], None] = lambda place: None,
    ) -> tuple[EpochRecord, ...]:
        """Carry out what is left, and return the records of all rounds that were not lost.

        Args:
            public: asks.
            partner: brings back noisy answers.
            callbacks: called with the record of each round when it ends.
            before: called with the place of each stage before that starts; the run can be stopped here without loss.
        """
        history = self._resume(public, partner)
        for place in range(self._next, len(self._stages)):
            before(place)
            self._start(place)
            began, stage = time.perf_counter(), self._stages[place]
            answered = converse(public, stage, partner, self.released)
            seconds = time.perf_counter() - began
            facts: dict[str, Any] = {"history": [asdict(record) for record in history], "seconds": seconds}
            if self.released is not None:
                facts["released"] = dict(self.released)
            if not answered:
                facts["answered"] = False
            if stage.round is not None and public.fit_after(stage) is None:  # else it takes everybody's own part
                facts["error"] = partner.error(None)
            if self._snapshots is not None:  # at once, before users compute their part: it cannot be found again
                self._snapshots.save(place + 1, public.state(), facts)
            rounds = len(history)
            if answered:
                self._record(stage, public, partner, seconds, history)
            if self._snapshots is not None:
                self._snapshots.finish()  # before the next stage is started: else both would be lost
            for callback in callbacks if len(history) > rounds else ():
                callback(history[-1])
        return tuple(history)

    def _start(self, place: int) -> None:
        if self._journal is not None and place >= self._journal.started:
            self._journal.start(place)
            if self._ledger is not None:  # a journal can be copied, and every copy would say that it may
                self._ledger.start(self._journal.run, place)

    def _resume(self, public: PublicHalf, partner: Partner) -> list[EpochRecord]:
        """Restore the snapshot, and give up what earlier processes released or lost."""
        for place, stage in enumerate(self._stages[: self._next]):
            for what in stage.releases:
                partner.forfeit(what)
            if place >= self._finished:
                lose(stage, "when the run was stopped")
        if self._found is None:
            return []
        try:
            history = [EpochRecord(**record) for record in self._found.facts["history"]]
            _check_state(self._found.tensors)
            public.restore(self._found.tensors)
            seconds = float(self._found.facts["seconds"])
            stored = self._found.facts.get("released")
            self.released = None if stored is None else {str(what): float(one) for what, one in stored.items()}
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as damage:
            raise DamagedFile(f"the checkpoint of stage {self._finished} is damaged: {damage}") from None
        if self._found.facts.get("answered", True):
            stage, error = self._stages[self._finished - 1], self._found.facts.get("error")
            self._record(stage, public, partner, seconds, history, error)
        return history

    def _record(
        self,
        stage: Stage,
        public: PublicHalf,
        partner: Partner,
        seconds: float,
        history: list[EpochRecord],
        error: float | None = None,
    ) -> None:
        """Append the record of a round, with its training error if that was stored."""
        if stage.round is None:
            return
        began = time.perf_counter()
        error = partner.error(public.fit_after(stage)) if error is None else error
        history.append(EpochRecord(stage.round + 1, seconds + time.perf_counter() - began, error))


def _check_state(tensors: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError if public state holds what no run computes: loops rely on numbers being numbers."""
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and np.isnan(tensor).any():
            raise ValueError(f"{name} holds something that is not a number")
        is_factor = name.rpartition(" ")[2] in ("V", "c")  # of one half, or of one of several
        if is_factor and np.abs(tensor).max(initial=0) > LARGEST_FACTOR:
            raise ValueError(f"{name} should be at most {LARGEST_FACTOR:g} in magnitude")
        if name.rpartition(" ")[2] == "n_users" and not (tensor.shape == (1,) and 0 < tensor[0] < np.inf):
            raise ValueError("there should be people")


@contextlib.contextmanager
def staged_run(
    checkpoint: Checkpoint | None, identity: Callable[[], Mapping[str, Any]], stages: Sequence[Stage], repeatable: bool
) -> Iterator[StagedRun]:
    """Yield a run, where it was stopped if there is a checkpoint of it, and keep other processes from it meanwhile."""
    if checkpoint is None:
        yield StagedRun(stages, repeatable)
        return
    same = identity()
    with locked(checkpoint.folder), Snapshots(checkpoint, same) as snapshots:
        found = snapshots.latest()  # before the journal: it can say in what another run differs
        yield StagedRun(stages, repeatable, open_journal(checkpoint, same), snapshots, found)
