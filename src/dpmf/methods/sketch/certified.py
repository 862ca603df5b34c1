"""Certified steps in a count sketch of items; docs/proofs/sketch.md has the proof.

They are those of `dpmf.methods.sgld.certified`: sampled users, gradients that are clipped as a whole, noise on all that
is released. But item factors and biases live in the cells of a sketch, whose hash functions are public. Everybody's
gradient is one with respect to cells and is clipped there, and all cells get noise; items are read from them after
every step. Users have no place in the sketch: whoever takes part fits their own factors, which are never released.

>>> from dpmf.privacy import Budget
>>> facts = {"n_steps": 4, "noise_sd": 0.3, "budget": Budget(5), "sampling_rate": 0.5}
>>> SketchedPlan(n_items=100, n_factors=2, **facts, depth=4, width=50, median=False).shape
(200,)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.sketch import locate_rows
from dpmf.kernels.sketch_gradients import add_sketched_gradients
from dpmf.methods.certified.steps import CLIP, Array, People
from dpmf.methods.sgld.certified import SampledSteps, SteppingPlan
from dpmf.methods.sketch.table import ITEMS, CountSketch

CELLS = "gradients with respect to the cells of a sketch of items"


@dataclass(frozen=True)
class SketchedPlan(SteppingPlan):
    """What is public about a run before it starts.

    Attributes:
        depth, width: k and w.
        median: whether reading takes the median of rows.
    """

    depth: int
    width: int
    median: bool

    @property
    def what(self) -> str:
        """What is released, in words."""
        return CELLS

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers that a step releases: all cells, whether or not anything lives in them."""
        return (self.depth * self.width,)


@dataclass(eq=False)
class SketchedSteps(SampledSteps):
    """The state of a run; arguments as those of `SampledSteps`."""

    plan: SketchedPlan

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = CountSketch.start(
            depth=self.plan.depth, width=self.plan.width, n_factors=self.plan.n_factors, biased=True,
            median=self.plan.median, sd=self.centre.start_sd, unit=1.0, seed=self.seed,
        )  # fmt: skip
        self._keys = self.solving.catalogue.ids.keys
        self._places, self._signs = locate_rows(self._keys, ITEMS, self.table.family, self.plan.n_factors)
        self._read()

    def _read(self) -> None:
        """Take items from the cells; a bias is kept in them as a multiple of its height, like its gradient."""
        factors, biases = self.table.read(ITEMS, self._keys, self.n_threads)
        self.V, self.c = factors, np.float32(self.centre.height) * biases

    def move(self, keep: float, by: Array) -> None:
        """Let cells go a step, and be pulled towards 0, all alike; items are what is then read."""
        self.table.cells[:] = keep * self.table.cells + by
        self._read()

    def add(self, people: People, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        """Add everybody's gradient with respect to cells, clipped there."""
        of = people.ratings
        add_sketched_gradients(
            of.indptr, of.items, of.values, first, last, self.V, self.c, people.b, people.U, people.shares,
            self.centre.height, CLIP, steps, self._places, self._signs, sums,
        )  # fmt: skip

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far; with it and the ratings a run can go on."""
        return {**super().released(), "cells": self.table.cells}

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned."""
        super().take_up(tensors)
        self.table.cells[:] = tensors["cells"]
        self._read()
