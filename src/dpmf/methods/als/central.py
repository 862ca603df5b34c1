"""Private least squares where one party holds all ratings: it sums everybody's answers, and releases sums with noise.

What is public of a run is `dpmf.methods.als.certified`; here is what is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.ridge import squared_errors
from dpmf.methods.als.certified import PrivateRounds
from dpmf.methods.als.plan import Plan, Stage
from dpmf.methods.certified.questions import Fit, Moments, Noisy, People, Question, add_answers, solve
from dpmf.methods.certified.sums import over_users, release_sum
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Ratings

Array = NDArray[np.float64]


class FittedPeople:
    """What everybody fits to a release for themselves, computed by whoever holds all ratings.

    Args:
        solving: the ratings.
        n_threads: how many threads to use.
    """

    def __init__(self, solving: Ratings, n_threads: int) -> None:
        self._solving, self._n_threads = solving, n_threads
        self._solved: Fit | None = None
        self.b = np.zeros(solving.n_users, np.float32)
        self.U = np.zeros((solving.n_users, 0), np.float32)

    def solve(self, fit: Fit) -> None:
        """Let everybody fit their bias and factors, unless they have just done so."""
        if self._solved is not None and fit.asks_the_same_as(self._solved):
            return
        if self.U.shape[1] != fit.V.shape[1]:
            self.U = np.zeros((self._solving.n_users, fit.V.shape[1]), np.float32)

        def work(_: int, first: int, last: int) -> None:
            solve(fit, self._solving, first, last, self.b, self.U)

        over_users(self._solving, work, 16 * self._n_threads, self._n_threads)
        self._solved = fit

    def error(self, public: PrivateRounds) -> float:
        """Return the root mean squared error on all ratings, for the holder of the data."""
        ratings, total = self._solving, np.zeros(self._n_threads)

        def add(task: int, first: int, last: int) -> None:
            total[task] = squared_errors(
                ratings.indptr, ratings.items, ratings.values, first, last, public.V, public.c, public.mean, self.b,
                self.U,
            )  # fmt: skip

        over_users(ratings, add, self._n_threads, self._n_threads)
        return math.sqrt(float(total.sum()) / max(len(ratings), 1))


@dataclass(eq=False)
class CentralRounds:
    """The state of a run. What is in `public` may be released; everything about users stays here.

    Args:
        plan: the public facts.
        solving: all ratings, from which everybody computes their own bias and factors.
        counted: the ratings that count towards the sums, perhaps fewer.
        shares: what part of the full weight each user has, from 0 to 1.
        mechanism: adds the noise.
        seed: of the public start.
        n_threads: how many threads to use.
    """

    plan: Plan
    solving: Ratings
    counted: Ratings
    shares: Array
    mechanism: Mechanism
    seed: int
    n_threads: int
    public: PrivateRounds = field(init=False)
    fitted: FittedPeople = field(init=False)

    def __post_init__(self) -> None:
        catalogue = self.solving.catalogue
        self.public = PrivateRounds(self.plan, self.solving.scale, catalogue.ids.keys, self, self.seed)
        self._people = People(self.solving, self.counted, self.shares)
        self.fitted = FittedPeople(self.solving, self.n_threads)

    def ask(self, *questions: Question) -> tuple[Noisy, ...]:
        """Sum everybody's answers, and release the sums."""
        return tuple(self._ask(question) for question in questions)

    def _ask(self, question: Question) -> Noisy:
        bound = question.sensitivity(self.plan)
        if isinstance(question, Moments):
            self.fitted.solve(question.fit)

        def add(first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
            add_answers(question, self._people, first, last, steps, sums, self.fitted.U)

        values = release_sum(
            self.mechanism, question.what, bound, question.shape, add, self.counted, self.n_threads
        )  # fmt: skip
        return Noisy(values, self.mechanism.sd(question.what, bound))

    def forfeit(self, what: str) -> None:
        """Give up a release that is not needed."""
        self.mechanism.forfeit(what)

    def measure(self, stage: Stage) -> None:
        """Release what a stage releases, and make of it what is public."""
        self.public.measure(stage)

    def settle(self, stage: Stage) -> None:
        """Let everybody compute their own part from what is public after a stage."""
        final = stage.round == self.plan.n_rounds - 1
        self.fitted.solve(self.public.fit(biases_only=stage.round is None, final=final))

    def solve_users(self, *, final: bool = False) -> None:
        """Let everybody compute their own bias and factors from the release so far and their own ratings."""
        self.fitted.solve(self.public.fit(final=final))

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return self.public.released()

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned; `settle` then makes the users' part of it."""
        self.public.take_up(tensors)

    def training_error(self) -> float:
        """Return the root mean squared error on all ratings, for the holder of the data."""
        return self.fitted.error(self.public)
