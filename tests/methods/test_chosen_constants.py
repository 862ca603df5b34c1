"""The constants of the private methods are those that the search found and the documentation shows."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

SEARCHES = Path(__file__).parents[2] / "docs" / "benchmarks"


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_constants_are_those_that_the_search_chose(feedback: str) -> None:
    chosen = json.loads((SEARCHES / f"defaults-{feedback}.json").read_text())["chosen"]
    assert len(chosen) > 10
    for place, value in chosen.items():
        module, _, name = place.rpartition(".")
        here = getattr(import_module(module), name)
        assert json.loads(json.dumps(here)) == value, place
