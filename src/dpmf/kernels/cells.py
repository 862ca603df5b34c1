"""Numbers that are scattered over a table, read and added to in vectors of sixteen: the parts of `dpmf.kernels.sketch`.

A list of places says where in the table the numbers are, and a list of signs with which sign, row after row of
`stride` numbers each. As in `dpmf.kernels.rows` the instructions are spelt out: left to itself the compiler handles one
number at a time, and then waits for each of them to reach the cache before it can take them up as a vector.

>>> import numpy as np
>>> from dpmf.kernels.compiling import kernel
>>> cells, out = np.arange(32, dtype=np.float32), np.empty(16, np.float32)
>>> places, signs = np.arange(32, dtype=np.uint32), np.ones(32, np.float32)
>>> @kernel
... def mean(cells, places, signs, out):
...     read_mean(cells, places, signs, 0, 2, 16, 1, np.float32(0.5), out)
>>> mean(cells, places, signs, out)
>>> out[:3].tolist()  # of 0 and 16, 1 and 17, 2 and 18
[8.0, 9.0, 10.0]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from dpmf.kernels.rows import FLOATS_PER_LINE, INT64, LINE, Row, across, emitted, multiply_add, spread

_INT32 = ir.IntType(32)
_WIDE = ir.VectorType(INT64, FLOATS_PER_LINE)
_NARROW = ir.VectorType(_INT32, FLOATS_PER_LINE)
_NUMBER, _PLACE = types.float32, types.int64


@emitted
def locate(
    typingctx: Any, numbers: Any, live: Any, begin: Any, count: Any, key: Any, width: Any, places: Any, signs: Any,
    start: Any,
) -> Any:  # fmt: skip
    """Write cells and signs of a key by the hash functions begin..begin+count-1; `dpmf.kernels.sketch` has the formula.

    Args:
        numbers: uint64 array, shape (4·n,): all a, all a', all b, and where the row of each function begins.
        live: float32, shape (n,), by which signs are multiplied.
        begin, count: count is a multiple of 16.
        key, width: uint64.
        places, signs: uint32 and float32 (out), written from `start` on.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(numbers)(context, builder, args[0])
        n = builder.udiv(cgutils.unpack_tuple(builder, data.shape, 1)[0], INT64(4))  # type: ignore[no-untyped-call]
        where = context.make_array(places)(context, builder, args[6]).data
        half, low_bits = _sixteen(INT64(32)), _sixteen(INT64(0xFFFFFFFF))
        key_vector, width_vector = (_copied(builder, arg) for arg in (args[4], args[5]))
        low, high = builder.and_(key_vector, low_bits), builder.lshr(key_vector, half)
        with cgutils.for_range_slice(builder, INT64(0), args[3], INT64(FLOATS_PER_LINE)) as (part, _):
            at = builder.add(args[2], part)
            a, other, b, row = (
                _load(builder, data.data, builder.add(at, builder.mul(n, INT64(place))), _WIDE) for place in range(4)
            )
            value = builder.add(builder.mul(builder.add(a, low), builder.add(other, high)), b)
            cell = builder.add(row, builder.lshr(builder.mul(builder.lshr(value, half), width_vector), half))
            target = builder.add(args[8], part)
            pointer = builder.bitcast(builder.gep(where, [target]), _NARROW.as_pointer())
            builder.store(builder.trunc(cell, _NARROW), pointer).align = 4
            # Bit 31, put where a float has its sign, turns a 1 into a -1 and leaves a 0 a zero.
            flip = builder.and_(builder.trunc(value, _NARROW), _sixteen(_INT32(1 << 31)))
            ones = builder.bitcast(Row(context, builder, live, args[1], at).load_vector(INT64(0)), _NARROW)
            sign = builder.bitcast(builder.xor(ones, flip), LINE)
            Row(context, builder, signs, args[7], target).store_vector(sign, INT64(0))
        return context.get_dummy_value()

    key_type = types.uint64
    return types.void(numbers, live, _PLACE, _PLACE, key_type, key_type, places, signs, _PLACE), codegen


