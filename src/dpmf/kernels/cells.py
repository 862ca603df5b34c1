"""Cells of a table, gathered and updated in vectors of sixteen: the primitives of `dpmf.kernels.sketch`.

A list of places says where in the table the numbers are: in its lower 31 bits, while the highest says whether the
number has the opposite sign. Lines of sixteen places follow each other, those of a row first, then those of the next
row. As in `dpmf.kernels.rows` the instructions are explicit: on its own, the compiler handles one number at a time.
Reading gathers, and writing scatters; but where two places of a line are the same, numbers are added one by one.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> cells, out, live = np.arange(32, dtype=np.float32), np.empty(16, np.float32), np.ones(16, np.float32)
>>> places = np.arange(32, dtype=np.uint32)
>>> places[1] |= np.uint32(1 << 31)
>>> @kernel
... def mean(cells, places, live, out):
...     read_mean(cells, places, 0, 2, 1, np.float32(0.5), live, out)
>>> mean(cells, places, live, out)
>>> out[:3].tolist()  # of 0 and 16, -1 and 17, 2 and 18
[8.0, 8.0, 10.0]
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from dpmf.kernels.rows import FLOAT, FLOATS_PER_LINE, INT64, LINE, Row, across, emitted, multiply_add, spread

_INT32 = ir.IntType(32)
_WIDE = ir.VectorType(INT64, FLOATS_PER_LINE)
_NARROW = ir.VectorType(_INT32, FLOATS_PER_LINE)
_PLACE_BITS = (1 << 31) - 1
_SIGN = ir.Constant(_NARROW, [1 << 31] * FLOATS_PER_LINE)
_EVERYTHING = ir.Constant(ir.VectorType(ir.IntType(1), FLOATS_PER_LINE), [1] * FLOATS_PER_LINE)
_NUMBER, _PLACE = types.float32, types.int64


@emitted
def locate(
    typingctx: Any, numbers: Any, begin: Any, count: Any, compared: Any, key: Any, width: Any, places: Any, start: Any
) -> Any:
    """Write the places of a key by the hash functions begin..begin+count-1; `dpmf.kernels.sketch` has the formula.

    Returns whether one of the lines has a place twice.

    Args:
        numbers: uint64 array, shape (4·n,): all a, all a', all b, and where the row of each function begins.
        begin, count: count is a multiple of 16.
        compared: the number of them, from the first, that are checked for repeated places; a multiple of 16.
        key, width: uint64, the width below 2³².
        places: uint32 (out), written from `start` on.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(numbers)(context, builder, args[0])
        n = builder.udiv(cgutils.unpack_tuple(builder, data.shape, 1)[0], INT64(4))  # type: ignore[no-untyped-call]
        where = context.make_array(places)(context, builder, args[6]).data
        half, low_bits = _sixteen(INT64(32)), _sixteen(INT64(0xFFFFFFFF))
        key_vector, width_vector = (_copied(builder, arg) for arg in args[4:6])
        low, high = builder.and_(key_vector, low_bits), builder.lshr(key_vector, half)
        width_vector = builder.and_(width_vector, low_bits)  # so that 32 bits times 32 bits are enough, and quicker
        repeated = cgutils.alloca_once_value(builder, ir.IntType(1)(0))  # type: ignore[no-untyped-call]
        with cgutils.for_range_slice(builder, INT64(0), args[2], INT64(FLOATS_PER_LINE)) as (part, _):
            at = builder.add(args[1], part)
            a, other, b, row = (
                _load(builder, data.data, builder.add(at, builder.mul(n, INT64(place))), _WIDE) for place in range(4)
            )
            value = builder.add(builder.mul(builder.add(a, low), builder.add(other, high)), b)
            cell = builder.add(row, builder.lshr(builder.mul(builder.lshr(value, half), width_vector), half))
            # Bit 31 is the sign, and stays where it is: a float has its sign there too.
            sign = builder.and_(builder.trunc(value, _NARROW), _SIGN)
            pointer = builder.bitcast(builder.gep(where, [builder.add(args[7], part)]), _NARROW.as_pointer())
            narrow = builder.trunc(cell, _NARROW)
            builder.store(builder.or_(narrow, sign), pointer).align = 4
            twice = builder.and_(_comes_twice(builder, narrow), builder.icmp_signed("<", part, args[3]))
            builder.store(builder.or_(builder.load(repeated), twice), repeated)
        return builder.load(repeated)

    key_type = types.uint64
    return types.boolean(numbers, _PLACE, _PLACE, _PLACE, key_type, key_type, places, _PLACE), codegen


