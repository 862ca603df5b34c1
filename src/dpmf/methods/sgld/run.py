"""A run of posterior sampling, from ratings to a model: without a guarantee, or with a paper's claim."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpmf.engine.grid import checksum_of
from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.methods.base import RunOptions
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.claimed import ClaimedRelease, carry_out
from dpmf.methods.sgld.draws import Averages, model_of
from dpmf.methods.snapshots import snapshots_of
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD

logger = logging.getLogger(__name__)


def fit_sampled(method: SGLD, ratings: AnyRatings, options: RunOptions) -> Model:
    """Run a chain, and return the model of its draws."""
    settings = method.resolve()
    guarantee = _guarantee(method, ratings, options.user_budgets)
    with method.prepared(ratings, options.user_budgets) as (counted, weights, bound):
        resources = Resources(options.n_threads)
        if isinstance(counted, StoredRatings):
            resources = Resources.for_factors(counted, settings.n_factors, options.n_threads)
        chain = method.chain_on(counted, weights, bound, resources)
        averages = Averages.start(chain)
        tensors = {**chain.tensors(), **averages.tensors()}
        epochs, draws = settings.n_epochs, settings.n_samples

        def advance(epoch: int) -> EpochRecord:
            record = method.advance(chain, epoch, resources.executor)
            if epoch > epochs - draws:
                averages.add(chain)
            return record

        claim = ClaimedRelease(guarantee, ratings.name or "release", options.ledger) if method.is_private else None
        same = {"name": "sgld", **method.facts(), "budget": str(method.budget), "weights": checksum_of((weights,))}
        with snapshots_of(options.checkpoint, same, counted, chain.state.grid.fingerprint) as snapshots:
            history = carry_out(
                snapshots, lambda: tensors, advance, lambda history: len(history) >= epochs, options.callbacks, claim
            )
        return model_of(ratings, chain, averages, method.configuration(), guarantee, tuple(history), resources)


def _guarantee(method: SGLD, ratings: AnyRatings, user_budgets: Mapping[Any, float] | None) -> Guarantee:
    if not method.is_private:
        return Guarantee.none()
    declared(ratings, method.items_public)
    guarantee = method.bound(ratings.scale).guarantee(
        method.budget,
        table_size=method.resolve().table,
        seeded=method.noise_seed is not None,
        personal=bool(user_budgets),
        assumptions=public_facts(ratings.catalogue),
    )
    if guarantee.seeded:
        logger.warning("%s", SEEDED)
    return guarantee
