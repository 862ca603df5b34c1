"""One step of gradient descent, by one, two or four ratings of a user.

Several ratings of one user are one step: the user's row is read once for all products, and once more to move all rows
from their old values. That is less arithmetic and less traffic for a rating than one at a time, and products do not
wait for each other. Rows are read again to be moved instead of staying in registers, of which CPUs have more or fewer.

Every product has the same partial sums on every CPU, and these are added by halves. So, in a kernel that may not
reorder sums, a step has the same bits on all CPUs that multiply and add in one rounding.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> users, items, codes = np.zeros(3, np.uint16), np.arange(3, dtype=np.uint16), np.zeros(3, np.uint8)
>>> U, V, state = np.ones(16, np.float32), np.full(48, 0.5, np.float32), np.ones(16, np.uint32)
>>> b, c, table = np.zeros(1, np.float32), np.zeros(3, np.float32), np.array([10], np.float32)
>>> @kernel
... def step(users, items, codes, table, U, V, b, c, state):
...     mean, eta, decay, gain = np.float32(0.0), np.float32(0.25), np.float32(0.0), np.float32(0.25)
...     return descend(0, users, items, codes, table, U, V, b, c, 16, 16, mean, eta, decay, gain, state)
>>> step(users, items, codes, table, U, V, b, c, state), float(U[0]), float(V[16])
((2, 8.0), 1.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

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
    emitted,
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


def ratings_in_step(users: Sequence[Any] | NDArray[Any], place: int) -> int:
    """Return how many ratings, from a place on, are one step: four if one user has as many, else two, else one.

    >>> [ratings_in_step([1, 1, 1, 1, 1, 1, 1, 2], place) for place in (0, 4, 6, 7)]
    [4, 2, 1, 1]
    """
    return next(size for size in SIZES if place + size <= len(users) and users[place + size - 1] == users[place])


@emitted
def descend(
    typingctx: Any, place: Any, users: Any, items: Any, codes: Any, table: Any, U: Any, V: Any, b: Any, c: Any,
    width: Any, stride: Any, mean: Any, eta: Any, decay: Any, gain: Any, state: Any,
) -> Any:  # fmt: skip
    """Move the rows and biases of a user and of n different items by a rating each; return n and the sum of e².

    With e_q = r_q - mean - b - c_q - u·v_q for rating q, all from the old values,
    u ← (1 - n·decay)·u + gain·Σ e_q v_q and v_q ← (1 - decay)·v_q + gain·e_q·u, and biases likewise, with eta.

    Args:
        place: of the first rating in users, items and codes; n is what `ratings_in_step` says.
        users, items, codes, table, b, c: as in `dpmf.kernels.sgd.sgd_block`.
        U, V: flat arrays of rows of `width` and `stride` elements; V is float32, or uint32 for packed rows.
        width: the number of factors, a multiple of 16, or of 32 if V is packed.
        mean, eta, decay, gain: float32.
        state: 16 non-zero uint32 (out), from which random numbers for rounding come; used only if V is packed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _Block(context, builder, kinds, args[1:9], args[9:11], args[15], state)
        size = block.ratings_in_step(args[0])

        def step(count: int) -> Any:
            return _step(builder, block, args[0], count, *args[11:15])

        squared = _choose(builder, size, {count: partial(step, count) for count in SIZES})
        return context.make_tuple(builder, returned, [size, squared])

    kinds, number, index = (users, items, codes, table, U, V, b, c), types.float32, types.int64
    returned = types.Tuple((index, types.float64))  # type: ignore[no-untyped-call]
    return returned(index, *kinds, index, index, number, number, number, number, state), codegen


class _Block:
    """The ratings of a block and the rows that they move."""

    def __init__(
        self, context: Any, builder: Any, kinds: Any, arrays: Any, widths: Any, state: Any, state_kind: Any
    ) -> None:
        self._context, self._builder, self._kinds, self._arrays = context, builder, kinds, arrays
        made = [context.make_array(kind)(context, builder, one) for kind, one in zip(kinds, arrays, strict=True)]
        self._users, self._items, self._codes, self._table, _, _, self.b, self.c = (one.data for one in made)
        self.n_ratings = made[2].nitems
        self._width, self._stride = widths
        self.lines = builder.udiv(self._width, INT64(FLOATS_PER_LINE))
        self._state = Row(context, builder, state_kind, state, INT64(0))

    def ratings_in_step(self, place: Any) -> Any:
        """Emit what the function of this name does."""
        builder, user, size = self._builder, self.user(place), INT64(1)
        for count in sorted(SIZES)[1:]:
            last = builder.add(place, INT64(count - 1))
            there = builder.icmp_signed("<", last, self.n_ratings)
            same = builder.icmp_signed("==", self.user(builder.select(there, last, place)), user)
            size = builder.select(builder.and_(there, same), INT64(count), size)
        return size

    def user(self, place: Any) -> Any:
        return element(self._builder, self._users, place)

    def item(self, place: Any) -> Any:
        return element(self._builder, self._items, place)

    def ratings(self, places: list[Any]) -> Any:
        return gather(self._builder, self._table, [element(self._builder, self._codes, one) for one in places])

    def row_of_user(self, user: Any) -> Row:
        return Row(self._context, self._builder, self._kinds[4], self._arrays[4], self._builder.mul(user, self._width))

    def row_of_item(self, item: Any) -> Row:
        return Row(self._context, self._builder, self._kinds[5], self._arrays[5], self._builder.mul(item, self._stride))

    def random(self) -> Any:
        """Return random numbers for a packed V, else nothing."""
        return draw(self._builder, self._state) if self._kinds[5].dtype == types.uint32 else None


