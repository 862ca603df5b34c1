"""A training run in a count sketch, from ratings to a model; `dpmf.methods.sketch` says what is learnt.

The cells of the sketch are the state of all blocks: any two ids may share one, so no two blocks are independent, and
the order of their updates is part of the result. Blocks are therefore visited here, on one thread, in the sequential
order of the grid, and not by a `dpmf.engine.executor.Executor`, which is free to run blocks of other strips and tiers
in any order. The same seed gives the same bits.
"""

from __future__ import annotations

import math
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import BlockGrid
from dpmf.engine.schedule import first_tier_of, tier_at
from dpmf.errors import DpmfError
from dpmf.kernels.sketch import SketchStep
from dpmf.kernels.sort import row_sums
from dpmf.methods.base import RunOptions
from dpmf.methods.claimed import ClaimedRelease, carry_out
from dpmf.methods.sketch.table import ITEMS, NOTHING_KNOWN, USERS, CountSketch, Floats
from dpmf.methods.snapshots import snapshots_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from dpmf.methods.sketch import Sketch


def fit_sketch(method: Sketch, ratings: Ratings, options: RunOptions, guarantee: Guarantee) -> Model:
    """Return a model that is not certified; the method has every choice made."""
    grid = BlockGrid.build(ratings, n_threads=options.n_threads)
    table = method.table_for(ratings.n_users, ratings.n_items, ratings.scale)
    means = exact_means(ratings, grid.mean) if method.biases == "means" else None
    known = (NOTHING_KNOWN, NOTHING_KNOWN) if means is None else _in_units(means, table.unit)
    epochs = method.resolve().n_epochs

    def advance(epoch: int) -> EpochRecord:
        step = method.step(epoch, grid.mean, ratings.scale)
        return run_epoch(table, grid, ratings, known, step, epoch, method.seed)

    claim = ClaimedRelease(guarantee, ratings.name or "release", options.ledger) if method.is_private else None
    settings = {"name": "sketch", **method.facts(), "budget": str(method.budget)}
    with snapshots_of(options.checkpoint, settings, ratings, grid.fingerprint, mean=grid.mean) as snapshots:
        history = carry_out(
            snapshots,
            lambda: {"cells": table.cells},
            advance,
            lambda past: len(past) >= epochs,
            options.callbacks,
            claim,
        )
    return _model(method, ratings, table, means, grid.mean, guarantee, tuple(history), options.n_threads)


def run_epoch(
    table: CountSketch,
    grid: BlockGrid,
    ratings: Ratings,
    known: tuple[Floats, Floats],
    step: SketchStep,
    epoch: int,
    seed: int,
) -> EpochRecord:
    """Visit every rating once."""
    layout, size = grid.layout, grid.size
    user_keys, item_keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
    first_tier = first_tier_of(seed, epoch, size)
    values = (grid.table / table.unit).astype(np.float32)
    began, squared = time.perf_counter(), 0.0
    for turn, strip in product(range(size), repeat=2):
        tier = tier_at(strip, turn, first_tier, size)
        users, items = layout.user_order[layout.strips[strip]], layout.item_order[layout.tiers[tier]]
        biases = _part(known[0], users), _part(known[1], items)
        squared += table.learn(grid.block(strip, tier), values, user_keys[users], item_keys[items], step, biases)
    seconds = time.perf_counter() - began
    if not (math.isfinite(squared) and np.isfinite(table.cells).all()):
        raise DpmfError(
            f"training diverged in epoch {epoch} at learning rate {step.eta:g}: use a smaller learning_rate"
        )
    return EpochRecord(epoch, seconds, table.unit * math.sqrt(squared / len(grid)))


def exact_means(ratings: Ratings, mean: float) -> tuple[Floats, Floats]:
    """Return biases from means: of items, the mean above the overall one; of users, the mean of what is left.

    >>> from dpmf.ratings import Ratings
    >>> b, c = exact_means(Ratings.of([1, 1, 2], [1, 2, 1], [5, 3, 3], scale=(1, 5)), 3.5)
    >>> b.tolist(), c.tolist()
    ([0.5, -1.0], [0.5, -0.5])
    """
    counts = np.maximum(np.bincount(ratings.items, minlength=ratings.n_items), 1)
    c = np.bincount(ratings.items, ratings.values - mean, ratings.n_items) / counts
    rest = (ratings.values - mean - c[ratings.items]).astype(np.float32)
    b = row_sums(ratings.indptr, rest) / np.maximum(np.diff(ratings.indptr), 1)
    return b.astype(np.float32), c.astype(np.float32)


def _model(
    method: Sketch,
    ratings: Ratings,
    table: CountSketch,
    means: tuple[Floats, Floats] | None,
    mean: float,
    guarantee: Guarantee,
    history: tuple[EpochRecord, ...],
    n_threads: int,
) -> Model:
    U, b = table.read(USERS, ratings.user_ids.keys, n_threads)
    V, c = table.read(ITEMS, ratings.catalogue.ids.keys, n_threads)
    if means is not None:
        b, c = means
    # What is read for a user or an item without ratings is what others left in the same cells.
    unrated = np.diff(ratings.indptr) == 0, np.bincount(ratings.items, minlength=ratings.n_items) == 0
    for rows, biases, none in ((U, b, unrated[0]), (V, c, unrated[1])):
        rows[none], biases[none] = 0, 0
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=mean,
        item_factors=V,
        item_biases=c,
        ridge=ridge_of(method.resolve().regularization, table.unit),
        configuration=method.configuration(),
        guarantee=guarantee,
    )
    return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, history)


def ridge_of(regularization: float, unit: float) -> Ridge:
    """Return the penalties of a person's own fit: the same as in training, once per rating."""
    return Ridge(bias=regularization, factors=regularization * unit, exponent=1.0)


def _in_units(means: tuple[Floats, Floats], unit: float) -> tuple[Floats, Floats]:
    b, c = (one / np.float32(unit) for one in means)
    return b, c


def _part(known: Floats, places: NDArray[Any]) -> Floats:
    """Return the biases of some ids, at least two: a single number tells the kernel that no biases are known."""
    if known is NOTHING_KNOWN:
        return known
    part = known[places]
    return np.append(part, np.float32(0)) if len(part) < 2 else part
