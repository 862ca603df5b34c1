"""Matrix factorization by descent along full gradients: every step takes in all ratings, and moves all rows at once.

A rating is predicted as centre + t_i·x_j, and ½ Σ (r - prediction)² + ½ Σ penalty_i ‖t_i‖² + ½ Σ penalty_j ‖x_j‖² is
minimised. How far rows move is a `Pace`. Gradients are sparse products over the ratings, by user and by item, so that
memory is what the ratings and four sets of factors take. The same seeds give the same bits for any number of threads.

>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> state = FullGradients.start(ratings, 4, Pace.quick(ratings, 1.0, 1.5), centre=3.0, unit=1.0, length=0.1, seed=0)
>>> errors = [state.advance(number, n_threads=1) for number in range(20)]
>>> errors[-1] < errors[0]
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows, fill_randomly
from dpmf.engine.sparse import SparseRows
from dpmf.engine.tensorfile import Tensor
from dpmf.engine.threads import run_tasks
from dpmf.errors import InvalidArgument
from dpmf.kernels.gradients import step_rows
from dpmf.kernels.transpose import count_columns
from dpmf.privacy.noise import STEPS_PER_SD, Noise
from dpmf.ratings import Ratings
from dpmf.streams import stream_key

Floats = NDArray[np.float32]
EXPONENT = 0.5  # of the number of ratings, by which steps fall and penalties grow in a quick run
_MOMENTUM = 0.8
_WITHIN = 1 - 1e-5  # more than single precision loses in a norm and a product
_RISE = 1.02  # of the squared error: then the steps were too long
_ROWS_PER_DRAW = 4096  # from the data alone, so that any number of threads draws the same


@dataclass(frozen=True, eq=False)
class Pace:
    """How far rows move for a unit of their gradient, and how strongly they are pulled back.

    Attributes:
        user_steps, user_penalties, item_steps, item_penalties: one for each row, float32.
        momentum: what part of the last move is made again.
        yielding: whether a step is taken back, and all that follow are halved, when the error rises; the published
            steps are what they are.
    """

    user_steps: Floats
    user_penalties: Floats
    item_steps: Floats
    item_penalties: Floats
    momentum: float = 0.0
    yielding: bool = False

    @classmethod
    def constant(cls, ratings: Ratings, step: float, penalty: float) -> Pace:
        """Return the same step and the same penalty for every row."""
        users, items = np.ones(ratings.n_users, np.float32), np.ones(ratings.n_items, np.float32)
        return cls(
            np.float32(step) * users, np.float32(penalty) * users, np.float32(step) * items, np.float32(penalty) * items
        )

    @classmethod
    def mean(cls, ratings: Ratings, step: float, user_penalty: float, item_penalty: float) -> Pace:
        """Return steps along the mean over a row's ratings of the gradient of e², and of penalty ‖row‖².

        With n ratings, t ← t - step (-2 Σ e x / n + 2 penalty t): a unit of Σ e x counts for 2 step / n, and the pull
        for n times the penalty. A row without ratings is pulled back only.
        """

        def paced(counts: NDArray[np.int64], penalty: float) -> tuple[Floats, Floats]:
            n = np.maximum(counts, 1).astype(np.float64)
            return (2 * step / n).astype(np.float32), (penalty * n).astype(np.float32)

        return cls(*paced(np.diff(ratings.indptr), user_penalty), *paced(_per_item(ratings), item_penalty))

    @classmethod
    def quick(cls, ratings: Ratings, rate: float, penalty: float) -> Pace:
        """Return steps that do not depend on how many ratings there are, with momentum.

        With n ratings of a row, and N of the row on its side that has most, a step is rate / √(n N): the curvature of a
        row grows with n, so that the row with most of them is the one that limits the rate. Penalties grow with √n.
        """

        def paced(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
            n = np.maximum(counts, 1).astype(np.float64)
            return (rate / (n * n.max()) ** EXPONENT).astype(np.float32), (penalty * n**EXPONENT).astype(np.float32)

        return cls(*paced(np.diff(ratings.indptr)), *paced(_per_item(ratings)), momentum=_MOMENTUM, yielding=True)


@dataclass(eq=False)
class FullGradients:
    """The state of a run.

    Attributes:
        users, items: the ratings from both sides, less the centre and in units.
        n_factors: K.
        pace: of the steps.
        clip: to what length item factors are shortened in the gradient of user factors; infinity for not at all.
        T, X: factors of users and of items, rows of whole lines.
        T_before, X_before: the same one step ago.
        memory: shape (2,): what is left of the steps, and the squared error of the last one.
        user_clip: to what length user factors are shortened in the gradient of item factors; by default, not at all.
        radius: no user's factors are ever longer than this: they are shortened to it at the start and after every step.
    """

    users: SparseRows
    items: SparseRows
    n_factors: int
    pace: Pace
    clip: float
    T: Floats
    X: Floats
    T_before: Floats
    X_before: Floats
    memory: NDArray[np.float64]
    user_clip: float = math.inf
    radius: float = math.inf

    def __post_init__(self) -> None:
        self._project()

    @classmethod
    def start(
        cls,
        ratings: Ratings,
        n_factors: int,
        pace: Pace,
        *,
        centre: float,
        unit: float,
        length: float,
        seed: int,
        clip: float = math.inf,
        user_clip: float = math.inf,
        radius: float = math.inf,
        n_threads: int = 1,
    ) -> FullGradients:
        """Return rows of one length in random directions, each made from its own id.

        Args:
            ratings: what to learn from.
            n_factors: K.
            pace: of the steps.
            centre: what predictions start from.
            unit: of the rating scale; factors are those of ratings divided by it.
            length: of all rows.
            seed: of the directions.
            clip, user_clip, radius: see above.
            n_threads: for the preparations.
        """
        values = ((ratings.values - np.float32(centre)) / np.float32(unit)).astype(np.float32)
        users = SparseRows.by_user(ratings).with_values(values)
        rows = []
        for name, keys in (("user factors", ratings.user_ids.keys), ("item factors", ratings.catalogue.ids.keys)):
            one = factor_rows(len(keys), n_factors)
            fill_randomly(stream_key(seed, name), keys, n_factors, 1.0, one)
            one *= length / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-30).astype(np.float32)
            rows += [one, one.copy()]
        T, T_before, X, X_before = rows
        items = users.transposed(ratings.n_items, n_threads)
        memory = np.array([1.0, math.inf])
        return cls(users, items, n_factors, pace, clip, T, X, T_before, X_before, memory, user_clip, radius)

    def advance(self, number: int, n_threads: int, noise: Floats | None = None) -> float:
        """Take a step, counted from 0, and return the root mean squared error before it, in units.

        Args:
            number: of the step.
            n_threads: how many threads to use.
            noise: what is added to the gradient of user factors, shape (n_users, K).
        """
        none = np.zeros((0, self.n_factors), np.float32)
        left, pace = np.float32(self.memory[0]), self.pace
        good = (self.T_before.copy(), self.X_before.copy()) if pace.yielding else None
        squared = self._move(
            self.users, self.T, self.X, _shortened(self.X, self.clip), left * pace.user_steps, pace.user_penalties,
            none if noise is None else noise, self.T_before, n_threads,
        )  # fmt: skip
        self._move(
            self.items, self.X, self.T, _shortened(self.T, self.user_clip), left * pace.item_steps, pace.item_penalties,
            none, self.X_before, n_threads,
        )  # fmt: skip
        self.T, self.T_before = self.T_before, self.T
        self.X, self.X_before = self.X_before, self.X
        self._project()
        finite = math.isfinite(squared) and bool(np.isfinite(self.X).all() and np.isfinite(self.T).all())
        if good is not None and not (finite and squared <= _RISE * self.memory[1]):
            self.memory[0] /= 2
            self.T[:], self.X[:] = good  # where the error had not risen yet
            self.T_before[:], self.X_before[:] = good  # so there is no momentum either
        elif not finite:
            raise InvalidArgument(f"the steps diverged in iteration {number + 1}: take a smaller learning_rate")
        else:
            self.memory[1] = squared
        return math.sqrt(squared / max(len(self.users.values), 1)) if math.isfinite(squared) else math.inf

    def _move(
        self, side: SparseRows, own: Floats, others: Floats, shortened: Floats, steps: Floats, penalties: Floats,
        noise: Floats, before: Floats, n_threads: int,
    ) -> float:  # fmt: skip
        def work(start: int, stop: int) -> float:
            momentum = self.pace.momentum
            return step_rows(side.csr, start, stop, own, others, shortened, steps, penalties, momentum, noise, before)

        return side.visit(work, n_threads)

    def _project(self) -> None:
        """Shorten factors of users that are too long, to a hair below the radius: rounding must not pass it."""
        if math.isfinite(self.radius):
            with np.errstate(invalid="ignore"):  # steps that diverge are reported below
                self.T *= _shortened(self.T, self.radius * _WITHIN)[:, None]

    def forget_unrated(self) -> None:
        """Set to 0 the rows that have no ratings: nothing is known about them."""
        for side, rows in ((self.users, (self.T, self.T_before)), (self.items, (self.X, self.X_before))):
            for one in rows:
                one[np.diff(side.indptr) == 0] = 0

    def tensors(self) -> dict[str, Tensor]:
        """Return what a snapshot keeps."""
        kept: dict[str, Tensor] = {"T": self.T, "X": self.X, "memory": self.memory}
        if self.pace.momentum:
            kept |= {"T_before": self.T_before, "X_before": self.X_before}
        return kept

    def factors(self, unit: float) -> tuple[Floats, Floats]:
        """Return factors of users and of items, for ratings in their own units."""
        T, X = (np.ascontiguousarray(rows[:, : self.n_factors]) for rows in (self.T, self.X))
        return T * np.float32(math.sqrt(unit)), X * np.float32(math.sqrt(unit))


def _per_item(ratings: Ratings) -> NDArray[np.int64]:
    """Return how many ratings every item has."""
    counts = np.zeros(ratings.n_items, np.int64)
    count_columns(ratings.items, counts)
    return counts


def _shortened(rows: Floats, clip: float) -> Floats:
    """Return for every row by what it has to be multiplied to have at most this length."""
    if math.isinf(clip):
        return np.ones(len(rows), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # steps that diverge are reported once they have
        shortened: Floats = np.minimum(1.0, clip / np.maximum(np.linalg.norm(rows, axis=1), 1e-30)).astype(np.float32)
    return shortened


def drawn_noise(noise: Noise, sd: float, number: int, shape: tuple[int, int], n_threads: int) -> Floats:
    """Return Gaussian noise for every row of a gradient; the same for any number of threads if it is seeded.

    Args:
        noise: where it comes from.
        sd: its standard deviation.
        number: of the step, from 0; noise of a step is drawn once.
        shape: rows and columns.
        n_threads: how many threads to use.
    """
    n_rows, n_tasks = shape[0], -(-shape[0] // _ROWS_PER_DRAW)
    drawn = np.empty(shape, np.float32)

    def draw(task: int) -> None:
        rows = drawn[task * _ROWS_PER_DRAW : min((task + 1) * _ROWS_PER_DRAW, n_rows)]
        rows[:] = noise.integers(rows.shape, "user gradients", number * n_tasks + task) * (sd / STEPS_PER_SD)

    run_tasks(draw, n_tasks, n_threads)
    return drawn
