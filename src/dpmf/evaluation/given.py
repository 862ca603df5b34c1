"""Test ratings that are tables or arrays: brought to the users and the catalogue of what is tested.

>>> import dpmf
>>> model = dpmf.SGD(n_factors=2, n_epochs=3).fit(np.array([[1, 1, 5], [1, 2, 1], [2, 1, 4]]), n_threads=1)
>>> model, test, _ = aligned(model, np.array([[2, 2, 3], [9, 1, 5]]), None)
>>> list(test.user_ids), len(test)
([1, 2, 9], 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpmf.kernels.sort import row_pointers
from dpmf.model import Model, Release
from dpmf.model.own import ratings_for
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids


def aligned(
    model: Model | Release, test: Any, known: Any, columns: Mapping[str, str | int | None] | None = None
) -> tuple[Model | Release, Ratings, Ratings | None]:
    """Return what is tested with test and known ratings of the same users and items; `Ratings` alone stay as they are.

    Items outside the catalogue are left out, which a warning tells. Users without training (or known) ratings count as
    people of whom nothing is known, as they do after `Ratings.split`.
    """
    if isinstance(test, Ratings) and (known is None or isinstance(known, Ratings)):
        return model, test, known
    release = model.release if isinstance(model, Model) else model
    test = ratings_for(release, test, columns)
    known = None if known is None else ratings_for(release, known, columns)
    users = model.user_ids if isinstance(model, Model) else test.user_ids if known is None else known.user_ids
    for one in (test, known):
        users = users if one is None else _joined(users, one.user_ids)
    padded = _padded(model, users) if isinstance(model, Model) else model
    return padded, _regrouped(test, users), None if known is None else _regrouped(known, users)


def _joined(users: Ids, others: Ids) -> Ids:
    """Return users, and behind them the others that are not among them."""
    strangers = others.array[users.encode(others.array) < 0]
    if not len(strangers):
        return users
    if users.array.dtype.kind != strangers.dtype.kind:
        users, strangers = users.spelt(), Ids(strangers).spelt().array
    return Ids(np.concatenate([users.array, strangers]))


def _regrouped(ratings: Ratings, users: Ids) -> Ratings:
    """Return the same ratings, of users in another order."""
    places = users.encode(ratings.user_ids.array)[ratings.users]
    order = np.argsort(places, kind="stable")
    times = None if ratings.timestamps is None else ratings.timestamps[order]
    return replace(
        ratings,
        indptr=row_pointers(places[order], len(users)),
        items=ratings.items[order],
        values=ratings.values[order],
        timestamps=times,
        user_ids=users,
    )


def _padded(model: Model, users: Ids) -> Model:
    """Return a model with more users, of whom nothing is known."""
    more = len(users) - len(model.user_ids)
    return replace(
        model,
        user_ids=users,
        user_factors=np.pad(model.user_factors, ((0, more), (0, 0))),
        user_biases=np.pad(model.user_biases, (0, more)),
        seen_indptr=np.pad(model.seen_indptr, (0, more), mode="edge"),
    )
