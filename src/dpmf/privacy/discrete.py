"""A sampler for the discrete Gaussian: P(k) proportional to exp(-k²/2σ²) on the integers, from uniform bits.

σ may be far too large for a table. With a stretch A, three draws from the table of a small s make one of σ:
X = A²·X1 + A·X2 + X3, where s²(A⁴ + A² + 1) = σ² exactly. The sum is smooth because s is about 2A.

>>> table = table_of(Fraction(2**56))
>>> table.stretch, table.base_square, len(table.moves) == 2**table.column_bits
(512, Fraction(72057594037927936, 68719738881), True)

How far this is from the exact distribution is proven in docs/proofs/noise.md and docs/proofs/shares.md. The bits
come from `dpmf.privacy.noise`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVELS = 3
"""Draws from a table per number."""

WORD = np.dtype("<u4")
"""The type of the uniform word that picks a column and a height in it."""

REFINING_BYTES = 16
"""Further random bytes, drawn where a word alone does not decide."""

_LEAST_SMOOTHNESS = Fraction(39999, 10000)  # the least τ² that Lemma 1 of docs/proofs/noise.md is used with
_REACH = 16  # columns reach at least 16·s to either side
_WORD_BITS = 8 * WORD.itemsize
_REFINING_BITS = 8 * REFINING_BYTES
_UNIT_BITS = _WORD_BITS + _REFINING_BITS  # probabilities are multiples of 2**-_UNIT_BITS
_REFINING_ZEROS = memoryview(bytes(REFINING_BYTES))


class Table(NamedTuple):
    """A base distribution for Walker's alias method, and the stretch that belongs to it.

    A uniform point picks a column by its highest bits and a height in it by the others. Below the column's threshold it
    stands for that column, from there on for the column that is `moves` away.
    """

    stretch: int
    base_square: Fraction  # s²
    column_bits: int
    thresholds: NDArray[np.uint32]  # the words at which the columns' thresholds lie; compared with whole words
    refined: list[int]  # the bits of each threshold that follow those
    moves: NDArray[np.int32]

    @property
    def centre(self) -> int:
        """The column that stands for 0."""
        return 1 << (self.column_bits - 1)


def table_of(square: Fraction) -> Table:
    """Build the table for σ² = square, from 2³⁶ to 2⁵⁶; no probability is off by more than rounding down to 2⁻¹⁶⁰."""
    stretch, base_square = _stretch(square)
    column_bits = 1
    while 4 ** (column_bits - 1) < _REACH**2 * base_square:
        column_bits += 1
    heights = _weights(base_square, column_bits)
    full = 2 ** (_UNIT_BITS - column_bits)
    thresholds, aliases = [0] * len(heights), list(range(len(heights)))
    small = [column for column, height in enumerate(heights) if height < full]
    large = [column for column, height in enumerate(heights) if height >= full]
    while small:  # heights average exactly `full`, so `large` is not empty before `small` is
        column, donor = small.pop(), large[-1]
        thresholds[column], aliases[column] = heights[column], donor
        heights[donor] -= full - heights[column]
        if heights[donor] < full:
            small.append(large.pop())
    first = [(column << (_WORD_BITS - column_bits)) + (t >> _REFINING_BITS) for column, t in enumerate(thresholds)]
    return Table(
        stretch=stretch,
        base_square=base_square,
        column_bits=column_bits,
        thresholds=np.array(first, np.uint32),
        refined=[threshold % 2**_REFINING_BITS for threshold in thresholds],
        moves=np.array([alias - column for column, alias in enumerate(aliases)], np.int32),
    )


def _stretch(square: Fraction) -> tuple[int, Fraction]:
    """Return the largest A for which the sum is smooth enough, and s² = square / (A⁴ + A² + 1)."""
    stretch = int((float(square) / 4) ** (1 / 6)) + 1  # the answer, or 1 or 2 more
    while True:
        base_square = square / (stretch**4 + stretch**2 + 1)
        if base_square >= _LEAST_SMOOTHNESS * (1 + stretch**2):
            return stretch, base_square
        stretch -= 1


def _weights(base_square: Fraction, column_bits: int) -> list[int]:
    """Return, for each column, its probability in units of 2⁻¹⁶⁰; they sum to 2¹⁶⁰ exactly.

    The probability of x, in the column x to the right of the centre, is that of a discrete Gaussian with
    s² = base_square, among those x that are less than the centre in size.
    """
    with localcontext(Context(prec=100)):
        # exp(-(x+1)²/2s²) = exp(-x²/2s²)·exp(-(2x+1)/2s²): a running product of a running product, 1e-90 off at most.
        rate = Decimal(base_square.denominator) / Decimal(base_square.numerator)
        ratio, step = (-rate / 2).exp(), (-rate).exp()
        densities = [Decimal(1)]
        for _ in range(1, 2 ** (column_bits - 1)):
            densities.append(densities[-1] * ratio)
            ratio *= step
        scale = Decimal(2**_UNIT_BITS) / (2 * sum(densities) - 1)
        half = [int(density * scale) for density in densities[1:]]
    centre = 2**_UNIT_BITS - 2 * sum(half)
    return [0, *reversed(half), centre, *half]


class Scratch(NamedTuple):
    """Buffers for one chunk, reused: allocating them would cost more than the arithmetic."""

    words: NDArray[np.uint32]
    columns: NDArray[np.intp]
    thresholds: NDArray[np.uint32]
    moves: NDArray[np.int32]
    moved: NDArray[np.bool_]
    undecided: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int) -> Scratch:
        """Return buffers for `size` words."""
        dtypes = (WORD, np.intp, np.uint32, np.int32, np.bool_, np.bool_)
        return cls(*(np.empty(size, dtype) for dtype in dtypes))


def columns_of(table: Table, scratch: Scratch, refine: Callable[[memoryview], bytes]) -> NDArray[np.intp]:
    """Return the column that each uniform word stands for: one level of the sum, plus the table's centre.

    Args:
        table: what to draw from.
        scratch: its `words` hold 32 uniform bits each; the rest is overwritten, and `columns` returned.
        refine: returns as many uniform bytes as it is given; called where 32 bits do not decide, at most once in 2¹⁷
            words.
    """
    words, columns, thresholds, moves, moved, undecided = scratch
    np.right_shift(words, np.uint32(_WORD_BITS - table.column_bits), out=columns)
    table.thresholds.take(columns, out=thresholds, mode="wrap")  # no index is out of range; "wrap" checks fastest
    np.greater_equal(words, thresholds, out=moved)
    if np.equal(words, thresholds, out=undecided).any():
        for place in np.flatnonzero(undecided):
            more = int.from_bytes(refine(_REFINING_ZEROS), "little")
            moved[place] = more >= table.refined[columns[place]]
    table.moves.take(columns, out=moves, mode="wrap")
    moves *= moved
    columns += moves
    return columns
