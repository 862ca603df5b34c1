"""A run of certified sampling, from ratings to a model; what its steps do is in `dpmf.methods.private_sgld`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.engine.stored import AnyRatings, Room, StoredRatings
from dpmf.files import digest_of
from dpmf.methods.checks import PERSONAL, declared, public_facts
from dpmf.methods.counted import counted_ratings
from dpmf.methods.folding import folded
from dpmf.methods.personal import personal_epsilons
from dpmf.methods.posterior import RELEASES
from dpmf.methods.private_run import private_run
from dpmf.methods.private_sgld import BIAS_RIDGE, SampledSteps, SteppingPlan, sampled_shares
from dpmf.methods.resuming import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]


def fit_certified(
    method: SGLD,
    ratings: AnyRatings,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    checkpoint: Checkpoint | None,
    user_budgets: Mapping[Any, float] | None,
    ledger: Ledger | None,
) -> Model:
    """Return a model whose release is certified; arguments as in `SGLD.fit`, with everything chosen."""
    assert method.budget is not None
    assert method.regularization is not None
    assert method.n_samples is not None
    declared(ratings, method.items_public)
    plan = _plan(method, ratings.n_items)
    noise = Noise(method.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    guarantee = Guarantee.certified_by(
        method.budget, [plan.event], releases=RELEASES,
        assumptions=[*public_facts(ratings.catalogue), *([PERSONAL] if user_budgets else [])], seeded=noise.seeded,
    )  # fmt: skip
    shares = sampled_shares(personal_epsilons(ratings.user_ids, method.budget, user_budgets), plan)
    room = Room(n_threads)
    if isinstance(ratings, StoredRatings):
        room = Room.for_sums(ratings, plan.n_factors, n_threads)
    identity = partial(_identity, method, ratings, shares, guarantee)
    with (
        counted_ratings(ratings, method.cap, seed=method.seed) as counted,
        private_run(checkpoint, identity, plan.stages(), noise.seeded) as run,
    ):
        run.enter(ledger, ratings.name or "release", guarantee)
        mechanism = Mechanism([plan.event], noise)
        state = SampledSteps(
            plan, counted, shares, mechanism, noise, method.regularization, method.n_samples, method.seed,
            room.n_threads,
        )  # fmt: skip
        history = run.carry_out(state, callbacks)
        mechanism.finish()
    factors, biases = state.items()
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=state.mean,
        item_factors=factors,
        item_biases=biases,
        ridge=Ridge(bias=BIAS_RIDGE, factors=method.regularization * state.unit),
        configuration=method.configuration(),
        guarantee=guarantee,
    )
    return folded(release, ratings, history, room)


def _plan(method: SGLD, n_items: int) -> SteppingPlan:
    assert method.budget is not None
    assert method.n_factors is not None
    assert method.n_epochs is not None
    assert method.sampling_rate is not None
    assert method.learning_rate is not None
    return SteppingPlan(
        n_items, method.n_factors, method.n_epochs, method.sampling_rate, method.learning_rate, method.budget
    )


def _identity(method: SGLD, ratings: AnyRatings, shares: NDArray[np.float64], guarantee: Guarantee) -> dict[str, Any]:
    """Return what makes two runs the same run; one that streams is not one that does not."""
    if isinstance(ratings, StoredRatings):
        fingerprint = f"{ratings.blocks.fingerprint()}, streamed"
    else:
        fingerprint = fingerprint_of(ratings)
    settings = {"name": "certified sgld", **asdict(method)}
    del settings["budget"]  # stands by itself, so that a refusal names it
    return identity_of(
        settings, ratings, fingerprint, budget=str(method.budget),
        user_budgets=f"{checksum_of((shares,)):08x}", guarantee=digest_of(guarantee.to_json()),
    )  # fmt: skip
