"""Verdicts on rows: each of them both ways, and inconclusive ones."""

from __future__ import annotations

import math
from typing import Any

import pytest
from experiments.figure import Row
from matplotlib.figure import Figure as Drawing

from experiments.balu2016 import FIGURES, penalties, regularization, tradeoff

PENALTIES = (1.0, 0.1, 0.0)


def by_penalty(**errors: tuple[float, ...]) -> list[Row]:
    kinds = {"regular": "regular", "one": "k = 1", "four": "k = 4"}
    return [
        {"kind": kinds[name], "penalty": penalty, "rmse": error}
        for name, line in errors.items()
        for penalty, error in zip(PENALTIES, line, strict=True)
    ]


REGULARIZED = by_penalty(regular=(1.0, 0.85, 0.95), one=(1.0, 0.88, 0.97), four=(1.0, 0.86, 0.88))


def test_regularization_holds_if_a_deep_sketch_loses_least() -> None:
    verdict = regularization.judge(REGULARIZED)
    assert verdict.held is True
    assert "regular: 0.9500 without a penalty, 0.8500 at the best λ = 0.1" in verdict.sentence
    assert "k = 4 loses least without a penalty, and is the best there" in verdict.sentence


@pytest.mark.parametrize(
    ("four", "words"),
    [
        ((1.0, 0.86, 0.99), "does not lose least without a penalty, and is not the best there"),
        ((1.2, 0.95, 0.96), "loses least without a penalty, and is not the best there"),
        ((0.9, 0.70, 0.90), "does not lose least without a penalty, and is the best there"),
    ],
)
def test_regularization_does_not_hold_otherwise(four: tuple[float, ...], words: str) -> None:
    verdict = regularization.judge(by_penalty(regular=(1.0, 0.85, 0.95), one=(1.0, 0.88, 0.97), four=four))
    assert verdict.held is False
    assert words in verdict.sentence


def test_a_sketch_that_learnt_nothing_is_inconclusive() -> None:
    rows = by_penalty(regular=(1.0, 0.85, 0.95), one=(1.0, 0.88, 0.97), four=(0.941, 0.94, 0.94))
    verdict = regularization.judge(rows)
    assert verdict.held is None
    assert "k = 4 learns next to nothing: 0.9410 with the largest penalty, 0.9400 at the best" in verdict.sentence


def test_a_diverged_run_is_inconclusive() -> None:
    rows = by_penalty(regular=(1.0, 0.85, math.inf), one=(1.0, 0.88, 0.97), four=(1.0, 0.86, 0.88))
    assert regularization.judge(rows).held is None


def table(numbers: list[list[float]]) -> list[Row]:
    """Return rows of penalties, a list for each d, with one for each γ."""
    return [
        {"factors": d, "gain": gain, "penalty": number}
        for d, line in zip((8, 16, 32), numbers, strict=True)
        for gain, number in zip((1, 2, 4), line, strict=True)
    ]


PENALIZED = table([[3e-3, 2e-3, 1e-3], [5e-3, 4e-3, 3e-3], [0.05, 0.02, 0.01]])


def test_penalties_hold_if_they_fall_with_gain_and_rise_with_factors() -> None:
    verdict = penalties.judge(PENALIZED)
    assert verdict.held is True
    assert "falls at 3 of 3 values of d" in verdict.sentence
    assert "between 0.001 and 0.05, and below 0.01 for 6 of 9 pairs" in verdict.sentence


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: [1e-3, 2e-3, 3e-3]}, "falls at 2 of 3 values of d"),
        ({2: [2e-3, 1e-3, 5e-4]}, "it rises at 0 of 3 values of γ"),
    ],
)
def test_other_penalties_do_not_hold(change: dict[int, list[float]], words: str) -> None:
    lines = [[3e-3, 2e-3, 1e-3], [5e-3, 4e-3, 3e-3], [0.05, 0.02, 0.01]]
    for place, line in change.items():
        lines[place] = line
    verdict = penalties.judge(table(lines))
    assert verdict.held is False
    assert words in verdict.sentence


def trade_off(**changes: float) -> list[Row]:
    """Return rows in which every published finding holds, except for numbers that are changed in all of them."""
    rows = []
    for d in (8, 32):
        for gain in (1, 4):
            for place, threshold in enumerate((2.0, 4.0, 8.0, math.inf)):
                error = 0.86 + 0.002 * gain + (0.05, 0.01, 0.004, 0.0)[place]
                leak = 0.001 * (d / 8) * (1 + place) / gain
                rows.append(
                    {
                        "factors": d,
                        "gain": gain,
                        "threshold": threshold,
                        "rmse": error,
                        "kld": leak,
                        "rmse_top_users": error - 0.01,
                        "kld_top_users": leak / 10,
                        **changes,
                    }
                )
        rows.append(
            {
                "factors": d,
                "gain": 0,
                "threshold": math.inf,
                "rmse": 0.85,
                "kld": 0.05,
                "rmse_top_users": 0.84,
                "kld_top_users": 0.04,
            }
        )
    return rows


JUDGES: dict[str, Any] = {
    "errors": tradeoff.judge_errors,
    "leaks": tradeoff.judge_leaks,
    "top users": tradeoff.judge_top_users,
}


def test_published_findings_hold_on_matching_rows() -> None:
    verdicts = {name: judge(trade_off()) for name, judge in JUDGES.items()}
    assert {name: verdict.held for name, verdict in verdicts.items()} == dict.fromkeys(JUDGES, True)
    assert "falls as ε grows in 4 of 4 lines, most at the first step in 4" in verdicts["errors"].sentence
    assert "below that of regular factorization in 16 of 16 points" in verdicts["leaks"].sentence
    assert "the median 10;" in verdicts["top users"].sentence


def changed(where: dict[str, Any], **changes: float) -> list[Row]:
    found = trade_off()
    for row in found:
        if row["gain"] and all(row[name] == value for name, value in where.items()):
            row.update(changes)
    return found


@pytest.mark.parametrize(
    ("judge", "rows", "words"),
    [
        ("errors", trade_off(rmse=0.86), "falls as ε grows in 0 of 4 lines"),
        ("errors", changed({"gain": 4, "threshold": math.inf}, rmse=0.8715), "2 of 4 come within 0.02"),
        ("errors", changed({"gain": 4, "threshold": 8.0}, rmse=0.95), "most at the first step in 2"),
        ("leaks", trade_off(kld=0.01), "higher without a threshold than with the least in 0 of 4"),
        ("leaks", changed({"gain": 4, "factors": 8, "threshold": 2.0}, kld=1e-2), "γ = 4 does not always leak less"),
        ("leaks", changed({"factors": 8, "gain": 1, "threshold": 8.0}, kld=0.04), "d = 8 does not always leak less"),
        ("leaks", changed({"threshold": math.inf}, kld=0.06), "in 12 of 16 points"),
        ("top users", changed({"threshold": 2.0}, rmse_top_users=0.99), "lower in 12 of 16 runs"),
        ("top users", trade_off(kld=0.01, kld_top_users=0.008), "the median 1.2;"),
    ],
)
def test_published_findings_do_not_hold_on_other_rows(judge: str, rows: list[Row], words: str) -> None:
    verdict = JUDGES[judge](rows)
    assert verdict.held is False
    assert words in verdict.sentence


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_its_rows(name: str) -> None:
    rows = {"figure1": REGULARIZED, "figure2": PENALIZED}.get(name, trade_off())
    drawing = Drawing()
    FIGURES[name].draw(drawing, rows)
    drawing.canvas.draw()
    first = drawing.axes[0]
    assert first.get_xlabel()
    assert first.lines or first.images
