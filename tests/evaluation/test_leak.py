"""How much errors on ratings that were learnt from differ from errors on others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmf.evaluation import evaluate, prediction_errors
from dpmf.evaluation import leak as leaking
from dpmf.evaluation.leak import leak_figures, top_users
from dpmf.evaluation.metrics import gaussian_divergence
from dpmf.methods import METHODS, SGD, configure
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def parts() -> tuple[Ratings, Ratings]:
    return make(200, 60, mean_ratings=20).split(0.2, seed=1)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ease"])  # which predicts no ratings
def test_every_method_has_the_measure(method: str, parts: tuple[Ratings, Ratings]) -> None:
    train, test = parts
    budget = {} if method == "sgd" else {"budget": Budget(math.inf)}
    model = configure(method, {"n_factors": 4, "n_epochs": 10, **budget}).fit(train)
    figures = evaluate(model, test, known=train)
    learnt, unseen = prediction_errors(model, train), prediction_errors(model, test)
    both = (learnt.mean(), learnt.var(), unseen.mean(), unseen.var())
    assert figures["kld"] == pytest.approx(gaussian_divergence(*both), rel=1e-5)
    assert figures["kld_top_users"] != figures["kld"]


def test_a_model_that_learnt_by_heart_leaks_more(parts: tuple[Ratings, Ratings]) -> None:
    train, test = parts
    careful = SGD(n_factors=2, n_epochs=5, regularization=0.1).fit(train)
    by_heart = SGD(n_factors=32, n_epochs=200, regularization=0.0, learning_rate=0.05).fit(train)
    klds = [leak_figures(one, train, test, n_threads=2)["kld"] for one in (careful, by_heart)]
    assert klds[1] > 10 * klds[0]


def test_it_is_the_same_in_small_parts_and_for_any_number_of_threads(
    parts: tuple[Ratings, Ratings], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = parts
    model = SGD(n_factors=4, n_epochs=3).fit(train)
    whole = leak_figures(model, train, test, n_threads=1)
    monkeypatch.setattr(leaking, "_RATINGS_PER_TASK", 100)
    found = [leak_figures(model, train, test, n_threads=n_threads) for n_threads in (1, 3)]
    assert found[0] == found[1]
    assert found[0] == pytest.approx(whole)
    errors = prediction_errors(model, test)[top_users(train)[test.users]]
    assert whole["rmse_top_users"] == pytest.approx(math.sqrt(np.mean(errors**2)))


def test_top_users_are_a_tenth_of_those_who_rated(parts: tuple[Ratings, Ratings]) -> None:
    train, _ = parts
    chosen, counts = top_users(train), np.diff(train.indptr)
    assert chosen.sum() == round(0.1 * np.count_nonzero(counts))
    assert counts[chosen].min() >= counts[~chosen].max()
