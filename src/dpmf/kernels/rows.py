"""Operations on factor rows in explicit vectors of sixteen floats, one cache line each.

On its own the compiler vectorises these loops unevenly, and cannot know that a user's row and an item's row never
overlap. So the instructions are explicit, in LLVM's portable vector form: any CPU runs them, and sums are formed in the
same order on each. Rows of up to eight lines stay in registers from the first read to the last write.

Item rows may be stored in sixteen bits per factor (bfloat16, the upper half of a float32), two lines in one: word k
of a pair holds factor k of the first line in its lower half and factor k of the second line in its upper half. They
are widened when read and, when written, rounded up or down at random in proportion to what is lost, so that many
small steps still add up.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> U, V, state = np.ones(16, np.float32), np.full(16, 0.5, np.float32), np.ones(16, np.uint32)
>>> @kernel
... def step(U, V, state):
...     return descend(U, 0, V, 0, 0, 16, np.float32(10.0), np.float32(1.0), np.float32(0.25), state)
>>> step(U, V, state), float(U[0]), float(V[0])
(2.0, 1.25, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel

FLOATS_PER_LINE = 16
LINES_IN_REGISTERS = (1, 2, 3, 4, 6, 8)
LINES_PER_ROUND = 4

FLOAT = ir.FloatType()
LINE = ir.VectorType(FLOAT, FLOATS_PER_LINE)
_WORDS = ir.VectorType(ir.IntType(32), FLOATS_PER_LINE)
_INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
_UPPER = 0xFFFF0000


def pack(rows: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return rows, shape (n, width), in sixteen bits per factor, rounded to nearest, shape (n, width / 2)."""
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    pairs = nearest.reshape(len(rows), -1, 2, FLOATS_PER_LINE)
    words = (pairs[:, :, 0] >> np.uint32(16)) | (pairs[:, :, 1] & np.uint32(_UPPER))
    return np.asarray(words.reshape(len(rows), -1))


