"""The constants of certified least squares are those that the search found and the documentation shows."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dpmf.methods.als import defaults, plan, questions
from dpmf.methods.als.defaults import FACTORS, IMPLICIT_FACTORS, private_defaults
from dpmf.privacy import Budget

SEARCHES = Path(__file__).parents[3] / "docs" / "benchmarks"
USUAL = private_defaults(Budget(1.0), implicit=False)
ELSEWHERE: dict[str, Any] = {  # what has another place, or another form, than when the search was made
    "certified._CLIP": questions.CLIP,
    "plan._FACTORS": (FACTORS.least, FACTORS.most),
    "plan._FACTOR_POINT": FACTORS.point,
    "plan._NO_FACTORS": FACTORS.nothing,
    "plan._ROUNDS": USUAL["n_epochs"],
    "plan._USER_RIDGE": USUAL["regularization"],
    "implicit_plan._FACTORS": (IMPLICIT_FACTORS.least, IMPLICIT_FACTORS.most),
    "implicit_plan._FACTOR_POINT": IMPLICIT_FACTORS.point,
    "implicit_plan._USER_SHARE": plan._SHARES[plan.USERS],
    "implicit_plan._MOMENT_SHARE": plan._IMPLICIT_MOMENT_SHARE,
    "implicit_plan._HEIGHTS": defaults._IMPLICIT_HEIGHTS,
    "implicit_plan._FORGET": import_module("dpmf.methods.als.implicit_certified")._FORGET,
}


def constant(place: str) -> Any:
    """Return a constant by the name that it had when the search was made."""
    module, _, name = place.removeprefix("dpmf.methods.als.").rpartition(".")
    if f"{module}.{name}" in ELSEWHERE:
        return ELSEWHERE[f"{module}.{name}"]
    if hasattr(defaults, name):
        return getattr(defaults, name)
    return getattr(import_module(f"dpmf.methods.als.{module}"), name)


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_constants_are_those_that_the_search_chose(feedback: str) -> None:
    chosen = json.loads((SEARCHES / f"defaults-{feedback}.json").read_text())["chosen"]
    assert len(chosen) > 10
    for place, value in chosen.items():
        assert json.loads(json.dumps(constant(place))) == value, place
