"""Loops that take a processor to its peaks: multiply-adds in registers, and lines read, written and rewritten.

They do nothing else, so that nothing that has to do these things as well is faster. What suits one processor best does
not suit another: so multiply-adds come in several numbers of independent chains, and lines with and without
prefetching; the best counts.

>>> import numpy as np
>>> lines, found = np.full(64, 2.0, np.float32), np.zeros(16, np.float32)
>>> rewrite_lines(lines, 0, 3)
>>> read_lines(lines, 0, 1, found)
>>> found[0], lines[-1]
(np.float32(-2.0), np.float32(-2.0))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel
from dpmf.kernels.rows import (
    FLOAT,
    FLOATS_PER_LINE,
    INT64,
    LINE,
    LINES_PER_ROUND,
    Row,
    emitted,
    multiply_add,
    rounds,
    spread,
)

CHAINS = (4, 6, 8, 12)  # more hide longer latencies, and fewer fit fewer registers
AHEAD = (0, 16)  # lines
MULTIPLY_ADDS_PER_ROUND = 4
_FACTOR, _ADDEND = 0.5, 1.0
_BITS = ir.VectorType(ir.IntType(32), FLOATS_PER_LINE)
_READERS = 4  # independent results, so that no line waits for the one before


@kernel
def multiply_adds(chains: int, n_rounds: int, found: NDArray[np.float32]) -> None:
    """Compute x ← x/2 + 1 in every chain, several times a round; chain k starts at k, and `found` (out) is their sum.

    Args:
        chains: one of `CHAINS`.
        n_rounds: of `MULTIPLY_ADDS_PER_ROUND` lines in every chain.
        found: shape (16,), one chain for each element of a line.
    """
    _multiply_adds(chains, n_rounds, found)


@kernel
def read_lines(lines: NDArray[np.float32], ahead: int, n_rounds: int, found: NDArray[np.float32]) -> None:
    """Read all lines n_rounds times; `found` (out) has all bits that any line has.

    Args:
        lines: a multiple of 16 floats.
        ahead: how many lines ahead to prefetch; 0 to leave that to the processor.
        n_rounds: how many times.
        found: shape (16,).
    """
    _read_lines(lines, ahead, n_rounds, found)


@kernel
def write_lines(lines: NDArray[np.float32], ahead: int, n_rounds: int) -> None:
    """Write the number of the round to all lines (out), n_rounds times; arguments as in `read_lines`."""
    _write_lines(lines, ahead, n_rounds)


@kernel
def rewrite_lines(lines: NDArray[np.float32], ahead: int, n_rounds: int) -> None:
    """Change the sign of all lines (out) n_rounds times, reading and writing each; arguments as in `read_lines`."""
    _rewrite_lines(lines, ahead, n_rounds)


def multiply_adds_reference(chains: int, n_rounds: int) -> NDArray[np.float32]:
    """Return what `multiply_adds` finds."""
    x = np.repeat(np.arange(chains, dtype=np.float32)[:, None], FLOATS_PER_LINE, axis=1)
    for _ in range(MULTIPLY_ADDS_PER_ROUND * n_rounds):
        x = np.float32(_FACTOR) * x + np.float32(_ADDEND)
    return np.asarray(x.sum(axis=0))


def read_lines_reference(lines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what `read_lines` finds, in any number of rounds."""
    return np.asarray(np.bitwise_or.reduce(lines.reshape(-1, FLOATS_PER_LINE).view(np.uint32)).view(np.float32))


def write_lines_reference(lines: NDArray[np.float32], n_rounds: int) -> None:
    """Do what `write_lines` does."""
    lines[:] = n_rounds - 1


def rewrite_lines_reference(lines: NDArray[np.float32], n_rounds: int) -> None:
    """Do what `rewrite_lines` does."""
    lines *= (-1) ** n_rounds


@emitted
def _multiply_adds(typingctx: Any, chains: Any, n_rounds: Any, found: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = Row(context, builder, found, args[2], INT64(0))
        after = builder.append_basic_block("multiplied")
        choice = builder.switch(args[0], after)
        for count in CHAINS:
            block = builder.append_basic_block(f"chains_{count}")
            choice.add_case(INT64(count), block)
            builder.position_at_end(block)
            row.store(INT64(0), [_chains_added(builder, count, args[1])])
            builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, found), codegen


