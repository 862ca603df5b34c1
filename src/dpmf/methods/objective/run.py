"""A run of objective perturbation that certifies nothing: the plain fit, then items once more with noise.

Noise is drawn once, with the first step, and stored in the snapshots: a run that was stopped and resumed releases what
an uninterrupted one would have released, and nothing is drawn a second time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmf.engine.tensorfile import Tensor
from dpmf.methods.base import RunOptions, settings_of
from dpmf.methods.centre import NO_BIAS, on_scale
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.claimed import ClaimedRelease, carry_out
from dpmf.methods.gaussian.descent import Floats
from dpmf.methods.objective.claim import claim_of
from dpmf.methods.objective.items import Array, PerturbedItems, noise_vectors, plain_fit
from dpmf.methods.snapshots import fingerprint_of, snapshots_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from dpmf.methods.objective import ObjectivePerturbation

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What a run that certifies nothing is given; attributes as those of `ObjectivePerturbation`."""

    n_factors: int
    n_epochs: int
    learning_rate: float
    regularization: float


def fit_published(method: ObjectivePerturbation, ratings: Ratings, options: RunOptions) -> Model:
    """Return a model that is not certified. Without a finite epsilon items are those of the plain fit."""
    facts, n_threads = method.facts(), options.n_threads
    settings, solver = settings_of(Settings, facts), facts["solver"]
    K, penalty = settings.n_factors, settings.regularization
    if method.is_private:
        declared(ratings, method.items_public)
    state = plain_fit(ratings, K, settings.learning_rate, penalty, seed=method.seed, n_threads=n_threads)
    nothing_yet = np.zeros((ratings.n_items, K))
    perturbed = PerturbedItems(state.items, state.X.copy(), nothing_yet, settings.learning_rate, penalty)
    n_fitting, n_all = settings.n_epochs, method.n_turns

    def advance(epoch: int) -> EpochRecord:
        began = time.perf_counter()
        if epoch == 1 and method.is_private:  # not before it is entered into the ledger
            perturbed.eta[:] = _drawn(method, ratings, K)
        if epoch <= n_fitting:
            error = state.advance(epoch - 1, n_threads)
        else:
            error = perturbed.advance(state.T, n_threads)
        return EpochRecord(epoch, time.perf_counter() - began, error)

    def tensors() -> dict[str, Tensor]:
        kept = state.tensors()
        return {**kept, "V": perturbed.V, "eta": perturbed.eta} if method.is_private else kept

    def is_done(history: Sequence[EpochRecord]) -> bool:
        return len(history) >= n_all

    claim = None
    if method.is_private:
        planned = _guarantee(method, ratings, n_fitting, n_all)
        claim = ClaimedRelease(planned, ratings.name or "release", options.ledger)
    same = {"name": "objective", **method.recorded(), "budget": str(method.budget)}
    with snapshots_of(options.checkpoint, same, ratings, lambda: fingerprint_of(ratings)) as snapshots:
        history = carry_out(snapshots, tensors, advance, is_done, options.callbacks, claim)
    n_steps = len(history) - n_fitting
    if solver == "steps" and n_steps <= 0:  # the fit was ended early, and items have not begun
        n_steps = n_fitting
        for _ in range(n_steps):
            perturbed.advance(state.T, n_threads)
    U, V = state.factors(1.0)
    if method.is_private:
        V = perturbed.solve(state.T, n_threads) if solver == "exact" else perturbed.V[:, :K]
    return _model(method, ratings, U, V, _guarantee(method, ratings, n_steps, len(history)), tuple(history))


def _drawn(method: ObjectivePerturbation, ratings: Ratings, n_factors: int) -> Array:
    """Return the noise of a run."""
    # Noise is that of a certified run, as hard to predict, although no more than a claim rests on it.
    noise = Noise(method.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    scale = 2 * (ratings.scale.hi - ratings.scale.lo) / method.budget.epsilon
    return noise_vectors(noise, scale, (ratings.n_items, n_factors))


def _guarantee(method: ObjectivePerturbation, ratings: Ratings, n_steps: int, n_records: int) -> Guarantee:
    if not method.is_private:
        return Guarantee.none()
    facts = method.facts()
    return claim_of(
        method.budget.epsilon,
        ratings.scale.hi - ratings.scale.lo,
        facts["n_factors"],
        n_steps=n_steps if facts["solver"] == "steps" else None,
        ended_early=n_records < method.n_turns,
        seeded=method.noise_seed is not None,
        assumptions=public_facts(ratings.catalogue),
    )


def _model(
    method: ObjectivePerturbation,
    ratings: Ratings,
    U: Floats,
    V: Floats,
    guarantee: Guarantee,
    history: tuple[EpochRecord, ...],
) -> Model:
    mean, biases = on_scale(0.0, np.zeros(ratings.n_items, np.float32), ratings.scale)
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=mean,
        item_factors=np.ascontiguousarray(V),
        item_biases=biases,
        ridge=Ridge(NO_BIAS, method.facts()["regularization"], 1.0),  # of means over ratings, so once per rating
        configuration=method.configuration(),
        guarantee=guarantee,
    )
    nobody = np.zeros(ratings.n_users, np.float32)
    return Model(release, ratings.user_ids, U, nobody, ratings.indptr, ratings.items, history)