@emitted
def read_mean(
    typingctx: Any, cells: Any, places: Any, start: Any, depth: Any, lines: Any, share: Any, live: Any, out: Any
) -> Any:
    """Write live · share · Σ_r ± cells[places] to the first 16·lines numbers of out.

    Args:
        cells: flat float32 array.
        places: uint32; row r begins at start + 16·r·lines.
        start, depth, lines: as above; depth is the number of rows, 1 at least.
        share: float32, 1 / depth for a mean.
        live: float32 array of 16·lines numbers.
        out: float32 array (out).
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(cells)(context, builder, args[0]).data
        used, target = (Row(context, builder, kind, arg, INT64(0)) for kind, arg in ((live, args[6]), (out, args[7])))
        total = cgutils.alloca_once(builder, LINE)  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[4]) as line:
            builder.store(ir.Constant(LINE, [0.0] * FLOATS_PER_LINE), total)
            with cgutils.for_range(builder, args[3]) as row:
                found = Row(context, builder, places, args[1], _line_at(builder, args[2], row, args[4], line))
                where, signs = _parted(builder, found.load_vector(INT64(0)))
                numbers = _signed(builder, _gathered(builder, table, where), signs)
                builder.store(builder.fadd(numbers, builder.load(total)), total)
            weights = builder.fmul(spread(builder, args[5]), used.load_vector(line.index))
            target.store_vector(builder.fmul(weights, builder.load(total)), line.index)
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE, _PLACE, _NUMBER, live, out), codegen


@emitted
def add_everywhere(typingctx: Any, cells: Any, places: Any, start: Any, depth: Any, lines: Any, change: Any) -> Any:
    """Add ± change to cells[places] (out) in every row, number by number; other arguments as in `read_mean`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(cells)(context, builder, args[0]).data
        source = Row(context, builder, change, args[5], INT64(0))
        numbers_there, places_there = (cgutils.alloca_once(builder, kind) for kind in (LINE, _NARROW))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[4]) as line:
            numbers = source.load_vector(line.index)
            with cgutils.for_range(builder, args[3]) as row:
                found = Row(context, builder, places, args[1], _line_at(builder, args[2], row, args[4], line))
                where, signs = _parted(builder, found.load_vector(INT64(0)))
                # Taken from memory, one by one, they do not queue for the one port that takes vectors apart.
                builder.store(_signed(builder, numbers, signs), numbers_there)
                builder.store(where, places_there)
                for part in range(FLOATS_PER_LINE):
                    place, number = (
                        builder.load(builder.gep(builder.bitcast(slot, kind.as_pointer()), [INT64(part)]))
                        for slot, kind in ((places_there, _INT32), (numbers_there, FLOAT))
                    )
                    address = builder.gep(table, [builder.zext(place, INT64)])
                    builder.store(builder.fadd(builder.load(address), number), address)
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE, _PLACE, change), codegen


@emitted
def add_apart(typingctx: Any, cells: Any, places: Any, start: Any, depth: Any, lines: Any, change: Any) -> Any:
    """Do what `add_everywhere` does, faster; no line may have a place twice."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(cells)(context, builder, args[0]).data
        source = Row(context, builder, change, args[5], INT64(0))
        with cgutils.for_range(builder, args[4]) as line:
            numbers = source.load_vector(line.index)
            with cgutils.for_range(builder, args[3]) as row:
                found = Row(context, builder, places, args[1], _line_at(builder, args[2], row, args[4], line))
                where, signs = _parted(builder, found.load_vector(INT64(0)))
                old = _gathered(builder, table, where)
                _scatter(builder, table, where, builder.fadd(old, _signed(builder, numbers, signs)))
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE, _PLACE, change), codegen


@emitted
def read_one(typingctx: Any, cells: Any, places: Any, start: Any, depth: Any, share: Any) -> Any:
    """Return share · Σ_r ± cells[places[start + r]] of `depth` rows."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total = cgutils.alloca_once_value(builder, FLOAT(0.0))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[3]) as row:
            address, sign = _cell(context, builder, (cells, places), args, builder.add(args[2], row.index))
            builder.store(builder.fadd(builder.load(total), _flipped(builder, builder.load(address), sign)), total)
        return builder.fmul(args[4], builder.load(total))

    return _NUMBER(cells, places, _PLACE, _PLACE, _NUMBER), codegen


