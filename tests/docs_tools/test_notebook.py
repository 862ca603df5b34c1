"""The notebooks of the documentation run, and were stored with what their cells show."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from docs_tools.notebook import main, outputs_of, run

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").glob("*.ipynb"))


def kinds(cell: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return what a cell shows, without the figures in it, which noise changes."""
    return [(output["output_type"], sorted(output.get("data", {}))) for output in cell["outputs"]]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_is_stored(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    fresh = deepcopy(stored)
    run(fresh)
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in stored["cells"]}) == len(stored["cells"])
    for before, now in zip(stored["cells"], fresh["cells"], strict=True):
        if before["cell_type"] == "code":
            assert kinds(before) == kinds(now), "".join(before["source"])
            assert before["execution_count"] == now["execution_count"]


def test_there_is_one() -> None:
    assert "tour.ipynb" in [path.name for path in NOTEBOOKS]


def test_a_cell_shows_what_it_prints_and_its_last_value(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    printed, value = outputs_of("x = 'a'\nprint(x)\nx * 2", names)
    assert (printed["text"], value["data"]) == (["a\n"], {"text/plain": ["'aa'"]})
    assert outputs_of("y = 1", names) == []
    assert outputs_of("None", names) == []
    path = tmp_path / "one.ipynb"
    cell = {"cell_type": "code", "source": ["6 * 7"], "outputs": [], "execution_count": None}
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# One"]}, cell]}))
    main([str(path)])
    assert json.loads(path.read_text())["cells"][1]["outputs"][0]["data"] == {"text/plain": ["42"]}
