"""Figure 1: counting, and what is said of the counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.figure import Run
from experiments.figure import make as make_figure
from experiments.liu2015.popularity import rows_of, slope_of

from dpmf.ratings import Ratings
from dpmf.ratings.catalogue import CATALOGUE
from dpmf.ratings.synthetic import make
from experiments.liu2015 import FIGURES


def test_every_item_and_every_rating_is_counted_once() -> None:
    counts = np.array([0, 1, 1, 2, 3, 5, 6, 100, 101, 4_000])
    rows = rows_of(counts, synthetic=False)
    assert [(row["from"], row["to"], row["items"]) for row in rows[:4]] == [(1, 1, 2), (2, 2, 1), (3, 5, 2), (6, 10, 1)]
    assert (sum(row["items"] for row in rows), sum(row["ratings"] for row in rows)) == (9, 4_219)
    assert rows[0]["items_with_half"] == 1


def test_the_exponent_of_a_power_law_is_found() -> None:
    counts = np.repeat(np.arange(1, 2000), np.maximum(1e7 / np.arange(1, 2000) ** 2.0, 1).astype(int))
    slope, explained = slope_of(rows_of(counts, synthetic=False))
    assert slope == pytest.approx(-2, abs=0.1)
    assert explained > 0.99


@pytest.mark.parametrize(("n_rare", "n_popular", "held"), [(500, 10, True), (5, 10, False), (500, 400, False)])
def test_both_ends_of_the_distribution_are_judged(n_rare: int, n_popular: int, held: bool) -> None:
    counts = np.array([10] * n_rare + [200] * 300 + [100_000] * n_popular)
    assert FIGURES["figure1"].judge(rows_of(counts, synthetic=False)).held is held
    verdict = FIGURES["figure1"].judge(rows_of(counts, synthetic=True))
    assert verdict.held is None
    assert "synthetic" in verdict.sentence


@pytest.mark.parametrize("data", ["made", "yahoo-music"])
def test_it_is_made_of_real_and_synthetic_ratings(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ratings, "read", lambda data: make(60, 40, mean_ratings=10))
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("experiments.liu2015.popularity._SMALL", 10_000)
    make_figure(FIGURES["figure1"], Run(data, tmp_path / "figure1", n_threads=1), "")
    first = (tmp_path / "figure1.csv").read_text().splitlines()[1].split(",")
    assert first[4] == str(data == "yahoo-music")
    if data == "yahoo-music":
        assert int(first[6]) == CATALOGUE[data].ratings // 10_000
    assert (tmp_path / "figure1.png").stat().st_size > 10_000
