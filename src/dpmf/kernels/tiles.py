"""Scores of six people for 64 items at a time, from their factors and those of the items.

The sums stay in registers until they are complete; each item factor is read once for six people, and each factor of
a person once for many items. The instructions are explicit, as in `dpmf.kernels.rows`. A score is summed in the order
of the factors, whoever else is scored, so that it has the same bits whatever the number of threads and of registers.

>>> from dpmf.kernels.jit import kernel
>>> people, bars = np.ones((1, PEOPLE), np.float32), np.full(PEOPLE, 62.5, np.float32)
>>> items, scores = pack_items(np.arange(64, dtype=np.float32)[:, None]), np.empty((PEOPLE, TILE), np.float32)
>>> @kernel
... def score(people, items, c, bars, scores):
...     return score_tile(people, items[0], c, 0, bars, scores), lowest_bit(lanes_above(scores[0], np.float32(62.5)))
>>> bits, best = score(people, items, np.zeros(64, np.float32), bars, scores)
>>> int(bits), int(best), float(scores[5, 63])
(63, 63, 63.0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.rows import FLOATS_PER_LINE, INT64, Row, emitted, multiply_add, spread

TILE = 64  # items
PEOPLE = 6  # at a time: with a tile's lines their sums fill 24 of 32 registers, or with one line 12 of 16 narrow ones
_LINES = TILE // FLOATS_PER_LINE
_LANES = ir.IntType(FLOATS_PER_LINE)
_MASK = ir.VectorType(ir.IntType(1), FLOATS_PER_LINE)


def pack_items(V: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return item factors, shape (m, K), by tile and then by factor: shape (⌈m / 64⌉, K, 64), padded with zeros."""
    n_items, n_factors = V.shape
    padded = np.zeros((-(-n_items // TILE), TILE, n_factors), np.float32)
    padded.reshape(len(padded) * TILE, n_factors)[:n_items] = V
    return np.ascontiguousarray(padded.transpose(0, 2, 1))


@emitted
def score_tile(typingctx: Any, people: Any, tile: Any, c: Any, first: Any, bars: Any, scores: Any) -> Any:
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
        least = [spread(builder, _number(builder, bar, INT64(person))) for person in range(PEOPLE)]
        above = [ir.Constant(_MASK, [0] * FLOATS_PER_LINE)] * PEOPLE
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
    sums = [[cgutils.alloca_once_value(builder, one) for one in start] for _ in range(PEOPLE)]  # type: ignore[no-untyped-call]
    with cgutils.for_range(builder, n_factors) as loop:
        factors = v.load(builder.add(builder.mul(loop.index, INT64(_LINES)), INT64(line)), at_once)
        own = builder.mul(loop.index, INT64(PEOPLE))
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
def lanes_above(typingctx: Any, scores: Any, bar: Any) -> Any:
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
def lowest_bit(typingctx: Any, bits: Any) -> Any:
    """Return the place of the lowest bit of a number above 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), codegen


@emitted
def without_lowest(typingctx: Any, bits: Any) -> Any:
    """Return a number without its lowest bit."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(args[0], builder.sub(args[0], INT64(1)))

    return types.uint64(types.uint64), codegen
