"""Verdicts are written from the rows: each judge is shown rows with which the finding held, and rows with which not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from experiments.figure import Row, Verdict
from experiments.mugdho2023.verdicts import falls, means, rises, trend

from experiments.mugdho2023 import FIGURES, budgets, factors, iterations, steps, times

READINGS = ("published, raw", "published, mean")


def _curves(curves: Mapping[float, tuple[float, ...]], reading: str = READINGS[0]) -> list[Row]:
    return [
        {"reading": reading, "eps_i": eps_i, "iterations": 10 * (number + 1), "rmse": error}
        for eps_i, errors in curves.items()
        for number, error in enumerate(errors)
    ]


def test_errors_that_fall_less_with_more_noise_hold() -> None:
    verdict = iterations.judge(_curves({math.inf: (2.0, 1.5, 0.9), 0.9: (2.0, 1.5, 1.0), 0.15: (2.0, 1.8, 1.6)}))
    assert verdict.held is True
    assert "from 2.000 after 10 iterations to, after 30, 0.900 without noise, 1.000 with" in verdict.sentence


@pytest.mark.parametrize(
    ("curves", "says"),
    [
        ({math.inf: (2.0, 0.9), 0.3: (2.0, 0.8)}, "0.800 with eps_i = 0.3"),  # more noise, yet better
        ({math.inf: (2.0, 2.5, 0.9), 0.3: (2.0, 1.5, 1.0)}, "rising on the way to 2.500 without noise"),
        (
            {math.inf: (2.0, 0.9), 0.3: (1.0, 1.2)},
            "from 1.000 to 2.000 after 10 iterations",
        ),
        ({math.inf: (2.0, 0.9), 0.3: (2.0, math.inf)}, "0.900 without noise, diverges with eps_i = 0.3"),
    ],
)
def test_other_errors_do_not_hold(curves: dict[float, tuple[float, ...]], says: str) -> None:
    verdict = iterations.judge(_curves(curves))
    assert verdict.held is False
    assert says in verdict.sentence


def test_the_verdict_is_on_the_published_reading_and_the_sentence_on_all() -> None:
    good, bad = {math.inf: (2.0, 0.9), 0.3: (2.0, 1.0)}, {math.inf: (2.0, 0.9), 0.3: (2.0, 0.8)}
    first = iterations.judge(_curves(good) + _curves(bad, READINGS[1]))
    second = iterations.judge(_curves(bad) + _curves(good, READINGS[1]))
    assert (first.held, second.held) == (True, False)
    assert "published, raw (held): " in first.sentence
    assert "published, mean (did not hold): " in first.sentence


def _settled(column: str, values: Mapping[float, tuple[float, float]], *, settled: bool = True) -> list[Row]:
    return [
        {
            "reading": READINGS[0],
            "eps_i": 0.3,
            column: value,
            "rmse": rmse,
            "train_rmse": rmse - 0.1,
            "epsilon": epsilon,
            "iterations": 100,
            "settled": settled,
            "baseline_rmse": 1.0,
        }
        for value, (rmse, epsilon) in values.items()
    ]


def test_more_budget_with_less_error_holds() -> None:
    verdict = budgets.judge(_settled("eps_i", {0.15: (1.2, 3.0), 0.3: (1.0, 6.0), 0.9: (0.9, 20.0)}))
    assert verdict.held is True
    assert "the error falls from 1.200 to 0.900, the overall ε rises from 3.000 to 20" in verdict.sentence


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({0.15: (0.9, 3.0), 0.9: (1.2, 20.0)}, "the error rises from 0.900 to 1.200"),
        ({0.15: (1.2, 20.0), 0.9: (0.9, 3.0)}, "ε falls from 20 to 3.000"),
        ({0.15: (math.inf, math.inf), 0.9: (0.9, 3.0)}, "the error is infinite, 0.900"),
    ],
)
def test_more_budget_without_less_error_does_not_hold(values: dict[float, tuple[float, float]], says: str) -> None:
    verdict = budgets.judge(_settled("eps_i", values))
    assert verdict.held is False
    assert says in verdict.sentence


def test_more_factors_are_better_and_cost_more() -> None:
    verdict = factors.judge(_settled("n", {20: (1.2, 3.0), 50: (1.0, 6.0), 100: (0.9, 8.0)}))
    assert verdict.held is True
    assert "falls from 1.100 to 0.800 in training" in verdict.sentence


@pytest.mark.parametrize(
    ("values", "settled", "held"),
    [
        ({20: (0.9, 3.0), 50: (1.0, 6.0)}, True, False),
        ({20: (1.0, 6.0), 50: (0.9, 3.0)}, True, False),
        ({20: (1.0, 6.0), 50: (0.9, 6.0)}, False, None),  # none settled, so the number of iterations says nothing
    ],
)
def test_factors_without_gain_do_not_hold(
    values: dict[float, tuple[float, float]], settled: bool, held: bool | None
) -> None:
    assert factors.judge(_settled("n", values, settled=settled)).held is held


def _times(plain: tuple[float, ...], private: tuple[float, ...]) -> Verdict:
    rows: list[Row] = [
        {"n": n, "plain_milliseconds": one, "private_milliseconds": other, "ratio": other / one}
        for n, one, other in zip((20, 50, 100, 200), plain, private, strict=True)
    ]
    return times.judge(rows)


def test_times_grow_linearly_and_noise_adds_little() -> None:
    assert _times((10, 25, 50, 100), (11, 27, 53, 104)).held is True
    slow = _times((10, 25, 50, 100), (20, 50, 100, 200))
    assert slow.held is False
    assert "up to 2.00 times as long" in slow.sentence
    assert _times((10, 10, 10, 100), (10, 10, 10, 100)).held is False


def _errors_of_steps(raw: float, mean: float) -> list[Row]:
    rows: list[dict[str, Any]] = []
    for reading, last in zip(READINGS, (raw, mean), strict=True):
        rows += [
            {"reading": reading, "step": step, "searched": False, "rmse": error, "iterations": 9, "baseline_rmse": 1.0}
            for step, error in ((0.0005, 0.9), (0.0013, last))
        ]
    return [*rows, {**rows[0], "step": 0.0002, "searched": True, "rmse": 0.85}]


def test_steps_hold_if_all_come_near_the_baseline_with_the_published_reading() -> None:
    held = steps.judge(_errors_of_steps(0.95, 0.95))
    assert held.held is True
    assert "(1.000) or better: published, raw and published, mean." in held.sentence
    assert "takes 0.0002 (published, raw): 0.850" in held.sentence


def test_steps_that_diverge_do_not_hold() -> None:
    one = steps.judge(_errors_of_steps(math.inf, 0.95))
    assert one.held is False
    assert "published, raw 0.900, diverges" in one.sentence
    assert "or better: published, mean." in one.sentence
    assert "or better: no reading." in steps.judge(_errors_of_steps(math.inf, 1.2)).sentence


def test_trends() -> None:
    assert falls([3, 2, 2.004, 1], slack=0.005)
    assert not falls([3, 2, 2.006, 1], slack=0.005)
    assert not falls([3.0, 3.0])
    assert not falls([math.inf, 1.0])
    assert rises([1, 2, 3])
    assert not rises([1, math.nan])
    assert trend([1.0, 3.0, 2.0]) == "goes from 1.000 to 2.000, between 1.000 and 3.000"
    assert trend([2.0, 2.0001]) == "stays at 2.000"
    assert trend([math.inf, math.inf]) == "diverges"
    assert means([{"n": 1, "y": 2}, {"n": 1, "y": 4}, {"n": 2, "y": 5}], "n", "y") == {1: 3, 2: 5}


def test_every_published_number_has_a_figure() -> None:
    assert [f"figure{number}" for number in range(1, 19)] == list(FIGURES)[:18]
    assert FIGURES["figure1"] is FIGURES["figure3"] is not FIGURES["figure4"]
