"""Stochastic gradient Langevin dynamics on the ratings of one block.

The density to sample from is exp(-E), with e = r - b_i - c_j - u_i·v_j, ratings in units in which the scale is centred,

    E = s Σ w_i min(max(e, r - high), r - low)² + Σ_ik P_k u_ik² + Σ_jk Q_k v_jk² + p Σ_i b_i² + q Σ_j c_j²:

predictions count as if they ended at `low` and `high`, so that no rating can cost more than a known amount. One step of
Langevin dynamics is θ ← θ - (η/2) ∇E + N(0, η). With the gradient estimated from one of N ratings, h = N η, and counts
N_i and N_j of a user's and an item's ratings, a rating whose prediction is inside the limits moves

    u_i += h (s w_i e v_j - P u_i / N_i),   v_j += h (s w_i e u_i - Q v_j / N_j),
    b_i += h (s w_i e - p b_i / N_i),       c_j += h (s w_i e - q c_j / N_j),

and every coordinate of every row gets noise of variance h / N, times a temperature. A row that a rating does not touch
gets nothing but noise. So the noise is added up: a row's clock tells at which step of the epoch it was last brought up
to date, and when it is read next it gets one draw for all steps since. Steps are numbered in the order of the epoch,
blocks by `dpmf.engine.schedule` and ratings inside a block as `dpmf.kernels.sgd` visits them. What the kernels compute
is said plainly in `dpmf.kernels.sgld_reference`.

>>> Dynamics.of(0.01, 1.0, 1e-6, 2.0, 2.0, -3.0, 3.0).step
np.float32(0.01)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.compiling import fast_kernel, kernel
from dpmf.kernels.gaussians import extra_lines, normal_row
from dpmf.kernels.hashing import mix_one
from dpmf.kernels.langevin import drift
from dpmf.kernels.rows import FLOATS_PER_LINE
from dpmf.kernels.sgd import lanes_for

_VISITS_AHEAD = 2  # in each lane
VISITS_AT_ONCE = 32  # for so many fresh numbers are drawn before any of them is used
PLACES = 1 << 31


class Side(NamedTuple):
    """Users, or items.

    Attributes:
        factors: shape (rows, width), contiguous, width a multiple of 16; columns beyond K hold zeros and keep them.
        biases: shape (rows,).
        clocks: shape (rows,), int64, up to which step of the epoch a row has had its noise.
        shares: shape (rows,), 1 / N_i or 1 / N_j.
        prior: shape (width,), P or Q.
    """

    factors: NDArray[Any]
    biases: NDArray[Any]
    clocks: NDArray[np.int64]
    shares: NDArray[Any]
    prior: NDArray[Any]


class Dynamics(NamedTuple):
    """The numbers of the module's formulas, as float32.

    Attributes:
        step: h.
        scale: s.
        variance: of the noise per step and coordinate.
        user_prior, item_prior: p and q.
        low, high: where predictions end.
    """

    step: np.float32
    scale: np.float32
    variance: np.float32
    user_prior: np.float32
    item_prior: np.float32
    low: np.float32
    high: np.float32

    @classmethod
    def of(cls, *numbers: float) -> Dynamics:
        """Make one from plain numbers."""
        return cls(*map(np.float32, numbers))


@numba.njit(inline="always")
def _table_place(word: Any, n_places: Any) -> Any:
    """Return where in the table a row's noise begins, by the lower 31 bits of a word."""
    return np.int64(((word & np.uint64(PLACES - 1)) * np.uint64(n_places)) >> np.uint64(31)) * FLOATS_PER_LINE


@numba.njit(inline="always")
def _signed(sd: Any, word: Any) -> Any:
    return -sd if word & np.uint64(PLACES) else sd


@numba.njit(inline="always")
def _visit(
    p: Any, now: Any, stop: Any, users: Any, items: Any, codes: Any, table: Any,
    U: Any, b: Any, u_clocks: Any, u_shares: Any, u_prior: Any, V: Any, c: Any, v_clocks: Any, v_shares: Any,
    v_prior: Any, weights: Any, mask: Any, width: Any, dynamics: Any, noise: Any, n_places: Any, slot: Any,
    bias_slot: Any, key: Any,
) -> Any:  # fmt: skip
    i = users[p]
    j = items[p]
    coming = items[min(p + _VISITS_AHEAD, stop - 1)]
    u_sd = np.sqrt(dynamics.variance * np.float32(now - u_clocks[i]))
    v_sd = np.sqrt(dynamics.variance * np.float32(now - v_clocks[j]))
    u_clocks[i] = now
    v_clocks[j] = now
    word = mix_one(key + np.uint64(now))
    if n_places:
        u_noise = _table_place(word, n_places)
        v_noise = _table_place(word >> np.uint64(32), n_places)
        u_sd = _signed(u_sd, word)
        v_sd = _signed(v_sd, word >> np.uint64(32))
        b_noise = u_noise + width
        c_noise = v_noise + width
    else:
        u_noise = slot
        v_noise = slot + width
        b_noise = bias_slot
        c_noise = bias_slot + 1
    bias = b[i] + u_sd * noise[b_noise]
    item_bias = c[j] + v_sd * noise[c_noise]
    rating = table[codes[p]]
    least = rating - dynamics.high
    most = rating - dynamics.low
    u_pull = dynamics.step * u_shares[i]
    v_pull = dynamics.step * v_shares[j]
    gain = dynamics.step * dynamics.scale * weights[i]
    e = drift(
        U, np.int64(i) * width, V, np.int64(j) * width, np.int64(coming) * width, width,
        noise, u_noise, v_noise, u_sd, v_sd, mask, u_prior, v_prior, u_pull, v_pull,
        rating - bias - item_bias, least, most, gain,
    )  # fmt: skip
    clipped = min(max(e, least), most)
    moved = gain * e if clipped == e else np.float32(0)
    b[i] = (np.float32(1) - u_pull * dynamics.user_prior) * bias + moved
    c[j] = (np.float32(1) - v_pull * dynamics.item_prior) * item_bias + moved
    return np.float64(clipped) * np.float64(clipped)


