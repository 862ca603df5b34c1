"""A budget is finite or says so, and knows its unit and its neighbours."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget


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
        ({"epsilon": 1, "delta": 0}, "delta=0 should be between 0 and 1"),
        ({"epsilon": 1, "delta": 1}, "delta=1"), ({"epsilon": 1, "delta": math.nan}, "delta=nan"),
        ({"epsilon": 1, "unit": "item"}, "unit='item' is unknown: it should be user or rating"),
        ({"epsilon": 1, "neighbours": "near"}, "neighbours='near' is unknown: it should be add-remove or replace"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        Budget(**arguments)
