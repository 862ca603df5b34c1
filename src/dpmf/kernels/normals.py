"""Standard normal numbers for sampling, not for the noise of certified guarantees.

Two sources. Fresh numbers come from a counter: Philox (Salmon et al. 2011, two words, seven rounds) makes two uniform
words of a stream and a place, and Box and Muller's transform makes two normal numbers of them. So a number depends on
its stream and place alone, whatever was drawn before. Numbers from a table are reused again and again: a row
takes neighbouring lines, a group of rows from one random line on, each row with a random sign. The sign keeps every
mean at 0, and each of the table's sixteen columns has variance 1 exactly, so that however often the table is read, only
shape and independence of the noise are approximate.

>>> drawn = normal_row_reference(np.uint64(1), 1024)
>>> bool(abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.1)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel
from dpmf.kernels.rows import FLOATS_PER_LINE, INT64, LINE, Row, emitted, multiply_add

_ROUNDS = 7
_MULTIPLIER, _WEYL = 0xD256D193, 0x9E3779B9
_LOW = 0xFFFFFFFF
_UNIT = 2.0**-24
_LN_2, _ROOT_OF_HALF = 0.69314718, 0x3F3504F3  # the latter as the bits of a float32
_LOGARITHM = (2.0, 2 / 3, 2 / 5, 2 / 7)  # 2 artanh(z) / z as a polynomial in z²
_NUMBERS_AT_ONCE = 2 * FLOATS_PER_LINE
_INT32 = ir.IntType(32)
_WORDS = ir.VectorType(_INT32, FLOATS_PER_LINE)
# sin(πx/2)/x and cos(πx/2) as polynomials in x², for |x| ≤ 1/2.
_SINE = (1.5707963, -0.6459641, 0.07969263, -0.0046817541, 0.00016044118)
_COSINE = (1.0, -1.2337006, 0.25366951, -0.020863481, 0.00091926027)


def normal_table(generator: np.random.Generator, size: int, room: int) -> NDArray[np.float32]:
    """Return a table of at least `size` numbers, in whole lines, flat; the first `room` are repeated at the end.

    Args:
        generator: where they come from.
        size: from about 2 lines on.
        room: how many numbers are read from one line on, a multiple of 16.
    """
    lines = max(-(-size // FLOATS_PER_LINE), 2)
    table = generator.standard_normal((lines, FLOATS_PER_LINE))
    table /= np.sqrt(np.mean(table**2, axis=0))
    again = np.arange(lines + room // FLOATS_PER_LINE) % lines
    memory = np.empty((len(again) + 1) * FLOATS_PER_LINE, np.float32)
    offset = -memory.ctypes.data % (4 * FLOATS_PER_LINE) // 4  # a line across two cache lines takes twice as long
    aligned = memory[offset : offset + len(again) * FLOATS_PER_LINE]
    aligned[:] = table[again].ravel()
    return aligned


@kernel
def normal_row(stream: np.uint64, start: int, count: int, out: NDArray[np.float32]) -> None:
    """Fill out[start:start + count], count a multiple of 32, with the normal numbers of a stream."""
    _normal_lines(out, np.int64(start), np.int64(count // _NUMBERS_AT_ONCE), np.uint64(stream))


@kernel
def normals_of_words(words: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Fill out, whose length is a multiple of 32, with normal numbers, one per uniform word.

    Args:
        words: 32 random bits each, seen as float32 because that is how rows are read.
        out: (out).
    """
    _normal_lines_of_words(out, words, np.int64(len(out) // _NUMBERS_AT_ONCE))


@emitted
def _normal_lines_of_words(typingctx: Any, out: Any, words: Any, pairs: Any) -> Any:
    """Turn pairs of lines of uniform words into pairs of lines of normal numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, source = Row(context, builder, out, args[0], INT64(0)), Row(context, builder, words, args[1], INT64(0))
        with cgutils.for_range(builder, args[2], intp=INT64) as loop:
            first = builder.mul(loop.index, INT64(2))
            left, right = (builder.bitcast(line, _WORDS) for line in source.load(first, 2))
            row.store(first, list(_box_muller(builder, left, right)))
        return context.get_dummy_value()

    return types.void(out, words, types.int64), codegen


@emitted
def _normal_lines(typingctx: Any, out: Any, start: Any, pairs: Any, stream: Any) -> Any:
    """Fill `pairs` pairs of lines."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = Row(context, builder, out, args[0], args[1])
        low = builder.trunc(args[3], _INT32)
        high = builder.trunc(builder.lshr(args[3], INT64(32)), _INT32)
        counts = ir.Constant(_WORDS, list(range(FLOATS_PER_LINE)))
        with cgutils.for_range(builder, args[2], intp=INT64) as loop:
            first = builder.trunc(builder.mul(loop.index, INT64(FLOATS_PER_LINE)), _INT32)
            left = builder.add(_spread_word(builder, first), counts)
            lines = _box_muller(builder, *_philox(builder, left, _spread_word(builder, low), high))
            row.store(builder.mul(loop.index, INT64(2)), list(lines))
        return context.get_dummy_value()

    return types.void(out, types.int64, types.int64, types.uint64), codegen


def _philox(builder: Any, left: Any, right: Any, key: Any) -> tuple[Any, Any]:
    """Emit two words of sixteen counters each."""
    wide = ir.VectorType(INT64, FLOATS_PER_LINE)
    for _ in range(_ROUNDS):
        product = builder.mul(builder.zext(left, wide), ir.Constant(wide, [_MULTIPLIER] * FLOATS_PER_LINE))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, [32] * FLOATS_PER_LINE)), _WORDS)
        left = builder.xor(builder.xor(upper, _spread_word(builder, key)), right)
        right = builder.trunc(product, _WORDS)
        key = builder.add(key, _INT32(_WEYL))
    return left, right


