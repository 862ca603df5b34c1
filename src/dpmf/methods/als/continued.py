"""Starting from an earlier release: what of it a new run uses, and what has to be said about it.

The earlier release is public. Its noise protects the people whose ratings it was made of, as its own guarantee says,
and using it costs nobody anything. The new run measures differences from it, on new ratings. But much of what is
released then is what was released before, so the guarantee is that of both together, which is what whoever is in both
sets of ratings loses; a ledger, which has the earlier release already, is charged for the new events alone.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.files import digest_of
from dpmf.methods.als.known import Before
from dpmf.model import Release
from dpmf.model.learnt import LEARNT
from dpmf.privacy import Budget
from dpmf.privacy.verify import verify
from dpmf.ratings import Items, Scale

CONTINUES = "continues"
"""The name of the record in the configuration of a release."""


def check_start(start: Release, budget: Budget, scale: Scale) -> None:
    """Refuse a release that a run cannot start from, or whose ratings were on another scale."""
    check_release(start, budget)
    if (start.scale.lo, start.scale.hi) != (scale.lo, scale.hi):
        raise InvalidArgument(f"the release to start from has the scale {start.scale}, and these ratings {scale}")


def check_release(start: Release, budget: Budget) -> None:
    """Refuse a release that is of another method, or that is not as private as the run."""
    guarantee, method = start.guarantee, start.configuration.get("method", "another method")
    if method not in ("als", "joint") or start.is_implicit:
        feedback = " on implicit feedback" if start.is_implicit else ""
        raise InvalidArgument(
            f"a run can start from a release of als or joint on ratings, and this one is of {method}{feedback}: train "
            "on all ratings"
        )
    if not guarantee.certified:
        raise InvalidArgument(
            "the release to start from is not certified, and may reveal anything: train on all ratings"
        )
    for name in ("unit", "neighbours"):
        ours, its = getattr(budget, name), getattr(guarantee, name)
        if ours != its:
            raise InvalidArgument(f"the release to start from has {name}={its!r}, this run {ours!r}: take the same")
    verdict = verify(guarantee)
    if not verdict.ok:
        raise InvalidArgument(f"the release to start from contradicts itself: {verdict.reason}")


def before_of(start: Release, catalogue: Items) -> Before:
    """Return what a release knows of the items of a catalogue: nothing of those that are new."""
    places = start.items.ids.encode(catalogue.ids.array)
    known, n_factors = places >= 0, n_factors_of(start)
    factors, biases = np.zeros((len(catalogue), n_factors)), np.zeros(len(catalogue))
    factors[known] = start.item_factors[places[known], :n_factors]
    biases[known] = start.item_biases[places[known]]
    learnt = start.learnt
    with_factors, with_ratings = (np.zeros(len(catalogue), np.bool_) for _ in range(2))
    if n_factors:
        has = np.asarray(start.item_factors.any(axis=1)) if learnt.with_factors is None else learnt.with_factors
        with_factors[known] = has[places[known]]
    rated = np.full(len(start.items), bool(learnt.rated)) if learnt.with_ratings is None else learnt.with_ratings
    with_ratings[known] = rated[places[known]]
    n_known = learnt.factors if known.any() else 0
    traits = start.item_factors[:, start.n_factors - learnt.traits :].astype(np.float64)
    return Before(factors, biases, with_factors, with_ratings, n_known, np.square(traits).sum(axis=0))


def with_ranking_of(start: Release, release: Release) -> Release:
    """Return a release with the ranking of the one that it started from, if that ranks by pairs: it measured none."""
    if start.ranking is None or not len(start.ranking.items):
        return release
    places = start.items.ids.encode(release.items.ids.array)
    popular = None if start.learnt.popular is None else min(start.learnt.popular, int(np.count_nonzero(places >= 0)))
    learnt = replace(release.learnt, popular=popular)
    configuration = {**release.configuration, LEARNT: learnt.record()}
    return replace(release, ranking=start.ranking.for_catalogue(places), configuration=configuration)


def n_factors_of(start: Release) -> int:
    """Return how many factors there are to go on from: none if no more than noise is known of any."""
    measured = start.item_factors[:, : start.n_measured_factors].any(axis=0)  # the last may have been left out
    return int(np.flatnonzero(measured)[-1]) + 1 if start.learnt.factors and measured.any() else 0


def digest_of_release(start: Release) -> str:
    """Return a digest of what is used of a release, and of what it cost."""
    used = [start.item_factors, start.item_biases]
    if start.ranking is not None and len(start.ranking.items):
        used += [getattr(start.ranking, name) for name in ("items", "left", "right", "pairs", "values", "popularity")]
    tensors = b"".join(np.ascontiguousarray(one).tobytes() for one in used)
    facts = {"ids": list(start.items.ids), "guarantee": start.guarantee.to_json(), "learnt": start.learnt.record()}
    return sha256(tensors + digest_of(facts).encode()).hexdigest()[:32]


def record_of(start: Release) -> dict[str, Any]:
    """Return what a release says about the one that it started from."""
    guarantee = start.guarantee
    return {"digest": digest_of_release(start), "epsilon": guarantee.epsilon, "delta": guarantee.delta}


def assumption_of(start: Release) -> str:
    """Return what a guarantee rests on."""
    record = record_of(start)
    return (
        f"It starts from an earlier release ({record['digest']}), and its cost, ({record['epsilon']:g}, "
        f"{record['delta']:g}), is included: whoever is in the ratings of one of the two alone loses less."
    )
