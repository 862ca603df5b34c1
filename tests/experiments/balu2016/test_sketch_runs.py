"""The three parts, regular factorization beside a wide sketch, the search, and every figure on synthetic ratings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.balu2016.dense import dense_block
from experiments.balu2016.runs import Parts, Trial
from experiments.figure import Row, Run, make

from dpmf import Ratings
from dpmf.ratings.synthetic import make as make_ratings
from experiments.balu2016 import FIGURES, runs


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make_ratings(400, 60, mean_ratings=25)


@pytest.fixture
def run(ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(Run, "ratings", lambda run: ratings)
    return Run("made", tmp_path / "figure-made", n_threads=1)


def test_the_parts_are_four_fifths_and_two_tenths_without_rare_users_and_items(run: Run, ratings: Ratings) -> None:
    parts = Parts.of(run)
    assert len(parts.train) == pytest.approx(0.8 * len(ratings), rel=0.03)
    users, items = np.diff(parts.train.indptr), np.bincount(parts.train.items, minlength=ratings.n_items)
    for part in (parts.validation, parts.test):
        assert 0.04 * len(ratings) < len(part) < 0.11 * len(ratings)
        assert users[part.users].min() >= 10
        assert items[part.items].min() >= 10
    pairs = [set(zip(part.users, part.items, strict=True)) for part in (parts.train, parts.validation, parts.test)]
    assert not pairs[0] & pairs[1]
    assert not pairs[1] & pairs[2]
    assert not pairs[0] & pairs[2]


def test_a_very_wide_sketch_does_what_regular_factorization_does(run: Run) -> None:
    parts = Parts.of(run)
    trials = [Trial(depth, 8, gain, rate=0.05, penalty=0.02) for depth, gain in ((0, 1e-4), (1, 1e-4), (1, 8.0))]
    regular, wide, narrow = (parts.fit(trial).release.item_factors for trial in trials)
    np.testing.assert_allclose(wide, regular, atol=0.002)
    assert np.abs(narrow - regular).max() > 0.1


def test_a_step_of_regular_factorization_is_that_of_the_formula() -> None:
    U, V = np.array([[0.5, -1.0]], np.float32), np.array([[2.0, 1.0]], np.float32)
    one = np.zeros(1, np.uint8)
    known = np.full(1, 0.25, np.float32)
    dense_block(
        one, one, one, np.array([3.0], np.float32), one, one, known, known, U, V, np.float32(0.1), np.float32(0.5)
    )
    e = 3.0 - 0.5 - (0.5 * 2 - 1.0)
    np.testing.assert_allclose(U, [[0.5 + 0.1 * (e * 2 - 0.25), -1 + 0.1 * (e + 0.5)]], rtol=1e-6)
    np.testing.assert_allclose(V, [[2 + 0.1 * (e * 0.5 - 1), 1 + 0.1 * (-e - 0.5)]], rtol=1e-6)


def test_settings_are_those_with_the_least_error_on_the_validation_part(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(parts: Parts, trial: Trial) -> float:
        return abs(math.log(trial.rate / 0.03)) + abs(math.log(trial.penalty / 0.01))

    monkeypatch.setattr(Parts, "loss", loss)
    found = runs.searched(run, Parts.of(run), Trial(4, 16), penalty=True)
    assert found.rate == pytest.approx(0.03)
    assert found.penalty == pytest.approx(0.01, rel=0.3)  # the nearest that is tried
    kept = runs.searched(run, Parts.of(run), Trial(4, 16), penalty=False)
    assert kept.penalty == Trial(4, 16).penalty


def test_a_run_that_diverges_has_an_infinite_error(run: Run) -> None:
    for depth in (0, 4):
        trial = Trial(depth, 8, rate=50.0)
        assert Parts.of(run).loss(trial) == math.inf
        assert Parts.of(run).figures(trial)["rmse"] == math.inf


def test_every_figure_is_made_and_the_views_of_one_run_share_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[Trial] = []

    def figures(parts: Parts, trial: Trial) -> dict[str, float]:
        trials.append(trial)
        return {"rmse": 1 + trial.penalty, "kld": 0.1, "rmse_top_users": 0.9, "kld_top_users": 0.05}

    monkeypatch.setattr(Parts, "loss", lambda parts, trial: trial.rate + trial.penalty)
    monkeypatch.setattr(Parts, "figures", figures)
    counts = {}
    for name, figure in FIGURES.items():
        trials.clear()
        make(figure, replace(run, out=run.out.with_name(f"{name}-made")), "")
        counts[name] = len(trials)
    assert counts == {"figure1": 21, "figure2": 9, "figure3": 18, "figure4": 0, "topusers": 0}
    rows: list[Row] = run.beside("figure3")
    assert {(row["gain"], row["threshold"]) for row in rows if not row["gain"]} == {(0, math.inf)}
