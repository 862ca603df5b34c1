"""Least squares of observations for many rows at once, by conjugate gradients in whitened coordinates.

Rows are users and columns items, or the other way round with the ratings transposed. For one row with weights w_j of
the columns O that it was observed with, minimise over u

    Σ_O (1 + w_j) (1 - u·v_j)² + Σ_others (u·v)² + ridge ‖u‖².

With V'V + ridge I = L L', x = L'u and y = L⁻¹v (see `dpmf.kernels.whitening`) that is

    f(x) = Σ_O ((1 + w_j) (1 - x·y_j)² - (x·y_j)²) + ‖x‖²,

whose normal equations A x = b, A = I + Σ_O w_j y_j y_j' and b = Σ_O (1 + w_j) y_j, do without the columns that were
not observed: a step visits the observed ones alone. And since Σ y y' over all columns is at most I, the eigenvalues of
A lie between 1 and 1 + max w, whatever was observed. So a few steps reduce the residual r = b - A x to a tenth, and f
is above its minimum by r'A⁻¹r, at most ‖r‖².

A row starts from the x that it has, and steps are taken until its residual is a tenth of what it was. An alternating
method comes back to every row with better columns, so that more would be wasted.

>>> pairs = Csr(np.array([0, 1]), np.array([0], np.int32), np.array([1.0], np.float32))
>>> Y, x, f = np.zeros((1, 16), np.float32), np.zeros((1, 16), np.float32), np.zeros(1)
>>> Y[0, 0] = 0.5
>>> improve_observed(pairs, 0, 1, Y, x, f)
>>> round(float(f[0]), 3), round(float(x[0, 0]), 3)
(1.2, 0.8)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.cholesky import dot_lines
from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import kernel
from dpmf.kernels.rows import (
    FLOATS_PER_LINE,
    INT64,
    LINE,
    LINES_IN_REGISTERS,
    LINES_PER_ROUND,
    Row,
    across_several,
    aligned_rows,
    emitted,
    multiply_add,
    rounds,
    spread,
)

MOST_STEPS = 32  # weights of hundreds may need more: the next visit goes on where this one ended
_ENOUGH = 0.01  # of ‖r‖²
_NEGLIGIBLE = 1e-10  # ‖r‖² per unit of weight: f is minimal as far as single precision can tell
_AT_ONCE = 4  # columns: x and what is added up are read and written once for four of them


@kernel
def improve_observed(
    observed: Csr,
    start: int,
    stop: int,
    Y: NDArray[np.float32],
    X: NDArray[np.float32],  # out
    objectives: NDArray[np.float64],  # out
) -> None:
    """Improve x of rows start..stop-1, and write the f of each; a row without observations gets zeros.

    The slow equivalent, for one row, is `improve_observed_reference`.

    Args:
        observed: its values are the weights w_j.
        Y: whitened columns, whose rows are a multiple of 16 wide and have no gaps.
        X: where to start, and the improved rows.
        objectives: f of each row.
    """
    indptr, columns, values = observed
    width = X.shape[1]
    lines = np.int64(width // FLOATS_PER_LINE)
    most = np.int64(_AT_ONCE)
    for i in range(start, stop):
        most = max(most, indptr[i + 1] - indptr[i] + _AT_ONCE)
    places, flat = np.zeros(most, np.int64), Y.reshape(-1)
    targets, weights, nothing = np.zeros(most, np.float32), np.zeros(most, np.float32), np.zeros(most, np.float32)
    vectors = aligned_rows(3, width)
    r, p, q = vectors[0], vectors[1], vectors[2]
    for i in range(start, stop):
        x, n = X[i], indptr[i + 1] - indptr[i]
        if n == 0:
            x[:] = np.float32(0)
            objectives[i] = 0.0
            continue
        total = 0.0
        for one in range(n):
            w = values[indptr[i] + one]
            places[one], weights[one] = np.int64(columns[indptr[i] + one]) * width, w
            targets[one] = np.float32(1) + w
            total += np.float64(targets[one])
        for one in range(n, n + _AT_ONCE - 1):  # fills up the last four, without weight
            places[one], weights[one], targets[one] = places[0], np.float32(0), np.float32(0)
        of_targets = _write_residual(flat, places, targets, weights, n, x, r)  # b·x
        objective = total - of_targets - np.float64(dot_lines(r, 0, x, 0, lines))
        squared = dot_lines(r, 0, r, 0, lines)
        enough = max(np.float32(_ENOUGH) * squared, np.float32(_NEGLIGIBLE * total))
        p[:] = r
        for _ in range(MOST_STEPS):
            if squared <= enough:
                break
            _write_residual(flat, places, nothing, weights, n, p, q)  # -A p
            gain = squared / -dot_lines(p, 0, q, 0, lines)
            for k in range(width):
                x[k] += gain * p[k]
                r[k] += gain * q[k]
            objective -= np.float64(gain) * np.float64(squared)
            before, squared = squared, dot_lines(r, 0, r, 0, lines)
            again = squared / before
            for k in range(width):
                p[k] = r[k] + again * p[k]
        objectives[i] = objective


@kernel
def _write_residual(
    Y: NDArray[np.float32],
    places: NDArray[np.int64],
    targets: NDArray[np.float32],
    weights: NDArray[np.float32],
    n: int,
    x: NDArray[np.float32],
    r: NDArray[np.float32],  # out
) -> float:
    """Write Σ (target - weight y·x) y - x to r and return Σ target y·x, over n rows of flat Y, found by `places`."""
    lines = np.int64(len(x) // FLOATS_PER_LINE)
    for k in range(len(x)):
        r[k] = -x[k]
    total = 0.0
    for one in range(0, n, _AT_ONCE):
        two, three, four = one + 1, one + 2, one + 3
        rows = places[one], places[two], places[three], places[four]
        a, b, c, d = _four_products(Y, rows, x, lines)
        total += np.float64((targets[one] * a + targets[two] * b) + (targets[three] * c + targets[four] * d))
        factors = (
            targets[one] - weights[one] * a,
            targets[two] - weights[two] * b,
            targets[three] - weights[three] * c,
            targets[four] - weights[four] * d,
        )
        _add_four(Y, rows, factors, r, lines)
    return total


@emitted
def _four_products(typingctx: Any, Y: Any, places: Any, x: Any, lines: Any) -> Any:
    """Return the inner products of x and four rows of flat Y."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = _rows_at(context, builder, Y, args[0], args[1])
        vector = Row(context, builder, x, args[2], INT64(0))
        zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in rows]  # type: ignore[no-untyped-call]

        def add_products(first: Any, count: int) -> None:
            for at, line in enumerate(vector.load(first, count)):
                for row, slot in zip(rows, sums, strict=True):
                    other = row.load_vector(builder.add(first, INT64(at)))
                    builder.store(multiply_add(builder, other, line, builder.load(slot)), slot)

        _visit_lines(builder, args[3], add_products)
        totals = across_several(builder, [builder.load(slot) for slot in sums])
        numbers = [builder.extract_element(totals, ir.IntType(32)(place)) for place in range(_AT_ONCE)]
        return context.make_tuple(builder, signature.return_type, numbers)

    found = types.UniTuple(types.float32, _AT_ONCE)  # type: ignore[no-untyped-call]
    return found(Y, places, x, types.int64), codegen


