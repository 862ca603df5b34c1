"""Verdicts on synthetic rows, and every figure of the paper on synthetic ratings from end to end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from experiments.figure import Row, Run, make
from experiments.hua2015.errors import BOUNDS, column
from experiments.hua2015.runs import DIVIDED, NONE, WHOLE
from experiments.hua2015.statements import STATED, from_on, verdict

from dpmf import Ratings
from dpmf.ratings.synthetic import make as make_ratings
from experiments.hua2015 import FIGURES, churn, distributions, heldout, increases, measurements, protocol


def _row(scenario: str, epsilon: float, iterations: int, noise: str = WHOLE, **values: Any) -> Row:
    return {
        "data": "MovieLens",
        "draw": 0,
        "scenario": scenario,
        "epsilon": epsilon,
        "noise": noise,
        "come": 0.005,
        "leave": 0.01,
        "iterations": iterations,
        "mean_error": 0.7,
        "increase": 0.0,
        "clamped_increase": 0.0,
        **values,
    }


def _increases(first: float, second: float, third: float) -> list[Row]:
    """Return rows with these increases where something is stated, and none at a large ε."""
    rows = [_row("plain", math.inf, 100, NONE)]
    for scenario, increase in (("S1", first), ("S2", second), ("S3", third)):
        stated = STATED["MovieLens", scenario]
        rows += [
            _row(scenario, stated.epsilon, stated.iterations, increase=increase, clamped_increase=increase / 2),
            _row(scenario, 100.0, stated.iterations, increase=0.001),
            _row(scenario, stated.epsilon, stated.iterations, DIVIDED, increase=0.002),
            _row(scenario, math.inf, stated.iterations, NONE, increase=-0.003),
        ]
    return rows


def test_increases_hold_if_all_are_as_stated() -> None:
    verdict = increases.judge(_increases(0.0, -0.1, 0.01))
    assert verdict.held is True
    assert "S1 at ε = 0.05 after 40 iterations: 0.000" in verdict.sentence
    assert "reached" not in verdict.sentence


def test_larger_increases_do_not_hold() -> None:
    verdict = increases.judge(_increases(0.0, 40.0, 0.01))
    assert verdict.held is False
    assert "S2 at ε = 0.15 after 100 iterations: 40 (20.000 clamped), where about 0 is stated" in verdict.sentence
    assert "reached from ε = 100 on (composed: 10,100)" in verdict.sentence
    assert "0.002 if noise is divided by the number of ratings, -0.003 without noise" in verdict.sentence


def test_increases_after_fewer_rounds_are_inconclusive() -> None:
    rows = [{**row, "iterations": min(row["iterations"], 1000)} for row in _increases(0.0, 0.0, 5.0)]
    verdict = increases.judge(rows)
    assert verdict.held is None
    assert "S3 at ε = 0.05 after 10,000 rounds was not run" in verdict.sentence


def test_an_epsilon_counts_if_all_larger_ones_do_too() -> None:
    rows = [{"epsilon": epsilon, "y": y} for epsilon, y in ((1, 0.0), (10, 5.0), (100, 0.1), (1000, 0.0))]
    assert from_on(rows, lambda row: float(row["y"]), 0.1) == 100
    assert from_on(rows, lambda row: float(row["y"]), -1.0) is None
    assert from_on(rows, lambda row: float(row["y"]), 9.0) == 1


def test_a_finding_that_does_not_hold_outweighs_an_inconclusive_one() -> None:
    assert verdict([(True, "a"), (True, "b")]).held is True
    assert verdict([(True, "a"), (None, "b")]).held is None
    assert verdict([(None, "a"), (False, "b")]).held is False


def _within(level: float) -> dict[str, Any]:
    return {column(bound): level for bound in BOUNDS}


@pytest.mark.parametrize(("level", "held"), [(0.96, True), (0.9, False)])
def test_distributions_hold_if_nowhere_far_below(level: float, held: bool) -> None:
    rows = [
        _row("plain", math.inf, 100, NONE, **_within(1.0)),
        _row("S3", 0.05, 10_000, **_within(level)),
        _row("S3", 1000.0, 10_000, **_within(0.99)),
    ]
    found = distributions.CHANGING.judge(rows)
    assert found.held is held
    assert "below (mean increase 0.000)" in found.sentence
    assert ("from ε = 1000 on (composed: 10,001,000)" in found.sentence) is not held
    assert distributions.CHANGING.judge(rows[:1] + rows[2:]).held is None


@pytest.mark.parametrize(("trusted", "held"), [(0.9, False), (0.55, True)])
def test_s2_is_compared_with_s1(trusted: float, held: bool) -> None:
    rows = [
        _row("plain", math.inf, 100, NONE, **_within(1.0)),
        _row("S1", 0.15, 100, **_within(trusted)),
        _row("S2", 0.15, 100, **_within(0.5)),
    ]
    assert distributions.UNTRUSTED.judge(rows).held is held


def _probabilities(coming: tuple[float, ...], leaving: tuple[float, ...]) -> list[Row]:
    rows = [_row("plain", math.inf, 100, NONE)]
    for noise in (WHOLE, NONE, DIVIDED):
        for come, increase in zip((0.005, 0.02), coming, strict=True):
            rows.append(_row("S3", 0.05, 10_000, noise, come=come, increase=increase))
        for leave, increase in zip((0.005, 0.02), leaving, strict=True):
            rows.append(_row("S3", 0.05, 10_000, noise, leave=leave, increase=increase))
    return rows


@pytest.mark.parametrize(
    ("coming", "leaving", "held"),
    [
        ((0.5, 0.2), (0.5, 0.45), True),
        ((0.2, 0.5), (0.5, 0.45), False),
        ((0.5, 0.4), (0.5, 0.9), False),
        ((0.5, 0.495), (0.5, 0.505), None),
    ],
)
def test_increases_by_probability_are_judged(
    coming: tuple[float, ...], leaving: tuple[float, ...], held: bool | None
) -> None:
    found = churn.judge(_probabilities(coming, leaving))
    assert found.held is held
    assert "with the noise claimed from" in found.sentence


@pytest.mark.parametrize(("missing", "held"), [(DIVIDED, True), (NONE, None), (WHOLE, None)])
def test_probabilities_need_noise_and_none(missing: str, held: bool | None) -> None:
    rows = [
        row for row in _probabilities((0.5, 0.2), (0.5, 0.45)) if row["noise"] != missing or "plain" in row.values()
    ]
    assert churn.judge(rows).held is held


@pytest.mark.parametrize(("error", "held"), [(1.01, True), (1.3, False)])
def test_held_out_errors_are_compared_with_plain_factorization(error: float, held: bool) -> None:
    rows = [_row("plain", math.inf, 100, NONE, clamped_rmse=1.0, baseline_rmse=1.1)]
    for scenario in ("S1", "S2", "S3"):
        stated = STATED["MovieLens", scenario]
        rows.append(_row(scenario, stated.epsilon, stated.iterations, clamped_rmse=error, baseline_rmse=1.1))
    found = heldout.judge(rows)
    assert found.held is held
    assert "Plain factorization has 1.000, and the mean of one's own ratings 1.100." in found.sentence


@pytest.mark.parametrize(("clear", "held"), [(1.02, True), (1.1, False)])
def test_protocol_and_clear_rounds_are_compared(clear: float, held: bool) -> None:
    rows = [
        {"scenario": "s2", "epsilon": 1.0, "kind": kind, "mean_error": error}
        for kind, error in (("protocol", 1.0), ("in the clear", clear))
    ]
    assert protocol.judge(rows).held is held
    assert protocol.judge(rows[:1]).held is None


def test_every_published_number_has_a_figure() -> None:
    assert [f"figure{number}" for number in range(1, 11)] == list(FIGURES)[:10]
    assert FIGURES["figure1"] is FIGURES["figure2"] is not FIGURES["figure3"]


@pytest.fixture
def ratings(monkeypatch: pytest.MonkeyPatch) -> Ratings:
    """Make figures use synthetic ratings and few iterations."""
    few = make_ratings(600, 40, mean_ratings=10)
    monkeypatch.setattr(Run, "ratings", lambda run: few)
    monkeypatch.setattr(measurements, "AT", {"plain": (100,), "S1": (2, 5), "S2": (2, 5), "S3": (2, 5)})
    for module in (churn, heldout):
        monkeypatch.setattr(module, "AT", measurements.AT)
    monkeypatch.setattr(protocol, "_ROUNDS", {"s2": 2, "s3": 3})
    return few


@pytest.mark.usefixtures("ratings")
@pytest.mark.parametrize("name", ["figure1", "figure3", "figure5", "figure7", "figure9", "heldout", "protocol"])
def test_every_figure_is_made(name: str, tmp_path: Path) -> None:
    out = tmp_path / f"{name}-made"
    found = make(FIGURES[name], Run("made", out, n_threads=1), "")
    assert found.sentence.endswith(".")
    assert out.with_name(f"{name}-made.png").stat().st_size > 1000
    assert len(out.with_name(f"{name}-made.csv").read_text().splitlines()) > 3


@pytest.mark.usefixtures("ratings")
def test_increases_take_the_rows_of_other_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("figure1", "figure4", "figure5"):
        make(FIGURES[name], Run("made", tmp_path / f"{name}-made", n_threads=1), "")

    def never(*_: Any, **__: Any) -> list[Row]:
        raise AssertionError("this was measured before")

    monkeypatch.setattr(measurements, "measure", never)
    rows = increases.measure(Run("made", tmp_path / "figure7-made", n_threads=1))
    assert [row["scenario"] for row in rows].count("plain") == 1
    assert {row["scenario"] for row in rows} == {"plain", "S1", "S2", "S3"}