@emitted
def read_mean(
    typingctx: Any, cells: Any, places: Any, signs: Any, start: Any, depth: Any, stride: Any, lines: Any, share: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Write share · Σ_r signs · cells[places] to the first 16·lines numbers of out.

    Args:
        cells: flat float32 array.
        places, signs: uint32 and float32; row r begins at start + r·stride.
        start, depth, stride, lines: as above; depth is the number of rows, 1 at least.
        share: float32, 1 / depth for a mean.
        out: float32 array (out).
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(cells)(context, builder, args[0]).data
        where = context.make_array(places)(context, builder, args[1]).data
        target = Row(context, builder, out, args[8], INT64(0))
        total = cgutils.alloca_once(builder, LINE)  # type: ignore[no-untyped-call]
        with _lines(builder, args[6]) as (line, first):
            builder.store(ir.Constant(LINE, [0.0] * FLOATS_PER_LINE), total)
            with cgutils.for_range(builder, args[4]) as row:
                at = builder.add(first, builder.add(args[3], builder.mul(row.index, args[5])))
                numbers = ir.Constant(LINE, ir.Undefined)
                for part, address in enumerate(_addresses(builder, table, where, at)):
                    numbers = builder.insert_element(numbers, builder.load(address), _INT32(part))
                sign = Row(context, builder, signs, args[2], at).load_vector(INT64(0))
                builder.store(multiply_add(builder, sign, numbers, builder.load(total)), total)
            target.store_vector(builder.fmul(spread(builder, args[7]), builder.load(total)), line)
        return context.get_dummy_value()

    return types.void(cells, places, signs, _PLACE, _PLACE, _PLACE, _PLACE, _NUMBER, out), codegen


@emitted
def add_everywhere(
    typingctx: Any, cells: Any, places: Any, signs: Any, start: Any, depth: Any, stride: Any, lines: Any, change: Any
) -> Any:
    """Add signs · change to cells[places] (out) in every row, number by number; other arguments as in `read_mean`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(cells)(context, builder, args[0]).data
        where = context.make_array(places)(context, builder, args[1]).data
        source = Row(context, builder, change, args[7], INT64(0))
        scratch = cgutils.alloca_once(builder, LINE)  # type: ignore[no-untyped-call]
        with _lines(builder, args[6]) as (line, first):
            numbers = source.load_vector(line)
            with cgutils.for_range(builder, args[4]) as row:
                at = builder.add(first, builder.add(args[3], builder.mul(row.index, args[5])))
                sign = Row(context, builder, signs, args[2], at).load_vector(INT64(0))
                signed = builder.fmul(sign, numbers)
                # Taken from memory, one by one, they do not queue for the one port that takes vectors apart.
                builder.store(signed, scratch)
                flat = builder.bitcast(scratch, ir.FloatType().as_pointer())
                for part, address in enumerate(_addresses(builder, table, where, at)):
                    one = builder.load(builder.gep(flat, [INT64(part)]))
                    builder.store(builder.fadd(builder.load(address), one), address)
        return context.get_dummy_value()

    return types.void(cells, places, signs, _PLACE, _PLACE, _PLACE, _PLACE, change), codegen


@emitted
def product_of(typingctx: Any, u: Any, v: Any, lines: Any) -> Any:
    """Return Σ u v over the first 16·lines numbers of two float32 arrays."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ones, others = (Row(context, builder, kind, arg, INT64(0)) for kind, arg in zip((u, v), args, strict=False))
        total = cgutils.alloca_once_value(builder, ir.Constant(LINE, [0.0] * FLOATS_PER_LINE))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[2]) as loop:
            pair = ones.load_vector(loop.index), others.load_vector(loop.index)
            builder.store(multiply_add(builder, *pair, builder.load(total)), total)
        return across(builder, builder.load(total))

    return _NUMBER(u, v, _PLACE), codegen


@emitted
def move(typingctx: Any, u: Any, v: Any, change: Any, lines: Any, gain: Any, lost: Any) -> Any:
    """Set change (out) to gain·u - lost·v, then u (out) to u + gain·v - lost·u, in the first 16·lines numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = [Row(context, builder, kind, arg, INT64(0)) for kind, arg in zip((u, v, change), args, strict=False)]
        gains, losses = spread(builder, args[4]), spread(builder, args[5])
        with cgutils.for_range(builder, args[3]) as loop:
            own, other = (row.load_vector(loop.index) for row in rows[:2])
            back = builder.fsub(builder.fmul(gains, own), builder.fmul(losses, other))
            rows[2].store_vector(back, loop.index)
            forth = builder.fsub(builder.fmul(gains, other), builder.fmul(losses, own))
            rows[0].store_vector(builder.fadd(own, forth), loop.index)
        return context.get_dummy_value()

    return types.void(u, v, change, _PLACE, _NUMBER, _NUMBER), codegen


@emitted
def prefetch_cells(typingctx: Any, cells: Any, places: Any, start: Any, count: Any) -> Any:
    """Ask for the cache lines of cells[places[start:start + count]], which will be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = context.make_array(places)(context, builder, args[1]).data
        with cgutils.for_range(builder, args[3]) as loop:
            place = builder.load(builder.gep(where, [builder.add(args[2], loop.index)]))
            at = builder.zext(place, ir.IntType(64))
            Row(context, builder, cells, args[0], at).prefetch(INT64(0), 1)
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE), codegen


@contextlib.contextmanager
def _lines(builder: Any, lines: Any) -> Iterator[tuple[Any, Any]]:
    """Emit a loop over lines: the number of each, and where it begins."""
    with cgutils.for_range(builder, lines) as loop:
        yield loop.index, builder.mul(loop.index, INT64(FLOATS_PER_LINE))


def _addresses(builder: Any, table: Any, where: Any, first: Any) -> list[Any]:
    """Return pointers to the cells that sixteen places name, from place `first` on."""
    found = []
    for part in range(FLOATS_PER_LINE):
        place = builder.load(builder.gep(where, [builder.add(first, INT64(part))]))
        found.append(builder.gep(table, [builder.zext(place, ir.IntType(64))]))
    return found


def _load(builder: Any, data: Any, at: Any, kind: Any) -> Any:
    value = builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()))
    value.align = 8
    return value


def _sixteen(value: Any) -> Any:
    return ir.Constant(ir.VectorType(value.type, FLOATS_PER_LINE), [value.constant] * FLOATS_PER_LINE)


def _copied(builder: Any, value: Any) -> Any:
    empty = ir.Constant(_WIDE, ir.Undefined)
    single = builder.insert_element(empty, value, _INT32(0))
    return builder.shuffle_vector(single, empty, _sixteen(_INT32(0)))
