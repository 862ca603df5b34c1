"""A sweep: methods at several epsilons, several times each, that resumes after an interruption.

Every repeat has a split, a start and noise of its own, the same split for all methods. The first is run one method
after the other on all threads, and is what time and memory are taken from. In the others, which are not timed, runs go
on side by side: the result does not depend on the number of threads.

>>> from dpmf.compare.results import Table
>>> from dpmf.ratings.synthetic import make
>>> import tempfile
>>> from pathlib import Path
>>> plan = Sweep(points_of(["als"], ["certified"], [5.0]), repeats=2, settings={"als": {"n_epochs": 1}})
>>> rows = sweep(plan, make(80, 40), Table(Path(tempfile.mkdtemp()) / "runs.csv"), n_threads=1)
>>> sorted({row.method for row in rows}), len(rows)
(['als', 'biases', 'exact-ease', 'own-mean', 'popular', 'private-popular', 'sgd'], 14)
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpmf.compare.measurement import RankedParts, measure, warm_up
from dpmf.compare.new_users import measure_peer, peers_of
from dpmf.compare.references import measure_reference, references_of
from dpmf.compare.results import NON_PRIVATE, Row, Rows, Table
from dpmf.engine.threads import run_tasks, thread_count
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.evaluation.new_users import NewUsers
from dpmf.methods import METHODS, Method, configure
from dpmf.methods.checks import declared
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import EpochRecord
from dpmf.privacy.budget import DEFAULT_DELTA, Budget
from dpmf.ratings import Ratings
from dpmf.runs.parts import NewUserParts, Split
from dpmf.runs.training import Arguments

Progress = Callable[[int, int, str], None]
"""Called with the number of runs that have ended, that of all, and what is going on."""
_MOST_REPEATS = 1000
_FIXED = {  # fields that labels are made from, and what to do instead
    "mode": "choose among the modes to compare",
    "budget": "choose among the epsilons to compare",
    "seed": "every repeat has its own, counted from the seed of the comparison",
    "items_public": "assert it of the comparison as a whole",
    "eps_i": "it would override the epsilons to compare",
    "feedback": "errors of ratings are compared, and implicit feedback has none",
}


@dataclass(frozen=True)
class Setting:
    """A method with a guarantee: what is run once in every repeat.

    Attributes:
        method: its name on the command line.
        mode: "certified", "paper", or "none" with an infinite epsilon.
        epsilon: what is asked for.
    """

    method: str
    mode: str
    epsilon: float

    def __str__(self) -> str:
        if self.mode == "none":
            return f"{self.method}, not private"
        return f"{self.method} ε={self.epsilon:g} {'certified' if self.mode == 'certified' else 'as claimed'}"


@dataclass(frozen=True)
class Sweep:
    """What is compared with what.

    Attributes:
        points: see `points_of`; what is reached without privacy is always run as well.
        repeats: how often each is run.
        holdout, how: what is held out, see `Ratings.split`.
        seed: of the first repeat; each further one has the next.
        delta, neighbours: of guarantees. Claims have those of the paper.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        settings: fields of methods, by method.
        profiles: for certified runs of methods that take them.
        new_users: how people are held out whole, instead of ratings; its seed is that of the repeat.
        test: ratings of the same users and items to test on in every repeat, instead of any that are held out.
    """

    points: tuple[Setting, ...]
    repeats: int = 3
    holdout: float = 0.1
    how: str = "random"
    seed: int = 0
    delta: float = DEFAULT_DELTA
    neighbours: str = "add-remove"
    items_public: bool = False
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profiles: Profiles | None = None
    new_users: NewUsers | None = None
    test: Ratings | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= _MOST_REPEATS:
            raise InvalidArgument(f"repeats={self.repeats} should be a whole number from 1 to {_MOST_REPEATS}")
        for method, fields in self.settings.items():
            for name in fields:
                if name in _FIXED and not (name == "feedback" and self.new_users is not None):
                    raise InvalidArgument(f"{method}.{name} cannot be set here: {_FIXED[name]}")
        unused = sorted(set(self.settings) - {one.method for one in self.all_points})
        if unused:
            raise InvalidArgument(f"settings of {unused[0]}, which is not compared: name it among the methods")
        for point in self.all_points:
            self.configured(point, self.seed)  # a field that a method refuses is told before anything is read

    @property
    def all_points(self) -> tuple[Setting, ...]:
        """The points, and first of all the line that they are held against."""
        return Setting(NON_PRIVATE, "none", math.inf), *self.points

    def references(self, repeat: int) -> list[tuple[str, str, float, int]]:
        """Return the keys of rows that need no method: baselines, or peers for new users."""
        certified = [one for one in self.points if one.mode == "certified"]
        budgets = {one.epsilon for one in certified if METHODS[one.method].unit_for("certified") == "user"}
        named = references_of(budgets) if self.new_users is None else peers_of(budgets)
        return [(name, "none", epsilon, repeat) for name, epsilon in named]

    def split(self, ratings: Ratings, repeat: int) -> RankedParts | NewUserParts:
        """Return the parts of a repeat, the same for all methods."""
        seed = self.seed + repeat
        if self.new_users is not None:
            return NewUserParts.of(ratings, replace(self.new_users, seed=seed))
        if self.test is not None:
            return RankedParts.beside(ratings, self.test, seed)
        parts = RankedParts.of(ratings, Split(self.holdout, self.how, seed))
        if not len(parts.test) or not len(parts.train):
            raise InvalidArgument(f"holdout={self.holdout:g} leaves nothing to test on or to learn from: change it")
        return parts

    def configured(self, point: Setting, seed: int) -> Method:
        """Return the method of a point; claims have the delta and the neighbours of their paper."""
        kind, certified = METHODS[point.method], point.mode == "certified"
        private = kind.private_fields(
            kind.plain_mode if point.mode == "none" else point.mode,
            point.epsilon,
            self.delta if certified else None,
            neighbours=self.neighbours if certified and self.neighbours != "add-remove" else None,
            items_public=self.items_public,
        )
        return configure(point.method, {"seed": seed, **private, **self.settings.get(point.method, {})})

    def check(self, ratings: Ratings) -> None:
        """Refuse data that no private run could use."""
        if any(point.mode != "none" for point in self.points):
            declared(ratings, self.items_public)
        if self.profiles is not None:
            self.profiles.check(ratings)


def points_of(
    methods: Sequence[str], modes: Sequence[str], epsilons: Sequence[float], *, with_profiles: bool = False
) -> tuple[Setting, ...]:
    """Return what to run: every method, in those of the modes that it has, at every epsilon.

    Args:
        methods: names on the command line.
        modes: "certified", "paper" or both.
        epsilons: infinity runs a method without privacy, once for all modes.
        with_profiles: whether there are profiles, without which some methods cannot be certified.
    """
    points: dict[Setting, None] = {}
    for method in methods:
        if method not in METHODS:
            raise InvalidArgument(f"method {method!r} is not known: choose from {', '.join(METHODS)}")
        kind = METHODS[method]
        if not kind.modes:
            if method != NON_PRIVATE:  # which is run in any case
                points[Setting(method, "none", math.inf)] = None
            continue
        needing = () if with_profiles else kind.takes.get("profiles", ())
        possible = [mode for mode in modes if mode in kind.modes and mode not in needing]
        if not possible:
            remedy = "add paper to the modes, or give profiles" if needing else "add certified to the modes"
            raise InvalidArgument(f"{method} has no mode {' or '.join(modes)} here: {remedy}")
        for epsilon in epsilons:
            for mode in possible if math.isfinite(epsilon) else ["none"]:
                points[Setting(method, mode, epsilon)] = None
    return tuple(points)


def sweep(
    plan: Sweep,
    ratings: Ratings,
    table: Table,
    *,
    n_threads: int | None = None,
    jobs: int | None = None,
    progress: Progress = lambda done, total, note: None,
) -> Rows:
    """Run what the table does not have yet, and return all rows of the plan.

    A method that cannot be run as asked, or diverges, leaves a row that says so; it is tried again by the next call.

    Args:
        plan: what is compared.
        ratings: on what.
        table: where rows go as they come.
        n_threads: all CPUs by default.
        jobs: the number of runs side by side after the first repeat, which alone is timed; one per thread by
            default.
        progress: see `Progress`.
    """
    plan.check(ratings)
    n_threads = thread_count(n_threads)
    if jobs is not None and jobs < 1:
        raise InvalidArgument(f"jobs={jobs}: give a whole number from 1 on")
    jobs = n_threads if jobs is None else min(jobs, n_threads)
    done = {row.key for row in table.rows() if not row.error} if table.path.exists() else set()
    wanted = {_key(point, repeat) for point in plan.all_points for repeat in range(plan.repeats)}
    runs = _Runs(plan, table, progress, len(wanted - done))
    for repeat in range(plan.repeats):
        pending = [point for point in plan.all_points if _key(point, repeat) not in done]
        unreferenced = [key for key in plan.references(repeat) if key not in done]
        if not pending and not unreferenced:
            continue
        parts = plan.split(ratings, repeat)
        for row in _reference_rows(plan, unreferenced, parts, n_threads):
            table.append(row)
        if repeat == 0:  # later ones have calibrated noise from it, and would seem quicker than they are
            for point in pending:
                runs.run(point, repeat, parts, n_threads, alone=True)
        else:
            runs.run_side_by_side(pending, repeat, parts, jobs, max(1, n_threads // jobs))
    wanted |= {key for repeat in range(plan.repeats) for key in plan.references(repeat)}
    return Rows(row for row in table.rows() if row.key in wanted)


def _reference_rows(
    plan: Sweep, keys: Sequence[tuple[str, str, float, int]], parts: RankedParts | NewUserParts, n_threads: int
) -> Iterator[Row]:
    """Yield the rows that need no method, those with these keys."""
    for method, mode, epsilon, repeat in keys:
        row = Row(method, mode, epsilon, repeat, plan.seed + repeat)
        budget = Budget(row.asked, plan.delta, "user", plan.neighbours)
        if isinstance(parts, RankedParts):
            yield measure_reference(row, parts, budget, n_threads=n_threads)
            continue
        assert plan.new_users is not None
        least = plan.new_users.least_positive(parts.train.scale)
        yield measure_peer(row, parts, least, budget, n_threads=n_threads)


def _key(point: Setting, repeat: int) -> tuple[str, str, float, int]:
    return point.method, point.mode, point.epsilon, repeat


class _Stopped(Exception):
    """Another run was stopped, so this one ends, too."""


class _Runs:
    """What is to be run, and how far it is."""

    def __init__(self, plan: Sweep, table: Table, progress: Progress, total: int) -> None:
        self._plan, self._table, self._progress = plan, table, progress
        self._total, self._ended = total, 0
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._warm: set[tuple[str, str]] = set()  # methods and modes that are compiled

    def run(
        self, point: Setting, repeat: int, parts: RankedParts | NewUserParts, n_threads: int, *, alone: bool
    ) -> None:
        """Run one, and write its row."""
        seed = self._plan.seed + repeat
        row = Row(point.method, point.mode, point.epsilon, repeat, seed)
        name = f"{point}, repeat {repeat + 1} of {self._plan.repeats}"

        def after(record: EpochRecord) -> None:
            if self._stopping.is_set():
                raise _Stopped
            self._tell(f"{name}: epoch {record.epoch}")

        profiles = self._plan.profiles if point.mode == "certified" else None
        arguments = Arguments(n_threads, [after], profiles=profiles)
        try:
            self._tell(name)
            method = self._plan.configured(point, seed)
            if alone and (point.method, point.mode) not in self._warm:
                self._warm.add((point.method, point.mode))
                assert isinstance(parts.train, Ratings)
                warm_up(method, parts.train, arguments)
            row = measure(method, parts, row, arguments, alone=alone)
        except DpmfError as error:
            row = Row(point.method, point.mode, point.epsilon, repeat, seed, error=str(error))
        with self._lock:
            self._table.append(row)
            self._ended += 1
        self._tell(name)

    def run_side_by_side(
        self, points: Sequence[Setting], repeat: int, parts: RankedParts | NewUserParts, jobs: int, n_threads: int
    ) -> None:
        """Run several at a time; if one is interrupted, all are."""

        def work(task: int) -> None:
            if self._stopping.is_set():
                return
            try:
                self.run(points[task], repeat, parts, n_threads, alone=False)
            except _Stopped:
                return
            except BaseException:
                self._stopping.set()
                raise

        run_tasks(work, len(points), jobs)

    def _tell(self, note: str) -> None:
        with self._lock:
            self._progress(self._ended, self._total, note)
