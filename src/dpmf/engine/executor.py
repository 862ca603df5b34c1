"""Executors: whatever runs an epoch over the block grid, and how a method describes that epoch to it.

A method says what to do with a block in a plain function, and hands over what the function works on as data: the state
of every strip of users, the state of every tier of items, and constants. Nothing in it refers to the process it was
made in, so a block can be visited by a thread here (`dpmf.engine.local`) or by a worker elsewhere that owns some
strips and passes tiers on. Another place to run is another `Executor`, and no method has to know.

>>> def visit(block, strip, tier, constants, place):
...     strip += constants * block
...     tier += strip
...     return float(block)
>>> from dpmf.engine.local import ThreadExecutor
>>> class Blocks:
...     size = 2
...     def count(self, strip, tier): return 1
...     def block(self, strip, tier): return 10 * strip + tier
...     def release(self, block): pass
>>> strips, tiers = np.zeros((2, 1)), np.zeros((2, 1))
>>> ThreadExecutor(n_threads=2).run(Epoch(visit, strips, tiers, constants=2), Blocks())
array([[ 0.,  1.],
       [10., 11.]])
>>> strips.ravel().tolist(), tiers.ravel().tolist()
([2.0, 42.0], [42.0, 24.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.schedule import Place

Strip = TypeVar("Strip")
Tier = TypeVar("Tier")
Constants = TypeVar("Constants")


class Blocks(Protocol):
    """A block grid, in memory or on disk."""

    @property
    def size(self) -> int:
        """T, the number of strips and of tiers."""

    def count(self, strip: int, tier: int) -> int:
        """Return the number of ratings in a block."""

    def block(self, strip: int, tier: int) -> Any:
        """Return one block."""

    def release(self, block: Any) -> None:
        """Release a block, whose memory may then be used for another."""


@dataclass(frozen=True, eq=False)
class Epoch(Generic[Strip, Tier, Constants]):
    """One visit to every block, described by data.

    Attributes:
        visit: visit(block, strip, tier, constants, place) does the work of one block, changes the arrays of its strip
            and its tier in place, and returns a number. A function of a module, so that it can be named to another
            process; what it does depends on its arguments alone.
        strips: the state of each strip of users: a tuple of arrays and numbers, or an array.
        tiers: the state of each tier of items, likewise.
        constants: what every visit reads and none changes, such as step sizes and the seeds of all blocks.
        first_tier: the tier that strip 0 visits first, see `dpmf.engine.schedule`.
        put_away: called with a strip's number after each of its visits, in the process that made the epoch. It lets
            state that is mapped from a disk leave memory.
    """

    visit: Callable[[Any, Strip, Tier, Constants, Place], float]
    strips: Sequence[Strip]
    tiers: Sequence[Tier]
    constants: Constants
    first_tier: int = 0
    put_away: Callable[[int], None] | None = None


class Executor(Protocol):
    """Runs epochs over a block grid.

    Every executor guarantees:

    - Order: each block is visited once, after the previous block of its strip and after the previous visitor of its
      tier, as `dpmf.engine.schedule.Schedule` has them, and finds the state that those two left. Blocks that share a
      strip or a tier never run at the same time. Any other order is free.
    - Bits: results and final state depend on the epoch and the blocks alone, not on the number of workers, on where
      they are, or on timing.
    - State: when `run` returns, the arrays of `epoch.strips` and `epoch.tiers` hold the final state. An executor whose
      workers have copies writes them back. Until then nobody else reads or writes these arrays.
    - Errors: the first exception from a visit or from reading a block ends the epoch, as does Ctrl-C. No visit starts
      after it, and `run` raises it when those under way have ended; no worker stays behind. The state is then
      incomplete, and the caller must restore a snapshot to continue.
    - Repetition: a visit changes its state in place, so a visit that was lost with its worker may only be repeated
      from a copy of the state before it.
    """

    def run(self, epoch: Epoch[Strip, Tier, Constants], blocks: Blocks) -> NDArray[np.float64]:
        """Visit every block once.

        Returns:
            What the visits returned, shape (T, T), by strip and tier.
        """
