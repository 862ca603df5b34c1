"""The searched constants: the package has the values that the recorded searches chose."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_the_package_has_what_the_search_chose(feedback: str) -> None:
    searched = runpy.run_path(str(ROOT / "benchmarks" / "constants.py"))
    constants = (*searched["CONSTANTS"][feedback], *searched["CONSTANTS_LAST"][feedback])
    found = json.loads((ROOT / "docs" / "benchmarks" / f"defaults-{feedback}.json").read_text())["chosen"]
    assert json.loads(json.dumps(searched["current_values"](constants))) == found