def unpack(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return packed rows as float32.

    >>> unpack(pack(np.full((1, 32), 3.14159, np.float32)))[0, :2].tolist()
    [3.140625, 3.140625]
    """
    lines = words.reshape(len(words), -1, FLOATS_PER_LINE)
    pairs = np.stack([lines << np.uint32(16), lines & np.uint32(_UPPER)], axis=2)
    return np.ascontiguousarray(pairs).view(np.float32).reshape(len(words), -1)


@kernel
def aligned_rows(n_rows: int, width: int) -> NDArray[np.float32]:
    """Return an array that begins on a cache line, where vectors are read and written at full speed."""
    raw = np.empty(n_rows * width + FLOATS_PER_LINE, np.float32)
    offset = -(raw.ctypes.data // 4) % FLOATS_PER_LINE
    return raw[offset : offset + n_rows * width].reshape(n_rows, width)


def emitted(function: Any) -> Any:
    """Declare a function whose instructions its body emits; callers leave out the first argument."""
    return intrinsic(function)


@emitted
def descend(
    typingctx: Any, U: Any, u_start: Any, V: Any, v_start: Any, v_next: Any, width: Any, target: Any, keep: Any,
    step: Any, state: Any,
) -> Any:  # fmt: skip
    """Move two rows by one rating and return its error e = target - u·v.

    Both rows change from their old values: u ← keep·u + step·e·v and v ← keep·v + step·e·u.

    Args:
        U: flat float32 array (out) with the row U[u_start:u_start + width].
        V: flat array (out) whose row begins at v_start: float32, or uint32 for a packed row of width / 2 words.
        v_next: where the row of V begins that is needed soon; it is prefetched.
        width: the number of factors, a multiple of 16, or of 32 if V is packed.
        target, keep, step: float32.
        state: 16 non-zero uint32 (out), from which random numbers for rounding come; used only if V is packed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        u = Row(context, builder, U, args[0], args[1])
        v = Row(context, builder, V, args[2], args[3])
        coming = Row(context, builder, V, args[2], args[4])
        lines = builder.udiv(args[5], INT64(FLOATS_PER_LINE))
        random = _draw(builder, Row(context, builder, state, args[9], INT64(0))) if v.packed else None
        numbers = (*args[6:9], random)
        after = builder.append_basic_block("descended")
        otherwise = builder.append_basic_block("long_rows")
        choice = builder.switch(lines, otherwise)
        errors = []
        for count in LINES_IN_REGISTERS:
            if v.packed and count % 2:
                continue
            block = builder.append_basic_block(f"rows_of_{count}")
            choice.add_case(INT64(count), block)
            builder.position_at_end(block)
            errors.append((_descend_short(builder, u, v, coming, count, *numbers), builder.block))
            builder.branch(after)
        builder.position_at_end(otherwise)
        errors.append((_descend_long(builder, u, v, coming, lines, *numbers), builder.block))
        builder.branch(after)
        builder.position_at_end(after)
        error = builder.phi(FLOAT)
        for value, block in errors:
            error.add_incoming(value, block)
        return error

    number, place = types.float32, types.int64
    return number(U, place, V, place, place, place, number, number, number, state), codegen


class Row:
    """A row in memory, read and written by whole lines."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, start: Any) -> None:
        self._builder = builder
        self.packed = kind.dtype == types.uint32
        vector = _WORDS if self.packed else LINE
        data = context.make_array(kind)(context, builder, array).data
        self._pointer = builder.bitcast(builder.gep(data, [start]), vector.as_pointer())

    def load(self, first: Any, count: int) -> list[Any]:
        """Return `count` lines from line `first` on; an even number, from an even one, of a packed row."""
        if not self.packed:
            return [self.load_vector(self._builder.add(first, INT64(place))) for place in range(count)]
        lines = []
        for place in range(count // 2):
            words = self.load_vector(self._vector_of(first, place))
            lower = self._builder.shl(words, _copies(16))
            upper = self._builder.and_(words, _copies(_UPPER))
            lines += [self._builder.bitcast(half, LINE) for half in (lower, upper)]
        return lines

    def store(self, first: Any, lines: list[Any], random: Any = None) -> None:
        """Write lines from line `first` on; `random` rounds those of a packed row."""
        builder = self._builder
        if not self.packed:
            for place, line in enumerate(lines):
                self.store_vector(line, builder.add(first, INT64(place)))
            return
        for place in range(len(lines) // 2):
            lower, upper = (
                builder.add(builder.bitcast(one, _WORDS), random) for one in lines[2 * place : 2 * place + 2]
            )
            words = builder.or_(builder.lshr(lower, _copies(16)), builder.and_(upper, _copies(_UPPER)))
            self.store_vector(words, self._vector_of(first, place))

    def prefetch(self, first: Any, count: int) -> None:
        """Prefetch `count` lines from line `first` on, which will be written soon."""
        builder = self._builder
        write, medium_locality, data_cache = _INT32(1), _INT32(2), _INT32(1)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        for place in range(count // 2 if self.packed else count):
            at = self._vector_of(first, place) if self.packed else builder.add(first, INT64(place))
            address = builder.bitcast(builder.gep(self._pointer, [at]), ir.IntType(8).as_pointer())
            builder.call(function, [address, write, medium_locality, data_cache])

    def load_vector(self, at: Any) -> Any:
        """Return one vector."""
        value = self._builder.load(self._builder.gep(self._pointer, [at]))
        value.align = 4  # rows start on a cache line, but a caller's array need not
        return value

    def store_vector(self, value: Any, at: Any) -> None:
        """Write one vector."""
        self._builder.store(value, self._builder.gep(self._pointer, [at])).align = 4

    def _vector_of(self, first_line: Any, pair: int) -> Any:
        return self._builder.add(self._builder.lshr(first_line, INT64(1)), INT64(pair))


def _draw(builder: Any, state: Row) -> Any:
    """Return sixteen random numbers below 2^16, from the next state of Marsaglia's xorshift.

    All lines of a row share them: every factor is rounded without bias, and that is all that matters.
    """
    random = state.load_vector(INT64(0))
    for shift, amount in ((builder.shl, 13), (builder.lshr, 17), (builder.shl, 5)):
        random = builder.xor(random, shift(random, _copies(amount)))
    state.store_vector(random, INT64(0))
    return builder.lshr(random, _copies(16))


def _descend_short(
    builder: Any, u: Row, v: Row, coming: Row, count: int, target: Any, keep: Any, step: Any, random: Any
) -> Any:
    """Emit the update of rows of a few lines, all in registers."""
    start = INT64(0)
    coming.prefetch(start, count)
    us, vs = u.load(start, count), v.load(start, count)
    sums: list[Any] = []
    for place, product in enumerate(zip(us, vs, strict=True)):
        if place < 2:
            sums.append(builder.fmul(*product))
        else:
            sums[place % 2] = multiply_add(builder, *product, sums[place % 2])
    total = builder.fadd(*sums) if len(sums) == 2 else sums[0]
    error = builder.fsub(target, across(builder, total))
    _move(builder, u, v, start, us, vs, keep, builder.fmul(step, error), random)
    return error


def _descend_long(
    builder: Any, u: Row, v: Row, coming: Row, lines: Any, target: Any, keep: Any, step: Any, random: Any
) -> Any:
    """Emit the update of long rows: a loop for the product, a loop for the move, several lines a round."""
    zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
    slots = [cgutils.alloca_once(builder, LINE) for _ in range(LINES_PER_ROUND)]  # type: ignore[no-untyped-call]
    for slot in slots:
        builder.store(zero, slot)

    def add_products(first: Any, count: int) -> None:
        coming.prefetch(first, count)
        for slot, product in zip(slots, zip(u.load(first, count), v.load(first, count), strict=True), strict=False):
            builder.store(multiply_add(builder, *product, builder.load(slot)), slot)

    rounds(builder, lines, 2 if v.packed else 1, add_products)
    halves = [builder.fadd(builder.load(slots[place]), builder.load(slots[place + 2])) for place in range(2)]
    error = builder.fsub(target, across(builder, builder.fadd(*halves)))
    gain = builder.fmul(step, error)

    def move(first: Any, count: int) -> None:
        _move(builder, u, v, first, u.load(first, count), v.load(first, count), keep, gain, random)

    rounds(builder, lines, 2 if v.packed else 1, move)
    return error


def rounds(builder: Any, lines: Any, least: int, emit: Callable[[Any, int], None]) -> None:
    """Emit a loop over all lines, several a round, and a loop of `least` a round over those left."""
    whole = builder.and_(lines, INT64(-LINES_PER_ROUND))
    with cgutils.for_range_slice(builder, INT64(0), whole, INT64(LINES_PER_ROUND)) as (first, _):
        emit(first, LINES_PER_ROUND)
    with cgutils.for_range_slice(builder, whole, lines, INT64(least)) as (first, _):
        emit(first, least)


def _move(
    builder: Any, u: Row, v: Row, first: Any, us: list[Any], vs: list[Any], keep: Any, gain: Any, random: Any
) -> None:
    """Emit u ← keep·u + gain·v and v ← keep·v + gain·u, from the old values given."""
    keeps, gains = spread(builder, keep), spread(builder, gain)
    u.store(first, [multiply_add(builder, gains, b, builder.fmul(keeps, a)) for a, b in zip(us, vs, strict=True)])
    moved = [multiply_add(builder, gains, a, builder.fmul(keeps, b)) for a, b in zip(us, vs, strict=True)]
    v.store(first, moved, random)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once where the CPU can."""
    kind = ir.FunctionType(LINE, [LINE, LINE, LINE])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v16f32")  # type: ignore[no-untyped-call]
    return builder.call(function, [a, b, c])


def _copies(value: int) -> Any:
    return ir.Constant(_WORDS, [value] * FLOATS_PER_LINE)


def spread(builder: Any, value: Any) -> Any:
    """Return a vector of sixteen copies."""
    empty = ir.Constant(LINE, ir.Undefined)
    single = builder.insert_element(empty, value, _INT32(0))
    return builder.shuffle_vector(single, empty, _copies(0))


def across(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's elements, by halves."""
    count = FLOATS_PER_LINE
    while count > 1:
        count //= 2
        kind = ir.VectorType(_INT32, count)
        low = builder.shuffle_vector(vector, vector, ir.Constant(kind, list(range(count))))
        high = builder.shuffle_vector(vector, vector, ir.Constant(kind, list(range(count, 2 * count))))
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, _INT32(0))
