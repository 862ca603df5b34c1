"""Full gradient steps on one side of a factorization: sparse products over the ratings, never a dense matrix.

Letters: row i of one side (a user, say) with factors t_i, rows j of the other with factors x_j, rating r, error
e = r - t_i·x_j. A step moves every row from the old factors of both sides, with a momentum m,

    t_i ← t_i + m (t_i - t_i before) + step_i (Σ_j e s_j x_j - penalty_i t_i + noise_i),

the sum being over the ratings of row i. The factors s_j shorten those x_j that are too long for the gradient, and for
the gradient only: predictions are made with x_j itself. Everything a row needs is its own, so rows may be visited in
any order and by any thread.

>>> rated = Csr(np.array([0, 1]), np.array([0], np.int32), np.array([5], np.float32))
>>> own, before, others = (np.full((1, 16), value, np.float32) for value in (0.5, 0.5, 0.25))
>>> one, nothing = np.ones(1, np.float32), np.zeros((0, 16), np.float32)
>>> step = np.array([0.1], np.float32)
>>> step_rows(rated, 0, 1, own, others, one, step, 0 * one, 0.0, nothing, before)
9.0
>>> round(float(before[0, 0]), 6)  # 0.5 + 0.1 · 3 · 0.25
0.575
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import fast_kernel
from dpmf.kernels.rows import (
    FLOATS_PER_LINE,
    INT64,
    LINE,
    LINES_IN_REGISTERS,
    Row,
    across,
    emitted,
    multiply_add,
    spread,
)

_VISITS_AHEAD = 16  # far enough for a row of a large matrix to arrive from memory in time
_DOUBLE = ir.DoubleType()


@fast_kernel
def step_rows(
    rated: Csr,
    start: int,
    stop: int,
    own: NDArray[np.float32],
    others: NDArray[np.float32],
    scales: NDArray[np.float32],
    steps: NDArray[np.float32],
    penalties: NDArray[np.float32],
    momentum: float,
    noise: NDArray[np.float32],
    before: NDArray[np.float32],  # in: the rows one step ago, out: the rows one step on
) -> float:
    """Move rows start..stop-1 by one step; return the sum of their e².

    Args:
        rated: ratings of this side's rows, centred.
        own, others: shapes (rows, width) and (columns, width), finite, as they were before this step.
        scales: s_j, one for each row of the other side.
        steps, penalties: one for each row of this side.
        momentum: m.
        noise: shape (rows, K), K at most the width; or no rows at all, for none.
        before: see above.
    """
    indptr, columns, values = rated
    width, noisy = own.shape[1], noise.shape[1] if len(noise) else 0
    momentum_32, squared = np.float32(momentum), 0.0
    pull = np.empty(width, np.float32)
    flat_own, flat_others = own.reshape(own.size), others.reshape(others.size)
    for i in range(start, stop):
        t = own[i]
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
        squared += _pull_of_row(
            columns, values, first, last, flat_own, np.int64(i) * width, flat_others, scales, np.int64(width), pull
        )
        for k in range(noisy):
            pull[k] += noise[i, k]
        for k in range(width):
            move = momentum_32 * (t[k] - before[i, k]) + steps[i] * (pull[k] - penalties[i] * t[k])
            before[i, k] = t[k] + move
    return squared


@emitted
def _pull_of_row(
    typingctx: Any,
    columns: Any,
    values: Any,
    first: Any,
    last: Any,
    own: Any,
    t_start: Any,
    others: Any,
    scales: Any,
    width: Any,
    pull: Any,
) -> Any:
    """Write Σ e s_j x_j over ratings first..last-1 of one row to pull (out), and return Σ e²; all arrays are flat.

    A row's factors and its sum stay in registers while its ratings pass by, up to eight lines of them.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = (columns, 0), (values, 1), (scales, 7)
        data = [context.make_array(kind)(context, builder, args[place]).data for kind, place in arrays]
        t = Row(context, builder, own, args[4], args[5])
        sums = Row(context, builder, pull, args[9], INT64(0))
        squared = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLE, 0.0))  # type: ignore[no-untyped-call]
        end = builder.sub(args[3], INT64(1))

        def visit(emit: Callable[[Row, Row, Any, Any], Any]) -> None:
            """Emit the loop over ratings; emit(x, coming, rating, factor) adds one to the sum and returns e."""
            with cgutils.for_range_slice(builder, args[2], args[3], INT64(1)) as (place, _):
                soon = builder.add(place, INT64(_VISITS_AHEAD))
                soon = builder.select(builder.icmp_signed("<", soon, end), soon, end)
                here, there = (builder.sext(builder.load(builder.gep(data[0], [at])), INT64) for at in (place, soon))
                x, coming = (Row(context, builder, others, args[6], builder.mul(j, args[8])) for j in (here, there))
                factor = builder.load(builder.gep(data[2], [here]))
                error = builder.fpext(emit(x, coming, builder.load(builder.gep(data[1], [place])), factor), _DOUBLE)
                builder.store(builder.fadd(builder.load(squared), builder.fmul(error, error)), squared)

        lines = builder.udiv(args[8], INT64(FLOATS_PER_LINE))
        after, otherwise = builder.append_basic_block("pulled"), builder.append_basic_block("long_rows")
        choice = builder.switch(lines, otherwise)
        for count in LINES_IN_REGISTERS:
            block = builder.append_basic_block(f"rows_of_{count}")
            choice.add_case(INT64(count), block)
            builder.position_at_end(block)
            _pull_short(builder, t, sums, count, visit)
            builder.branch(after)
        builder.position_at_end(otherwise)
        _pull_long(builder, t, sums, lines, visit)
        builder.branch(after)
        builder.position_at_end(after)
        return builder.load(squared)

    number = types.int64
    kinds = columns, values, number, number, own, number, others, scales, number, pull
    return types.float64(*kinds), codegen


