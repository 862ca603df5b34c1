"""A step of a user and of one, two or four items, whose rows and biases move together from their old values.

The user's row is read once for all products, and once more to move all rows. That is less arithmetic and less traffic
for a rating than one at a time, and products do not wait for each other. Rows are read again to be moved instead of
staying in registers, of which CPUs have more or fewer.

Every product has the same partial sums on every CPU, and these are added by halves. So, in a kernel that may not
reorder sums, a step has the same bits on all CPUs that multiply and add in one rounding.
`dpmf.kernels.descend` and `dpmf.kernels.langevin` are made of such steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types

from dpmf.kernels.rows import (
    FLOAT,
    FLOATS_PER_LINE,
    INT64,
    LINE,
    Row,
    across,
    across_several,
    draw,
    element,
    gather,
    multiply_add,
    rounds,
    scatter,
    spread,
    spread_each,
)

SIZES = (4, 2, 1)
"""How many ratings a step may have. The partial sums of four products fill half of sixteen registers of 32 bytes."""
_UNROLLED = (1, 2, 3, 4)  # lines of a row; longer ones are handled in loops


class Move(NamedTuple):
    """The numbers of a step, named as in `dpmf.kernels.descend.descend`.

    Attributes:
        mean, eta: as there.
        decay: as there, or None for none.
        gain: as there.
        limits: the least and the largest prediction, or None for none. An error beyond them moves nothing.
    """

    mean: Any
    eta: Any
    decay: Any
    gain: Any
    limits: tuple[Any, Any] | None = None


class Block:
    """The ratings of a block and the rows that they move."""

    def __init__(
        self, context: Any, builder: Any, kinds: Any, arrays: Any, widths: Any, random: Row | None = None
    ) -> None:
        self._context, self._builder, self._kinds, self._arrays = context, builder, kinds, arrays
        made = [context.make_array(kind)(context, builder, one) for kind, one in zip(kinds, arrays, strict=True)]
        self._users, self._items, self._codes, self._table, _, _, self.b, self.c = (one.data for one in made)
        self.n_ratings = made[2].nitems
        self._width, self._stride = widths
        self.lines = builder.udiv(self._width, INT64(FLOATS_PER_LINE))
        self._random = random

    def user(self, place: Any) -> Any:
        """Return the user of a rating."""
        return element(self._builder, self._users, place)

    def item(self, place: Any) -> Any:
        """Return the item of a rating."""
        return element(self._builder, self._items, place)

    def ratings(self, places: list[Any]) -> Any:
        """Return the values of ratings, a vector."""
        return gather(self._builder, self._table, [element(self._builder, self._codes, one) for one in places])

    def row_of_user(self, user: Any) -> Row:
        """Return the row of a user."""
        return Row(self._context, self._builder, self._kinds[4], self._arrays[4], self._builder.mul(user, self._width))

    def row_of_item(self, item: Any) -> Row:
        """Return the row of an item."""
        return Row(self._context, self._builder, self._kinds[5], self._arrays[5], self._builder.mul(item, self._stride))

    def random(self) -> Any:
        """Return random numbers for a packed V, else nothing."""
        return draw(self._builder, self._random) if self._random and self._kinds[5].dtype == types.uint32 else None


def emit_step(builder: Any, block: Block, place: Any, size: Any, move: Move) -> Any:
    """Emit a step by `size` ratings, one of `SIZES`, from a place on; return the sum of e², a double."""
    return _choose(builder, size, {count: partial(_step, builder, block, place, count, move) for count in SIZES})


def _step(builder: Any, block: Block, place: Any, count: int, move: Move) -> Any:
    """Emit a step by `count` ratings; return the sum of e²."""
    # Most likely the next step has these items.
    soon = _least(builder, builder.add(place, INT64(SIZES[0])), builder.sub(block.n_ratings, INT64(count)))
    here, there = ([builder.add(first, INT64(q)) for q in range(count)] for first in (place, soon))
    user, items = block.user(place), [block.item(one) for one in here]
    keep = keep_user = None
    if move.decay is not None:
        keep, keep_user = (builder.fsub(FLOAT(1), builder.fmul(FLOAT(times), move.decay)) for times in (1, count))
    bias, biases = builder.load(builder.gep(block.b, [user])), gather(builder, block.c, items)
    base = spread(builder, builder.fadd(move.mean, bias), count)
    ratings = block.ratings(here)
    felt = partial(_felt, builder, move.limits, ratings)
    rows = _Rows(
        builder,
        block.row_of_user(user),
        [block.row_of_item(one) for one in items],
        [block.row_of_item(block.item(one)) for one in there],
        block.random(),
    )
    goals = builder.fsub(builder.fsub(ratings, base), biases)
    lines_kept, user_kept = (None if one is None else spread(builder, one) for one in (keep, keep_user))
    found = rows.descend(block.lines, goals, lines_kept, user_kept, move.gain, lambda errors: felt(errors)[0])
    errors, squared = felt(found)
    moved = multiply_add(builder, move.eta, across(builder, errors), _kept(builder, keep_user, bias))
    builder.store(moved, builder.gep(block.b, [user]))
    kept = _kept(builder, None if keep is None else spread(builder, keep, count), biases)
    scatter(builder, block.c, items, multiply_add(builder, spread(builder, move.eta, count), errors, kept))
    return builder.fpext(across(builder, builder.fmul(squared, squared)), ir.DoubleType())


def _felt(builder: Any, limits: tuple[Any, Any] | None, ratings: Any, errors: Any) -> tuple[Any, Any]:
    """Emit two vectors: of errors, those that move rows, others 0; and errors of predictions cut off at the limits."""
    if limits is None:
        return errors, errors
    low, high = (spread(builder, limit, ratings.type.count) for limit in limits)
    least, most = builder.fsub(ratings, high), builder.fsub(ratings, low)
    cut = builder.select(builder.fcmp_ordered("<", errors, least), least, errors)
    cut = builder.select(builder.fcmp_ordered(">", errors, most), most, cut)
    inside = builder.fcmp_ordered("==", cut, errors)
    return builder.select(inside, errors, ir.Constant(errors.type, [0.0] * errors.type.count)), cut


def _kept(builder: Any, keep: Any, value: Any) -> Any:
    return value if keep is None else builder.fmul(keep, value)


class _Rows:
    """The rows of a user and of some items, and of the items that come next."""

    def __init__(self, builder: Any, u: Row, vs: list[Row], coming: list[Row], random: Any) -> None:
        self._builder, self._u, self._vs, self._coming, self._random = builder, u, vs, coming, random
        self._least = 2 if vs[0].packed else 1  # lines at once
        self._sums = SIZES[0] // len(vs)  # for each product, so that additions need not wait for each other

    def descend(self, lines: Any, goals: Any, keep: Any, keep_user: Any, gain: Any, felt: Callable[[Any], Any]) -> Any:
        """Emit the products, and the moves by `felt` of the errors, for any number of lines; return the errors."""

        def errors_of(sums: list[list[Any]]) -> Any:
            return self._builder.fsub(goals, across_several(self._builder, [self._total(parts) for parts in sums]))

        def move(errors: Any, first: Any, count: int) -> None:
            self._move(errors, first, count, keep, keep_user, gain)

        def short(count: int) -> Any:
            sums: list[list[Any]] = [[] for _ in self._vs]
            for first in range(0, count, self._least):
                self._add_products(sums, INT64(first), self._least)
            errors = errors_of(sums)
            moving = felt(errors)
            for first in range(0, count, self._least):
                move(moving, INT64(first), self._least)
            return errors

        def long() -> Any:
            errors = errors_of(self._products_in_loops(lines))
            moving = felt(errors)
            with cgutils.for_range_slice(self._builder, INT64(0), lines, INT64(self._least)) as (first, _):
                move(moving, first, self._least)
            return errors

        widths = {count: partial(short, count) for count in _UNROLLED if count % self._least == 0}
        return _choose(self._builder, lines, widths, long)

    def _products_in_loops(self, lines: Any) -> list[list[Any]]:
        """Emit the products of rows of any length, as their partial sums."""
        builder, zero = self._builder, ir.Constant(LINE, [0.0] * FLOATS_PER_LINE)
        slots = [[cgutils.alloca_once(builder, LINE) for _ in range(self._sums)] for _ in self._vs]  # type: ignore[no-untyped-call]
        for slot in chain(*slots):
            builder.store(zero, slot)

        def add(first: Any, count: int) -> None:
            sums = [[builder.load(slot) for slot in of_one] for of_one in slots]
            self._add_products(sums, first, count)
            for slot, total in zip(chain(*slots), chain(*sums), strict=True):
                builder.store(total, slot)

        rounds(builder, lines, max(self._sums, self._least), self._least, add)
        return [[builder.load(slot) for slot in of_one] for of_one in slots]

    def _add_products(self, sums: list[list[Any]], first: Any, count: int) -> None:
        """Emit the products of some lines, and add them to the partial sums (out), to one after the other."""
        for row in self._coming:
            row.prefetch(first, count)
        us = self._u.load(first, count)
        for v, parts in zip(self._vs, sums, strict=True):
            for place, (a, b) in enumerate(zip(us, v.load(first, count), strict=True)):
                if len(parts) < self._sums:
                    parts.append(self._builder.fmul(a, b))
                else:
                    turn = place % self._sums
                    parts[turn] = multiply_add(self._builder, a, b, parts[turn])

    def _total(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
            parts = [self._builder.fadd(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]

    def _move(self, errors: Any, first: Any, count: int, keep: Any, keep_user: Any, gain: Any) -> None:
        """Emit the moves of some lines of all rows."""
        builder = self._builder
        gains = spread_each(builder, builder.fmul(spread(builder, gain, len(self._vs)), errors))
        us = self._u.load(first, count)
        halves: list[list[Any]] = [[_kept(builder, keep_user, a) for a in us]]
        for q, (v, own) in enumerate(zip(self._vs, gains, strict=True)):
            vs = v.load(first, count)
            if q == 2:  # a sum of its own, so that additions need not wait for each other
                halves.append([builder.fmul(own, b) for b in vs])
            else:
                halves[-1] = [multiply_add(builder, own, b, total) for b, total in zip(vs, halves[-1], strict=True)]
            moved = [multiply_add(builder, own, a, _kept(builder, keep, b)) for a, b in zip(us, vs, strict=True)]
            v.store(first, moved, self._random)
        self._u.store(first, [self._total(list(parts)) for parts in zip(*halves, strict=True)])


def _choose(
    builder: Any, value: Any, cases: Mapping[int, Callable[[], Any]], otherwise: Callable[[], Any] | None = None
) -> Any:
    """Emit a choice by an integer, and return what the chosen case returns; without `otherwise`, there is no other."""
    after, default = (builder.append_basic_block(name) for name in ("chosen", "otherwise"))
    switch, results = builder.switch(value, default), []
    for number, emit in cases.items():
        block = builder.append_basic_block(f"case_{number}")
        switch.add_case(INT64(number), block)
        builder.position_at_end(block)
        results.append((emit(), builder.block))
        builder.branch(after)
    builder.position_at_end(default)
    if otherwise is None:
        builder.unreachable()
    else:
        results.append((otherwise(), builder.block))
        builder.branch(after)
    builder.position_at_end(after)
    result = builder.phi(results[0][0].type)
    for incoming in results:
        result.add_incoming(*incoming)
    return result


def _least(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("<", a, b), a, b)
