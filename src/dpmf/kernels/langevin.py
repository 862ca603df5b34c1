"""Langevin dynamics on factor rows, in the vectors of `dpmf.kernels.rows`: catching up with noise, and one step.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> U, V = np.ones(16, np.float32), np.full(16, 0.5, np.float32)
>>> @kernel
... def step(U, V):
...     return drift(U, 0, V, 0, 0, 16, np.float32(10), np.float32(-9), np.float32(9), np.float32(0.25))
>>> step(U, V), float(U[0]), float(V[0])
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
def refresh(
    typingctx: Any, rows: Any, biases: Any, clocks: Any, prior: Any, place: Any, width: Any, now: Any, patience: Any,
    mask: Any, noise: Any, slot: Any, bias_slot: Any, sign: Any, pull: Any, bias_pull: Any, variance: Any,
) -> Any:  # fmt: skip
    """Bring a row and its bias up to date if more steps than `patience` have passed; return the bias.

    With t steps since the row's clock and x = t·pull·prior, u ← (1 - x)·u + sd·mask·noise[slot:], where
    sd² = t·variance·(1 - x/2), the bias likewise with x = t·bias_pull and noise[bias_slot], and the clock shows `now`.
    It is one operation because most visits find a row that is up to date, and should pay for no more than looking at
    the clock.

    Args:
        rows: flat float32 array (out) of rows of `width` numbers.
        biases, clocks: float32 and int64 arrays (out), by row.
        prior, mask: flat float32 arrays of `width` numbers; mask is 1 where a row has a factor, 0 where it is padded.
        place: which row.
        width: the number of factors, a multiple of 16.
        now, patience: steps.
        noise: flat float32 array with standard normal numbers from slot on and at bias_slot.
        sign: uint64; if it is odd the numbers are negated.
        pull, bias_pull, variance: float32.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def element(kind: Any, argument: int, at: Any) -> Any:
            return builder.gep(context.make_array(kind)(context, builder, args[argument]).data, [at])

        def row(kind: Any, argument: int, start: Any) -> Row:
            return Row(context, builder, kind, args[argument], start)

        at, width, now = args[4:7]
        bias, clock = element(biases, 1, at), element(clocks, 2, at)
        passed = builder.sub(now, builder.load(clock))
        with builder.if_then(builder.icmp_signed(">", passed, args[7]), likely=False):
            steps = builder.sitofp(passed, FLOAT)
            sd = _root(builder, builder.fmul(args[15], steps))
            sd = builder.select(builder.trunc(args[12], ir.IntType(1)), builder.fneg(sd), sd)
            own = _Owed(
                row(rows, 0, builder.mul(at, width)), row(noise, 9, args[10]), row(prior, 3, INT64(0)),
                row(mask, 8, INT64(0)), spread(builder, sd), spread(builder, builder.fmul(args[13], steps)),
            )  # fmt: skip
            rounds(
                builder,
                builder.udiv(width, INT64(FLOATS_PER_LINE)),
                LINES_PER_ROUND,
                1,
                lambda *part: _pay(builder, own, *part),
            )
            pulled = builder.fmul(args[14], steps)
            less = _root(builder, builder.fsub(FLOAT(1.0), builder.fmul(FLOAT(0.5), pulled)))
            drawn = builder.fmul(builder.fmul(sd, less), builder.load(element(noise, 9, args[11])))
            left = builder.fmul(builder.fsub(FLOAT(1.0), pulled), builder.load(bias))
            builder.store(builder.fadd(left, drawn), bias)
            builder.store(now, clock)
        return builder.load(bias)

    number, place_type, word = types.float32, types.int64, types.uint64
    arguments = (rows, biases, clocks, prior, *(place_type,) * 4, mask, noise, place_type, place_type, word)
    return number(*arguments, number, number, number), codegen


class _Owed(NamedTuple):
    """A row and the pull and noise it is owed, named as in `refresh`; the last two are vectors of copies."""

    row: Row
    noise: Row
    prior: Row
    mask: Row
    sd: Any
    pull: Any


def _pay(builder: Any, owed: _Owed, first: Any, count: int) -> None:
    """Emit what some lines of a row are owed."""
    ones, halves, paid = *(ir.Constant(LINE, [one] * FLOATS_PER_LINE) for one in (1.0, 0.5)), []
    for line, drawn, prior, mask in zip(*(one.load(first, count) for one in owed[:4]), strict=True):
        pulled = builder.fmul(owed.pull, prior)
        sd = builder.fmul(owed.sd, _root(builder, builder.fsub(ones, builder.fmul(halves, pulled))))
        kept = builder.fmul(builder.fsub(ones, pulled), line)
        paid.append(multiply_add(builder, builder.fmul(sd, mask), drawn, kept))
    owed.row.store(first, paid)


