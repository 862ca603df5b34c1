"""A run of certified sampling, from ratings to a model; what its steps do is in `dpmf.methods.private_sgld`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.stored import AnyRatings
from dpmf.methods.certified_steps import Callback, CertifiedSteps
from dpmf.methods.checks import declared
from dpmf.methods.clipped_steps import Centre
from dpmf.methods.personal import personal_epsilons
from dpmf.methods.private_sgld import SampledSteps, SteppingPlan, sampled_shares
from dpmf.model import Model
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD


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
    declared(ratings, method.items_public)
    plan = _plan(method, ratings.n_items)
    shares = sampled_shares(personal_epsilons(ratings.user_ids, method.budget, user_budgets), plan)

    def start(counted: AnyRatings, mechanism: Mechanism, noise: Noise, n_threads: int) -> SampledSteps:
        assert method.regularization is not None
        assert method.n_samples is not None
        return SampledSteps(
            plan, counted, shares, mechanism, Centre(ratings.scale.middle), method.regularization, method.n_samples,
            method.seed, n_threads, noise,
        )  # fmt: skip

    run = CertifiedSteps("sgld", method, plan.event, plan.stages(), shares, bool(user_budgets), method.cap, start)
    return run.fit(ratings, n_threads, callbacks, checkpoint, ledger)


def _plan(method: SGLD, n_items: int) -> SteppingPlan:
    assert method.budget is not None
    assert method.n_factors is not None
    assert method.n_epochs is not None
    assert method.sampling_rate is not None
    assert method.learning_rate is not None
    return SteppingPlan(
        n_items, method.n_factors, method.n_epochs, method.sampling_rate, method.learning_rate, method.budget
    )
