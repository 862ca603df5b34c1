"""Operations on factor rows in explicit vectors of sixteen floats, one cache line each.

On its own the compiler vectorises these loops unevenly, and cannot know that a user's row and an item's row never
overlap. So the instructions are explicit, in LLVM's portable vector form: any CPU runs them, and sums are formed in the
same order on each.

Item rows may be stored in sixteen bits per factor (bfloat16, the upper half of a float32), two lines in one: word k
of a pair holds factor k of the first line in its lower half and factor k of the second line in its upper half. They
are widened when read and, when written, rounded up or down at random in proportion to what is lost, so that many
small steps still add up.

>>> unpack(pack(np.full((1, 32), 0.5, np.float32)))[0, :2].tolist()
[0.5, 0.5]
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


def draw(builder: Any, state: Row) -> Any:
    """Return sixteen random numbers below 2^16, from the next state of Marsaglia's xorshift.

    All lines of a row share them: every factor is rounded without bias, and that is all that matters.
    """
    random = state.load_vector(INT64(0))
    for shift, amount in ((builder.shl, 13), (builder.lshr, 17), (builder.shl, 5)):
        random = builder.xor(random, shift(random, _copies(amount)))
    state.store_vector(random, INT64(0))
    return builder.lshr(random, _copies(16))


def rounds(builder: Any, lines: Any, most: int, least: int, emit: Callable[[Any, int], None]) -> None:
    """Emit a loop over all lines, `most` a round, and a loop of `least` a round over those left."""
    whole = builder.and_(lines, INT64(-most))
    with cgutils.for_range_slice(builder, INT64(0), whole, INT64(most)) as (first, _):
        emit(first, most)
    if least < most:
        with cgutils.for_range_slice(builder, whole, lines, INT64(least)) as (first, _):
            emit(first, least)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c for numbers or vectors, rounded once where the CPU can."""
    kind = f"v{a.type.count}f32" if isinstance(a.type, ir.VectorType) else "f32"
    signature = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fmuladd.{kind}")  # type: ignore[no-untyped-call]
    return builder.call(function, [a, b, c])


def element(builder: Any, data: Any, place: Any) -> Any:
    """Return an element of an array of unsigned integers, as 64 bits."""
    value = builder.load(builder.gep(data, [place]))
    return value if value.type == INT64 else builder.zext(value, INT64)


def gather(builder: Any, data: Any, places: list[Any]) -> Any:
    """Return a vector of elements of a float32 array."""
    vector = ir.Constant(ir.VectorType(FLOAT, len(places)), ir.Undefined)
    for at, place in enumerate(places):
        vector = builder.insert_element(vector, builder.load(builder.gep(data, [place])), _INT32(at))
    return vector


def scatter(builder: Any, data: Any, places: list[Any], vector: Any) -> None:
    """Write the elements of a vector to places of a float32 array."""
    for at, place in enumerate(places):
        builder.store(builder.extract_element(vector, _INT32(at)), builder.gep(data, [place]))


def _copies(value: int) -> Any:
    return ir.Constant(_WORDS, [value] * FLOATS_PER_LINE)


def spread(builder: Any, value: Any, count: int = FLOATS_PER_LINE) -> Any:
    """Return a vector of `count` copies of a number."""
    empty = ir.Constant(ir.VectorType(FLOAT, count), ir.Undefined)
    return _copied(builder, builder.insert_element(empty, value, _INT32(0)), 0, count)


def spread_each(builder: Any, vector: Any) -> list[Any]:
    """Return a line of copies of each element of a vector."""
    return [_copied(builder, vector, place, FLOATS_PER_LINE) for place in range(vector.type.count)]


def _copied(builder: Any, vector: Any, place: int, count: int) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, count), [place] * count)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def across(builder: Any, vector: Any) -> Any:
    """Return the sum of a vector's elements, by halves."""
    return builder.extract_element(across_several(builder, [vector]), _INT32(0))


def across_several(builder: Any, vectors: list[Any]) -> Any:
    """Return a vector of the sum of each vector's elements, by halves, several in one addition; one, two or four."""
    count = vectors[0].type.count
    while count > 1:
        count //= 2
        vectors = [_halves_added(builder, vectors[at : at + 2], count) for at in range(0, len(vectors), 2)]
    return vectors[0]


def _halves_added(builder: Any, vectors: list[Any], count: int) -> Any:
    """Return the lower halves of all segments of 2·count elements of one or two vectors, plus the upper halves."""
    starts = range(0, sum(vector.type.count for vector in vectors), 2 * count)
    lower = [start + place for start in starts for place in range(count)]
    kind = ir.VectorType(_INT32, len(lower))
    masks = (ir.Constant(kind, [place + offset for place in lower]) for offset in (0, count))
    return builder.fadd(*(builder.shuffle_vector(vectors[0], vectors[-1], mask) for mask in masks))
