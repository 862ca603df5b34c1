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
wait for more. Steps are numbered in the order of the epoch, blocks by `dpmf.engine.schedule` and ratings inside a block
as `dpmf.kernels.lanes` has it. `dpmf.kernels.sgld_reference` computes the same in plain NumPy.

>>> Dynamics.of(0.01, 1.0, 1e-8, 1e-8, 2.0, 2.0, -3.0, 3.0).step
np.float32(0.01)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.hashes import mix_one
from dpmf.kernels.jit import fast_kernel, kernel
from dpmf.kernels.lanes import LANES, lanes_for
from dpmf.kernels.langevin import drift, refresh
from dpmf.kernels.normals import normal_row
from dpmf.kernels.rows import FLOATS_PER_LINE

_VISITS_AHEAD = 2  # in each lane
VISITS_AT_ONCE = 32  # a group, which shares one draw or one place in the table; a word has two signs for each visit
_TURNS_AT_ONCE = VISITS_AT_ONCE // LANES


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


@numba.njit(inline="always")
def _table_place(word: Any, n_lines: Any) -> Any:
    """Return the index in the table to begin at, by the upper half of a word."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n_lines)) >> np.uint64(32)) * FLOATS_PER_LINE


@numba.njit(inline="always")
def _signed(sd: Any, word: Any) -> Any:
    """Return sd with a sign, by the lowest bit of a word."""
    return -sd if word & np.uint64(1) else sd


class _Run(NamedTuple):
    """What the visits of a block share, besides its ratings: both sides with flat rows, and the numbers of a step."""

    U: Any
    b: Any
    u_clocks: Any
    u_prior: Any
    V: Any
    c: Any
    v_clocks: Any
    v_prior: Any
    weights: Any
    mask: Any
    width: Any
    patience: Any
    dynamics: Any
    noise: Any


class _Slots(NamedTuple):
    """Where the numbers of a visit are in the noise: those of rows, those of biases, and the bits of their signs."""

    rows: Any
    biases: Any
    signs: Any


@numba.njit(inline="always")
def _visit(p: Any, now: Any, users: Any, items: Any, codes: Any, table: Any, run: Any, slots: Any) -> Any:
    i, j = users[p], items[p]
    coming = items[min(p + np.uint64(_VISITS_AHEAD), np.uint64(len(codes)) - np.uint64(1))]
    width, dynamics = run.width, run.dynamics
    bias = refresh(
        run.U, run.b, run.u_clocks, run.u_prior, np.int64(i), width, now, run.patience, run.mask,
        run.noise, slots.rows, slots.biases, slots.signs,
        dynamics.pull, dynamics.pull * dynamics.user_prior, dynamics.variance,
    )  # fmt: skip
    item_bias = refresh(
        run.V, run.c, run.v_clocks, run.v_prior, np.int64(j), width, now, run.patience, run.mask,
        run.noise, slots.rows + width, slots.biases + 1, slots.signs >> np.uint64(1),
        dynamics.pull, dynamics.pull * dynamics.item_prior, dynamics.variance,
    )  # fmt: skip
    rating = table[codes[p]]
    least, most = rating - dynamics.high, rating - dynamics.low
    gain = dynamics.step * dynamics.scale * run.weights[i]
    u, v, v_next = np.int64(i) * width, np.int64(j) * width, np.int64(coming) * width
    e = drift(run.U, u, run.V, v, v_next, width, rating - bias - item_bias, least, most, gain)
    clipped = min(max(e, least), most)
    moved = gain * e if clipped == e else np.float32(0)
    run.b[i] = bias + moved
    run.c[j] = item_bias + moved
    return np.float64(clipped) * np.float64(clipped)


@kernel
def drawn_at_once(width: Any) -> Any:
    """Return the size of the noise of a group of visits: 2·width numbers each, then two each for the biases."""
    return VISITS_AT_ONCE * 2 * (width + 1)


@fast_kernel
def _draw(key: np.uint64, start: int, count: int, width: Any, noise: NDArray[np.float32]) -> None:
    """Fill noise (out) with fresh numbers for a group of visits, as `drawn_at_once` says."""
    for place in range(count):
        normal_row(mix_one(key + np.uint64(start + place)), place * 2 * width, 2 * width, noise)
    of_biases = mix_one(mix_one(key) + np.uint64(start))
    normal_row(of_biases, VISITS_AT_ONCE * 2 * width, 2 * VISITS_AT_ONCE, noise)


@numba.njit(inline="always")
def _numbers(key: Any, now: Any, width: Any, n_lines: Any, noise: Any) -> Any:
    """Return where the numbers of a group of visits begin, those for rows and for biases, and their signs."""
    slot = np.int64(0)
    signs = np.uint64(0)
    if n_lines:
        word = mix_one(key + np.uint64(now))
        slot = _table_place(word, n_lines)
        signs = mix_one(word)
    else:
        _draw(key, now, VISITS_AT_ONCE, width, noise)
    return slot, slot + VISITS_AT_ONCE * 2 * width, signs


@fast_kernel
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
        users, items: shape (n,), rows of the sides; unsigned integers.
        codes: shape (n,), indices into the table of rating values.
        table: the values.
        of_users, of_items: the state of users and items.
        weights: w, of the users.
        mask: shape (width,), 1 for columns below K and 0 beyond.
        dynamics: the numbers of the module's formulas.
        gaussians: the table of `dpmf.kernels.normals.normal_table`, longer by `drawn_at_once`; empty for fresh numbers.
        start: the number of the block's first step in the epoch.
        key: of the epoch's noise.
    """
    U, b, u_clocks, u_prior = of_users
    V, c, v_clocks, v_prior = of_items
    width = np.int64(U.shape[1])
    noise, n_lines = gaussians, np.int64(len(gaussians) - drawn_at_once(width)) // FLOATS_PER_LINE
    if not len(gaussians):
        noise, n_lines = np.empty(drawn_at_once(width), np.float32), np.int64(0)
    run = _Run(
        U.reshape(U.size), b, u_clocks, u_prior, V.reshape(V.size), c, v_clocks, v_prior,
        weights, mask, width, np.int64(dynamics.patience), dynamics, noise,
    )  # fmt: skip
    squared = 0.0
    length = len(codes) // LANES if lanes_for(width) == LANES else 0
    for first in range(0, length, _TURNS_AT_ONCE):
        place = LANES * first
        slot, bias_slot, signs = _numbers(key, start + place, width, n_lines, noise)
        for turn in range(first, min(first + _TURNS_AT_ONCE, length)):
            for lane in range(LANES):
                p, slots = np.uint64(lane * length + turn), _Slots(slot, bias_slot, signs)
                squared += _visit(p, start + place, users, items, codes, table, run, slots)
                place += 1
                slot += 2 * width
                bias_slot += 2
                signs >>= np.uint64(2)
    for first in range(LANES * length, len(codes), VISITS_AT_ONCE):
        slot, bias_slot, signs = _numbers(key, start + first, width, n_lines, noise)
        for place in range(first, min(first + VISITS_AT_ONCE, len(codes))):
            p, slots = np.uint64(place), _Slots(slot, bias_slot, signs)
            squared += _visit(p, start + place, users, items, codes, table, run, slots)
            slot += 2 * width
            bias_slot += 2
            signs >>= np.uint64(2)
    return squared


