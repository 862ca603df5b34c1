"""Stochastic gradient descent whose factors live in a count sketch: one table of cells for all users and all items.

Letters: a table of k rows of w cells. Component l of an id with the 64-bit key x lives in one cell of each row r: in
cell h_r(x, l), with the sign s_r(x, l). Reading it gives the mean (or the median) of these k cells, each times its
sign; adding δ to it adds δ times its sign to each of them. Ids that share a cell disturb each other, with random signs.

`Family` says where a component lives. For every (r, l), and for users and items apart, it has three random 64-bit
numbers (a, a', b), and with x = x₁ 2³² + x₀

    v = ((a + x₀)(a' + x₁) + b mod 2⁶⁴) >> 31,   h = ((v >> 1) w) >> 32,   s = 1 - 2 (v mod 2).

The 33 bits of v are uniform, and independent for any two different x ("pair-multiply-shift" is strongly universal:
Thorup, "High speed hashing for integers and strings"); for different r or l, or a user and an item, they are
independent because their numbers are. So signs and addresses are pairwise independent; the probability of a cell
differs from 1/w by less than 2⁻³².

The updates are those of `dpmf.kernels.sgd` for a unit of 1, from what is read: biases and factors share cells, so
ratings come in units in which both are of about the same size. A rating with a large e² changes nothing.

>>> family = Family.of(np.random.default_rng(0), depth=4, width=90, n_factors=2, biased=True)
>>> cells, keys = np.zeros(4 * 90, np.float32), np.array([7, 8], np.uint64)
>>> add_reference(cells, family, 0, keys[0], np.r_[1.0, -2.0, np.zeros(14), 3.0])
>>> read_reference(cells, family, 0, keys[0], median=True)[[0, 1, 16]].tolist()
[1.0, -2.0, 3.0]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.cells import (
    add_apart,
    add_everywhere,
    add_one,
    locate,
    move,
    prefetch_cells,
    product_of,
    read_mean,
    read_one,
)
from dpmf.kernels.jit import fast_kernel, kernel
from dpmf.kernels.rows import FLOATS_PER_LINE

_LOW = np.uint64(0xFFFFFFFF)
_HALF, _SIGN, _ONE = np.uint64(32), np.uint64(31), np.uint64(1)
_AHEAD = 2  # the number of ratings by which cells of an item are prefetched
_CELLS_IN_CACHE = 1 << 18  # a table of this size is not prefetched: it is in the second-level cache
_CACHED_PLACES = 1 << 18  # of items that recur: 1 MB, half of a second-level cache
NO_LIMIT = np.float32(1e30)
MOST_ROWS = 16


class Family(NamedTuple):
    """The hash functions: those of users, then those of items, `size` of each.

    Those of a side are in lines of sixteen: the factors of the first row, of the next rows, and, if there is one, the
    biases of all rows.

    Attributes:
        numbers: shape (8·size,): all a, all a', all b, and where the row of each function begins; those of items are
            `size` further on than those of users.
        live: shape (16·n_lines,), 1, and 0 for components that only fill up a line.
        size: of one side.
        width: w.
        depth: k.
        n_components: D, the factors in whole lines of sixteen and, if there is one, the bias.
        n_lines: of factors in a row.
        biased: whether the last component is a bias.
    """

    numbers: NDArray[np.uint64]
    live: NDArray[np.float32]
    size: int
    width: np.uint64
    depth: int
    n_components: int
    n_lines: int
    biased: bool

    @classmethod
    def of(cls, generator: np.random.Generator, depth: int, width: int, n_factors: int, biased: bool) -> Family:
        """Draw the functions of `depth` rows of `width` cells."""
        lines = -(-n_factors // FLOATS_PER_LINE)
        D, size = FLOATS_PER_LINE * lines + biased, FLOATS_PER_LINE * (depth * lines + biased)
        numbers = np.zeros((4, 2, size), np.uint64)
        order = _order(depth, lines, biased).ravel()
        numbers[:3, :, order] = generator.integers(0, 1 << 64, (3, 2, depth * D), np.uint64)
        numbers[3, :, order] = np.repeat(np.arange(depth, dtype=np.uint64) * np.uint64(width), D)[:, None]
        live = np.zeros(FLOATS_PER_LINE * lines, np.float32)
        live[:n_factors] = 1
        return cls(numbers.ravel(), live, size, np.uint64(width), depth, D, lines, biased)


def _order(depth: int, lines: int, biased: bool) -> NDArray[np.int64]:
    """Return where the function of every row and component is in a side, shape (k, D).

    >>> _order(2, 1, True)[:, [0, 15, 16]].tolist()
    [[0, 15, 32], [16, 31, 33]]
    """
    factors = np.arange(depth * lines * FLOATS_PER_LINE).reshape(depth, -1)
    return np.hstack([factors, factors.size + np.arange(depth)[:, None]]) if biased else factors


class SketchStep(NamedTuple):
    """The numbers of a pass, as float32: mean, eta and lambda of `dpmf.kernels.sgd`, and the greatest e² to count."""

    mean: np.float32
    eta: np.float32
    lam: np.float32
    most: np.float32

    @classmethod
    def of(cls, mean: float, eta: float, lam: float, most: float) -> SketchStep:
        """Convert plain numbers; the last may be infinite."""
        return cls(np.float32(mean), np.float32(eta), np.float32(lam), np.float32(min(most, float(NO_LIMIT))))


@fast_kernel
def _read(cells: Any, places: Any, start: Any, family: Any, median: Any, out: Any) -> None:
    """Write what the rows say of every component to out: their mean or, of an even number, the middle two's median."""
    depth, lines = np.int64(family.depth), np.int64(family.n_lines)
    width = FLOATS_PER_LINE * lines
    if not median:
        share = np.float32(1) / np.float32(depth)
        read_mean(cells, places, start, depth, lines, share, family.live, out)
        if family.biased:
            out[width] = read_one(cells, places, start + depth * width, depth, share)
        return
    found = np.empty(MOST_ROWS, np.float32)
    for part in range(len(out)):
        for row in range(depth):
            at, place = start + (depth * width + row if part == width else row * width + part), row
            number = read_one(cells, places, at, 1, np.float32(1))
            while place > 0 and found[place - 1] > number:
                found[place] = found[place - 1]
                place -= 1
            found[place] = number
        used = np.float32(1) if part == width else family.live[part]
        out[part] = used * np.float32(0.5) * (found[(depth - 1) // 2] + found[depth // 2])


@fast_kernel
def _change_user(cells: Any, places: Any, repeated: Any, family: Any, key: Any, median: Any, u: Any, old: Any) -> None:
    """Add what the previous user has learnt to their cells, and read the next; all but family and key change."""
    depth, lines = np.int64(family.depth), np.int64(family.n_lines)
    for part in range(len(u)):
        old[part] = u[part] - old[part]
    if repeated[0]:
        add_everywhere(cells, places, 0, depth, lines, old)
    else:
        add_apart(cells, places, 0, depth, lines, old)
    if family.biased:
        add_one(cells, places, FLOATS_PER_LINE * depth * lines, depth, old[FLOATS_PER_LINE * lines])
    factors = FLOATS_PER_LINE * depth * lines
    repeated[0] = locate(family.numbers, 0, np.int64(family.size), factors, key, family.width, places, 0)
    _read(cells, places, 0, family, median, u)
    old[:] = u


@fast_kernel
def _slots(n_items: Any, size: Any) -> Any:
    """Return the number of items whose places are cached, a power of two."""
    slots = 1
    while slots < n_items and 2 * slots * size <= _CACHED_PLACES:
        slots *= 2
    return slots


@fast_kernel
def sketch_block(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[np.float32],
    user_keys: NDArray[np.uint64],
    item_keys: NDArray[np.uint64],
    b: NDArray[np.float32],
    c: NDArray[np.float32],
    cells: NDArray[np.float32],  # out
    family: Family,
    median: bool,
    step: SketchStep,
) -> float:
    """Visit ratings in the given order; return the sum of e², each before its update.

    For consecutive ratings of one user, the user's components are read once, and what they learnt is added to the cells
    at the end. It is one long body because passing arrays to an inlined function inside a condition costs more than the
    function itself.

    Args:
        users, items: shape (n,), indices into the keys.
        codes: shape (n,), indices into the table of rating values.
        table: the values.
        user_keys, item_keys: the keys of ids.
        b, c: known biases of users and items, added to predictions; shape (1,) with a 0 if there are none.
        cells: shape (k·w,), the sketch.
        family: where components live.
        median: whether reading takes the median of rows, not the mean.
        step: mean, eta, lambda and the greatest e² that counts.
    """
    if not len(codes):
        return 0.0
    lines, depth, size = np.int64(family.n_lines), np.int64(family.depth), np.int64(family.size)
    width, count, biased = FLOATS_PER_LINE * lines, np.int64(len(codes)), np.int64(family.biased)
    numbers, live, share = family.numbers, family.live, np.float32(1) / np.float32(depth)
    known_b, known_c = np.int64(len(b) > 1), np.int64(len(c) > 1)
    fetched = size if len(cells) > _CELLS_IN_CACHE else 0
    # The places of the user, then those of items that were met, in slots that items share; whether one comes twice.
    slots = _slots(len(item_keys), size)
    places, repeated = np.zeros((1 + slots) * size, np.uint32), np.ones(1 + slots, np.bool_)
    owners = np.full(slots, -1, np.int64)
    u, old = np.zeros(width + biased, np.float32), np.zeros(width + biased, np.float32)
    v, change = np.zeros(width + biased, np.float32), np.zeros(width + biased, np.float32)
    lost = step.eta * step.lam
    squared, here = 0.0, np.uint64(0)
    for p in range(count):
        if fetched and p + _AHEAD < count:
            coming = np.int64(items[p + _AHEAD])
            slot = coming & (slots - 1)
            if owners[slot] != coming:
                owners[slot] = coming
                repeated[1 + slot] = locate(
                    numbers, size, size, depth * width, item_keys[coming], family.width, places, (1 + slot) * size
                )
            prefetch_cells(cells, places, (1 + slot) * size, fetched)
        i, j = np.int64(users[p]), np.int64(items[p])
        if p == 0 or user_keys[i] != here:
            here = user_keys[i]
            _change_user(cells, places, repeated, family, here, median, u, old)
        slot = j & (slots - 1)
        start = (1 + slot) * size
        if owners[slot] != j:
            owners[slot] = j
            repeated[1 + slot] = locate(numbers, size, size, depth * width, item_keys[j], family.width, places, start)
        item_bias = np.float32(0)
        if median:
            _read(cells, places, start, family, median, v)
            if biased:
                item_bias = v[width]
        else:
            read_mean(cells, places, start, depth, lines, share, live, v)
            item_bias = read_one(cells, places, start + depth * width, biased * depth, share)
        user_bias = u[width] if biased else np.float32(0)
        target = table[codes[p]] - step.mean - b[i * known_b] - c[j * known_c] - user_bias - item_bias
        e = target - product_of(u, v, lines)
        squared += np.float64(e) * np.float64(e)
        counts = np.float32(e * e <= step.most)
        move(u, v, change, lines, counts * step.eta * e, counts * lost)
        if repeated[1 + slot]:
            add_everywhere(cells, places, start, depth, lines, change)
        else:
            add_apart(cells, places, start, depth, lines, change)
        if biased:
            u[width] = user_bias + counts * (step.eta * e - lost * user_bias)
            add_one(cells, places, start + depth * width, depth, counts * (step.eta * e - lost * item_bias))
    _change_user(cells, places, repeated, family, here, median, u, old)
    return squared


@fast_kernel
def read_rows(
    keys: NDArray[np.uint64],
    side: int,
    cells: NDArray[np.float32],
    family: Family,
    median: bool,
    begin: int,
    end: int,
    out: NDArray[np.float32],  # out
) -> None:
    """Read the components of ids begin..end-1, shape (n, D): users if `side` is 0, items if it is 1."""
    size = np.int64(family.size)
    places = np.empty(size, np.uint32)
    for place in range(begin, end):
        locate(family.numbers, side * size, size, 0, keys[place], family.width, places, 0)
        _read(cells, places, 0, family, median, out[place])


@kernel
def _locate_all(keys: Any, side: Any, family: Any, places: Any) -> None:
    size = np.int64(family.size)
    for row in range(len(keys)):
        locate(family.numbers, side * size, size, 0, keys[row], family.width, places[row], 0)


def locate_rows(
    keys: NDArray[np.uint64], side: int, family: Family, n_factors: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return cells and signs of all components of ids, shape (n, k·(K + biased)) each, row after row, the bias last."""
    places = np.empty((len(keys), family.size), np.uint32)
    _locate_all(keys, side, family, places)
    component = np.arange(family.n_components)
    used = (component < n_factors) | (component >= FLOATS_PER_LINE * family.n_lines)
    places = places[:, _order(family.depth, family.n_lines, family.biased)[:, used].ravel()]
    return places & np.uint32(0x7FFFFFFF), np.where(places >> np.uint32(31), np.float32(-1), np.float32(1))


def located_reference(family: Family, side: int, key: np.uint64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return cells and signs of an id, shape (k, D) each; the sign is 0 for components that only fill up a line."""
    order = _order(family.depth, family.n_lines, family.biased)
    first, second, third, starts = family.numbers.reshape(4, 2, -1)[:, side, order]
    value = (first + (key & _LOW)) * (second + (key >> _HALF)) + third
    places = starts + (((value >> _HALF) * family.width) >> _HALF)
    signs = 1.0 - 2.0 * ((value >> _SIGN) & _ONE).astype(np.float64)
    return places.astype(np.int64), signs * np.append(family.live, np.ones(int(family.biased), np.float32))


def read_reference(
    cells: NDArray[Any], family: Family, side: int, key: np.uint64, *, median: bool
) -> NDArray[np.float64]:
    """Return the components of an id, shape (D,)."""
    places, signs = located_reference(family, side, key)
    return np.asarray((np.median if median else np.mean)(signs * cells[places], axis=0))


def add_reference(cells: NDArray[Any], family: Family, side: int, key: np.uint64, change: NDArray[Any]) -> None:
    """Add to the components of an id; cells is changed."""
    places, signs = located_reference(family, side, key)
    np.add.at(cells, places, signs * change)


def sketch_block_reference(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[Any],
    user_keys: NDArray[np.uint64],
    item_keys: NDArray[np.uint64],
    b: NDArray[Any],
    c: NDArray[Any],
    cells: NDArray[Any],  # out
    family: Family,
    median: bool,
    step: SketchStep,
) -> float:
    """Do what `sketch_block` does, in the precision of the given cells."""
    mean, eta, lam, most = map(float, step)
    biased, width = family.biased, FLOATS_PER_LINE * family.n_lines
    squared, here, u, old = 0.0, None, np.zeros(0), np.zeros(0)
    for i, j, code in zip(users.tolist(), items.tolist(), codes.tolist(), strict=True):
        if here is None or user_keys[i] != here:
            if here is not None:
                add_reference(cells, family, 0, here, u - old)
            here = user_keys[i]
            u = read_reference(cells, family, 0, here, median=median)
            old = u.copy()
        v = read_reference(cells, family, 1, item_keys[j], median=median)
        e = table[code] - mean - (b[i] if len(b) > 1 else 0.0) - (c[j] if len(c) > 1 else 0.0)
        e -= u[:width] @ v[:width] + (u[-1] + v[-1] if biased else 0.0)
        squared += float(e) ** 2
        if e * e > most:
            continue
        of_user, of_item = e * v - lam * u, e * u - lam * v
        if biased:
            of_user[-1], of_item[-1] = e - lam * u[-1], e - lam * v[-1]
        u = u + eta * of_user
        add_reference(cells, family, 1, item_keys[j], eta * of_item)
    if here is not None:
        add_reference(cells, family, 0, here, u - old)
    return squared
