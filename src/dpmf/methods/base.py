"""What a method is: the one type that command line, runs, comparisons and documentation work with.

A new method is a folder with a subclass of `Method`, a line in the registry (`dpmf.methods.METHODS`) and a page of
documentation. The subclass is a frozen dataclass of public facts; ratings, and everything that concerns one run only,
are arguments of `fit`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.budget import DEFAULT_DELTA
from dpmf.privacy.ledger import Ledger

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
    """

    n_threads: int
    callbacks: tuple[Callback, ...] = ()
    checkpoint: Checkpoint | None = None
    user_budgets: Mapping[Any, float] | None = None
    ledger: Ledger | None = None


@dataclass(frozen=True)
class Method(ABC):
    """A way to factorize ratings. Subclasses are frozen dataclasses of public facts.

    Attributes:
        name: what it is called on the command line and in files.
        modes: the kinds of guarantee it can give for a finite epsilon: "certified", "paper", or none at all.
        feedbacks: what it can learn from: "explicit" ratings, "implicit" feedback.
    """

    name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ()
    feedbacks: ClassVar[tuple[str, ...]] = ("explicit",)

    def fit(
        self,
        ratings: AnyRatings,
        *,
        n_threads: int | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        user_budgets: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
    ) -> Model:
        """Train on ratings.

        Args:
            ratings: what to learn from, in memory or, where the method `streams`, on disk; the result is the same. A
                private run needs a declared catalogue, and, unless feedback is implicit, a declared scale.
            n_threads: all CPUs this process may use by default. It changes the speed, never the result.
            callbacks: called with the record of each epoch when it ends; one that returns True ends the training,
                except for a certified run, which says beforehand what it will release.
            checkpoint: where to keep snapshots. A run without noise resumes from them to the same result; a certified
                one resumes without the stage that it was stopped in, because no noise is drawn twice.
            user_budgets: the epsilon of users who want a smaller one than that of the budget, at the budget's delta.
            ledger: where to enter what the run will release, before any noise is drawn; a claim counts as unbounded.
        """
        options = RunOptions(thread_count(n_threads), tuple(callbacks), checkpoint, user_budgets, ledger)
        return self._checked(ratings, options)

    def _checked(self, ratings: AnyRatings, options: RunOptions, *more: Any) -> Model:
        """Train, after refusing what no kind of run can use."""
        if not len(ratings):
            raise InvalidArgument("there are no ratings to train on")
        if isinstance(ratings, StoredRatings) and not self.streams:
            raise InvalidArgument(
                f"{type(self).__name__} needs the ratings in memory here: allow more, or leave --memory out"
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
    def is_implicit(self) -> bool:
        """Whether it counts which items people have, not how they rate them."""
        return False

    @property
    def n_turns(self) -> int | None:
        """How many records the history of a whole run has, if that is known beforehand."""
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

    @classmethod
    def unit_for(cls, mode: str) -> str:
        """Return whom a guarantee of this mode protects: "user" or "rating"."""
        return "user"

    @classmethod
    def private_fields(
        cls,
        mode: str,
        epsilon: float,
        delta: float = DEFAULT_DELTA,
        *,
        neighbours: str = "add-remove",
        items_public: bool = False,
    ) -> dict[str, Any]:
        """Return the fields that an epsilon sets: those that make the method private, or explicitly not.

        Args:
            mode: "certified" or "paper".
            epsilon: what is guaranteed, or claimed; infinity says explicitly: not private.
            delta: of a guarantee. Claims have none, or one of their own.
            neighbours: of a guarantee.
            items_public: whether item ids that were found in the data are asserted to be a public list.
        """
        if not cls.modes:
            if math.isfinite(epsilon):
                raise InvalidArgument(f"epsilon={epsilon:g}: {cls.name} is not private, whatever the number")
            return {}
        if mode not in cls.modes:
            raise InvalidArgument(f"mode={mode!r}: no paper makes a claim about {cls.name} that could be repeated here")
        budget = Budget(epsilon, delta, cls.unit_for(mode), neighbours)
        modes = {"mode": mode} if "paper" in cls.modes else {}
        return {"budget": budget, "items_public": items_public, **modes}


def settings_of(kind: type[Settings], facts: Mapping[str, Any]) -> Settings:
    """Return settings with no field left open.

    Args:
        kind: a dataclass whose fields have the names of those of the method.
        facts: of the method, every choice made.
    """
    return kind(**{field.name: facts[field.name] for field in fields(kind)})  # type: ignore[arg-type]