@kernel
def drawn_per_row(width: Any) -> Any:
    """Return the number of fresh draws for a row and its bias: a multiple of 32."""
    return (width // 32 + 1) * 32


@fast_kernel
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
    width = np.int64(factors.shape[1])
    noise, n_lines = gaussians, np.int64(len(gaussians) - drawn_at_once(width)) // FLOATS_PER_LINE
    if not len(gaussians):
        noise, n_lines = np.empty(drawn_per_row(width), np.float32), np.int64(0)
    for row in range(len(biases)):
        due = np.float32(now - clocks[row])
        sd, pulled = np.sqrt(dynamics.variance * due), dynamics.pull * due
        clocks[row] = 0
        word = mix_one(key + np.uint64(first + row))
        place = np.int64(0)
        if n_lines:
            place = _table_place(word, n_lines)
            sd = _signed(sd, word)
        else:
            normal_row(word, 0, len(noise), noise)
        for k in range(width):
            x = pulled * prior[k]
            shrunk = sd * np.sqrt(np.float32(1) - np.float32(0.5) * x)
            factors[row, k] = (np.float32(1) - x) * factors[row, k] + shrunk * mask[k] * noise[place + k]
        x = pulled * bias_prior
        shrunk = sd * np.sqrt(np.float32(1) - np.float32(0.5) * x)
        biases[row] = (np.float32(1) - x) * biases[row] + shrunk * noise[place + width]
