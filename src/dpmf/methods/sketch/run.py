"""Training in a count sketch, epoch after epoch, from ratings to a model; what is learnt is in `dpmf.methods.sketch`.

Two ids that share a cell would race if two threads had them at the same time, and which came first would change the
result. So updates run on one thread, block after block in the order of the grid, and the same seed gives the same bits.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import BlockGrid
from dpmf.engine.schedule import tier_at
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
from dpmf.streams import stream_key

if TYPE_CHECKING:
    from dpmf.methods.sketch import Sketch


def fit_sketch(method: Sketch, ratings: Ratings, options: RunOptions, guarantee: Guarantee) -> Model:
    """Return a model that is not certified; the method has every choice made."""
    assert method.n_epochs is not None
    grid = BlockGrid.build(ratings, n_threads=options.n_threads)
    table = method.table_for(ratings.n_users, ratings.n_items, ratings.scale)
    means = exact_means(ratings, grid.mean) if method.biases == "means" else None
    known = (NOTHING_KNOWN, NOTHING_KNOWN) if means is None else _in_units(means, table.unit)
    epochs = method.n_epochs

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
    strips = [layout.user_order[first:last] for first, last in _pairs(layout.strip_starts)]
    tiers = [layout.item_order[first:last] for first, last in _pairs(layout.tier_starts)]
    first_tier = int(stream_key(seed, f"first tier of epoch {epoch}") % np.uint64(size))
    values = (grid.table / table.unit).astype(np.float32)
    began, squared = time.perf_counter(), 0.0
    for turn in range(size):
        for strip in range(size):
            tier = tier_at(strip, turn, first_tier, size)
            users, items = strips[strip], tiers[tier]
            squared += table.learn(
                grid.block(strip, tier), values, user_keys[users], item_keys[items], step,
                (_part(known[0], users), _part(known[1], items)),
            )  # fmt: skip
    seconds = time.perf_counter() - began
    if not (math.isfinite(squared) and np.isfinite(table.cells).all()):
        raise DpmfError(
            f"training diverged in epoch {epoch} at learning rate {step.eta:g}: use a smaller learning_rate"
        )
    return EpochRecord(epoch, seconds, table.unit * math.sqrt(squared / len(grid)))


def exact_means(ratings: Ratings, mean: float) -> tuple[Floats, Floats]:
    """Return by how much users and items are above the mean: items by their mean, then users by the mean of the rest.

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
    assert method.regularization is not None
    U, b = table.read(USERS, ratings.user_ids.keys, n_threads)
    V, c = table.read(ITEMS, ratings.catalogue.ids.keys, n_threads)
    if means is not None:
        b, c = means
    # What is read of somebody who has no rating is what others left in their cells.
    unrated = np.diff(ratings.indptr) == 0, np.bincount(ratings.items, minlength=ratings.n_items) == 0
    for rows, biases, none in ((U, b, unrated[0]), (V, c, unrated[1])):
        rows[none], biases[none] = 0, 0
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=mean,
        item_factors=V,
        item_biases=c,
        ridge=ridge_of(method.regularization, table.unit),
        configuration=method.configuration(),
        guarantee=guarantee,
    )
    return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, history)


def ridge_of(regularization: float, unit: float) -> Ridge:
    """Return the penalties of a person's own fit: the same as in training, once per rating."""
    return Ridge(bias=regularization, factors=regularization * unit, exponent=1.0)


def _pairs(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))


def _in_units(means: tuple[Floats, Floats], unit: float) -> tuple[Floats, Floats]:
    b, c = (one / np.float32(unit) for one in means)
    return b, c


def _part(known: Floats, places: NDArray[Any]) -> Floats:
    """Return the biases of some ids, never less than two: a single number tells the kernel that nothing is known."""
    if known is NOTHING_KNOWN:
        return known
    part = known[places]
    return np.append(part, np.float32(0)) if len(part) < 2 else part
