"""Figures 2, 3 and 5: measurements on synthetic ratings without peers, and verdicts on synthetic times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.figure import Row, Run, Verdict
from experiments.figure import make as make_figure
from experiments.liu2015.curves import CURVES, Epoch, curve_of, libmf_curve, sgd_curve, sgld_curve
from experiments.liu2015.data import HOLDOUT, PLAIN, Parts

from dpmf import SGD, SGLD
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make
from experiments.liu2015 import FIGURES, cores, curves, runtime, totals


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    ratings = make(120, 60, mean_ratings=30)
    monkeypatch.setattr(Ratings, "read", lambda data: ratings)
    return Parts.of(Run("made", tmp_path / "figure", n_threads=1, seed=3))


def test_descent_is_measured_on_the_common_test_part(parts: Parts) -> None:
    curve = sgd_curve(parts, 4, 3)
    train, test = parts.ratings.split(HOLDOUT, seed=3)
    model = SGD(n_factors=4, n_epochs=3, seed=3).chosen_for(parts.ratings).fit(train, n_threads=1)
    assert len(curve) == 3
    assert min(epoch.seconds for epoch in curve) > 0
    assert curve[-1].rmse == pytest.approx(rmse(prediction_errors(model, test)), abs=1e-6)


def test_draws_are_measured_in_the_units_of_the_ratings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    narrow = make(120, 60, mean_ratings=30)
    stars, errors = {1.0: narrow}, {}
    values = 20 * (narrow.values - 1)
    ids = narrow.user_ids.array[narrow.users], narrow.catalogue.ids.array[narrow.items]
    stars[20.0] = Ratings.of(*ids, values, scale=(0, 80), items=narrow.catalogue)
    for width, ratings in stars.items():
        monkeypatch.setattr(Ratings, "read", lambda data, ratings=ratings: ratings)
        curve = sgld_curve(Parts.of(Run("made", tmp_path / "figure", n_threads=1)), 4, 4)
        errors[width] = [epoch.rmse for epoch in curve]
        assert [epoch.average_rmse is None for epoch in curve] == [True, True, False, False]
        assert curve[2].average_rmse == curve[2].rmse
    assert np.allclose(errors[20.0], 20 * np.array(errors[1.0]), rtol=1e-3)


def test_sampling_takes_the_steps_of_the_method(parts: Parts) -> None:
    history = SGLD(n_factors=4, n_epochs=2, budget=PLAIN, seed=3).fit(parts.train, n_threads=1).history
    seen: list[float] = []
    advance = SGLD.advance

    def spied(self: SGLD, *arguments: Any) -> Any:
        seen.append((record := advance(self, *arguments)).train_rmse)
        return record

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SGLD, "advance", spied)
        sgld_curve(parts, 4, 2)
    assert seen[-2:] == [record.train_rmse for record in history]


def test_a_peer_is_given_both_parts_and_its_first_iteration_is_an_average(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(peer: str, arguments: list[str]) -> Any:
        folder = Path(arguments[2])
        sizes = [len(np.load(folder / f"{name}.npy")) for name in ("train", "test")]
        assert sizes == [len(parts.train), len(parts.test)]
        assert arguments[3:] == ["8", "1", "5"]
        return [[7.0, 1.0], [8.0, 0.9], [11.0, 0.85]]

    monkeypatch.setattr(curves, "ask", ask)
    assert libmf_curve(parts, 8, 5) == [Epoch(2.0, 1.0), Epoch(1.0, 0.9), Epoch(3.0, 0.85)]
    monkeypatch.setattr(curves, "ask", lambda peer, arguments: None)
    assert libmf_curve(parts, 8, 5) is None
    assert curve_of([(3.0, 1.0)]) == [Epoch(3.0, 1.0)]


@pytest.mark.parametrize(("figure", "n_rows"), [("figure2", 2 * 2 * 15), ("figure5", 3 * 3)])
def test_a_figure_of_times_is_made_without_a_peer(
    figure: str, n_rows: int, parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "ask", lambda peer, arguments: None)
    monkeypatch.setattr(runtime, "_FACTORS", {False: (2, 4)})
    monkeypatch.setattr(totals, "_FACTORS", (2, 4, 8))
    verdict = make_figure(FIGURES[figure], Run("made", tmp_path / figure, n_threads=1), "")
    assert verdict.held is None
    assert verdict.sentence.endswith("There was no peer to compare with.")
    assert len((tmp_path / f"{figure}.csv").read_text().splitlines()) == 1 + n_rows
    assert (tmp_path / f"{figure}.png").stat().st_size > 10_000


def _judge_courses(errors: dict[str, list[float]], seconds: dict[str, float]) -> Verdict:
    rows = [
        {
            "factors": 16,
            "method": method,
            "epoch": epoch,
            "seconds": epoch * seconds[method],
            "rmse": error,
            "average_rmse": error,
        }
        for method in CURVES
        for epoch, error in enumerate(errors[method], start=1)
    ]
    return FIGURES["figure2"].judge(rows)


@pytest.mark.parametrize(
    ("last", "seconds", "sampling", "held"),
    [
        (0.80, 5.0, 2.0, True),
        (0.8495, 5.0, 2.0, False),
        (0.86, 5.0, 2.0, False),
        (0.80, 1.2, 1.4, False),
        (0.80, 5.0, 9.0, False),
    ],
)
def test_curves_are_judged_by_error_and_time(last: float, seconds: float, sampling: float, held: bool) -> None:
    errors = {"SGD": [0.9, last], "SGLD": [0.95, 0.9], "LIBMF": [0.92, 0.85]}
    assert _judge_courses(errors, {"SGD": 1.0, "SGLD": sampling, "LIBMF": seconds}).held is held


def test_times_are_compared_at_the_error_both_reach() -> None:
    errors = {"SGD": [0.9, 0.8, 0.7], "SGLD": [0.9] * 3, "LIBMF": [0.95, 0.8, 0.9]}
    verdict = _judge_courses(errors, {"SGD": 1.0, "SGLD": 2.0, "LIBMF": 7.0})
    assert "0.8000 takes SGD 2 s and LIBMF 14, 7.0 times as long" in verdict.sentence


def _times(ratings: int, **seconds: float | None) -> list[Row]:
    return [{"factors": 128, "method": method, "ratings": ratings, "seconds": time} for method, time in seconds.items()]


@pytest.mark.parametrize(
    ("sgd", "sgld", "libmf", "held"),
    [(10.0, 15.0, 25.0, True), (10.0, 15.0, 19.0, False), (10.0, 40.0, 25.0, False), (10.0, 15.0, None, None)],
)
def test_totals_are_judged_against_the_peer(sgd: float, sgld: float, libmf: float | None, held: bool | None) -> None:
    verdict = FIGURES["figure5"].judge(_times(1000, SGD=sgd, SGLD=sgld, LIBMF=libmf))
    assert verdict.held is held
    assert "Published" not in verdict.sentence
    assert "Published" in FIGURES["figure5"].judge(_times(99_000_000, SGD=sgd, SGLD=sgld, LIBMF=libmf)).sentence


def _cores(threads: int, gain: float, limit: float) -> list[Row]:
    speeds = dict.fromkeys(cores._KEPT, 1000000.0)
    return [
        {
            "threads": threads,
            "made_up": True,
            "users": 9,
            "items": 8,
            "ratings": 7,
            **speeds,
            "over_one_thread": gain,
            "roofline_over_one_thread": limit,
        }
    ]


@pytest.mark.parametrize(
    ("threads", "gain", "limit", "held"),
    [(2, 1.8, 1.9, True), (2, 1.3, 1.9, False), (2, 0.9, 0.9, False), (1, 1, 1, None)],
)
def test_cores_are_judged_against_the_limit_of_the_machine(
    threads: int, gain: float, limit: float, held: bool | None
) -> None:
    verdict = FIGURES["figure3"].judge(_cores(threads, gain, limit))
    assert verdict.held is held
    assert verdict.sentence.endswith("7 ratings, synthetic.")


def test_the_figure_of_cores_uses_synthetic_ratings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bench(ratings: Ratings, factors: list[int], **options: Any) -> list[Row]:
        assert (ratings.n_items, factors, options["peers"]) == (62, [2048], False)
        return [dict.fromkeys(cores._KEPT, 1000000.0)]

    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "nothing"))
    monkeypatch.setitem(cores._PART, False, 10_000)
    monkeypatch.setattr(cores, "bench", bench)
    make_figure(FIGURES["figure3"], Run("yahoo-music", tmp_path / "figure3", n_threads=4), "")
    assert [line.split(",")[0] for line in (tmp_path / "figure3.csv").read_text().splitlines()] == ["threads", "2", "4"]
    assert (tmp_path / "figure3.png").stat().st_size > 10_000