@fast_kernel
def _draw(key: np.uint64, start: int, count: int, width: Any, noise: NDArray[np.float32]) -> None:
    """Fill noise (out) with fresh numbers for some visits: 2·width each, and after them two each for the biases."""
    for place in range(count):
        normal_row(mix_one(key + np.uint64(start + place)), place * 2 * width, 2 * width, noise)
    of_biases = mix_one(mix_one(key) + np.uint64(start))
    normal_row(of_biases, VISITS_AT_ONCE * 2 * width, 2 * VISITS_AT_ONCE, noise)


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
        gaussians: as `dpmf.kernels.gaussians.normal_table` makes it; empty for fresh numbers.
        start: the number of the block's first step in the epoch.
        key: of the epoch's noise.
    """
    U, b, u_clocks, u_shares, u_prior = of_users
    V, c, v_clocks, v_shares, v_prior = of_items
    width = np.int64(U.shape[1])
    flat_U = U.reshape(U.size)
    flat_V = V.reshape(V.size)
    n_places, noise = np.int64(0), gaussians
    if len(gaussians):
        n_places = np.int64(len(gaussians) // FLOATS_PER_LINE - extra_lines(width))
    else:
        noise = np.empty(VISITS_AT_ONCE * 2 * (width + 1), np.float32)
    lane_bits = 2 if lanes_for(width) == 4 else 0
    length = len(codes) >> lane_bits
    squared = 0.0
    for first in range(0, len(codes), VISITS_AT_ONCE):
        last = min(first + VISITS_AT_ONCE, len(codes))
        if not n_places:
            _draw(key, start + first, last - first, width, noise)
        for place in range(first, last):
            p = place
            if place < length << lane_bits:
                p = (place & ((1 << lane_bits) - 1)) * length + (place >> lane_bits)
            squared += _visit(
                p, start + place, len(codes), users, items, codes, table, flat_U, b, u_clocks, u_shares, u_prior,
                flat_V, c, v_clocks, v_shares, v_prior, weights, mask, width, dynamics, noise, n_places,
                (place - first) * 2 * width, VISITS_AT_ONCE * 2 * width + 2 * (place - first), key,
            )  # fmt: skip
    return squared


@kernel
def drawn_per_row(width: Any) -> Any:
    """Return how many fresh numbers are drawn for a row and its bias: a multiple of 32."""
    return (width // 32 + 1) * 32


@fast_kernel
def settle(
    side: Side,  # out: factors, biases, clocks
    mask: NDArray[np.float32],
    variance: np.float32,
    gaussians: NDArray[np.float32],
    now: int,
    first: int,
    key: np.uint64,
) -> None:
    """Give all rows the noise they are owed at a step, and set their clocks back to 0.

    Args:
        side: what changes.
        mask, gaussians: as in `sgld_block`.
        variance: of the noise per step and coordinate.
        now: the step; at the end of an epoch, the number of its ratings.
        first: the number of the first row among all of its kind.
        key: of the noise.
    """
    factors, biases, clocks = side.factors, side.biases, side.clocks
    width = np.int64(factors.shape[1])
    n_places = np.int64(0)
    noise = gaussians
    if len(gaussians):
        n_places = np.int64(len(gaussians) // FLOATS_PER_LINE - extra_lines(width))
    else:
        noise = np.empty(drawn_per_row(width), np.float32)
    for row in range(len(biases)):
        sd = np.sqrt(variance * np.float32(now - clocks[row]))
        clocks[row] = 0
        word = mix_one(key + np.uint64(first + row))
        place = np.int64(0)
        if n_places:
            place = _table_place(word, n_places)
            sd = _signed(sd, word)
        else:
            normal_row(word, 0, len(noise), noise)
        for k in range(width):
            factors[row, k] += sd * mask[k] * noise[place + k]
        biases[row] += sd * noise[place + width]
