"""Stochastic gradient Langevin dynamics on the ratings of one block.

The density to sample from is exp(-E), with e = r - b_i - c_j - u_i·v_j, ratings in units in which the scale is centred,

    E = s Σ w_i min(max(e, r - high), r - low)² + Σ_ik P_k u_ik² + Σ_jk Q_k v_jk² + p Σ_i b_i² + q Σ_j c_j²:

predictions count as if they ended at `low` and `high`, so that no rating can cost more than a known amount. One step of
Langevin dynamics is θ ← θ - (η/2) ∇E + N(0, η). With the gradient of the squared errors estimated from one of N
ratings, and h = N η, a rating whose prediction is inside the limits moves

    u_i += h s w_i e v_j,    v_j += h s w_i e u_i,    b_i += h s w_i e,    c_j += h s w_i e,

and at every step every row is pulled towards 0 by its prior, u ← (1 - h P / N) u and so on, and gets noise of variance
h / N, times a temperature, on every coordinate. That needs no rating, so it is added up: a row's clock tells at which
step of the epoch it was last brought up to date, and when it is read next it gets one pull, by x = t h P / N for t
steps, and one draw, of variance t (1 - x/2) h / N, which leaves the prior as it is; unless the steps are few, and wait
for more. Steps are numbered in the order of the epoch, blocks by `dpmf.engine.schedule` and ratings inside a block as
`dpmf.kernels.sgd` visits them. What the kernels compute is said plainly in `dpmf.kernels.sgld_reference`.

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
from dpmf.kernels.langevin import drift, refresh
from dpmf.kernels.normals import normal_row
from dpmf.kernels.rows import FLOATS_PER_LINE
from dpmf.kernels.sgd import LANES, lanes_for

_VISITS_AHEAD = 2  # in each lane
VISITS_AT_ONCE = 32  # a group, for which numbers are drawn, or found in the table, at once; a word has two signs each
_TURNS_AT_ONCE = VISITS_AT_ONCE // LANES


class Side(NamedTuple):
    """Users, or items.

    Attributes:
        factors: shape (rows, width), contiguous, width a multiple of 16; columns beyond K hold zeros and keep them.
        biases: shape (rows,).
        clocks: shape (rows,), int64, up to which step of the epoch a row is up to date.
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
        low, high: where predictions end.
        patience: what so many steps bring, or fewer, waits.
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
        """Make one from plain numbers."""
        return cls(*map(np.float32, numbers))


@numba.njit(inline="always")
def _table_place(word: Any, n_lines: Any) -> Any:
    """Return where in the table to begin, by the upper half of a word."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n_lines)) >> np.uint64(32)) * FLOATS_PER_LINE


@numba.njit(inline="always")
def _signed(sd: Any, word: Any) -> Any:
    """Return sd with a sign, by the lowest bit of a word."""
    return -sd if word & np.uint64(1) else sd


@numba.njit(inline="always")
def _visit(
    p: Any, now: Any, stop: Any, patience: Any, users: Any, items: Any, codes: Any, table: Any,
    U: Any, b: Any, u_clocks: Any, u_prior: Any, V: Any, c: Any, v_clocks: Any, v_prior: Any, weights: Any,
    mask: Any, width: Any, dynamics: Any, noise: Any, slot: Any, bias_slot: Any, signs: Any,
) -> Any:  # fmt: skip
    i = users[p]
    j = items[p]
    coming = items[min(p + np.uint64(_VISITS_AHEAD), stop - np.uint64(1))]
    bias = refresh(
        U, b, u_clocks, u_prior, np.int64(i), width, now, patience, mask, noise, slot, bias_slot,
        signs, dynamics.pull, dynamics.pull * dynamics.user_prior, dynamics.variance,
    )  # fmt: skip
    item_bias = refresh(
        V, c, v_clocks, v_prior, np.int64(j), width, now, patience, mask, noise, slot + width, bias_slot + 1,
        signs >> np.uint64(1), dynamics.pull, dynamics.pull * dynamics.item_prior, dynamics.variance,
    )  # fmt: skip
    rating = table[codes[p]]
    least = rating - dynamics.high
    most = rating - dynamics.low
    gain = dynamics.step * dynamics.scale * weights[i]
    e = drift(
        U, np.int64(i) * width, V, np.int64(j) * width, np.int64(coming) * width, width,
        rating - bias - item_bias, least, most, gain,
    )  # fmt: skip
    clipped = min(max(e, least), most)
    moved = gain * e if clipped == e else np.float32(0)
    b[i] = bias + moved
    c[j] = item_bias + moved
    return np.float64(clipped) * np.float64(clipped)


@kernel
def drawn_at_once(width: Any) -> Any:
    """Return how many numbers a group of visits takes: 2·width each, and after them two each for the biases."""
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
    """Visit the ratings of a block; return the sum of squared errors as met on the way, within the limits.

    Args:
        users, items: shape (n,), rows of the sides; unsigned integers.
        codes: shape (n,), places in the table of rating values.
        table: the values.
        of_users, of_items: what changes.
        weights: w, of the users.
        mask: shape (width,), 1 for columns below K and 0 beyond.
        dynamics: the numbers of the module's formulas.
        gaussians: as `dpmf.kernels.normals.normal_table` makes it, with room for what `drawn_at_once` says; empty
            for fresh numbers.
        start: the number of the block's first step in the epoch.
        key: of the epoch's noise.
    """
    U, b, u_clocks, u_prior = of_users
    V, c, v_clocks, v_prior = of_items
    width = np.int64(U.shape[1])
    flat_U = U.reshape(U.size)
    flat_V = V.reshape(V.size)
    noise, n_lines = gaussians, np.int64(len(gaussians) - drawn_at_once(width)) // FLOATS_PER_LINE
    if not len(gaussians):
        noise, n_lines = np.empty(drawn_at_once(width), np.float32), np.int64(0)
    patience = np.int64(dynamics.patience)
    squared = 0.0
    length = len(codes) // LANES if lanes_for(width) == LANES else 0
    for first in range(0, length, _TURNS_AT_ONCE):
        place = LANES * first
        slot, bias_slot, signs = _numbers(key, start + place, width, n_lines, noise)
        for turn in range(first, min(first + _TURNS_AT_ONCE, length)):
            for lane in range(LANES):
                squared += _visit(
                    np.uint64(lane * length + turn), start + place, np.uint64(len(codes)), patience, users, items,
                    codes, table, flat_U, b, u_clocks, u_prior, flat_V, c, v_clocks, v_prior, weights, mask, width,
                    dynamics, noise, slot, bias_slot, signs,
                )  # fmt: skip
                place += 1
                slot += 2 * width
                bias_slot += 2
                signs >>= np.uint64(2)
    for first in range(LANES * length, len(codes), VISITS_AT_ONCE):
        slot, bias_slot, signs = _numbers(key, start + first, width, n_lines, noise)
        for place in range(first, min(first + VISITS_AT_ONCE, len(codes))):
            squared += _visit(
                np.uint64(place), start + place, np.uint64(len(codes)), patience, users, items,
                codes, table, flat_U, b, u_clocks, u_prior, flat_V, c, v_clocks, v_prior, weights, mask, width,
                dynamics, noise, slot, bias_slot, signs,
            )  # fmt: skip
            slot += 2 * width
            bias_slot += 2
            signs >>= np.uint64(2)
    return squared


@kernel
def drawn_per_row(width: Any) -> Any:
    """Return how many fresh numbers are drawn for a row and its bias: a multiple of 32."""
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
        side: what changes.
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
