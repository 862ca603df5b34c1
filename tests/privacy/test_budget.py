"""A budget is finite or says so, and knows its unit and its neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.budget import delta_warning


def test_defaults_are_the_honest_ones() -> None:
    budget = Budget(2)
    assert (budget.epsilon, budget.delta, budget.unit, budget.neighbours) == (2.0, 1e-6, "user", "add-remove")
    assert budget.is_finite
    assert not Budget(math.inf).is_finite


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"epsilon": 0}, "epsilon=0 should be above 0"), ({"epsilon": -1.5}, "epsilon=-1.5"),
        ({"epsilon": math.nan}, "epsilon=nan"), ({"epsilon": "1"}, "epsilon='1' should be a number"),
        ({"epsilon": True}, "epsilon=True"), ({"epsilon": 10**400}, "epsilon has hundreds of digits"),
        ({"epsilon": 1, "delta": 0}, "delta=0 should be above 0 and below 1"),
        ({"epsilon": 1, "delta": 0.5}, "delta=0.5 protects nobody"),
        ({"epsilon": 1, "delta": 1}, "delta=1"), ({"epsilon": 1, "delta": math.nan}, "delta=nan"),
        ({"epsilon": 1, "unit": "item"}, "unit='item' is unknown: it should be user or rating"),
        ({"epsilon": 1, "neighbours": "near"}, "neighbours='near' is unknown: it should be add-remove or replace"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        Budget(**arguments)


def test_a_delta_of_a_half_has_to_be_asked_for_by_name() -> None:
    assert Budget(1.0, 0.5, allow_large_delta=True) == Budget.recorded(1.0, 0.5, "user", "add-remove")
    assert replace(Budget(1.0, 0.5, allow_large_delta=True), epsilon=2.0).delta == 0.5
    with pytest.raises(InvalidArgument, match="delta=1 should be"):
        Budget(1.0, 1.0, allow_large_delta=True)


def test_a_delta_for_which_somebody_could_be_published_is_warned_about() -> None:
    assert delta_warning(None) is None
    assert delta_warning(1e-4) is None
    assert "one person in 909" in str(delta_warning(0.0011))
    assert delta_warning(1e-6, users_about=1_000_000) is None
    assert "far below 5e-07" in str(delta_warning(1e-6, users_about=2_000_000))
    assert "one person in 1 " in str(delta_warning(0.9))


def test_a_guarantee_says_so_where_it_is_printed() -> None:
    events = [GaussianEvent("item sums", 5.0, 1, 40)]
    for delta, warned in ((1e-6, False), (0.01, True)):
        guarantee = Guarantee.certified_by(Budget(1.0, delta), events, releases=["item factors"])
        assert ("WARNING: delta=0.01 is too large" in str(guarantee)) == warned
        assert (guarantee.warning is not None) == warned
