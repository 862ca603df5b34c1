"""Stochastic gradient Langevin dynamics on the ratings of one block.

The target density is exp(-E), with e = r - b_i - c_j - u_i·v_j, ratings in units in which the scale is centred,

    E = s Σ w_i min(max(e, r - high), r - low)² + Σ_ik P_k u_ik² + Σ_jk Q_k v_jk² + p Σ_i b_i² + q Σ_j c_j²:

predictions are cut off at `low` and `high`, so that the cost of a rating is bounded. One step of Langevin dynamics
is θ ← θ - (η/2) ∇E + N(0, η). With the gradient of the squared errors estimated from one of N ratings, and h = N η, a
rating whose prediction is inside the limits moves

    u_i += h s w_i e v_j,    v_j += h s w_i e u_i,    b_i += h s w_i e,    c_j += h s w_i e,

and at every step every row is pulled towards 0 by its prior, u ← (1 - h P / N) u and so on, and gets noise of variance
h / N, times a temperature, on every coordinate. That needs no rating, so it is accumulated: a row's clock is the step
of the epoch at which it was last brought up to date, and when it is read next it gets one pull, by x = t h P / N for t
steps, and one draw, of variance t (1 - x/2) h / N, which leaves the prior invariant; unless the steps are few, which
wait for more. Steps are numbered in the order of the epoch, one per rating, blocks by `dpmf.engine.schedule`.

As in `dpmf.kernels.sgd`, up to four ratings of a user move their rows together, all from the old values. All rows are
brought up to date at the first of their steps. `dpmf.kernels.sgld_reference` computes the same in plain NumPy.

>>> Dynamics.of(0.01, 1.0, 1e-8, 1e-8, 2.0, 2.0, -3.0, 3.0).step
np.float32(0.01)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.descend import size_of_step
from dpmf.kernels.hashes import mix_one
from dpmf.kernels.jit import kernel
from dpmf.kernels.langevin import drift, pay
from dpmf.kernels.normals import normal_row
from dpmf.kernels.rows import FLOATS_PER_LINE


class Side(NamedTuple):
    """Users, or items.

    Attributes:
        factors: shape (rows, width), contiguous, width a multiple of 16; columns beyond K are zero and stay so.
        biases: shape (rows,).
        clocks: shape (rows,), int64, the step of the epoch up to which a row is up to date.
        prior: shape (width,), P or Q.
    """

    factors: NDArray[Any]
    biases: NDArray[Any]
    clocks: NDArray[np.int64]
    prior: NDArray[Any]


class Dynamics(NamedTuple):
    """The numbers of the module's formulas, as float32.

    Attributes:
        step: h.
        scale: s.
        pull: h / N.
        variance: of the noise per step and coordinate.
        user_prior, item_prior: p and q.
        low, high: where predictions are cut off.
        patience: pull and noise of at most this number of steps wait.
    """

    step: np.float32
    scale: np.float32
    pull: np.float32
    variance: np.float32
    user_prior: np.float32
    item_prior: np.float32
    low: np.float32
    high: np.float32
    patience: np.float32 = np.float32(0)

    @classmethod
    def of(cls, *numbers: float) -> Dynamics:
        """Convert plain numbers."""
        return cls(*map(np.float32, numbers))


@kernel
def drawn_per_row(width: Any) -> Any:
    """Return how many numbers are drawn for a row and its bias: a multiple of 32, more than width."""
    return (width // 32 + 1) * 32


@numba.njit(inline="always")
def _noise_of(gaussians: Any, width: Any) -> Any:
    """Return where noise comes from: numbers, of which rows begin at one of n lines, and n; if it is 0, fresh ones."""
    drawn = drawn_per_row(width)
    n_lines = np.int64(0)
    numbers = gaussians
    if len(gaussians):
        n_lines = (len(gaussians) - drawn) // FLOATS_PER_LINE
    else:
        numbers = np.empty(drawn, np.float32)
    return numbers, n_lines


@numba.njit(inline="always")
def _bring_up_to_date(
    factors: Any, biases: Any, prior: Any, largest: Any, bias_prior: Any, row: Any, due: Any, width: Any, mask: Any,
    dynamics: Any, noise: Any, n_lines: Any, word: Any,
) -> None:  # fmt: skip
    """Give a row and its bias the pull and the noise of the steps that are due; a word chooses the noise.

    Arrays come one by one: of those in a tuple, references would be counted for every rating, which takes longer.
    """
    steps = np.float32(due)
    sd = np.sqrt(dynamics.variance * steps)
    pull = dynamics.pull * steps
    place = np.int64(0)
    if n_lines:
        place = np.int64(((word >> np.uint64(32)) * np.uint64(n_lines)) >> np.uint64(32)) * FLOATS_PER_LINE
        sd = -sd if word & np.uint64(1) else sd
    else:
        normal_row(word, 0, drawn_per_row(width), noise)
    pay(factors, np.int64(row) * width, width, noise, place, prior, mask, sd, pull, pull * largest)
    x = pull * bias_prior
    less = sd * np.sqrt(np.float32(1) - np.float32(0.5) * x)
    biases[row] = (np.float32(1) - x) * biases[row] + less * noise[place + width]


@kernel
def sgld_block(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[np.float32],
    of_users: Side,  # out: factors, biases, clocks
    of_items: Side,  # out: factors, biases, clocks
    weights: NDArray[np.float32],
    mask: NDArray[np.float32],
    dynamics: Dynamics,
    gaussians: NDArray[np.float32],
    start: int,
    key: np.uint64,
) -> float:
    """Visit the ratings of a block; return the sum of squared errors, each before its update, within the limits.

    Args:
        users, items: shape (n,), rows of the sides; unsigned integers, ordered by user, and no pair twice.
        codes: shape (n,), indices into the table of rating values.
        table: the values.
        of_users, of_items: the state of users and items.
        weights: w, of the users.
        mask: shape (width,), 1 for columns below K and 0 beyond.
        dynamics: the numbers of the module's formulas.
        gaussians: the table of `dpmf.kernels.normals.normal_table`, longer by `drawn_per_row`; empty for fresh numbers.
        start: the number of the block's first step in the epoch.
        key: of the epoch's noise.
    """
    U, b, u_clocks, P = of_users
    V, c, v_clocks, Q = of_items
    width = np.int64(U.shape[1])
    flat_U, flat_V, most_P, most_Q = U.reshape(U.size), V.reshape(V.size), P.max(), Q.max()
    noise, n_lines = _noise_of(gaussians, width)
    patience, user_key, squared, place = np.int64(dynamics.patience), mix_one(key), 0.0, 0
    while place < len(codes):
        size, now, i = size_of_step(place, users), start + place, np.uint64(users[place])
        due = now - u_clocks[i]
        if due > patience:
            _bring_up_to_date(
                flat_U, b, P, most_P, dynamics.user_prior, i, due, width, mask,
                dynamics, noise, n_lines, mix_one(user_key + np.uint64(now)),
            )  # fmt: skip
            u_clocks[i] = now
        for q in range(place, place + size):
            j = np.uint64(items[q])
            due = now - v_clocks[j]
            if due > patience:
                _bring_up_to_date(
                    flat_V, c, Q, most_Q, dynamics.item_prior, j, due, width, mask,
                    dynamics, noise, n_lines, mix_one(key + np.uint64(start + q)),
                )  # fmt: skip
                v_clocks[j] = now
        gain = dynamics.step * dynamics.scale * weights[i]
        squared += drift(
            place, size, users, items, codes, table, flat_U, flat_V, b, c, width, gain, dynamics.low, dynamics.high
        )
        place += size
    return squared


@kernel
def settle(
    side: Side,  # out: factors, biases, clocks
    bias_prior: np.float32,
    mask: NDArray[np.float32],
    dynamics: Dynamics,
    gaussians: NDArray[np.float32],
    now: int,
    first: int,
    key: np.uint64,
) -> None:
    """Bring all rows up to date at a step, and set their clocks back to 0.

    Args:
        side: the state to bring up to date.
        bias_prior: p or q.
        mask, dynamics, gaussians: as in `sgld_block`.
        now: the step; at the end of an epoch, the number of its ratings.
        first: the number of the first row among all of its kind.
        key: of the noise.
    """
    factors, biases, clocks, prior = side
    width, most = np.int64(factors.shape[1]), prior.max()
    flat = factors.reshape(factors.size)
    noise, n_lines = _noise_of(gaussians, width)
    for row in range(len(biases)):
        _bring_up_to_date(
            flat, biases, prior, most, bias_prior, np.uint64(row), now - clocks[row], width, mask,
            dynamics, noise, n_lines, mix_one(key + np.uint64(first + row)),
        )  # fmt: skip
        clocks[row] = 0