def _pull_short(builder: Any, t: Row, sums: Row, count: int, visit: Callable[..., None]) -> None:
    """Emit the sum for rows of a few lines, all in registers."""
    start = INT64(0)
    ours = t.load(start, count)
    slots = _zeros(builder, count)

    def add(x: Row, coming: Row, rating: Any, factor: Any) -> Any:
        coming.prefetch(start, count)
        theirs = x.load(start, count)
        total = builder.fmul(ours[0], theirs[0])
        for pair in zip(ours[1:], theirs[1:], strict=True):
            total = multiply_add(builder, *pair, total)
        error = builder.fsub(rating, across(builder, total))
        gain = spread(builder, builder.fmul(factor, error))
        for slot, line in zip(slots, theirs, strict=True):
            builder.store(multiply_add(builder, gain, line, builder.load(slot)), slot)
        return error

    visit(add)
    sums.store(start, [builder.load(slot) for slot in slots])


def _pull_long(builder: Any, t: Row, sums: Row, lines: Any, visit: Callable[..., None]) -> None:
    """Emit the sum for long rows: a loop for the product, and a loop for the sum, which stays in memory."""
    zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
    with cgutils.for_range(builder, lines, intp=INT64) as loop:
        sums.store(loop.index, [zero])
    (slot,) = _zeros(builder, 1)

    def add(x: Row, coming: Row, rating: Any, factor: Any) -> Any:
        builder.store(zero, slot)
        with cgutils.for_range(builder, lines, intp=INT64) as loop:
            coming.prefetch(loop.index, 1)
            (ours,), (theirs,) = t.load(loop.index, 1), x.load(loop.index, 1)
            builder.store(multiply_add(builder, ours, theirs, builder.load(slot)), slot)
        error = builder.fsub(rating, across(builder, builder.load(slot)))
        gain = spread(builder, builder.fmul(factor, error))
        with cgutils.for_range(builder, lines, intp=INT64) as loop:
            (line,), (total,) = x.load(loop.index, 1), sums.load(loop.index, 1)
            sums.store(loop.index, [multiply_add(builder, gain, line, total)])
        return error

    visit(add)


def _zeros(builder: Any, count: int) -> list[Any]:
    """Return `count` lines of zeros, each in a place of its own, which becomes a register."""
    zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
    slots = [cgutils.alloca_once(builder, LINE) for _ in range(count)]  # type: ignore[no-untyped-call]
    for slot in slots:
        builder.store(zero, slot)
    return slots


def step_rows_reference(
    rated: Csr,
    own: NDArray[Any],
    others: NDArray[Any],
    scales: NDArray[Any],
    steps: NDArray[Any],
    penalties: NDArray[Any],
    momentum: float,
    noise: NDArray[Any],
    before: NDArray[Any],
) -> tuple[NDArray[np.float64], float]:
    """Return what `step_rows` makes of all rows, and the sum of e², in double precision."""
    indptr, columns, values = rated
    moved, squared = np.empty(own.shape), 0.0
    for i in range(len(own)):
        own_columns = columns[indptr[i] : indptr[i + 1]]
        errors = values[indptr[i] : indptr[i + 1]] - others[own_columns].astype(np.float64) @ own[i].astype(np.float64)
        pull = (errors * scales[own_columns]) @ others[own_columns].astype(np.float64)
        if len(noise):
            pull[: noise.shape[1]] += noise[i]
        moved[i] = own[i] + momentum * (own[i] - before[i]) + steps[i] * (pull - penalties[i] * own[i])
        squared += float(errors @ errors)
    return moved, squared
