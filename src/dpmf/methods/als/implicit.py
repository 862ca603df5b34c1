"""Implicit feedback: what people have says what they would have next, however they rate it.

Everything a person has is a 1, everything else a 0; ratings' values are not used at all, and of counts, how often
somebody had an item, only how much surer that makes it (Hu, Koren and Volinsky, 2008). A score is c_j + u_i·v_j, c_j
being the share of people who have the item (0 without privacy, where factors find it by themselves), and people are
fitted as `dpmf.kernels.als_implicit` says. Scores are for ranking: there is no scale that they lie on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Cluster
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.kernels.als_implicit import Confidence, extra_weights
from dpmf.methods.als.defaults import COUNTS, MOST_COUNT
from dpmf.methods.als.plain import factorize_observations
from dpmf.methods.base import RunOptions
from dpmf.model import Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Ratings, Scale

IMPLICIT_ASSUMPTION = "Configuration and number of rounds are public: they were declared, not learnt from the ratings."
NO_RATINGS = Scale(0.0, 1.0)
"""The scale where ratings are not used: that of the data may have been found in them, and means nothing."""


def fit_implicit(ratings: Ratings, counted: Ratings, configuration: Mapping[str, Any], options: RunOptions) -> Model:
    """Return a model of factors of what people have, or, without factors, of the share who have an item.

    Args:
        ratings: everything that people have.
        counted: what to learn from, perhaps less.
        configuration: the settings of the method.
        options: threads, callbacks and checkpoint.
    """
    settings = {name: configuration[name] for name in ("n_factors", "n_epochs", "regularization", "seed")}
    how: dict[str, Any] = {name: getattr(options, name) for name in ("n_threads", "callbacks", "checkpoint")}
    if settings["n_factors"]:
        weights = extra_weights(counted.values, confidence_of(configuration, ratings.scale)).astype(np.float32)
        found = factorize_observations(counted, **settings, weights=weights, **how)
        U, V, c, history = found.user_factors, found.item_factors, found.item_biases, found.history
    else:
        U, V = np.zeros((ratings.n_users, 0), np.float32), np.zeros((ratings.n_items, 0), np.float32)
        c, history = _shares(np.bincount(counted.items, minlength=ratings.n_items), ratings.n_users), ()
    release = _plain_release(ratings, configuration, V, c)
    nobody = np.zeros(len(U), np.float32)  # a person's bias would move all of their scores alike
    return Model(release, ratings.user_ids, U, nobody, ratings.indptr, ratings.items, history)


def fit_implicit_on(
    ratings: StoredRatings, configuration: Mapping[str, Any], options: RunOptions, cluster: Cluster
) -> Model:
    """Return a model as `fit_implicit` does, found by the workers of a cluster; it holds nobody."""
    from dpmf.methods.als.spread import check_cap, train_on

    if not configuration["n_factors"]:
        check_cap(configuration)
        V, c = np.zeros((ratings.n_items, 0), np.float32), _shares(ratings.blocks.item_counts, ratings.n_users)
        return Model.without_users(_plain_release(ratings, configuration, V, c), ())
    found = train_on(ratings, configuration, options, cluster, confidence_of(configuration, ratings.scale))
    return Model.without_users(_plain_release(ratings, configuration, found.factors, found.biases), found.history)


def _shares(counts: NDArray[np.int64], n_users: int) -> NDArray[np.float32]:
    """Return the share of people who have each item."""
    return (counts / max(n_users, 1)).astype(np.float32)


def _plain_release(
    ratings: AnyRatings, configuration: Mapping[str, Any], V: NDArray[np.float32], c: NDArray[np.float32]
) -> Release:
    confidence = confidence_of(configuration, ratings.scale)
    facts = configuration["regularization"], confidence, configuration, Guarantee.none()
    return implicit_release(ratings.catalogue, V, c, *facts)


def confidence_of(settings: Mapping[str, Any], scale: Scale) -> Confidence:
    """Return how much an item weighs that a person has.

    Args:
        settings: alpha, counts and most_count, as of `ALS`; the last two may be left open.
        scale: of the data: only if they are counts does it matter how often.
    """
    alpha, counts = float(settings["alpha"]), settings.get("counts") or COUNTS
    if not scale.counts or counts == "ignored":
        return Confidence(alpha)
    return Confidence(alpha, float(settings.get("most_count") or MOST_COUNT), counts == "linear")


def implicit_release(
    catalogue: Items,
    item_factors: NDArray[np.float32],
    item_biases: NDArray[np.float32],
    ridge: float,
    confidence: Confidence,
    configuration: Mapping[str, Any],
    guarantee: Guarantee,
) -> Release:
    """Return the release of item factors and popularity."""
    return Release(
        items=catalogue,
        scale=NO_RATINGS,
        mean=0.0,
        item_factors=item_factors,
        item_biases=item_biases,
        ridge=Ridge(0.0, ridge),
        configuration=dict(configuration),
        guarantee=guarantee,
        feedback="implicit",
        alpha=confidence.alpha,
        most_count=confidence.most,
        linear=confidence.linear,
    )