@emitted
def add_one(typingctx: Any, cells: Any, places: Any, start: Any, depth: Any, change: Any) -> Any:
    """Add ± change to cells[places[start + r]] (out) of `depth` rows."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with cgutils.for_range(builder, args[3]) as row:
            address, sign = _cell(context, builder, (cells, places), args, builder.add(args[2], row.index))
            builder.store(builder.fadd(builder.load(address), _flipped(builder, args[4], sign)), address)
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE, _NUMBER), codegen


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
    """Prefetch the cache lines of cells[places[start:start + count]], which will be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = context.make_array(places)(context, builder, args[1]).data
        with cgutils.for_range(builder, args[3]) as loop:
            place = builder.load(builder.gep(where, [builder.add(args[2], loop.index)]))
            at = builder.zext(builder.and_(place, _INT32(_PLACE_BITS)), INT64)
            Row(context, builder, cells, args[0], at).prefetch(INT64(0), 1)
        return context.get_dummy_value()

    return types.void(cells, places, _PLACE, _PLACE), codegen


def _line_at(builder: Any, start: Any, row: Any, lines: Any, line: Any) -> Any:
    """Return where a line of a row of places begins."""
    number = builder.add(builder.mul(row.index, lines), line.index)
    return builder.add(start, builder.mul(number, INT64(FLOATS_PER_LINE)))


def _parted(builder: Any, places: Any) -> tuple[Any, Any]:
    """Return sixteen places without their signs, and the signs."""
    return builder.and_(places, _sixteen(_INT32(_PLACE_BITS))), builder.and_(places, _SIGN)


def _signed(builder: Any, numbers: Any, signs: Any) -> Any:
    return builder.bitcast(builder.xor(builder.bitcast(numbers, _NARROW), signs), LINE)


def _addresses(builder: Any, table: Any, where: Any) -> Any:
    """Return a vector of pointers to sixteen places."""
    wide = builder.sext(where, _WIDE)  # no place is negative, and this is the quicker form
    addresses = builder.gep(table, [wide], source_etype=FLOAT)
    addresses.type = ir.VectorType(FLOAT.as_pointer(), FLOATS_PER_LINE)  # llvmlite takes it for one pointer
    return addresses


def _gathered(builder: Any, table: Any, where: Any) -> Any:
    """Return the numbers at sixteen places."""
    addresses = _addresses(builder, table, where)
    kind = ir.FunctionType(LINE, [addresses.type, _INT32, _EVERYTHING.type, LINE])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.gather.v16f32.v16p0")  # type: ignore[no-untyped-call]
    return builder.call(function, [addresses, _INT32(4), _EVERYTHING, ir.Constant(LINE, ir.Undefined)])


def _scatter(builder: Any, table: Any, where: Any, numbers: Any) -> None:
    """Write numbers to sixteen places."""
    addresses = _addresses(builder, table, where)
    kind = ir.FunctionType(ir.VoidType(), [LINE, addresses.type, _INT32, _EVERYTHING.type])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.scatter.v16f32.v16p0")  # type: ignore[no-untyped-call]
    builder.call(function, [numbers, addresses, _INT32(4), _EVERYTHING])


def _comes_twice(builder: Any, places: Any) -> Any:
    """Return whether two of sixteen numbers are equal, by comparing them with rotations of themselves."""
    found = ir.Constant(_EVERYTHING.type, [0] * FLOATS_PER_LINE)
    for turn in range(1, FLOATS_PER_LINE // 2 + 1):
        order = [(part + turn) % FLOATS_PER_LINE for part in range(FLOATS_PER_LINE)]
        turned = builder.shuffle_vector(places, places, ir.Constant(_NARROW, order))
        found = builder.or_(found, builder.icmp_unsigned("==", places, turned))
    bits = ir.IntType(FLOATS_PER_LINE)
    return builder.icmp_unsigned("!=", builder.bitcast(found, bits), bits(0))


def _cell(context: Any, builder: Any, kinds: tuple[Any, Any], args: Any, at: Any) -> tuple[Any, Any]:
    """Return the address of the cell that one place names, and its sign."""
    table, where = (
        context.make_array(kind)(context, builder, arg).data for kind, arg in zip(kinds, args, strict=False)
    )
    place = builder.load(builder.gep(where, [at]))
    address = builder.gep(table, [builder.zext(builder.and_(place, _INT32(_PLACE_BITS)), INT64)])
    return address, builder.and_(place, _INT32(1 << 31))


def _flipped(builder: Any, number: Any, sign: Any) -> Any:
    return builder.bitcast(builder.xor(builder.bitcast(number, _INT32), sign), FLOAT)


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
