"""What a method is: the one type that command line, runs, comparisons and documentation work with.

A new method is a folder with a subclass of `Method`, a line in the registry (`dpmf.methods.METHODS`) and a page of
documentation. The subclass is a frozen dataclass of public facts; ratings, and everything that concerns one run only,
are arguments of `fit`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Cluster, Ray
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.methods.checks import check_rated
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.budget import DEFAULT_DELTA
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.given import as_ratings, refuse_beside

if TYPE_CHECKING:
    from dpmf.methods.certified.planned import Expected, PlanRecord
    from dpmf.methods.sgld.convergence import Convergence
    from dpmf.model import Release

Callback = Callable[[EpochRecord], bool | None]
Settings = TypeVar("Settings")


@dataclass(frozen=True, eq=False)
class RunOptions:
    """What concerns one run and not the method.

    Attributes:
        n_threads: how many threads to use.
        callbacks: called with the record of each epoch when it ends.
        checkpoint: where to keep snapshots.
        user_budgets: the epsilon of users who want another one than that of the budget.
        ledger: where to enter what the run will release.
        cluster: the workers that hold the ratings; None for this process.
    """

    n_threads: int
    callbacks: tuple[Callback, ...] = ()
    checkpoint: Checkpoint | None = None
    user_budgets: Mapping[Any, float] | None = None
    ledger: Ledger | None = None
    cluster: Cluster | None = None


class Section(NamedTuple):
    """A part of what people are told about a run: a table, and a sentence below it.

    Attributes:
        title, columns, rows: of the table; without rows there is none.
        note: the sentence; "" for none.
        from_ratings: whether figures in it depend on ratings, and no guarantee covers them.
    """

    title: str = ""
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[object]] = ()
    note: str = ""
    from_ratings: bool = False


@dataclass(frozen=True)
class Method(ABC):
    """A way to factorize ratings. Subclasses are frozen dataclasses of public facts.

    Attributes:
        name: what it is called on the command line and in files.
        modes: the kinds of guarantee it can give for a finite epsilon: "certified", "paper", or none at all.
        feedbacks: what it can learn from: "explicit" ratings, "implicit" feedback.
        turn: what a record of the history is about: an "epoch", a "round", an "iteration".
        takes: what a run can be given that not every method has a use for, and in which kinds of runs: "profiles" (of
            users, an argument of `fit`), "chains" (more of them, see `diagnose`).
        personal_claim: whether the claim of mode "paper" is about users, who can then have budgets of their own.
        plain_mode: the mode that a comparison without a finite epsilon runs.
        plan_version: of the plans of certified runs. To be raised with every change of what is released, with how much
            noise, or how many numbers: plans of another version are not compared with those of this one.
        one_each: whether every item of a certified release takes at least one released number.
    """

    name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ()
    feedbacks: ClassVar[tuple[str, ...]] = ("explicit",)
    turn: ClassVar[str] = "epoch"
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    personal_claim: ClassVar[bool] = False
    plain_mode: ClassVar[str] = "certified"
    plan_version: ClassVar[int] = 2
    one_each: ClassVar[bool] = True

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all fields by name, as scikit-learn wants them; `deep` changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **changes: Any) -> Self:
        """Return the method with some fields changed: it is frozen, so what is returned is another one."""
        if unknown := changes.keys() - self.get_params().keys():
            raise InvalidArgument(f"{self.name} has no setting {min(unknown)!r}: it has {', '.join(self.get_params())}")
        return replace(self, **changes)

    def fit(
        self,
        ratings: AnyRatings | Any,
        *,
        scale: Scale | tuple[float, float] | None = None,
        items: Any = None,
        columns: Mapping[str, str | int | None] | None = None,
        n_threads: int | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        user_budgets: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
        executor: Ray | None = None,
    ) -> Model:
        """Train on ratings.

        Args:
            ratings: what to learn from, in memory or, where the method `streams`, on disk; the result is the same. A
                private run needs a declared catalogue, and, unless feedback is implicit, a declared scale. Whatever
                `Ratings.of` takes is taken too: a pandas, polars or Arrow table, a sparse matrix, an array of rows
                user, item, rating.
            scale, items, columns: of such a table, as in `Ratings.of`.
            n_threads: all CPUs this process may use by default. It changes the speed, never the result.
            callbacks: called with the record of each epoch when it ends; one that returns True ends the training,
                except for a certified run, which says beforehand what it will release.
            checkpoint: where to keep snapshots. A run without noise resumes from them to the same result; a certified
                one resumes without the stage that it was stopped in, because no noise is drawn twice.
            user_budgets: the epsilon of users who want a smaller one than that of the budget, at the budget's delta.
            ledger: where to enter what the run will release, before any noise is drawn; a claim counts as unbounded.
            executor: a cluster to train on, where the method `spreads`; this process by default. Ratings are then on
                disk, `n_threads` are those of each worker, and the model holds nobody: users stay on the workers.
        """
        options = RunOptions(thread_count(n_threads), tuple(callbacks), checkpoint, user_budgets, ledger)
        taken = self._taken(ratings, scale=scale, items=items, columns=columns)
        return self._run(taken, options, n_threads, executor)

    def _taken(self, ratings: AnyRatings | Any, **described: Any) -> AnyRatings:
        """Return ratings, those of a table or an array included, which `described` says more of."""
        if isinstance(ratings, Ratings | StoredRatings):
            refuse_beside(ratings, **described)
            return ratings
        return as_ratings(ratings, unrated=self.is_implicit, **described)

    def _run(
        self, ratings: AnyRatings, options: RunOptions, n_threads: int | None, executor: Ray | None, *more: Any
    ) -> Model:
        """Train here, or on a cluster, which is started for it."""
        if executor is None:
            return self._checked(ratings, options, *more)
        self.check_executor(executor)
        if not isinstance(ratings, StoredRatings):
            raise InvalidArgument(
                "a cluster reads ratings from a store: write one with `dpmf data ingest DATA STORE`, and open it with "
                "dpmf.StoredRatings.open(…)"
            )
        with executor.start(n_threads) as cluster:
            return self._checked(ratings, replace(options, cluster=cluster), *more)

    def check_executor(self, executor: Ray) -> None:
        """Refuse a cluster that cannot be, or that the method cannot use."""
        executor.check()
        if not self.spreads:
            run = "a claim about it" if self.kind == "paper" else "a run without privacy"
            raise InvalidArgument(
                f"{self.name} cannot run on a cluster here: {run} needs all ratings in one place; leave the cluster "
                "out, or choose a certified run"
            )

    def _checked(self, ratings: AnyRatings, options: RunOptions, *more: Any) -> Model:
        """Train, after refusing what no kind of run can use."""
        if not len(ratings):
            raise InvalidArgument("there are no ratings to train on")
        if not self.is_implicit:
            check_rated(ratings.scale)
        if isinstance(ratings, StoredRatings) and options.cluster is None and not self.streams:
            raise InvalidArgument(
                f"{type(self).__name__} needs the ratings in memory here: allow more memory, or set no limit"
            )
        if self.kind not in ("certified", "paper"):
            for name in ("user_budgets", "ledger"):
                if getattr(options, name) is not None:
                    raise InvalidArgument(
                        f"{name} means nothing with an infinite epsilon: leave it out, or give a budget"
                    )
        return self._train(ratings, options, *more)

    @abstractmethod
    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        """Train on ratings, of which there are some; arguments that mean nothing have been refused."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What kind of run it is: "certified", "paper", or, without a finite epsilon, "none" or "published"."""

    @property
    def streams(self) -> bool:
        """Whether ratings may stay on disk."""
        return self.kind == "certified"

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster."""
        return self.kind == "certified"

    @property
    def is_implicit(self) -> bool:
        """Whether it counts which items people have, not how they rate them."""
        return False

    @property
    def n_turns(self) -> int | None:
        """How many records the history of a whole run has, if that is known beforehand."""
        return None

    @property
    def most_factors(self) -> int | None:
        """The number of factors, or the most there can be if a run chooses it; None if it depends on profiles."""
        n_factors: int | None = self.facts()["n_factors"]
        return n_factors

    @property
    def folds_in(self) -> bool:
        """Whether users' factors are fitted to their own ratings alone, given those of items, as a release allows."""
        return self.kind == "certified"

    @property
    def training_share(self) -> float:
        """The fraction of the ratings that it learns from; the rest is for validation."""
        return 1.0

    def without_factors(self) -> Method | None:
        """Return the same method with biases, or popularity, alone, as a reference; None if there is no such run."""
        return None

    def facts(self) -> dict[str, Any]:
        """Return all fields by name, with whatever was left open chosen where that can be done beforehand."""
        usual = self.usual()
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: usual.get(name) if value is None else value for name, value in given.items()}

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open, from public facts alone: see `defaults` of a method."""
        return {}

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release, every choice made.

        A noise seed is not written down, and the budget is in the guarantee. Where nothing is private, no mode says so.
        """
        facts = {name: value for name, value in self.facts().items() if name not in ("budget", "noise_seed")}
        if self.kind != "certified" and facts.get("mode") == "certified":
            facts["mode"] = None
        return {"method": self.name, **facts}

    def report(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return figures about a trained model, in JSON values, beside those that every method has.

        They are for the holder of the data.
        """
        return {}

    def sections(self, report: Mapping[str, Any]) -> Iterator[Section]:
        """Yield what to tell people about a run, beside what every method has.

        Args:
            report: what was reported of it, with the figures that `report` returned.
        """
        yield from ()

    def diagnose(
        self,
        ratings: Ratings,
        *,
        n_chains: int,
        n_threads: int | None = None,
        user_budgets: Mapping[Any, float] | None = None,
    ) -> Convergence:
        """Run more chains to see whether they agree, where a method `takes` them."""
        raise InvalidArgument(f"n_chains={n_chains}: {self.name} has no chains, leave it out")

    @classmethod
    def expected(cls, settings: Mapping[str, Any], release: Release, record: PlanRecord) -> Expected:
        """Return what a certified release of these settings should hold: see `dpmf.methods.verification`.

        Args:
            settings: all fields by name, as given or chosen, without budget and noise seed.
            release: whose catalogue, scale and budget count, and whose events only where nothing else says how many
                people there are, and that is public.
            record: what the plan was made from beside them.
        """
        raise InvalidArgument(f"{cls.name} has no certified mode")

    @classmethod
    def unit_for(cls, mode: str) -> str:
        """Return whom a guarantee of this mode protects: "user" or "rating"."""
        return "user"

    @classmethod
    def private_fields(
        cls,
        mode: str,
        epsilon: float,
        delta: float | None = None,
        *,
        neighbours: str | None = None,
        items_public: bool = False,
        allow_large_delta: bool = False,
    ) -> dict[str, Any]:
        """Return the fields that an epsilon sets: those that make the method private, or explicitly not.

        Args:
            mode: "certified" or "paper".
            epsilon: what is guaranteed, or claimed; infinity says explicitly: not private.
            delta: of the guarantee, if one was asked for. Claims have none, or one of their own.
            neighbours: of the guarantee, if they were asked for.
            items_public: whether item ids that were found in the data are asserted to be a public list.
            allow_large_delta: whether a delta of a half or more is meant.

        Raises:
            InvalidArgument: delta or neighbours were asked for, and the claim or the guarantee is not about them.
        """
        if not cls.modes:
            if math.isfinite(epsilon):
                raise InvalidArgument(f"epsilon={epsilon:g}: {cls.name} is not private, whatever the number")
            return {}
        if mode not in cls.modes:
            raise InvalidArgument(f"mode={mode!r}: no paper makes a claim about {cls.name} that could be repeated here")
        delta = DEFAULT_DELTA if delta is None else delta
        budget = Budget(epsilon, delta, cls.unit_for(mode), neighbours or "add-remove", allow_large_delta)
        modes = {"mode": mode} if "paper" in cls.modes else {}
        return {"budget": budget, "items_public": items_public, **modes}


def settings_of(kind: type[Settings], facts: Mapping[str, Any]) -> Settings:
    """Return settings with no field left open.

    Args:
        kind: a dataclass whose fields have the names of those of the method.
        facts: of the method, every choice made.
    """
    return kind(**{field.name: facts[field.name] for field in fields(kind)})  # type: ignore[arg-type]
