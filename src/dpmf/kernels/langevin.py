"""Langevin dynamics on factor rows, in the vectors of `dpmf.kernels.rows`: catching up with noise, and one step.

>>> import math
>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> row, noise, ones = np.ones(16, np.float32), np.full(16, 2.0, np.float32), np.ones(16, np.float32)
>>> @kernel
... def paid(row, noise, ones):
...     pay(row, 0, 16, noise, 0, ones, ones, np.float32(0.5), np.float32(0.5), np.float32(0.5))
...     return row[0]
>>> round(float(paid(row, noise, ones)), 5), round(0.5 + 0.5 * math.sqrt(1 - 0.5 / 2) * 2, 5)
(1.36603, 1.36603)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from dpmf.kernels.rows import FLOAT, FLOATS_PER_LINE, INT64, LINE, Row, emitted, multiply_add, spread
from dpmf.kernels.steps import Block, Move, emit_step

_SMALL = 0.125
# √(1 + z/2) for z from -_SMALL to 0 as a polynomial in z: 6.1e-9 off at most, a tenth of the spacing of float32 there.
_ROOT = (1.0, 0.25000097, -0.03120375, 0.00843684)


@emitted
def pay(
    typingctx: Any, rows: Any, start: Any, width: Any, noise: Any, slot: Any, prior: Any, mask: Any,
    sd: Any, pull: Any, most: Any,
) -> Any:  # fmt: skip
    """Give a row pull and noise: u ← (1 - x)·u + sd·√(1 - x/2)·mask·noise[slot:], with x = pull·prior.

    Roots take long, and x is small unless a row has waited for most of an epoch: then a polynomial is as good.

    Args:
        rows: flat float32 array (out) with the row rows[start:start + width].
        width: a multiple of 16.
        noise: flat float32 array with standard normal numbers from slot on.
        prior, mask: flat float32 arrays of `width` numbers; mask is 1 where the row has a factor and 0 where it is
            padded, which only its last line is.
        sd, pull: float32.
        most: float32, the largest x.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def row(kind: Any, argument: int, first: Any) -> Row:
            return Row(context, builder, kind, args[argument], first)

        owed = _Owed(
            row(rows, 0, args[1]), row(noise, 3, args[4]), row(prior, 5, INT64(0)), row(mask, 6, INT64(0)),
            spread(builder, args[7]), spread(builder, builder.fneg(args[8])),
        )  # fmt: skip
        lines = builder.udiv(args[2], INT64(FLOATS_PER_LINE))
        small = builder.fcmp_ordered("<=", args[9], FLOAT(_SMALL))
        with builder.if_else(small, likely=True) as (usual, rare):
            with usual:
                _pay(builder, owed, lines, _root_near_one)
            with rare:
                _pay(builder, owed, lines, _root)
        return context.get_dummy_value()

    number, place = types.float32, types.int64
    return types.void(rows, place, place, noise, place, prior, mask, number, number, number), codegen


class _Owed(NamedTuple):
    """A row and the pull and noise it is owed, named as in `pay`; vectors of copies of sd and of -pull."""

    row: Row
    noise: Row
    prior: Row
    mask: Row
    sd: Any
    push: Any


def _pay(builder: Any, owed: _Owed, lines: Any, root: Callable[[Any, Any], Any]) -> None:
    """Emit what a row is owed."""
    last = builder.sub(lines, INT64(1))

    def pay_line(at: Any, masked: bool) -> None:
        line, drawn, prior = (one.load(at, 1)[0] for one in owed[:3])
        z = builder.fmul(owed.push, prior)
        sd = builder.fmul(owed.sd, root(builder, z))
        if masked:
            sd = builder.fmul(sd, owed.mask.load(at, 1)[0])
        owed.row.store(at, [multiply_add(builder, sd, drawn, multiply_add(builder, z, line, line))])

    with cgutils.for_range_slice(builder, INT64(0), last, INT64(1)) as (at, _):
        pay_line(at, masked=False)
    pay_line(last, masked=True)


def _root_near_one(builder: Any, z: Any) -> Any:
    """Emit √(1 + z/2) for small z."""
    total = _line(_ROOT[-1])
    for coefficient in reversed(_ROOT[:-1]):
        total = multiply_add(builder, total, z, _line(coefficient))
    return total


def _root(builder: Any, z: Any) -> Any:
    """Emit √(1 + z/2)."""
    kind = ir.FunctionType(LINE, [LINE])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.sqrt.v16f32")  # type: ignore[no-untyped-call]
    return builder.call(function, [multiply_add(builder, z, _line(0.5), _line(1.0))])


def _line(value: float) -> Any:
    return ir.Constant(LINE, [float(np.float32(value))] * FLOATS_PER_LINE)


@emitted
def drift(
    typingctx: Any, place: Any, size: Any, users: Any, items: Any, codes: Any, table: Any, U: Any, V: Any, b: Any,
    c: Any, width: Any, gain: Any, low: Any, high: Any,
) -> Any:  # fmt: skip
    """Move the rows and biases of a user and of n different items by a rating each, and return the sum of e².

    As `dpmf.kernels.descend.descend` does without decay, but an error moves nothing if its prediction is below `low` or
    above `high`; and in the sum, predictions are cut off there.

    Args:
        place, size, users, items, codes, table, U, V, b, c, width: as there; all rows have `width` elements.
        gain, low, high: float32.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = Block(context, builder, kinds, args[2:10], (args[10], args[10]))
        move = Move(mean=FLOAT(0.0), eta=args[11], decay=None, gain=args[11], limits=(args[12], args[13]))
        return emit_step(builder, block, args[0], args[1], move)

    kinds, number, index = (users, items, codes, table, U, V, b, c), types.float32, types.int64
    return types.float64(index, index, *kinds, index, number, number, number), codegen
