"""The release of a ranking: what noisy sums, or exact ones, say about items."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.item_pairs import Ramp
from dpmf.methods.als.implicit import NO_RATINGS
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.ease.conditional import Grouped, conditional, grouped_sums
from dpmf.methods.ease.item_item import ItemItem, denoise, estimate
from dpmf.methods.ease.linked_items import estimate_with_links
from dpmf.methods.ease.links import LinkedSums
from dpmf.model import Release, Ridge
from dpmf.model.ranking import Ranking
from dpmf.model.ranking_tensors import rounded
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale

logger = logging.getLogger(__name__)
_TOO_FEW = "there are too few people for pairs of items at this epsilon"
_NOTHING_FOUND = "no pairs of items stand out from the noise"
_ALONE = "the release ranks items by popularity alone; more people, or a larger epsilon, would change that"
LIMITS = (256, 150)  # factors, and pairs of an item on average: what a page can load


def ranking_of(public: PublicEase) -> Ranking:
    """Return the ranking that noisy sums make; by popularity alone, with a warning, if there is no more in them."""
    popularity, head = public.counts.values.astype(np.float32), public.head
    linked = public.linked_sums()
    if public.pairs is None and linked is None:  # nobody asked, there are too few people, or it was lost, as was said
        if public.plan.most_head and not len(head):
            logger.warning("%s: %s", _TOO_FEW, _ALONE)
        return popularity_ranking(popularity, public.ramp)
    if linked is not None:
        head, found = _with_links(public, linked)
    else:
        assert public.pairs is not None
        counts = np.maximum(public.counts.values[head], public.counts.sd)
        found = estimate(
            public.pairs.values, public.pairs.sd, counts, public.n_users, LIMITS, public.spectrum, public.traits[head]
        )
    if not found.left.shape[1] and not len(found.values):
        logger.warning("%s: %s", _NOTHING_FOUND, _ALONE)
        return popularity_ranking(popularity, public.ramp)
    return make_ranking(head, found, popularity, public.ramp)


def _with_links(public: PublicEase, linked: LinkedSums) -> tuple[NDArray[np.int32], ItemItem]:
    """Return the items that something is known of, and what that is, where links say something."""
    if public.pairs is not None:
        noisy = public.pairs.values, public.pairs.sd
        counts = np.maximum(public.counts.values[public.head], public.counts.sd)
        found = denoise(*noisy, counts, public.spectrum, public.traits[public.head])
        if found is not None:
            return estimate_with_links(public.head, found, noisy, linked, public.likely, public.n_users, LIMITS)
    return conditional(linked, _grouped(public), public.likely, public.n_users, LIMITS[1])


def _grouped(public: PublicEase) -> Grouped | None:
    """Return what is known of pairs of groups, if they were measured."""
    if public.grouped is None:
        return None
    return grouped_sums(public.grouped.values, public.grouped.sd, public.groups, public.grouped_head, public.likely)


def make_ranking(head: NDArray[np.int32], found: ItemItem, popularity: NDArray[np.float32], ramp: Ramp) -> Ranking:
    """Return the ranking by an item-item matrix over the head."""
    weights = _count_weights(ramp) or (0.0 if math.isinf(ramp.none) else ramp.none, 0.0)
    return Ranking(head, *found, popularity, *weights)


def popularity_ranking(popularity: NDArray[np.float32], ramp: Ramp) -> Ranking:
    """Return the ranking that is the same for everybody."""
    return Ranking.by_popularity(popularity, *_count_weights(ramp))


def _count_weights(ramp: Ramp) -> tuple[float, float] | tuple[()]:
    """Return the count from which on items weigh most, and what a count of one weighs beside that, if counts matter."""
    return (2.0**ramp.full, ramp.none / (ramp.none - ramp.full)) if ramp.counts else ()


def ranking_release(
    catalogue: Items,
    scale: Scale,
    ranking: Ranking,
    configuration: Mapping[str, Any],
    guarantee: Guarantee,
    *,
    implicit: bool,
) -> Release:
    """Return a release that ranks, and predicts no ratings."""
    n_items = len(catalogue)
    return Release(
        items=catalogue,
        scale=NO_RATINGS if implicit else scale,
        mean=0.0 if implicit else scale.middle,
        item_factors=np.zeros((n_items, 0), np.float32),
        item_biases=np.zeros(n_items, np.float32),
        ridge=Ridge(1.0, 1.0),
        configuration=dict(configuration),
        guarantee=guarantee,
        feedback="implicit" if implicit else "explicit",
        ranking=rounded(ranking),
    )
