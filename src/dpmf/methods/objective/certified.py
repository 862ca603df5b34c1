"""Objective perturbation with users' factors from elsewhere: proven, in docs/proofs/objective.md.

With U fixed, the objective is quadratic, and what is added to it, η_j·v_j, moves nothing but the right-hand side of
the normal equations by η_j/2. So to perturb the objective is to perturb y_j = Σ_i u_i r_ij, and that is how it is done:
y is released once, on a grid, with noise of gamma-distributed length for every item of the catalogue. All else that
item factors are made of, A_j = Σ_i u_i u_i' and the number of ratings, follows from U and from who rated what, which is
public for the unit "value of one rating".
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.errors import BudgetExceeded
from dpmf.kernels.regression import solve_given
from dpmf.kernels.ridge import squared_errors
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.objective.claim import ONE_VALUE, RELEASES, WHICH_RATED
from dpmf.methods.objective.items import RADIUS
from dpmf.methods.objective.profiles import BIAS_PENALTY, Profiles, unexplained
from dpmf.methods.objective.value_sums import public_products, release_products
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import norm_event
from dpmf.privacy.events import Event
from dpmf.privacy.guarantee import SEEDED, rounded_up
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism, PlannedEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from dpmf.methods.objective import ObjectivePerturbation

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]
Floats = NDArray[np.float32]
SUMS = "sums over raters of their factors times ratings, for every item"
_SIZE = 1 / 8  # of item factors, relative to the width of the scale: where noise outweighs them, they are held back


def fit_certified(
    method: ObjectivePerturbation,
    ratings: Ratings,
    profiles: Profiles,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    ledger: Ledger | None,
) -> Model:
    """Return a model whose release is certified; arguments as in `ObjectivePerturbation.fit`."""
    assert method.budget is not None
    declared(ratings, method.items_public)
    profiles.check(ratings)
    began, noise = time.perf_counter(), Noise(method.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    coordinates = ratings.n_items * profiles.n_factors
    planned: list[PlannedEvent] = [
        *profiles.events(ratings.n_users),
        norm_event(method.budget, SUMS, coordinates=coordinates),
    ]
    guarantee = _guarantee(method.budget, ratings, profiles, [*profiles.spent, *planned], seeded=noise.seeded)
    if ledger is not None:
        ledger.spend(ratings.name or "release", guarantee)
    mechanism = Mechanism(planned, noise)
    V = _item_factors(method, ratings, profiles.factors(ratings, mechanism, n_threads), mechanism, n_threads)
    mechanism.finish()
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=ratings.scale.middle,
        item_factors=V,
        item_biases=np.zeros(ratings.n_items, np.float32),
        ridge=Ridge(BIAS_PENALTY, profiles.n_factors * unexplained(ratings.scale.hi - ratings.scale.lo)),
        configuration={**method.configuration(), "n_factors": profiles.n_factors},
        guarantee=guarantee,
    )
    b, U = fold_in_many(release, ratings.indptr, ratings.items, ratings.values, n_threads)
    squared = squared_errors(
        ratings.indptr, ratings.items, ratings.values, 0, ratings.n_users, V, release.item_biases, release.mean, b, U
    )
    record = EpochRecord(1, time.perf_counter() - began, math.sqrt(squared / len(ratings)))
    for callback in callbacks:
        callback(record)
    return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, (record,))


def _guarantee(budget: Budget, ratings: Ratings, profiles: Profiles, events: list[Event], *, seeded: bool) -> Guarantee:
    """Return the guarantee of everything: of items, and of the profiles that they are made with."""
    total = epsilon_of(events, budget.delta, neighbours=budget.neighbours)
    if not math.isfinite(total):
        raise BudgetExceeded(
            f"profiles and items are to be paid for, and together they cost more than can be accounted for at "
            f"delta={budget.delta:g}: take smaller epsilons"
        )
    assumptions = dict.fromkeys((*public_facts(ratings.catalogue), WHICH_RATED, ONE_VALUE, *profiles.assumptions))
    return Guarantee.certified_by(
        replace(budget, epsilon=rounded_up(total)), events, releases=RELEASES, assumptions=tuple(assumptions),
        seeded=seeded, personal=profiles.personal,
    )  # fmt: skip


def _item_factors(
    method: ObjectivePerturbation, ratings: Ratings, U: Floats, mechanism: Mechanism, n_threads: int
) -> Floats:
    """Release the sums, and return the minimum; ratings are counted from the middle of the scale, a public number."""
    scale = ratings.scale
    items = SparseRows.by_user(ratings).transposed(ratings.n_items, n_threads)
    noisy, U = release_products(mechanism, SUMS, items, U, RADIUS, scale, n_threads)
    offsets = np.full(len(U), scale.lo - scale.middle, np.float32)
    right = noisy + public_products(items, U, offsets, n_threads)
    V, K = np.empty(right.shape, np.float32), right.shape[1]
    if method.regularization is None:
        noise = mechanism.sd(SUMS, RADIUS * (scale.hi - scale.lo)) * math.sqrt(K + 1)  # of a coordinate
        ridge = noise / (_SIZE * (scale.hi - scale.lo))
    else:
        ridge = method.regularization * len(ratings)

    def solve(start: int, stop: int) -> float:
        solve_given(items.indptr, items.columns, start, stop, U, ridge, 0.0, right, V)
        return 0.0

    items.visit(solve, n_threads)
    return V
