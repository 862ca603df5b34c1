"""One step of Langevin dynamics on two factor rows, in the vectors of `dpmf.kernels.rows`.

>>> import numpy as np
>>> from dpmf.kernels.compiling import kernel
>>> U, V, noise = np.ones(16, np.float32), np.full(16, 0.5, np.float32), np.zeros(32, np.float32)
>>> prior, mask, one = np.zeros(16, np.float32), np.ones(16, np.float32), np.float32(1.0)
>>> @kernel
... def step(U, V, noise, prior, mask):
...     return drift(U, 0, V, 0, 0, 16, noise, 0, 16, one, one, mask, prior, prior, one, one,
...                  np.float32(10), np.float32(-9), np.float32(9), np.float32(0.25))
>>> step(U, V, noise, prior, mask), float(U[0]), float(V[0])
(2.0, 1.25, 1.0)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types

from dpmf.kernels.rows import (
    FLOAT,
    FLOATS_PER_LINE,
    INT64,
    LINE,
    LINES_IN_REGISTERS,
    LINES_PER_ROUND,
    Row,
    across,
    emitted,
    multiply_add,
    rounds,
    spread,
)

_SUMS = 4


@emitted
def drift(
    typingctx: Any, U: Any, u_start: Any, V: Any, v_start: Any, v_next: Any, width: Any,
    noise: Any, u_noise: Any, v_noise: Any, u_sd: Any, v_sd: Any, mask: Any,
    u_prior: Any, v_prior: Any, u_pull: Any, v_pull: Any, target: Any, least: Any, most: Any, step: Any,
) -> Any:  # fmt: skip
    """Add the noise that two rows are owed, move them by one rating, and return its error e = target - u·v.

    First u ← u + u_sd·mask·noise[u_noise:] and likewise v. Then both change from these values: with g = step·e if
    least ≤ e ≤ most and g = 0 otherwise, u ← (1 - u_pull·u_prior)·u + g·v and v ← (1 - v_pull·v_prior)·v + g·u.

    Args:
        U, V: flat float32 arrays (out) with the rows U[u_start:u_start + width] and V[v_start:v_start + width].
        v_next: where the row of V begins that will be wanted soon; it is fetched into the cache on the way.
        width: the number of factors, a multiple of 16.
        noise: flat float32 array with standard normal numbers from u_noise and from v_noise on.
        mask: flat float32 array, 1 where a row has a factor and 0 where it is padded.
        u_prior, v_prior: flat float32 arrays of `width` numbers.
        u_sd, v_sd, u_pull, v_pull, target, least, most, step: float32.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def row(kind: Any, place: int, start: Any) -> Row:
            return Row(context, builder, kind, args[place], start)

        none = INT64(0)
        pair = _Pair(
            row(U, 0, args[1]), row(V, 2, args[3]), row(V, 2, args[4]), row(noise, 6, args[7]), row(noise, 6, args[8]),
            args[9], args[10], row(mask, 11, none), row(u_prior, 12, none), row(v_prior, 13, none), args[14], args[15],
        )  # fmt: skip
        numbers = args[16:20]
        lines = builder.udiv(args[5], INT64(FLOATS_PER_LINE))
        after, otherwise = builder.append_basic_block("drifted"), builder.append_basic_block("long_rows")
        choice = builder.switch(lines, otherwise)
        errors = []
        for count in LINES_IN_REGISTERS:
            block = builder.append_basic_block(f"rows_of_{count}")
            choice.add_case(INT64(count), block)
            builder.position_at_end(block)
            errors.append((_drift_short(builder, pair, count, *numbers), builder.block))
            builder.branch(after)
        builder.position_at_end(otherwise)
        errors.append((_drift_long(builder, pair, lines, *numbers), builder.block))
        builder.branch(after)
        builder.position_at_end(after)
        error = builder.phi(FLOAT)
        for value, block in errors:
            error.add_incoming(value, block)
        return error

    number, place = types.float32, types.int64
    arguments = (U, place, V, place, place, place, noise, place, place, number, number, mask, u_prior, v_prior)
    return number(*arguments, *(number,) * 6), codegen


class _Pair(NamedTuple):
    """Two rows and what moves them, named as in `drift`."""

    u: Row
    v: Row
    coming: Row
    u_noise: Row
    v_noise: Row
    u_sd: Any
    v_sd: Any
    mask: Row
    u_prior: Row
    v_prior: Row
    u_pull: Any
    v_pull: Any


