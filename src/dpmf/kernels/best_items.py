"""The best items of many people, from their factors and those of the items, without a people × items matrix.

Six people are scored at a time, for a tile of 64 items at a time: so many sums stay in registers until they are
complete, each item factor is read once for six people, and each factor of a person once for many items. All scores of
a person are then compared with the worst that is in their list, sixteen at once; most tiles have none that is better.
The instructions are explicit, as in `dpmf.kernels.rows`. A score is summed in the order of the factors, whoever else is
scored, so that it has the same bits whatever the number of threads and of registers.

>>> excluded = CsrPattern(np.array([0, 1]), np.array([1], np.int32))
>>> items, scores = np.empty((1, 2), np.int32), np.empty((1, 2), np.float32)
>>> V, c = np.array([[1], [3], [2]], np.float32), np.zeros(3, np.float32)
>>> find_best_items(np.ones((1, 1), np.float32), pack_items(V), c, excluded, 0, 1, items, scores)
>>> items.tolist(), scores.tolist()
([[2, 0]], [[2.0, 1.0]])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel
from dpmf.kernels.rows import FLOATS_PER_LINE, INT64, Row, emitted, multiply_add, spread
from dpmf.kernels.scores import NEVER, add_to_heap, sort_heap, start_heap

TILE = 64  # items
_LINES = TILE // FLOATS_PER_LINE
_PEOPLE = 6  # at a time: with a tile's lines their sums fill 24 of 32 registers, or with one line 12 of 16 narrow ones
_ONE = np.uint64(1)
_LANES = ir.IntType(FLOATS_PER_LINE)
_MASK = ir.VectorType(ir.IntType(1), FLOATS_PER_LINE)


def pack_items(V: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return item factors, shape (m, K), by tile and then by factor: shape (⌈m / 64⌉, K, 64), padded with zeros."""
    n_items, n_factors = V.shape
    padded = np.zeros((-(-n_items // TILE), TILE, n_factors), np.float32)
    padded.reshape(len(padded) * TILE, n_factors)[:n_items] = V
    return np.ascontiguousarray(padded.transpose(0, 2, 1))


@kernel
def find_best_items(
    U: NDArray[np.float32],
    tiles: NDArray[np.float32],
    c: NDArray[np.float32],
    excluded: CsrPattern,
    start: int,
    stop: int,
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> None:
    """Write the items with the greatest c_j + u·v_j for people start..stop-1 (rows of the outputs), best first.

    Of equal scores the smaller item comes first; -1 and NEVER where there are too few. Nobody gets the items in their
    row of `excluded`, which are in ascending order; an item with c = 2·NEVER goes to nobody. `tiles` is what
    `pack_items` returned.
    """
    n_factors, n_groups = tiles.shape[1], -(-(stop - start) // _PEOPLE)
    people = np.zeros((n_groups, n_factors, _PEOPLE), np.float32)
    bars = np.full(
        (n_groups, _PEOPLE), np.inf, np.float32
    )  # the worst score in a list; nothing is above that of nobody
    for i in range(start, stop):
        group, place = divmod(i - start, _PEOPLE)
        people[group, :, place] = U[i]
        bars[group, place] = NEVER
        start_heap(best_items[i], best_scores[i])
    offsets = np.full(len(tiles) * TILE, 2 * NEVER, np.float32)
    offsets[: len(c)] = c
    coming = excluded.indptr[start:stop].copy()  # the next excluded item of each person
    scores = np.empty((_PEOPLE, TILE), np.float32)
    for tile in range(len(tiles)):
        for group in range(n_groups):
            beaten = _score_tile(people[group], tiles[tile], offsets, tile * TILE, bars[group], scores)
            while beaten != 0:
                place = _lowest_bit(beaten)
                beaten &= beaten - _ONE
                i = start + group * _PEOPLE + place
                bars[group, place] = _offer(
                    scores[place], tile * TILE, excluded, i, coming[i - start :], best_items[i], best_scores[i]
                )
    for i in range(start, stop):
        sort_heap(best_items[i], best_scores[i])


@kernel
def _offer(
    scores: NDArray[np.float32],
    first: int,
    excluded: CsrPattern,
    person: int,
    coming: NDArray[np.int64],  # out
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> np.float32:
    """Put a person's scores of a tile that are better than the worst in their heap into it; return the worst then."""
    indptr, items = excluded
    end, p = indptr[person + 1], coming[0]
    better = _lanes_above(scores, best_scores[0])
    while better != 0:
        item = first + _lowest_bit(better)
        better &= better - _ONE
        if scores[item - first] > best_scores[0]:
            while p < end and items[p] < item:
                p += 1
            if p == end or items[p] != item:
                add_to_heap(best_items, best_scores, item, scores[item - first])
    coming[0] = p
    return np.float32(best_scores[0])


def find_best_items_reference(
    scores: NDArray[np.floating], excluded: CsrPattern, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `find_best_items` writes, given all scores; needs at least k candidates per person."""
    scores = scores.astype(np.float32)
    for i in range(len(scores)):
        scores[i, excluded.items[excluded.indptr[i] : excluded.indptr[i + 1]]] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(scores, order, axis=1)


@emitted
def _score_tile(typingctx: Any, people: Any, tile: Any, c: Any, first: Any, bars: Any, scores: Any) -> Any:
    """Write c_j + u·v_j of six people for a tile of items; return a bit for each with a score above their bar.

    Args:
        people: their factors, shape (K, 6).
        tile: factors of the items, shape (K, 64).
        c: the summand of every item.
        first: the first item of the tile.
        bars: shape (6,).
        scores: out, shape (6, 64).
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v, offsets = Row(context, builder, tile, args[1], INT64(0)), Row(context, builder, c, args[2], args[3])
        out = Row(context, builder, scores, args[5], INT64(0))
        of_people = context.make_array(people)(context, builder, args[0])
        n_factors = cgutils.unpack_tuple(builder, of_people.shape, 2)[0]  # type: ignore[no-untyped-call]
        bar = context.make_array(bars)(context, builder, args[4]).data
        least = [spread(builder, _number(builder, bar, INT64(person))) for person in range(_PEOPLE)]
        above = [ir.Constant(_MASK, [0] * FLOATS_PER_LINE)] * _PEOPLE
        at_once = _lines_at_once(context)
        for line in range(0, _LINES, at_once):
            sums = _sum_products(builder, of_people.data, v, offsets, n_factors, line, at_once)
            for person, row in enumerate(sums):
                out.store(INT64(person * _LINES + line), row)
                for one in row:
                    above[person] = builder.or_(above[person], builder.fcmp_ordered(">", one, least[person]))
        bits = INT64(0)
        for person, mask in enumerate(above):
            some = builder.icmp_unsigned("!=", builder.bitcast(mask, _LANES), _LANES(0))
            bits = builder.or_(bits, builder.shl(builder.zext(some, INT64), INT64(person)))
        return bits

    return types.uint64(people, tile, c, types.int64, bars, scores), codegen


def _sum_products(
    builder: Any, people: Any, v: Row, offsets: Row, n_factors: Any, line: int, at_once: int
) -> list[list[Any]]:
    """Emit the sums of some lines of a tile: those of a person are a list."""
    start = offsets.load(INT64(line), at_once)
    sums = [[cgutils.alloca_once_value(builder, one) for one in start] for _ in range(_PEOPLE)]  # type: ignore[no-untyped-call]
    with cgutils.for_range(builder, n_factors) as loop:
        factors = v.load(builder.add(builder.mul(loop.index, INT64(_LINES)), INT64(line)), at_once)
        own = builder.mul(loop.index, INT64(_PEOPLE))
        for person, row in enumerate(sums):
            factor = spread(builder, _number(builder, people, builder.add(own, INT64(person))))
            for total, one in zip(row, factors, strict=True):
                builder.store(multiply_add(builder, factor, one, builder.load(total)), total)
    return [[builder.load(total) for total in row] for row in sums]


def _lines_at_once(context: Any) -> int:
    """Return how many lines of six people's sums, with what is multiplied, fit into the registers."""
    features = context.codegen().magic_tuple()[2].split(",")
    return _LINES if "+avx512f" in features else 1


def _number(builder: Any, pointer: Any, at: Any) -> Any:
    return builder.load(builder.gep(pointer, [at]))


@emitted
def _lanes_above(typingctx: Any, scores: Any, bar: Any) -> Any:
    """Return a bit for each of the 64 scores above a bar."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = Row(context, builder, scores, args[0], INT64(0)).load(INT64(0), _LINES)
        least, bits = spread(builder, args[1]), INT64(0)
        for place, line in enumerate(lines):
            lanes = builder.bitcast(builder.fcmp_ordered(">", line, least), _LANES)
            bits = builder.or_(bits, builder.shl(builder.zext(lanes, INT64), INT64(place * FLOATS_PER_LINE)))
        return bits

    return types.uint64(scores, types.float32), codegen


@emitted
def _lowest_bit(typingctx: Any, bits: Any) -> Any:
    """Return the place of the lowest bit of a number above 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), codegen
