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
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.sketch import locate_rows
from dpmf.kernels.sketch_gradients import add_sketched_gradients
from dpmf.methods.certified.questions import Array, Fitted, Integers, People
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import CLIP, Gradients, PublicSteps, StepFit, StepScript
from dpmf.methods.sgld.certified import CertifiedSettings, SteppingPlan
from dpmf.methods.sketch.table import ITEMS, CountSketch

if TYPE_CHECKING:
    from dpmf.methods.sketch import Sketch

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
    def sum_size(self) -> int:
        """The most numbers that a thread holds: its sums, and one person's gradient thrice."""
        return 4 * self.depth * self.width

    @property
    def working_size(self) -> int:
        """How many numbers are in memory beside sums: where every component of an item lives, and with which sign."""
        return 2 * self.depth * (self.n_factors + 1) * self.n_items

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers that a step releases: all cells, whether or not anything lives in them."""
        return (self.depth * self.width,)


@dataclass(frozen=True, eq=False)
class CellGradients(Gradients):
    """In which direction should cells move, for those who take part?

    Attributes:
        places, signs: where the components of items live: public hash functions.
        n_cells: of the table.
    """

    places: NDArray[Any]
    signs: NDArray[Any]
    n_cells: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return (self.n_cells,)

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's gradient with respect to cells, clipped there, to sums (out)."""
        assert fitted is not None
        ratings, fit = people.counted.csr, self.fit
        numbers = self.centre.height, CLIP, steps
        cells = self.places, self.signs
        add_sketched_gradients(ratings, first, last, fit.V, fit.c, *fitted, people.shares, *numbers, *cells, sums)


@dataclass(frozen=True, eq=False)
class SketchScript(StepScript):
    """The steps of a certified sketch.

    Attributes:
        keys: of the catalogue's items, from which the hash functions place them.
        family: of the hash functions.
    """

    plan: SketchedPlan
    keys: NDArray[np.uint64]
    family: Any

    @cached_property
    def _hashed(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return locate_rows(self.keys, ITEMS, self.family, self.plan.n_factors)

    def question(self, fit: StepFit) -> CellGradients:
        """Return the question of a step."""
        n_cells = self.plan.depth * self.plan.width
        return CellGradients(self.plan.what, fit, self.centre, self.plan.sampled, *self._hashed, n_cells)


@dataclass(eq=False)
class PublicSketch(PublicSteps):
    """What a run asks people for, and where its cells are; arguments as those of `PublicSteps`."""

    plan: SketchedPlan

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = CountSketch.start(
            depth=self.plan.depth,
            width=self.plan.width,
            n_factors=self.plan.n_factors,
            biased=True,
            median=self.plan.median,
            sd=self.centre.start_sd,
            unit=1.0,
            seed=self.seed,
        )
        self._read()

    def _read(self) -> None:
        """Read items from the cells; a bias is kept in them as a multiple of its height, like its gradient."""
        factors, biases = self.table.read(ITEMS, self.keys, 1)
        self.V, self.c = factors, np.float32(self.centre.height) * biases

    @cached_property
    def script(self) -> SketchScript:
        """What steps ask for."""
        how = self.plan, self.centre, self.ridge, self.unit
        return SketchScript(*how, self.keys, self.table.family)

    def move(self, keep: float, by: Array) -> None:
        """Move cells a step, and pull all of them towards 0 alike; items are what is then read."""
        self.table.cells[:] = keep * self.table.cells + by
        self._read()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return {**super().state(), "cells": self.table.cells}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        super().restore(tensors)
        self.table.cells[:] = tensors["cells"]
        self._read()


def sketched_plan(method: Sketch, n_items: int, settings: CertifiedSettings, crowd: Crowd | None) -> SketchedPlan:
    """Return what is public about a run before it starts."""
    sizes = n_items, settings.n_factors, settings.n_epochs
    table = method.depth, method.width_for(n_items), method.query == "median"
    return SketchedPlan(*sizes, settings.learning_rate, method.budget, settings.sampling_rate, *table, crowd=crowd)
