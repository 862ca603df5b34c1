"""Fake accounts that push an item: how they are generated, and how their effect is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.figure import Run
from experiments.figure import make as make_figure
from experiments.liu2015.accounts import KINDS, of_people, targets_of, with_accounts
from experiments.liu2015.shilling import effect

from dpmf import SGD
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make
from experiments.liu2015 import FIGURES


@pytest.fixture(scope="module")
def honest() -> Ratings:
    return make(200, 60, mean_ratings=12)


@pytest.mark.parametrize("kind", KINDS)
def test_accounts_push_the_target_and_leave_people_as_they_are(honest: Ratings, kind: str) -> None:
    pushed = with_accounts(honest, target=9, n_accounts=20, kind=kind, seed=1)
    end = len(honest)
    assert pushed.n_users == honest.n_users + 20
    assert np.array_equal(pushed.indptr[: honest.n_users + 1], honest.indptr)
    assert np.array_equal(pushed.items[:end], honest.items)
    assert np.array_equal(pushed.values[:end], honest.values)
    assert len(set(pushed.user_ids.array.tolist())) == pushed.n_users
    for place in range(honest.n_users, pushed.n_users):
        items, values = pushed.of_user(place)
        assert values[items == 9].tolist() == [5]
        assert (np.diff(items) > 0).all()
        assert len(items) == 6 if kind == "short" else len(items) >= 2
        assert set(values.tolist()) <= {1, 2, 3, 4, 5}
    again = with_accounts(honest, target=9, n_accounts=20, kind=kind, seed=1)
    assert np.array_equal(again.items, pushed.items)


def test_ordinary_accounts_look_like_people(honest: Ratings) -> None:
    pushed = with_accounts(honest, target=9, n_accounts=400, kind="ordinary", seed=1)
    lengths = np.diff(pushed.indptr)
    assert lengths[200:].mean() == pytest.approx(lengths[:200].mean(), rel=0.15)
    counts = np.bincount(honest.items, minlength=60)
    means = np.bincount(honest.items, honest.values, 60) / np.maximum(counts, 1)
    items, values = pushed.items[len(honest) :], pushed.values[len(honest) :]
    others = items != 9
    assert values[others].mean() == pytest.approx(means[items[others]].mean(), abs=0.1)
    assert counts[items[others]].mean() > 1.05 * counts.mean()  # popular items more often


def test_ids_that_are_numbers_stay_numbers() -> None:
    honest = Ratings.of([7, 7, 3], [1, 2, 1], [5, 3, 4], scale=(1, 5))
    pushed = with_accounts(honest, target=0, n_accounts=2, kind="short", seed=0)
    assert pushed.user_ids.array.tolist() == [3, 7, 8, 9]


def test_targets_are_neither_the_rarest_nor_popular(honest: Ratings) -> None:
    counts = np.bincount(honest.items, minlength=60)
    chosen = counts[targets_of(honest, 0)]
    assert len(set(targets_of(honest, 0).tolist())) == 5
    assert (np.diff(chosen) >= 0).all()
    assert np.quantile(counts, 0.15) <= chosen.min() <= chosen.max() <= np.quantile(counts, 0.75)


def test_removing_accounts_keeps_the_predictions_of_users(honest: Ratings) -> None:
    pushed = with_accounts(honest, target=9, n_accounts=20, kind="short", seed=1)
    model = SGD(n_factors=2, n_epochs=2).fit(pushed, n_threads=1)
    alone = of_people(model, honest)
    someone = honest.user_ids.array[17]
    assert alone.user_ids == honest.user_ids
    assert alone.recommend(someone, k=3) == model.recommend(someone, k=3)


def _rows(shifts: dict[tuple[str, float | None], float]) -> list[dict[str, Any]]:
    return [
        {
            "method": method,
            "epsilon": epsilon,
            "draw": draw,
            "accounts": accounts,
            "target": target,
            "rmse": 0.9,
            "accounts_made_up": 60,
            "predicted": 3 + target / 10 + shift * (accounts != "none"),
            "in_top": 0.1,
        }
        for (method, epsilon), shift in shifts.items()
        for draw in range(2)
        for accounts in ("none", *KINDS)
        for target in range(5)
    ]


@pytest.mark.parametrize(("shift", "held"), [(0.2, True), (0.4, False)])
def test_robust_models_shift_at_most_half_as_far(shift: float, held: bool) -> None:
    rows = _rows(
        {("SGD", None): 0.5, ("plain ALS", None): 0.6, ("certified ALS", 5.0): 0.1, ("certified ALS", 1.0): shift}
    )
    assert effect(rows, "plain ALS", None, "short").shift == pytest.approx(0.6)
    verdict = FIGURES["pushing"].judge(rows)
    assert verdict.held is held
    assert f"{shift:+.2f} (ε = 1)" in verdict.sentence
    assert "60 together have 60 ε, at ε = 1 a factor of e^60" in verdict.sentence


def test_a_figure_is_made_of_all_methods_and_accounts(
    honest: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ratings, "read", lambda data: honest)
    monkeypatch.setattr("experiments.liu2015.shilling._EPSILONS", (5.0,))
    monkeypatch.setattr("experiments.liu2015.shilling._DRAWS", 1)
    make_figure(FIGURES["pushing"], Run("made", tmp_path / "pushing", n_threads=1), "")
    assert len((tmp_path / "pushing.csv").read_text().splitlines()) == 1 + 3 * 3 * 5
    assert (tmp_path / "pushing.png").stat().st_size > 10_000
