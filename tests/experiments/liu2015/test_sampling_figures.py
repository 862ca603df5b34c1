"""Figures of Liu, Wang and Smola: measurements on synthetic ratings, and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from experiments.figure import Run
from experiments.figure import make as make_figure

from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make
from experiments.liu2015 import FIGURES


@pytest.mark.parametrize(("figure", "n_rows"), [("figure4", 5), ("figure6", 15), ("figure7", 16)])
def test_a_figure_is_made_of_all_its_points(
    figure: str, n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratings = make(40, 20, mean_ratings=10)
    monkeypatch.setattr(Ratings, "read", lambda data: ratings)
    make_figure(FIGURES[figure], Run("made", tmp_path / figure, n_threads=1), "")
    rows = (tmp_path / f"{figure}.csv").read_text().splitlines()[1:]
    assert len(set(rows)) == n_rows
    assert (tmp_path / f"{figure}.png").stat().st_size > 10_000


def rows_of(*names: str, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(("large", "held"), [(0.801, True), (0.81, False)])
def test_a_table_is_judged_by_how_near_it_is_to_fresh_numbers(large: float, held: bool) -> None:
    rows = rows_of("size", "rmse", rows=[(100, 0.9), (10_000, 0.8), (65_536, large), (0, 0.8)])
    verdict = FIGURES["figure4"].judge(rows)
    assert verdict.held is held
    assert "one of 100 is 0.1000 worse" in verdict.sentence


@pytest.mark.parametrize(("last", "average", "held"), [(0.85, 0.8, True), (0.82, 0.8, False), (0.85, 0.84, False)])
def test_epochs_are_judged_by_overfitting_and_by_averages(last: float, average: float, held: bool) -> None:
    rows = rows_of(
        "epochs",
        "kind",
        "rmse",
        rows=[
            (2, "descent", 0.9),
            (5, "descent", 0.83),
            (10, "descent", last),
            (2, "average of draws", 0.86),
            (5, "average of draws", 0.85),
            (10, "average of draws", average),
        ],
    )
    assert FIGURES["figure6"].judge(rows).held is held


@pytest.mark.parametrize(("at_250", "held"), [(0.88, True), (0.95, False)])
def test_a_claim_is_judged_by_what_it_loses_at_250(at_250: float, held: bool) -> None:
    claims = [("claim", 1.0, 25.0, 1.0), ("claim", 1.0, 250.0, at_250), ("claim", 1.0, 1e4, 0.85)]
    rows = rows_of("kind", "rho", "epsilon", "rmse", rows=[*claims, ("certified ALS", None, 1.0, 0.9)])
    verdict = FIGURES["figure7"].judge(rows)
    assert verdict.held is held
    assert "certified ALS has 0.9000 at 1, proven" in verdict.sentence