def _step(builder: Any, block: _Block, place: Any, count: int, mean: Any, eta: Any, decay: Any, gain: Any) -> Any:
    """Emit a step by `count` ratings; return the sum of e²."""
    # Most likely the next step has these items.
    soon = _least(builder, builder.add(place, INT64(SIZES[0])), builder.sub(block.n_ratings, INT64(count)))
    here, there = ([builder.add(first, INT64(q)) for q in range(count)] for first in (place, soon))
    user, items = block.user(place), [block.item(one) for one in here]
    keep, keep_user = (builder.fsub(FLOAT(1), builder.fmul(FLOAT(times), decay)) for times in (1, count))
    bias, biases = builder.load(builder.gep(block.b, [user])), gather(builder, block.c, items)
    base = spread(builder, builder.fadd(mean, bias), count)
    rows = _Rows(
        builder,
        block.row_of_user(user),
        [block.row_of_item(one) for one in items],
        [block.row_of_item(block.item(one)) for one in there],
        block.random(),
    )
    goals = builder.fsub(builder.fsub(block.ratings(here), base), biases)
    errors = rows.descend(block.lines, goals, spread(builder, keep), spread(builder, keep_user), gain)
    moved = multiply_add(builder, eta, across(builder, errors), builder.fmul(keep_user, bias))
    builder.store(moved, builder.gep(block.b, [user]))
    kept = builder.fmul(spread(builder, keep, count), biases)
    scatter(builder, block.c, items, multiply_add(builder, spread(builder, eta, count), errors, kept))
    return builder.fpext(across(builder, builder.fmul(errors, errors)), ir.DoubleType())


class _Rows:
    """The rows of a user and of some items, and of the items that come next."""

    def __init__(self, builder: Any, u: Row, vs: list[Row], coming: list[Row], random: Any) -> None:
        self._builder, self._u, self._vs, self._coming, self._random = builder, u, vs, coming, random
        self._least = 2 if vs[0].packed else 1  # lines at once
        self._sums = SIZES[0] // len(vs)  # for each product, so that additions need not wait for each other

    def descend(self, lines: Any, goals: Any, keep: Any, keep_user: Any, gain: Any) -> Any:
        """Emit the products and the moves for any number of lines; return the errors, a vector."""

        def errors_of(sums: list[list[Any]]) -> Any:
            return self._builder.fsub(goals, across_several(self._builder, [self._total(parts) for parts in sums]))

        def move(errors: Any, first: Any, count: int) -> None:
            self._move(errors, first, count, keep, keep_user, gain)

        def short(count: int) -> Any:
            sums: list[list[Any]] = [[] for _ in self._vs]
            for first in range(0, count, self._least):
                self._add_products(sums, INT64(first), self._least)
            errors = errors_of(sums)
            for first in range(0, count, self._least):
                move(errors, INT64(first), self._least)
            return errors

        def long() -> Any:
            errors = errors_of(self._products_in_loops(lines))
            with cgutils.for_range_slice(self._builder, INT64(0), lines, INT64(self._least)) as (first, _):
                move(errors, first, self._least)
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
        """Emit the products of some lines, and add them to the partial sums (out), line after line in turn."""
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
        halves: list[list[Any]] = [[builder.fmul(keep_user, a) for a in us]]
        for q, (v, own) in enumerate(zip(self._vs, gains, strict=True)):
            vs = v.load(first, count)
            if q == 2:  # a sum of its own, so that additions need not wait for each other
                halves.append([builder.fmul(own, b) for b in vs])
            else:
                halves[-1] = [multiply_add(builder, own, b, total) for b, total in zip(vs, halves[-1], strict=True)]
            moved = [multiply_add(builder, own, a, builder.fmul(keep, b)) for a, b in zip(us, vs, strict=True)]
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
