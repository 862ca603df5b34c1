"""How fast recommendations and fold-in are, beside implicit where it is installed.

>>> figures = serving_speed(1, n_people=50, n_items=200, n_factors=8, peers=False)
>>> figures["recommend"] > 0 and figures["fold_in"] > 0
True
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmf.model import Release, Ridge
from dpmf.model.batch import recommend_many
from dpmf.model.person import fold_in_many
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale

_RATINGS_PER_PERSON = 50


def serving_speed(
    n_threads: int, *, n_people: int = 100_000, n_items: int = 17_770, n_factors: int = 64, peers: bool = True
) -> dict[str, float | None]:
    """Return people per second: top 10 of all items, fold-in from 50 ratings each; None for a peer not installed."""
    rng = np.random.default_rng(0)
    release = Release(
        items=Items.of(np.arange(n_items)),
        scale=Scale(1, 5),
        mean=3.5,
        item_factors=rng.normal(0, 0.3, (n_items, n_factors)).astype(np.float32),
        item_biases=rng.normal(0, 0.3, n_items).astype(np.float32),
        ridge=Ridge(1.0, 1.0),
        configuration={},
        guarantee=Guarantee.none(),
    )
    people = rng.normal(0, 0.3, (n_people, n_factors)).astype(np.float32)
    count = min(_RATINGS_PER_PERSON, n_items)
    indptr = np.arange(n_people + 1) * count
    items = np.sort((rng.integers(0, n_items, (n_people, 1)) + rng.permutation(n_items)[:count]) % n_items, axis=1)
    items = items.astype(np.int32).ravel()
    values = rng.integers(1, 6, len(items)).astype(np.float32)
    biases = np.zeros(n_people, np.float32)

    def recommend() -> object:
        return recommend_many(release, people, biases, indptr, items, 10, n_threads=n_threads)

    figures: dict[str, float | None] = {
        "recommend": n_people / _best(recommend),
        "fold_in": n_people / _best(lambda: fold_in_many(release, indptr, items, values, n_threads)),
    }
    if peers:
        figures |= _implicit(release, people, indptr, items, values, n_threads)
    return figures


def _best(work: Callable[[], object], times: int = 2) -> float:
    """Return the seconds of the best of some runs, after one to warm up on a compiled kernel."""
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def _implicit(
    release: Release,
    people: NDArray[np.float32],
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    n_threads: int,
) -> dict[str, float | None]:
    if importlib.util.find_spec("implicit") is None:
        return {"implicit_recommend": None, "implicit_fold_in": None}
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    model = AlternatingLeastSquares(factors=release.n_factors, num_threads=n_threads, use_gpu=False)
    model.item_factors, model.user_factors = release.item_factors, people
    rated = csr_matrix((values, items, indptr), shape=(len(people), len(release.items)))
    everybody = np.arange(len(people))
    return {
        "implicit_recommend": len(people) / _best(lambda: model.recommend(everybody, rated, N=10)),
        "implicit_fold_in": len(people) / _best(lambda: model.recalculate_user(everybody, rated)),
    }
