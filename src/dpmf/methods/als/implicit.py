"""Implicit feedback: what people have says what they would have next, however they rate it.

Everything a person has is a 1, everything else a 0; ratings' values are not used at all. A score is c_j + u_i·v_j, c_j
being the share of people who have the item (0 without privacy, where factors find it by themselves), and people are
fitted as `dpmf.kernels.als_implicit` says. Scores are for ranking: there is no scale that they lie on.

>>> from dpmf.privacy import Budget
>>> implicit_defaults(Budget(0.5))["regularization"] > implicit_defaults(Budget(5.0))["regularization"]
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.methods.als.plain import Callback, factorize_observations
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Budget, Guarantee
from dpmf.ratings import Ratings, Scale

IMPLICIT_ASSUMPTION = "Configuration and number of rounds are public: they were declared, not learnt from the ratings."
_SCALE = Scale(0.0, 1.0)  # that of the data may have been found in them, and means nothing here
_PLAIN: dict[str, Any] = {"n_factors": 64, "n_epochs": 10, "regularization": 20.0, "alpha": 1.0}
_ROUNDS, _MANY_FROM = (3, 3), 3.0  # below and from that epsilon on
_USER_RIDGES, _HELD_BELOW = (3.0, 1.0), 1.0  # below that epsilon factors are mostly noise, and are held down
_ALPHA = 1.0


def implicit_defaults(budget: Budget) -> dict[str, Any]:
    """Return what the method chooses where nothing was said, from public facts alone; private factors come later."""
    if not budget.is_finite:
        return _PLAIN
    rounds, ridge = _ROUNDS[budget.epsilon >= _MANY_FROM], _USER_RIDGES[budget.epsilon >= _HELD_BELOW]
    return {"n_epochs": rounds, "regularization": ridge, "alpha": _ALPHA}


def fit_observations(
    ratings: Ratings, counted: Ratings, configuration: Mapping[str, Any], n_threads: int,
    callbacks: Iterable[Callback], checkpoint: Checkpoint | None,
) -> Model:  # fmt: skip
    """Return exact factors of what people have, or, without factors, the share of people who have an item.

    Args:
        ratings: everything that people have.
        counted: what to learn from, perhaps less.
        configuration: the settings of the method.
        n_threads, callbacks, checkpoint: as for `factorize_observations`.
    """
    settings = {name: configuration[name] for name in ("n_factors", "n_epochs", "regularization", "seed")}
    alpha = configuration["alpha"]
    if settings["n_factors"]:
        found = factorize_observations(
            counted, **settings, weights=np.full(len(counted), alpha, np.float32), n_threads=n_threads,
            callbacks=callbacks, checkpoint=checkpoint,
        )  # fmt: skip
        U, V, c, history = found.user_factors, found.item_factors, found.item_biases, found.history
    else:
        U, V = np.zeros((ratings.n_users, 0), np.float32), np.zeros((ratings.n_items, 0), np.float32)
        c = (np.bincount(counted.items, minlength=ratings.n_items) / max(ratings.n_users, 1)).astype(np.float32)
        history = ()
    release = release_of(ratings, V, c, settings["regularization"], alpha, configuration, Guarantee.none())
    return model_of(release, ratings, U, history)


def model_of(
    release: Release, ratings: Ratings, user_factors: NDArray[np.float32], history: tuple[EpochRecord, ...]
) -> Model:
    """Return the model of a release: nobody has a bias, which would move all scores of a person alike."""
    biases = np.zeros(len(user_factors), np.float32)
    return Model(release, ratings.user_ids, user_factors, biases, ratings.indptr, ratings.items, history)


def release_of(
    ratings: Ratings,
    item_factors: NDArray[np.float32],
    item_biases: NDArray[np.float32],
    ridge: float,
    alpha: float,
    configuration: Mapping[str, Any],
    guarantee: Guarantee,
) -> Release:
    """Return the release of item factors and biases; of the ratings it takes the catalogue only."""
    return Release(
        items=ratings.catalogue,
        scale=_SCALE,
        mean=0.0,
        item_factors=item_factors,
        item_biases=item_biases,
        ridge=Ridge(0.0, ridge),
        configuration=dict(configuration),
        guarantee=guarantee,
        feedback="implicit",
        alpha=float(alpha),
    )
