"""A run of full gradient descent, from ratings to a model: without noise, or with that of the paper's claim."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.methods.base import RunOptions
from dpmf.methods.centre import NO_BIAS, on_scale
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.claimed import ClaimedRelease, carry_out
from dpmf.methods.gaussian.descent import EXPONENT, Floats, FullGradients, Pace, drawn_noise
from dpmf.methods.snapshots import fingerprint_of, snapshots_of
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from dpmf.methods.gaussian import GaussianGD

logger = logging.getLogger(__name__)
_PUBLISHED_LENGTH, _QUICK_LENGTH = 1.0, 0.1  # of all rows at the start
_SETTINGS_PUBLIC = "Rating scale and configuration are public: they were declared, not learnt from the ratings."


def fit_descent(method: GaussianGD, ratings: Ratings, options: RunOptions) -> Model:
    """Return a model that is not certified."""
    settings, n_threads = method.resolve(), options.n_threads
    if method.is_private:
        if options.user_budgets is not None:
            raise InvalidArgument("user_budgets need mode='certified': what the paper claims is not about persons")
        declared(ratings, method.items_public)
    # Noise is that of a certified run, as hard to predict, although no more than a claim rests on it.
    noise = Noise(method.noise_seed)
    if noise.seeded:
        logger.warning("%s", SEEDED)
    centre = float(ratings.values.mean(dtype=np.float64)) if settings.centering == "mean" else 0.0
    unit = unit_of(ratings.scale) if method.kind == "none" else 1.0
    state = _start(method, ratings, centre, unit, n_threads)

    def advance(epoch: int) -> EpochRecord:
        began, number = time.perf_counter(), epoch - 1
        error = unit * state.advance(number, n_threads, _noise(method, noise, ratings, number, n_threads))
        return EpochRecord(epoch, time.perf_counter() - began, error)

    claim = None
    if method.is_private:
        planned = _guarantee(method, ratings, settings.n_epochs, noise.seeded)
        claim = ClaimedRelease(planned, ratings.name or "release", options.ledger)
    same = {"name": "gaussian", **method.facts(), "budget": str(method.budget)}
    with snapshots_of(options.checkpoint, same, ratings, lambda: fingerprint_of(ratings)) as snapshots:
        history = carry_out(snapshots, state.tensors, advance, partial(_ended, method), options.callbacks, claim)
    guarantee = _guarantee(method, ratings, len(history), noise.seeded)
    return _model(method, ratings, state, centre, unit, guarantee, tuple(history))


def _start(method: GaussianGD, ratings: Ratings, centre: float, unit: float, n_threads: int) -> FullGradients:
    quick, settings, clip = method.kind == "none", method.resolve(), method.facts()["clip"]
    pace = (Pace.quick if quick else Pace.constant)(ratings, settings.learning_rate, settings.regularization)
    state = FullGradients.start(
        ratings,
        settings.n_factors,
        pace,
        centre=centre,
        unit=unit,
        length=_QUICK_LENGTH if quick else _PUBLISHED_LENGTH,
        seed=method.seed,
        clip=math.inf if clip is None else clip,
        n_threads=n_threads,
    )
    if quick:
        state.forget_unrated()
    return state


def _noise(method: GaussianGD, noise: Noise, ratings: Ratings, number: int, n_threads: int) -> Floats | None:
    """Return the noise of an iteration, counted from 0; None without a finite epsilon."""
    if not method.is_private:
        return None
    sigma = method.claim(ratings.scale, 1).sigma  # of every iteration, however many there will be
    return drawn_noise(noise, sigma, number, (ratings.n_users, method.resolve().n_factors), n_threads)


def _ended(method: GaussianGD, history: Sequence[EpochRecord]) -> bool:
    """Tell whether all iterations are done, or the training error has stopped changing."""
    if len(history) >= method.resolve().n_epochs:
        return True
    if method.tolerance is None or len(history) < 2:
        return False
    return abs(history[-1].train_rmse - history[-2].train_rmse) < method.tolerance


def _guarantee(method: GaussianGD, ratings: Ratings, n_iterations: int, seeded: bool) -> Guarantee:
    if not method.is_private:
        return Guarantee.none()
    rule = None
    if method.tolerance is not None:
        rule = f"until it changed by less than {method.tolerance:g}"
    elif n_iterations != method.resolve().n_epochs:
        rule = "somebody ended the run early"
    public, catalogue = public_facts(ratings.catalogue)
    return method.claim(ratings.scale, n_iterations).guarantee(
        seeded=seeded,
        settled_by=rule,
        mean_published=method.resolve().centering == "mean",
        assumptions=[public if rule is None else _SETTINGS_PUBLIC, catalogue],
    )


def _model(
    method: GaussianGD,
    ratings: Ratings,
    state: FullGradients,
    centre: float,
    unit: float,
    guarantee: Guarantee,
    history: tuple[EpochRecord, ...],
) -> Model:
    user_factors, item_factors = state.factors(unit)
    mean, biases = on_scale(centre, np.zeros(ratings.n_items, np.float32), ratings.scale)
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=mean,
        item_factors=item_factors,
        item_biases=biases,
        ridge=Ridge(NO_BIAS, method.resolve().regularization * unit, EXPONENT if method.kind == "none" else 0.0),
        configuration=method.configuration(),
        guarantee=guarantee,
    )
    nobody = np.zeros(ratings.n_users, np.float32)
    return Model(release, ratings.user_ids, user_factors, nobody, ratings.indptr, ratings.items, history)