def _root(builder: Any, value: Any) -> Any:
    """Return the square root of a number, or of every number of a vector."""
    name = "llvm.sqrt.f32" if value.type == FLOAT else "llvm.sqrt.v16f32"
    kind = ir.FunctionType(value.type, [value.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [value])  # type: ignore[no-untyped-call]


@emitted
def drift(
    typingctx: Any, U: Any, u_start: Any, V: Any, v_start: Any, v_next: Any, width: Any,
    target: Any, least: Any, most: Any, step: Any,
) -> Any:  # fmt: skip
    """Move two rows by one rating, and return its error e = target - u·v.

    Both change from their old values: u ← u + g·v and v ← v + g·u, with g = step·e if least ≤ e ≤ most and g = 0
    otherwise.

    Args:
        U, V: flat float32 arrays (out) with the rows U[u_start:u_start + width] and V[v_start:v_start + width].
        v_next: where the row of V begins that is needed soon; it is prefetched.
        width: the number of factors, a multiple of 16.
        target, least, most, step: float32.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        u, v, coming = (
            Row(context, builder, kind, args[array], args[start])
            for kind, array, start in ((U, 0, 1), (V, 2, 3), (V, 2, 4))
        )
        lines = builder.udiv(args[5], INT64(FLOATS_PER_LINE))
        after, otherwise = builder.append_basic_block("drifted"), builder.append_basic_block("long_rows")
        choice = builder.switch(lines, otherwise)
        errors = []
        for count in LINES_IN_REGISTERS:
            block = builder.append_basic_block(f"rows_of_{count}")
            choice.add_case(INT64(count), block)
            builder.position_at_end(block)
            errors.append((_drift_short(builder, u, v, coming, count, *args[6:10]), builder.block))
            builder.branch(after)
        builder.position_at_end(otherwise)
        errors.append((_drift_long(builder, u, v, coming, lines, *args[6:10]), builder.block))
        builder.branch(after)
        builder.position_at_end(after)
        error = builder.phi(FLOAT)
        for value, block in errors:
            error.add_incoming(value, block)
        return error

    number, place = types.float32, types.int64
    return number(U, place, V, place, place, place, number, number, number, number), codegen


def _drift_short(
    builder: Any, u: Row, v: Row, coming: Row, count: int, target: Any, least: Any, most: Any, step: Any
) -> Any:
    """Emit the update of rows of a few lines, all in registers."""
    start = INT64(0)
    coming.prefetch(start, count)
    us, vs = u.load(start, count), v.load(start, count)
    sums: list[Any] = []  # several, so that one product need not wait for the last
    for place, product in enumerate(zip(us, vs, strict=True)):
        if place < _SUMS:
            sums.append(builder.fmul(*product))
        else:
            sums[place % _SUMS] = multiply_add(builder, *product, sums[place % _SUMS])
    while len(sums) > 1:
        sums = [*(builder.fadd(a, b) for a, b in zip(sums[::2], sums[1::2], strict=False)), *sums[len(sums) & ~1 :]]
    error = builder.fsub(target, across(builder, sums[0]))
    _move(builder, u, v, start, us, vs, _gain(builder, error, least, most, step))
    return error


def _drift_long(
    builder: Any, u: Row, v: Row, coming: Row, lines: Any, target: Any, least: Any, most: Any, step: Any
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

    rounds(builder, lines, LINES_PER_ROUND, 1, add_products)
    halves = [builder.fadd(builder.load(slots[place]), builder.load(slots[place + 2])) for place in range(2)]
    error = builder.fsub(target, across(builder, builder.fadd(*halves)))
    gain = _gain(builder, error, least, most, step)

    def move(first: Any, count: int) -> None:
        _move(builder, u, v, first, u.load(first, count), v.load(first, count), gain)

    rounds(builder, lines, LINES_PER_ROUND, 1, move)
    return error


def _gain(builder: Any, error: Any, least: Any, most: Any, step: Any) -> Any:
    inside = builder.and_(builder.fcmp_ordered(">=", error, least), builder.fcmp_ordered("<=", error, most))
    return builder.select(inside, builder.fmul(step, error), ir.Constant(FLOAT, 0.0))


def _move(builder: Any, u: Row, v: Row, first: Any, us: list[Any], vs: list[Any], gain: Any) -> None:
    """Emit the move of both rows from the values given."""
    gains = spread(builder, gain)
    u.store(first, [multiply_add(builder, gains, b, a) for a, b in zip(us, vs, strict=True)])
    v.store(first, [multiply_add(builder, gains, a, b) for a, b in zip(us, vs, strict=True)])