def _drift_short(builder: Any, pair: _Pair, count: int, target: Any, least: Any, most: Any, step: Any) -> Any:
    """Emit the update of rows of a few lines, all in registers."""
    start = INT64(0)
    pair.coming.prefetch(start, count)
    us, vs = _noisy(builder, pair, start, count, n_full=count - 1)
    sums: list[Any] = []  # several, so that one product need not wait for the last
    for place, product in enumerate(zip(us, vs, strict=True)):
        if place < _SUMS:
            sums.append(builder.fmul(*product))
        else:
            sums[place % _SUMS] = multiply_add(builder, *product, sums[place % _SUMS])
    while len(sums) > 1:
        sums = [*(builder.fadd(a, b) for a, b in zip(sums[::2], sums[1::2], strict=False)), *sums[len(sums) & ~1 :]]
    error = builder.fsub(target, across(builder, sums[0]))
    _move(builder, pair, start, us, vs, _gain(builder, error, least, most, step))
    return error


def _drift_long(builder: Any, pair: _Pair, lines: Any, target: Any, least: Any, most: Any, step: Any) -> Any:
    """Emit the update of long rows: a loop for noise and product, a loop for the move, several lines a round."""
    zero = ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
    slots = [cgutils.alloca_once(builder, LINE) for _ in range(LINES_PER_ROUND)]  # type: ignore[no-untyped-call]
    for slot in slots:
        builder.store(zero, slot)

    def add_products(first: Any, count: int) -> None:
        pair.coming.prefetch(first, count)
        us, vs = _noisy(builder, pair, first, count, n_full=0)
        pair.u.store(first, us)
        pair.v.store(first, vs)
        for slot, product in zip(slots, zip(us, vs, strict=True), strict=False):
            builder.store(multiply_add(builder, *product, builder.load(slot)), slot)

    rounds(builder, lines, 1, add_products)
    halves = [builder.fadd(builder.load(slots[place]), builder.load(slots[place + 2])) for place in range(2)]
    error = builder.fsub(target, across(builder, builder.fadd(*halves)))
    gain = _gain(builder, error, least, most, step)

    def move(first: Any, count: int) -> None:
        _move(builder, pair, first, pair.u.load(first, count), pair.v.load(first, count), gain)

    rounds(builder, lines, 1, move)
    return error


def _noisy(builder: Any, pair: _Pair, first: Any, count: int, n_full: int) -> tuple[list[Any], list[Any]]:
    """Emit lines of both rows with the noise they are owed; the first `n_full` are known to have no padding."""
    masks = [None] * n_full + pair.mask.load(builder.add(first, INT64(n_full)), count - n_full)

    def owed(row: Row, noise: Row, sd: Any) -> list[Any]:
        sds = spread(builder, sd)
        return [
            multiply_add(builder, sds if mask is None else builder.fmul(sds, mask), drawn, line)
            for line, drawn, mask in zip(row.load(first, count), noise.load(first, count), masks, strict=True)
        ]

    return owed(pair.u, pair.u_noise, pair.u_sd), owed(pair.v, pair.v_noise, pair.v_sd)


def _gain(builder: Any, error: Any, least: Any, most: Any, step: Any) -> Any:
    inside = builder.and_(builder.fcmp_ordered(">=", error, least), builder.fcmp_ordered("<=", error, most))
    return builder.select(inside, builder.fmul(step, error), ir.Constant(FLOAT, 0.0))


def _move(builder: Any, pair: _Pair, first: Any, us: list[Any], vs: list[Any], gain: Any) -> None:
    """Emit the move of both rows from the values given."""
    gains, ones = spread(builder, gain), ir.Constant(LINE, [1.0] * FLOATS_PER_LINE)

    def moved(lines: list[Any], others: list[Any], prior: Row, pull: Any) -> list[Any]:
        pulls = builder.fneg(spread(builder, pull))
        keeps = [multiply_add(builder, pulls, one, ones) for one in prior.load(first, len(lines))]
        return [
            multiply_add(builder, gains, other, builder.fmul(keep, line))
            for line, other, keep in zip(lines, others, keeps, strict=True)
        ]

    pair.u.store(first, moved(us, vs, pair.u_prior, pair.u_pull))
    pair.v.store(first, moved(vs, us, pair.v_prior, pair.v_pull))