@emitted
def _add_four(typingctx: Any, Y: Any, places: Any, factors: Any, x: Any, lines: Any) -> Any:
    """Add four rows of flat Y, each times a factor, to x (out)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = _rows_at(context, builder, Y, args[0], args[1])
        times = [spread(builder, builder.extract_value(args[2], place)) for place in range(_AT_ONCE)]
        vector = Row(context, builder, x, args[3], INT64(0))

        def add_rows(first: Any, count: int) -> None:
            for at, line in enumerate(vector.load(first, count)):
                here = builder.add(first, INT64(at))
                for row, factor in zip(rows, times, strict=True):
                    line = multiply_add(builder, row.load_vector(here), factor, line)
                vector.store_vector(line, here)

        _visit_lines(builder, args[4], add_rows)
        return context.get_dummy_value()

    return types.void(Y, places, factors, x, types.int64), codegen


def _rows_at(context: Any, builder: Any, kind: Any, array: Any, places: Any) -> list[Row]:
    return [Row(context, builder, kind, array, builder.extract_value(places, place)) for place in range(_AT_ONCE)]


def _visit_lines(builder: Any, lines: Any, emit: Callable[[Any, int], None]) -> None:
    """Emit a visit of all lines: without a loop for rows of a few lines."""
    after = builder.append_basic_block("visited")
    otherwise = builder.append_basic_block("long_rows")
    choice = builder.switch(lines, otherwise)
    for count in LINES_IN_REGISTERS:
        block = builder.append_basic_block(f"rows_of_{count}")
        choice.add_case(INT64(count), block)
        builder.position_at_end(block)
        emit(INT64(0), count)
        builder.branch(after)
    builder.position_at_end(otherwise)
    rounds(builder, lines, LINES_PER_ROUND, 1, emit)
    builder.branch(after)
    builder.position_at_end(after)


def improve_observed_reference(
    weights: NDArray[Any], Y: NDArray[Any], x: NDArray[Any]
) -> tuple[NDArray[np.float64], float]:
    """Return the improved x of one row, from the whitened columns that it was observed with, and f(x)."""
    A = np.eye(len(x)) + Y.T @ (weights[:, None] * Y)
    b = Y.T @ (1.0 + weights)
    x = x.astype(np.float64)
    r = b - A @ x
    p, enough = r, max(_ENOUGH * (r @ r), _NEGLIGIBLE * (1.0 + weights).sum())
    for _ in range(MOST_STEPS):
        if r @ r <= enough:
            break
        gain = (r @ r) / (p @ A @ p)
        x, before, r = x + gain * p, r @ r, r - gain * (A @ p)
        p = r + (r @ r) / before * p
    return x, float((1.0 + weights).sum() - b @ x - r @ x)
