"""The inner loops of a Cholesky solver, in explicit vectors of sixteen floats ("lines").

Normal equations and their Cholesky factors are both made of C ← C ± Σ_r B[r]' Z[r]. A strip of C of four rows and as
many lines as there is room for stays in registers while r runs, so that a product costs one instruction and hardly a
load. As in
`dpmf.kernels.rows` the instructions are spelt out in LLVM's portable vector form.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> B, Z, C = np.ones((3, 4), np.float32), np.full((3, 16), 2, np.float32), np.zeros((4, 16), np.float32)
>>> @kernel
... def add(B, Z, C):
...     add_products(B, 0, 0, Z, 0, 3, C, 0, 0, 16, False)
>>> add(B, Z, C)
>>> float(C[3, 15])
6.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.jit import has_many_registers, kernel
from dpmf.kernels.rows import FLOAT, FLOATS_PER_LINE, INT64, LINE, across, emitted, multiply_add, spread

ROWS_PER_STRIP = 4
# Four times six sums and their operands fill the 32 registers of AVX-512. With AVX2 a line takes two of sixteen, and
# sums of one line are all there is room for. Every element is summed in the same order, so no bit depends on it.
_LINES_PER_STRIP = 6 if has_many_registers() else 1
_LINES_PER_PIECE = 6  # of an elimination, on any CPU: the first piece is scaled by roots that are not rounded yet
_LEAST_PIVOT = 1e-30


@kernel
def add_products(
    B: NDArray[np.float32],
    b_row: int,
    b_column: int,
    Z: NDArray[np.float32],
    z_row: int,
    count: int,
    C: NDArray[np.float32],
    c_row: int,
    first: int,
    last: int,
    negative: bool,
) -> None:
    """Add to four rows of C (out) the sum, or its negative, of `count` outer products.

    C[c_row + q, k] += ± Σ_r B[b_row + r, b_column + q] Z[z_row + r, k] for q in 0..3, k in first..last-1.

    Args:
        B, Z, C: float32, rows without gaps; C may be Z or B if the rows read are not the rows written.
        first, last: multiples of 16.
    """
    lines = (last - first) // FLOATS_PER_LINE
    for line in range(0, lines, _LINES_PER_STRIP):
        column = first + line * FLOATS_PER_LINE
        b_at, z_at = b_row * B.shape[1] + b_column, z_row * Z.shape[1] + column
        c_at, n_lines = c_row * C.shape[1] + column, min(lines - line, _LINES_PER_STRIP)
        _add_to_strip(B, b_at, B.shape[1], Z, z_at, Z.shape[1], count, C, c_at, C.shape[1], n_lines, negative)


def add_products_reference(
    B: NDArray[np.float32], Z: NDArray[np.float32], C: NDArray[np.float32], negative: bool
) -> NDArray[np.float64]:
    """Return what `add_products` makes of four rows C, for B of four columns, in double precision."""
    products = B.astype(np.float64).T @ Z.astype(np.float64)
    return np.asarray(C - products if negative else C + products)


@kernel
def eliminate(A: NDArray[np.float32], a: int) -> None:
    """Turn rows a..a+3 of A (out) into rows of its Cholesky factor, the rows above being subtracted already.

    Columns from the line of a on are changed; those left of the diagonal get values without meaning.
    """
    first = a - a % FLOATS_PER_LINE
    width = A.shape[1]
    lines = (width - first) // FLOATS_PER_LINE
    start = a * width + first
    _eliminate_head(A, start, width, a - first, start, min(lines, _LINES_PER_PIECE))
    for line in range(_LINES_PER_PIECE, lines, _LINES_PER_PIECE):
        count = min(lines - line, _LINES_PER_PIECE)
        _eliminate_tail(A, start, width, a - first, start + line * FLOATS_PER_LINE, count)


def cholesky_reference(A: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return R, upper triangular with R'R = A, which `add_products` and `eliminate` make of A strip by strip."""
    return np.asarray(np.linalg.cholesky(A.astype(np.float64)).T)


@emitted
def copy_line(typingctx: Any, source: Any, source_at: Any, target: Any, target_at: Any, factor: Any) -> Any:
    """Write sixteen floats of one array, times a factor, to another (out)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line = _load(builder, _place(context, builder, source, args[0], args[1]), 0)
        scaled = builder.fmul(line, spread(builder, args[4]))
        _store(builder, _place(context, builder, target, args[2], args[3]), 0, scaled)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64, types.float32), codegen


@emitted
def dot_lines(typingctx: Any, left: Any, left_at: Any, right: Any, right_at: Any, lines: Any) -> Any:
    """Return the inner product of two vectors of `lines` lines, each given by its array and its start."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a = _place(context, builder, left, args[0], args[1])
        b = _place(context, builder, right, args[2], args[3])
        total = cgutils.alloca_once_value(builder, ir.Constant(LINE, [0.0] * FLOATS_PER_LINE))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[4]) as loop:
            offset = builder.mul(loop.index, INT64(FLOATS_PER_LINE))
            here, there = (_load(builder, builder.gep(one, [offset]), 0) for one in (a, b))
            builder.store(multiply_add(builder, here, there, builder.load(total)), total)
        return across(builder, builder.load(total))

    return types.float32(left, types.int64, right, types.int64, types.int64), codegen


