"""People one by one, as each would be served alone: for so little data, the compiler would take longer to load.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> model = SGD(n_factors=2, n_epochs=1).fit(ratings, n_threads=1)
>>> best_of_each(model, np.array([7]), 3)[0].tolist() == model.person(ratings.user_ids[7]).best(3)[0].tolist()
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.scores import predict_pairs_reference
from dpmf.model import Model, Release
from dpmf.model.person import Person, fit_one
from dpmf.ratings import Ratings

_MOST_RATINGS, _MOST_PEOPLE, _MOST_ITEMS = 1 << 18, 2000, 5000  # done before the compiler would be loaded


def is_small(ratings: Ratings) -> bool:
    """Tell whether there is little data."""
    return len(ratings) <= _MOST_RATINGS and ratings.n_users <= _MOST_PEOPLE and ratings.n_items <= _MOST_ITEMS


def fold_in_each(release: Release, ratings: Ratings) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return everybody's bias and factors, as `dpmf.model.person.fold_in_many`."""
    biases, factors = np.zeros(ratings.n_users, np.float32), np.zeros((ratings.n_users, release.n_factors), np.float32)
    for user in range(ratings.n_users if release.predicts else 0):
        biases[user], factors[user] = fit_one(release, *ratings.of_user(user))
    return biases, factors


def predict_each(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    U: NDArray[np.float32],
    V: NDArray[np.float32],
    b: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
    out: NDArray[np.float32],  # out
) -> None:
    """Write what `dpmf.kernels.scores.predict_pairs` writes, up to rounding."""
    out[:] = predict_pairs_reference(users, items, U, V, b, c, mean)


def best_of_each(model: Model, asked: NDArray[np.int64], k: int) -> NDArray[np.int32]:
    """Return the positions of the best items of some users that they have not rated, shape (n, k), -1 at the end."""
    positions = np.full((len(asked), min(k, len(model.release.items))), -1, np.int32)
    rated = model.rated(asked)
    for row, user in enumerate(asked.tolist()):
        own = slice(rated.indptr[row], rated.indptr[row + 1])
        of_user = float(model.user_biases[user]), model.user_factors[user], rated.items[own]
        chosen, _ = Person(model.release, *of_user, weights=rated.values[own]).best(k)
        positions[row, : len(chosen)] = chosen
    return positions
