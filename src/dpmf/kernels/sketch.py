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

from dpmf.kernels.cells import add_everywhere, locate, move, prefetch_cells, product_of, read_mean
from dpmf.kernels.compiling import fast_kernel, kernel
from dpmf.kernels.rows import FLOATS_PER_LINE

_LOW = np.uint64(0xFFFFFFFF)
_HALF, _SIGN, _ONE = np.uint64(32), np.uint64(31), np.uint64(1)
_AHEAD = 2  # how many ratings before its visit the cells of an item are asked for
_RING = 4  # a power of two above it
_CELLS_IN_CACHE = 1 << 18  # a table of so many needs not be asked for: the second-level cache has it
NO_LIMIT = np.float32(1e30)
MOST_ROWS = 16


class Family(NamedTuple):
    """The hash functions: those of users, then those of items, each filled up to a multiple of sixteen, `size`.

    Attributes:
        numbers: shape (8·size,): all a, all a', all b, and where the row of each function begins. The function of row r
            and component l is at r·D + l, for items `size` further on.
        live: shape (2·size,), 1, and 0 for functions that only fill up a line: they have the sign 0.
        size: of one side.
        width: w.
        depth: k.
        n_components: D, the factors in whole lines of sixteen and, if there is one, the bias.
        n_lines: of factors.
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
        D = FLOATS_PER_LINE * lines + biased
        used, size = depth * D, FLOATS_PER_LINE * -(-depth * D // FLOATS_PER_LINE)
        numbers = np.zeros((4, 2, size), np.uint64)
        numbers[:3, :, :used] = generator.integers(0, 1 << 64, (3, 2, used), np.uint64)
        numbers[3, :, :used] = np.repeat(np.arange(depth, dtype=np.uint64) * np.uint64(width), D)
        one = np.zeros(D, np.float32)
        one[:n_factors] = one[FLOATS_PER_LINE * lines :] = 1
        live = np.zeros((2, size), np.float32)
        live[:, :used] = np.tile(one, depth)
        return cls(numbers.ravel(), live.ravel(), size, np.uint64(width), depth, D, lines, biased)


class SketchStep(NamedTuple):
    """The numbers of a pass, as float32: mean, eta and lambda of `dpmf.kernels.sgd`, and the greatest e² to count."""

    mean: np.float32
    eta: np.float32
    lam: np.float32
    most: np.float32

    @classmethod
    def of(cls, mean: float, eta: float, lam: float, most: float) -> SketchStep:
        """Make one from plain numbers; the last may be infinite."""
        return cls(np.float32(mean), np.float32(eta), np.float32(lam), min(np.float32(most), NO_LIMIT))


@fast_kernel
def _no_later(place: Any, count: Any) -> Any:
    return place if place < count else count - 1


@fast_kernel
def _read(cells: Any, places: Any, signs: Any, start: Any, depth: Any, lines: Any, median: Any, out: Any) -> None:
    """Write what the rows say of every component to out: their mean or, of an even number, the middle two's median."""
    D, share = np.int64(len(out)), np.float32(1) / np.float32(depth)
    if not median:
        total = np.float32(0)
        for row in range(depth):
            total += signs[start + row * D + D - 1] * cells[places[start + row * D + D - 1]]
        out[D - 1] = share * total  # without a bias the last component is in a line, and read again
        read_mean(cells, places, signs, start, depth, D, lines, share, out)
        return
    found = np.empty(MOST_ROWS, np.float32)
    for part in range(D):
        for row in range(depth):
            at, place = start + row * D + part, row
            number = signs[at] * cells[places[at]]
            while place > 0 and found[place - 1] > number:
                found[place] = found[place - 1]
                place -= 1
            found[place] = number
        out[part] = np.float32(0.5) * (found[(depth - 1) // 2] + found[depth // 2])


@fast_kernel
def _change_user(cells: Any, places: Any, signs: Any, family: Any, key: Any, median: Any, u: Any, old: Any) -> None:
    """Add what the user before has learnt to their cells, and take up another: all but family and key are changed."""
    D, depth = np.int64(len(u)), np.int64(family.depth)
    for part in range(D):
        old[part] = u[part] - old[part]
    add_everywhere(cells, places, signs, 0, depth, D, np.int64(family.n_lines), old)
    for row in range(depth if family.biased else 0):
        cells[places[row * D + D - 1]] += signs[row * D + D - 1] * old[D - 1]
    locate(family.numbers, family.live, 0, family.size, key, family.width, places, signs, 0)
    _read(cells, places, signs, 0, depth, np.int64(family.n_lines), median, u)
    old[:] = u


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
    """Visit ratings in the order given; return the sum of e² as met on the way.

    As long as ratings of one user follow each other the user's components are read once, kept, and what they learnt is
    added to the cells at the end. All of it is one body, because arrays that are handed to an inlined function inside a
    condition cost more than what the function would do.

    Args:
        users, items: shape (n,), places in the keys.
        codes: shape (n,), places in the table of rating values.
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
    D, lines, biased = np.int64(family.n_components), np.int64(family.n_lines), np.int64(family.biased)
    size, depth, width, count = np.int64(family.size), np.int64(family.depth), family.width, np.int64(len(codes))
    numbers, live, last = family.numbers, family.live, D - 1
    known_b, known_c = np.int64(len(b) > 1), np.int64(len(c) > 1)
    share = np.float32(1) / np.float32(depth)
    fetched = depth * D if len(cells) > _CELLS_IN_CACHE else 0
    # Cells and signs of the user, then those of the coming items, in a ring.
    places, signs = np.zeros((1 + _RING) * size, np.uint32), np.zeros((1 + _RING) * size, np.float32)
    u, old = np.zeros(D, np.float32), np.zeros(D, np.float32)
    v, change = np.zeros(D, np.float32), np.zeros(D, np.float32)
    lost = step.eta * step.lam
    squared, here = 0.0, np.uint64(0)
    for p in range(-_AHEAD, count):
        key = item_keys[items[_no_later(p + _AHEAD, count)]]
        ahead = (1 + (p + _AHEAD) % _RING) * size
        locate(numbers, live, size, size, key, width, places, signs, ahead)
        prefetch_cells(cells, places, ahead, fetched)
        if p < 0:
            continue
        i, j = np.int64(users[p]), np.int64(items[p])
        if p == 0 or user_keys[i] != here:
            here = user_keys[i]
            _change_user(cells, places, signs, family, here, median, u, old)
        start = (1 + p % _RING) * size
        if median:
            _read(cells, places, signs, start, depth, lines, median, v)
        else:
            bias = np.float32(0)
            for row in range(biased * depth):
                at = start + row * D + last
                bias += share * signs[at] * cells[places[at]]
            v[last] = bias  # of a sketch without biases this is a factor, and is read next
        read_mean(cells, places, signs, start, depth, D, 0 if median else lines, share, v)
        target = (
            table[codes[p]] - step.mean - b[i * known_b] - c[j * known_c] - np.float32(biased) * (u[last] + v[last])
        )
        e = target - product_of(u, v, lines)
        squared += np.float64(e) * np.float64(e)
        counts = np.float32(e * e <= step.most)
        item_bias, user_bias = v[last], u[last]
        move(u, v, change, lines, counts * step.eta * e, counts * lost)
        add_everywhere(cells, places, signs, start, depth, D, lines, change)
        if biased:
            u[last] = user_bias + counts * (step.eta * e - lost * user_bias)
            item_change = counts * (step.eta * e - lost * item_bias)
            for row in range(depth):
                at = start + row * D + last
                cells[places[at]] += signs[at] * item_change
    _change_user(cells, places, signs, family, here, median, u, old)
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
    places, signs = np.empty(size, np.uint32), np.empty(size, np.float32)
    for place in range(begin, end):
        locate(family.numbers, family.live, side * size, size, keys[place], family.width, places, signs, 0)
        _read(cells, places, signs, 0, np.int64(family.depth), np.int64(family.n_lines), median, out[place])


@kernel
def _locate_all(keys: Any, side: Any, family: Any, places: Any, signs: Any) -> None:
    for row in range(len(keys)):
        locate(
            family.numbers, family.live, side * np.int64(family.size), np.int64(family.size), keys[row], family.width,
            places[row], signs[row], 0,
        )  # fmt: skip


def locate_rows(
    keys: NDArray[np.uint64], side: int, family: Family, n_factors: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return cells and signs of all components of ids, shape (n, k·(K + biased)) each, row after row, the bias last."""
    shape = (len(keys), family.size)
    places, signs = np.empty(shape, np.uint32), np.empty(shape, np.float32)
    _locate_all(keys, side, family, places, signs)
    component = np.arange(family.depth * family.n_components) % family.n_components
    used = np.flatnonzero((component < n_factors) | (component >= FLOATS_PER_LINE * family.n_lines))
    return np.ascontiguousarray(places[:, used]), np.ascontiguousarray(signs[:, used])


def located_reference(family: Family, side: int, key: np.uint64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return cells and signs of an id, shape (k, D) each."""
    used = family.depth * family.n_components
    first, second, third, starts = family.numbers.reshape(4, 2, -1)[:, side, :used]
    value = (first + (key & _LOW)) * (second + (key >> _HALF)) + third
    places = starts + (((value >> _HALF) * family.width) >> _HALF)
    signs = family.live.reshape(2, -1)[side, :used] * (1.0 - 2.0 * ((value >> _SIGN) & _ONE).astype(np.float64))
    shape = (family.depth, family.n_components)
    return places.astype(np.int64).reshape(shape), signs.reshape(shape)


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
    users: NDArray[Any], items: NDArray[Any], codes: NDArray[Any], table: NDArray[Any], user_keys: NDArray[np.uint64],
    item_keys: NDArray[np.uint64], b: NDArray[Any], c: NDArray[Any], cells: NDArray[Any], family: Family,
    median: bool, step: SketchStep,
) -> float:  # fmt: skip
    """Do what `sketch_block` does, in the precision of the cells given."""
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