@emitted
def _add_to_strip(
    typingctx: Any,
    B: Any,
    b_at: Any,
    b_step: Any,
    Z: Any,
    z_at: Any,
    z_step: Any,
    count: Any,
    C: Any,
    c_at: Any,
    c_step: Any,
    lines: Any,
    negative: Any,
) -> Any:
    """Add products to a strip of a few lines; arrays are given by where to begin and the step to the next row."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = _place(context, builder, B, args[0], args[1])
        z = _place(context, builder, Z, args[3], args[4])
        c = _place(context, builder, C, args[7], args[8])

        def emit(width: int) -> None:
            _emit_products(builder, (b, args[2]), (z, args[5]), args[6], (c, args[9]), width, args[11])

        _for_each_width(builder, args[10], _LINES_PER_STRIP, emit)
        return context.get_dummy_value()

    number = types.int64
    kinds = B, number, number, Z, number, number, number, C, number, number, number, types.boolean
    return types.void(*kinds), codegen


def _emit_products(builder: Any, b: Any, z: Any, count: Any, c: Any, width: int, negative: Any) -> None:
    """Emit the loop over r for a strip of `width` lines; each array is a pointer and a step."""
    zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
    sums = [
        [cgutils.alloca_once_value(builder, zero) for _ in range(width)]  # type: ignore[no-untyped-call]
        for _ in range(ROWS_PER_STRIP)
    ]
    with cgutils.for_range(builder, count) as loop:
        left = builder.gep(b[0], [builder.mul(loop.index, b[1])])
        right = builder.gep(z[0], [builder.mul(loop.index, z[1])])
        lines = [_load(builder, right, line) for line in range(width)]
        for q, row in enumerate(sums):
            copies = spread(builder, builder.load(builder.gep(left, [INT64(q)])))
            for line, one in zip(lines, row, strict=True):
                builder.store(multiply_add(builder, copies, line, builder.load(one)), one)
    for q, row in enumerate(sums):
        start = builder.gep(c[0], [builder.mul(INT64(q), c[1])])
        for line, one in enumerate(row):
            old, total = _load(builder, start, line), builder.load(one)
            new = builder.select(negative, builder.fsub(old, total), builder.fadd(old, total))
            _store(builder, start, line, new)


def _elimination(head: bool) -> Any:
    """Return the elimination within a strip: of the piece with the diagonal, or of a piece to the right of it."""

    def eliminate_piece(typingctx: Any, A: Any, start: Any, step: Any, offset: Any, at: Any, lines: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            diagonal = _place(context, builder, A, args[0], builder.add(args[1], args[3]))
            piece = _place(context, builder, A, args[0], args[4])

            def emit(width: int) -> None:
                _emit_elimination(builder, diagonal, piece, args[2], width, head)

            _for_each_width(builder, args[5], _LINES_PER_PIECE, emit)
            return context.get_dummy_value()

        number = types.int64
        return types.void(A, number, number, number, number, number), codegen

    return emitted(eliminate_piece)


_eliminate_head = _elimination(head=True)
_eliminate_tail = _elimination(head=False)


def _emit_elimination(builder: Any, diagonal: Any, piece: Any, step: Any, width: int, head: bool) -> None:
    """Emit R[q] ← (A[q] - Σ_{p<q} R[p, q] R[p]) / R[q, q] for the four rows of a piece of `width` lines."""
    rows: list[list[Any]] = []
    starts = [builder.gep(piece, [builder.mul(INT64(q), step)]) for q in range(ROWS_PER_STRIP)]
    for q, start in enumerate(starts):
        row = [_load(builder, start, line) for line in range(width)]
        for p, above in enumerate(rows):
            factor = builder.load(builder.gep(diagonal, [builder.add(builder.mul(INT64(p), step), INT64(q))]))
            copies = spread(builder, builder.fsub(ir.Constant(FLOAT, 0.0), factor))
            row = [multiply_add(builder, copies, a, b) for a, b in zip(above, row, strict=True)]
        place = builder.gep(diagonal, [builder.add(builder.mul(INT64(q), step), INT64(q))])
        if head:
            _store(builder, start, 0, row[0])
            pivot = builder.load(place)
            least = ir.Constant(FLOAT, _LEAST_PIVOT)
            pivot = builder.select(builder.fcmp_ordered(">", pivot, least), pivot, least)
            kind = ir.FunctionType(FLOAT, [FLOAT])
            root = cgutils.get_or_insert_function(builder.module, kind, "llvm.sqrt.f32")  # type: ignore[no-untyped-call]
            corner = builder.call(root, [pivot])
        else:
            corner = builder.load(place)
        inverse = spread(builder, builder.fdiv(ir.Constant(FLOAT, 1.0), corner))
        row = [builder.fmul(one, inverse) for one in row]
        for line, one in enumerate(row):
            _store(builder, start, line, one)
        rows.append(row)


def _for_each_width(builder: Any, lines: Any, most: int, emit: Callable[[int], None]) -> None:
    """Emit one variant for every number of lines up to the most there can be, and the choice between them."""
    after = builder.append_basic_block("done")
    choice = builder.switch(lines, after)
    for width in range(1, most + 1):
        block = builder.append_basic_block(f"lines_{width}")
        choice.add_case(INT64(width), block)
        builder.position_at_end(block)
        emit(width)
        builder.branch(after)
    builder.position_at_end(after)


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _load(builder: Any, row: Any, line: int) -> Any:
    return builder.load(_line_at(builder, row, line), align=4)


def _store(builder: Any, row: Any, line: int, value: Any) -> None:
    builder.store(value, _line_at(builder, row, line), align=4)


def _line_at(builder: Any, row: Any, line: int) -> Any:
    return builder.bitcast(builder.gep(row, [INT64(line * FLOATS_PER_LINE)]), LINE.as_pointer())