@emitted
def _read_lines(typingctx: Any, lines: Any, ahead: Any, n_rounds: Any, found: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = Row(context, builder, lines, args[0], INT64(0))
        results = _slots(builder, [ir.Constant(_BITS, [0] * FLOATS_PER_LINE)] * _READERS)

        def read(_turn: Any, first: Any, count: int) -> None:
            for slot, line in zip(results, row.load(first, count), strict=False):
                builder.store(builder.or_(builder.load(slot), builder.bitcast(line, _BITS)), slot)

        _pass_over(context, builder, row, lines, args, read)
        total = builder.load(results[0])
        for slot in results[1:]:
            total = builder.or_(total, builder.load(slot))
        Row(context, builder, found, args[3], INT64(0)).store(INT64(0), [builder.bitcast(total, LINE)])
        return context.get_dummy_value()

    return types.void(lines, types.int64, types.int64, found), codegen


@emitted
def _write_lines(typingctx: Any, lines: Any, ahead: Any, n_rounds: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = Row(context, builder, lines, args[0], INT64(0))

        def write(turn: Any, first: Any, count: int) -> None:
            row.store(first, [spread(builder, builder.sitofp(turn, FLOAT))] * count)

        _pass_over(context, builder, row, lines, args, write)
        return context.get_dummy_value()

    return types.void(lines, types.int64, types.int64), codegen


@emitted
def _rewrite_lines(typingctx: Any, lines: Any, ahead: Any, n_rounds: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = Row(context, builder, lines, args[0], INT64(0))

        def rewrite(_turn: Any, first: Any, count: int) -> None:
            row.store(first, [builder.fneg(line) for line in row.load(first, count)])

        _pass_over(context, builder, row, lines, args, rewrite)
        return context.get_dummy_value()

    return types.void(lines, types.int64, types.int64), codegen


def _chains_added(builder: Any, count: int, n_rounds: Any) -> Any:
    """Emit the loop over rounds of `count` chains; return their sum."""
    factor, addend = (ir.Constant(LINE, [value] * FLOATS_PER_LINE) for value in (_FACTOR, _ADDEND))
    chains = _slots(builder, [ir.Constant(LINE, [float(start)] * FLOATS_PER_LINE) for start in range(count)])
    with cgutils.for_range(builder, n_rounds):
        for _ in range(MULTIPLY_ADDS_PER_ROUND):
            for slot in chains:
                builder.store(multiply_add(builder, builder.load(slot), factor, addend), slot)
    total = builder.load(chains[0])
    for slot in chains[1:]:
        total = builder.fadd(total, builder.load(slot))
    return total


def _pass_over(
    context: Any, builder: Any, row: Row, kind: Any, args: Any, emit: Callable[[Any, Any, int], None]
) -> None:
    """Emit the loop over rounds, and over all lines in each, with prefetching and without.

    Args:
        context, builder: of the function.
        row: all lines.
        kind: the type of their array.
        args: the array, how many lines ahead to prefetch, and the number of rounds.
        emit: emits what happens in a round to some lines: the round, the first line, and how many.
    """
    array, ahead, n_rounds = args[:3]
    n_lines = builder.udiv(context.make_array(kind)(context, builder, array).nitems, INT64(FLOATS_PER_LINE))

    def loop(*, prefetching: bool) -> None:
        with cgutils.for_range(builder, n_rounds) as turns:

            def visit(first: Any, count: int) -> None:
                if prefetching:
                    row.prefetch(builder.add(first, ahead), count)
                emit(turns.index, first, count)

            rounds(builder, n_lines, LINES_PER_ROUND, 1, visit)

    with builder.if_else(builder.icmp_signed("==", ahead, INT64(0))) as (without, prefetched):
        with without:
            loop(prefetching=False)
        with prefetched:
            loop(prefetching=True)


def _slots(builder: Any, values: list[Any]) -> list[Any]:
    """Return places on the stack that hold these values; the compiler turns them into registers."""
    slots = [cgutils.alloca_once(builder, value.type) for value in values]  # type: ignore[no-untyped-call]
    for slot, value in zip(slots, values, strict=True):
        builder.store(value, slot)
    return slots
