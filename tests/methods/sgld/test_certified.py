"""Certified sampling: what is guaranteed, personal clips, and what it learns."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import SGLD
from dpmf.methods.sgld.certified import SteppingPlan
from dpmf.methods.sgld.convergence import diagnose
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = SGLD(n_factors=3, n_epochs=6, budget=Budget(3.0), sampling_rate=0.3, noise_seed=4)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def test_what_is_promised_follows_from_what_was_done(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(4.0))
    guarantee = replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 2.9 < guarantee.epsilon <= 3.0
    (event,) = guarantee.events
    assert isinstance(event, PoissonGaussianEvent)
    assert (event.sampling_rate, event.count, event.coordinates) == (0.3, 6, 6 * 60 * 4)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger)


def test_it_learns() -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = SGLD(budget=Budget(8.0)).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.9 * rmse(baseline_errors(train, test))


def test_whoever_asks_for_less_gets_a_shorter_clip() -> None:
    plan = SteppingPlan(60, 3, 6, 0.5, Budget(3.0), sampling_rate=0.3)
    shares = plan.shares(np.array([3.0, 1.0, 0.0, 1e-14]))
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == shares[3] == 0
    lighter = replace(plan.event, noise_multiplier=plan.event.noise_multiplier / shares[1])
    assert epsilon_of([lighter], 1e-6) <= 1.0


def test_steps_in_which_nobody_takes_part_are_steps_like_others() -> None:
    alone = Ratings.of(["ann"], ["Heat"], [4], scale=(1, 5))
    model = replace(METHOD, n_factors=1, sampling_rate=0.01, items_public=True).fit(alone, n_threads=2)
    assert len(model.history) == 6
    assert model.release.item_biases.all()  # there is noise on everything, whoever takes part


def test_what_makes_no_sense_is_refused(ratings: Ratings) -> None:
    for field, value in (("decay", 0.5), ("kappa", 1.0), ("rho", 1.0), ("table", 0), ("temperature", 0.5)):
        with pytest.raises(InvalidArgument, match=rf"{field}.* means nothing with mode='certified'"):
            replace(METHOD, **{field: value})  # type: ignore[arg-type]
    for rate in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidArgument, match="sampling_rate="):
            replace(METHOD, sampling_rate=rate)
    with pytest.raises(InvalidArgument, match="sampling_rate means nothing with mode='paper'"):
        replace(METHOD, mode="paper")
    with pytest.raises(InvalidArgument, match="rests on no convergence"):
        diagnose(METHOD, ratings)
