"""A run of certified steps, from ratings to a model.

What the steps do is in `dpmf.methods.private_sgld`, where items have rows of their own, and in
`dpmf.methods.private_sketch`, where they share the cells of a sketch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.files import digest_of
from dpmf.methods.checks import PERSONAL, declared, public_facts
from dpmf.methods.personal import personal_epsilons
from dpmf.methods.posterior import RELEASES
from dpmf.methods.private_run import private_run
from dpmf.methods.private_sgld import BIAS_RIDGE, SampledSteps, SteppingPlan, sampled_shares
from dpmf.methods.resuming import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.trimming import trimmed

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]


class Certifiable(Protocol):
    """What a configuration says about a run; `dpmf.methods.sgld.SGLD` says what its words mean."""

    @property
    def budget(self) -> Budget | None:
        """What may be spent."""

    @property
    def regularization(self) -> float | None:
        """The penalty on users' factors."""

    @property
    def n_samples(self) -> int | None:
        """How many of the last steps are averaged."""

    @property
    def cap(self) -> int | None:
        """How many ratings of a user count at most."""

    @property
    def items_public(self) -> bool:
        """Whether ids found in the data are asserted to be public."""

    @property
    def seed(self) -> int:
        """Of everything public."""

    @property
    def noise_seed(self) -> int | None:
        """Of noise, for research."""

    def configuration(self) -> dict[str, Any]:
        """Return the public facts."""


def fit_certified(
    method: Certifiable,
    name: str,
    plan: SteppingPlan,
    steps: type[SampledSteps],
    ratings: Ratings,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    checkpoint: Checkpoint | None,
    user_budgets: Mapping[Any, float] | None,
    ledger: Ledger | None,
) -> Model:
    """Return a model whose release is certified.

    Args:
        method: the configuration, with everything chosen.
        name: of the method.
        plan: what the run will release.
        steps: the state that carries the plan out.
        ratings, n_threads, callbacks, checkpoint, user_budgets, ledger: as in `SGLD.fit`.
    """
    assert method.budget is not None
    assert method.regularization is not None
    assert method.n_samples is not None
    declared(ratings, method.items_public)
    noise = Noise(method.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    guarantee = Guarantee.certified_by(
        method.budget, [plan.event], releases=RELEASES,
        assumptions=[*public_facts(ratings.catalogue), *([PERSONAL] if user_budgets else [])], seeded=noise.seeded,
    )  # fmt: skip
    shares = sampled_shares(personal_epsilons(ratings.user_ids, method.budget, user_budgets), plan)
    counted = ratings if method.cap is None else trimmed(ratings, method.cap, seed=method.seed)
    with private_run(
        checkpoint, partial(_identity, method, name, ratings, shares, guarantee), plan.stages(), noise.seeded
    ) as run:
        run.enter(ledger, ratings.name or "release", guarantee)
        mechanism = Mechanism([plan.event], noise)
        state = steps(
            plan, counted, shares, mechanism, noise, method.regularization, method.n_samples, method.seed, n_threads
        )
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
    b, U = fold_in_many(release, ratings.indptr, ratings.items, ratings.values, n_threads)
    return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, history)


def _identity(
    method: Certifiable, name: str, ratings: Ratings, shares: NDArray[np.float64], guarantee: Guarantee
) -> dict[str, Any]:
    """Return what makes two runs the same run."""
    # The budget stands by itself, so that a refusal names it.
    settings = {**method.configuration(), "name": f"certified {name}", "noise_seed": method.noise_seed}
    return identity_of(
        settings, ratings, fingerprint_of(ratings), budget=str(method.budget),
        user_budgets=f"{checksum_of((shares,)):08x}", guarantee=digest_of(guarantee.to_json()),
    )  # fmt: skip