def _box_muller(builder: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Emit two lines of normal numbers made of two lines of uniform words."""
    radius = _root(builder, builder.fmul(_line(-2.0), _logarithm(builder, _uniform(builder, left))))
    # An angle of (quarter + x) quarter turns, x in [-1/2, 1/2); as x and -x are alike, in any order of the quarters.
    x = builder.fsub(_uniform(builder, builder.shl(right, _word(2))), _line(0.5))
    square = builder.fmul(x, x)
    sine, cosine = builder.fmul(x, _polynomial(builder, _SINE, square)), _polynomial(builder, _COSINE, square)
    odd = builder.icmp_unsigned("!=", builder.and_(right, _word(1 << 30)), _word(0))
    negative = builder.and_(right, _word(1 << 31))
    signed = builder.bitcast(builder.xor(builder.bitcast(radius, _WORDS), negative), LINE)
    return (
        builder.fmul(signed, builder.select(odd, sine, cosine)),
        builder.fmul(signed, builder.select(odd, cosine, sine)),
    )


def _uniform(builder: Any, words: Any) -> Any:
    """Emit numbers from 2^-25 to 1 of the upper 24 bits of words."""
    whole = builder.sitofp(builder.lshr(words, _word(8)), LINE)
    return builder.fmul(builder.fadd(whole, _line(0.5)), _line(_UNIT))


def _logarithm(builder: Any, numbers: Any) -> Any:
    """Emit ln m + n ln 2 of numbers m 2^n, m in [1/√2, √2), where ln m = 2 artanh z and z = (m - 1) / (m + 1)."""
    bits = builder.bitcast(numbers, _WORDS)
    exponent = builder.ashr(builder.sub(bits, _word(_ROOT_OF_HALF)), _word(23))
    mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, _word(23))), LINE)
    z = builder.fdiv(builder.fsub(mantissa, _line(1.0)), builder.fadd(mantissa, _line(1.0)))
    of_mantissa = builder.fmul(z, _polynomial(builder, _LOGARITHM, builder.fmul(z, z)))
    return multiply_add(builder, builder.sitofp(exponent, LINE), _line(_LN_2), of_mantissa)


def _polynomial(builder: Any, coefficients: tuple[float, ...], x: Any) -> Any:
    total = _line(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = multiply_add(builder, total, x, _line(coefficient))
    return total


def _root(builder: Any, numbers: Any) -> Any:
    kind = ir.FunctionType(LINE, [LINE])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.sqrt.v16f32")  # type: ignore[no-untyped-call]
    return builder.call(function, [numbers])


def _line(value: float) -> Any:
    return ir.Constant(LINE, [float(np.float32(value))] * FLOATS_PER_LINE)


def _word(value: int) -> Any:
    return ir.Constant(_WORDS, [value] * FLOATS_PER_LINE)


def _spread_word(builder: Any, value: Any) -> Any:
    empty = ir.Constant(_WORDS, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(empty, value, _INT32(0)), empty, _word(0))


def normal_row_reference(stream: np.uint64, count: int) -> NDArray[np.float64]:
    """Return what `normal_row` writes, with the library's logarithm, sine and cosine."""
    left, right = np.arange(count // 2, dtype=np.uint64), np.full(count // 2, stream & np.uint64(_LOW))
    key = np.uint64(stream) >> np.uint64(32)
    for _ in range(_ROUNDS):
        product = left * np.uint64(_MULTIPLIER)
        left = ((product >> np.uint64(32)) ^ key ^ right) & np.uint64(_LOW)
        right = product & np.uint64(_LOW)
        key = (key + np.uint64(_WEYL)) & np.uint64(_LOW)
    return _box_muller_reference(left, right)


def normals_of_words_reference(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return what `normals_of_words` writes."""
    pairs = words.astype(np.uint64).reshape(-1, 2, FLOATS_PER_LINE)
    return _box_muller_reference(pairs[:, 0].ravel(), pairs[:, 1].ravel())


def _box_muller_reference(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.float64]:
    radius = np.sqrt(-2 * np.log(((left >> np.uint64(8)) + 0.5) * _UNIT))
    x = ((right >> np.uint64(6) & np.uint64(0xFFFFFF)) + 0.5) * _UNIT - 0.5
    quarter = right >> np.uint64(30)
    sine, cosine = np.sin(np.pi / 2 * x), np.cos(np.pi / 2 * x)
    odd, signed = quarter & np.uint64(1) == 1, radius * (1.0 - (quarter & np.uint64(2)))
    both = np.stack([signed * np.where(odd, sine, cosine), signed * np.where(odd, cosine, sine)])
    return both.reshape(2, -1, FLOATS_PER_LINE).swapaxes(0, 1).ravel()
