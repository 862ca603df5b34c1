"""Whoever asks for a smaller ε counts for just so much that their ε is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from dpmf.errors import InvalidArgument
from dpmf.methods.certified.personal import gaussian_shares, personal_epsilons
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.ratings.ids import Ids

USERS = Ids(np.array([1, 2, 3, 4]))


def plan(budget: Budget, size: int = 1000) -> tuple[GaussianEvent, ...]:
    return gaussian_events(budget, [Part("counts", 1, 1, size), Part("sums", 5, 3, 3 * size)])


def shares_of(budget: Budget, events: Sequence[GaussianEvent], wanted: Mapping[Any, float] | None) -> NDArray[Any]:
    return gaussian_shares(personal_epsilons(USERS, budget, wanted), budget, events)


def gdp(epsilon: float, delta: float) -> float:
    """Solve the definition, with nothing of the package."""

    def excess(mu: float) -> float:
        upper, lower = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.cdf(-mu / 2 - epsilon / mu)
        return float(upper - math.exp(epsilon) * lower - delta)

    return float(optimize.brentq(excess, 1e-3, 20, xtol=1e-14))


@pytest.mark.parametrize("delta", [1e-6, 1e-4])
@pytest.mark.parametrize(("epsilon", "own"), [(2.0, 1.0), (20.0, 0.5), (1.0, 0.99), (0.5, 0.01)])
def test_the_weight_is_the_ratio_of_gaussian_parameters(epsilon: float, own: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    shares = shares_of(budget, plan(budget), {3: own})
    assert shares.tolist() == [1.0, 1.0, pytest.approx(gdp(own, delta) / gdp(epsilon, delta), rel=1e-6), 1.0]


@pytest.mark.parametrize("size", [10, 5_000_000])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("own", [1e-9, 1e-6, 0.01, 0.7, 2.9999999])
def test_the_accountant_finds_no_more_than_what_was_asked_for(own: float, neighbours: str, size: int) -> None:
    budget = Budget(3.0, neighbours=neighbours)
    events = plan(budget, size)
    share = shares_of(budget, events, {3: own})[2]
    assert 0 <= share < 1
    if share:
        lighter = [replace(event, noise_multiplier=event.noise_multiplier / share) for event in events]
        assert epsilon_of(lighter, budget.delta, neighbours=neighbours) <= own
    else:
        assert own <= 1e-8


def test_somebody_who_is_named_twice_pays_the_least() -> None:
    for wanted in ({3: 0.5, "3": 1.5}, {"3": 1.5, 3: 0.5}):
        assert personal_epsilons(USERS, Budget(2.0), wanted).tolist() == [2.0, 2.0, 0.5, 2.0]


def test_a_larger_epsilon_is_no_use_and_none_at_all_leaves_out() -> None:
    budget = Budget(2.0)
    shares = shares_of(budget, plan(budget), {1: 2.0, 2: 99, 3: 0, 4: math.inf})
    assert shares.tolist() == [1.0, 1.0, 0.0, 1.0]


def test_smaller_budgets_have_smaller_weights() -> None:
    budget = Budget(2.0)
    shares = shares_of(budget, plan(budget), {1: 0.1, 2: 0.5, 3: 1.0, 4: 1.9})
    assert (np.diff(shares) > 0).all()


def test_people_who_are_not_there_are_passed_over() -> None:
    budget = Budget(2.0)
    assert shares_of(budget, plan(budget), {77: 0.1, "eve": 0.0}).tolist() == [1.0] * 4
    assert shares_of(budget, plan(budget), {}).tolist() == [1.0] * 4
    assert shares_of(budget, plan(budget), None).tolist() == [1.0] * 4


@pytest.mark.parametrize("epsilon", [math.nan, -1.0, -math.inf, "1", True, None])
@pytest.mark.parametrize("user", [1, 77])
def test_what_is_no_epsilon_is_refused(epsilon: float, user: int) -> None:
    budget = Budget(2.0)
    with pytest.raises(InvalidArgument, match="from 0 on") as caught:
        shares_of(budget, plan(budget), {user: epsilon})
    assert "77" not in str(caught.value)  # a message does not say who it was
