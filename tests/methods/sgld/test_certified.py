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

from ..cases import RATINGS, SAMPLED
from ..watch import Watch

METHOD = SGLD(**SAMPLED, noise_seed=4)  # as elsewhere, so that the accountant has seen it before


def test_what_is_promised_follows_from_what_was_done(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(6.0))
    guarantee = replace(METHOD, noise_seed=None).fit(RATINGS, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 4.9 < guarantee.epsilon <= 5.0
    (event,) = guarantee.events
    assert isinstance(event, PoissonGaussianEvent)
    assert (event.sampling_rate, event.count, event.coordinates) == (0.5, 3, 3 * 20 * 3)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(RATINGS, ledger=ledger)


def test_it_learns() -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = SGLD(budget=Budget(8.0)).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.9 * rmse(baseline_errors(train, test))


def test_whoever_asks_for_less_gets_a_shorter_clip() -> None:
    plan = SteppingPlan(20, 2, 3, 0.5, Budget(5.0), sampling_rate=0.5)
    shares = plan.shares(np.array([5.0, 2.0, 0.0, 1e-14]))
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == shares[3] == 0
    lighter = replace(plan.event, noise_multiplier=plan.event.noise_multiplier / shares[1])
    assert epsilon_of([lighter], 1e-6) <= 2.0


def test_steps_in_which_nobody_takes_part_are_steps_like_others(watch: Watch) -> None:
    alone, idle = Ratings.of(["ann"], [4], [4], scale=(1, 5), items=range(20)), 0
    for noise_seed in range(12):
        model = replace(METHOD, noise_seed=noise_seed).fit(alone, n_threads=2)
        assert len(model.history) == 3
        assert model.release.item_biases.all()  # there is noise on everything, whoever takes part
        idle += sum(not one.sums.any() for one in watch.records)
    assert 6 < idle < 30  # of 36 steps


def test_what_makes_no_sense_is_refused() -> None:
    for field, value in (("decay", 0.5), ("kappa", 1.0), ("rho", 1.0), ("table", 0), ("temperature", 0.5)):
        with pytest.raises(InvalidArgument, match=rf"{field}.* means nothing with mode='certified'"):
            replace(METHOD, **{field: value})  # type: ignore[arg-type]
    for rate in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidArgument, match="sampling_rate="):
            replace(METHOD, sampling_rate=rate)
    with pytest.raises(InvalidArgument, match="sampling_rate means nothing with mode='paper'"):
        replace(METHOD, mode="paper")
    with pytest.raises(InvalidArgument, match="rests on no convergence"):
        diagnose(METHOD, RATINGS)
