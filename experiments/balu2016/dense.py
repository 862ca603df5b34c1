"""Regular factorization, the paper's baseline for its sketch: a row of factors per user and item, means subtracted.

dpmf's own SGD learns biases, and its penalty applies to them too. Here, as in the paper, biases are the means, so that
a penalty acts on dense factors as on those in a sketch. Initial factors, visiting order and decay are the sketch's.

>>> from dpmf.ratings.synthetic import make
>>> from dpmf import Budget
>>> sketch = Sketch(n_factors=4, n_epochs=3, budget=Budget(math.inf), learning_rate=0.02, regularization=0.1)
>>> fit_dense(sketch, make(60, 40)).user_factors.shape
(60, 4)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmf import DpmfError, Ratings, Sketch
from dpmf.engine.grid import BlockGrid
from dpmf.engine.schedule import tier_at
from dpmf.kernels.jit import fast_kernel
from dpmf.methods.sketch.run import exact_means, ridge_of
from dpmf.methods.sketch.table import ITEMS, USERS
from dpmf.methods.units import unit_of
from dpmf.model import Model, Release
from dpmf.privacy import Guarantee
from dpmf.streams import stream_key


def fit_dense(method: Sketch, ratings: Ratings) -> Model:
    """Fit with the factors, epochs, learning rate, decay, penalty and seed of a sketch."""
    assert method.n_factors is not None
    assert method.n_epochs is not None
    assert method.regularization is not None
    unit = unit_of(ratings.scale)
    grid = BlockGrid.build(ratings)
    b, c = exact_means(ratings, grid.mean)
    start = method.table_for(ratings.n_users, ratings.n_items, ratings.scale)
    keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
    U, V = (start.read(side, keys[side])[0] / np.float32(math.sqrt(unit)) for side in (USERS, ITEMS))
    for epoch in range(1, method.n_epochs + 1):
        _run_epoch(method, epoch, grid, (grid.table - grid.mean) / unit, (b / unit, c / unit), (U, V))
    if not (np.isfinite(U).all() and np.isfinite(V).all()):
        raise DpmfError(f"training diverged at learning rate {method.learning_rate}: use a smaller one")
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=grid.mean,
        item_factors=V * np.float32(math.sqrt(unit)),
        item_biases=c,
        ridge=ridge_of(method.regularization, unit),
        configuration={"method": "dense"},
        guarantee=Guarantee.none(),
    )
    return Model(release, ratings.user_ids, U * np.float32(math.sqrt(unit)), b, ratings.indptr, ratings.items, ())


def _run_epoch(
    method: Sketch, epoch: int, grid: BlockGrid, values: Any, known: tuple[Any, Any], factors: tuple[Any, Any]
) -> None:
    layout, T = grid.layout, grid.size
    first = int(stream_key(method.seed, f"first tier of epoch {epoch}") % np.uint64(T))
    eta, lam = np.float32(method.rate(epoch)), np.float32(method.regularization)
    for turn in range(T):
        for strip in range(T):
            tier = tier_at(strip, turn, first, T)
            users = layout.user_order[layout.strip_starts[strip] : layout.strip_starts[strip + 1]]
            items = layout.item_order[layout.tier_starts[tier] : layout.tier_starts[tier + 1]]
            dense_block(*grid.block(strip, tier), values.astype(np.float32), users, items, *known, *factors, eta, lam)


@fast_kernel
def dense_block(
    users: Any,
    items: Any,
    codes: Any,
    values: Any,
    user_order: Any,
    item_order: Any,
    b: Any,
    c: Any,
    U: Any,
    V: Any,
    eta: Any,
    lam: Any,
) -> None:
    """Visit the ratings of a block in their order; U and V are changed."""
    for p in range(len(codes)):
        i, j = user_order[users[p]], item_order[items[p]]
        e = values[codes[p]] - b[i] - c[j]
        for part in range(U.shape[1]):
            e -= U[i, part] * V[j, part]
        for part in range(U.shape[1]):
            u, v = U[i, part], V[j, part]
            U[i, part] += eta * (e * v - lam * u)
            V[j, part] += eta * (e * u - lam * v)
