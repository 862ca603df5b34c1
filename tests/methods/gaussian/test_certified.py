"""Certified full-batch steps: what is guaranteed, what they learn, and ratings as they are."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import GaussianGD
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = GaussianGD(n_factors=3, n_epochs=6, budget=Budget(3.0), noise_seed=4)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def test_what_is_promised_follows_from_what_was_done(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(4.0))
    guarantee = replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 2.99 < guarantee.epsilon <= 3.0
    (event,) = guarantee.events
    assert isinstance(event, GaussianEvent)
    assert (event.count, event.coordinates) == (6, 6 * 60 * 4)
    assert gdp_of([event]) == pytest.approx(math.sqrt(6) / event.noise_multiplier)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger)
    with pytest.raises(InvalidArgument, match="protects users"):
        GaussianGD(budget=Budget(1.0, unit="rating"))


@pytest.mark.parametrize(("centering", "part"), [("mean", 0.9), ("raw", 1.1)])
def test_it_learns(centering: Literal["mean", "raw"], part: float) -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = GaussianGD(budget=Budget(8.0), centering=centering).fit(train)
    assert rmse(prediction_errors(model, test)) < part * rmse(baseline_errors(train, test))


def test_raw_ratings_have_no_biases(ratings: Ratings) -> None:
    model = replace(METHOD, centering="raw").fit(ratings)
    assert model.release.configuration["centering"] == "raw"
    assert (model.release.mean, set(model.release.item_biases.tolist())) == (1.0, {-1.0})
    assert np.abs(model.user_biases).max() < 1e-6
    centred = METHOD.fit(ratings)
    assert centred.release.configuration["centering"] == "mean"
    assert centred.release.mean == 3.0  # the middle of the scale: the mean itself is private
    assert centred.release.item_biases.all()
