"""Epsilon against accuracy: claims stand out, units stay apart, bars are true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpmf.compare.plots.accuracy import (
    METRICS,
    accuracy_against_epsilon,
    accuracy_figure,
    accuracy_series,
    reference_lines,
    same_budget_line,
    units_with,
)
from dpmf.compare.results import Row
from dpmf.errors import InvalidArgument

from .measured import certified, claimed

matplotlib_figure = pytest.importorskip("matplotlib.figure")


def row(method: str, mode: str, epsilon: float, rmse: float, repeat: int = 0, **others: Any) -> Row:
    guarantee = {"epsilon": epsilon, "delta": 1e-6, "unit": "user", "neighbours": "add-remove"}
    given = {**guarantee, "certified": mode == "certified", "rmse": rmse, **others}
    return Row(method, mode, given.pop("asked", epsilon), repeat, repeat, **given)


def reference(method: str, **figures: float) -> Row:
    return Row(method, "none", math.inf, 0, 0, **figures)  # type: ignore[arg-type]


ROWS = [
    *(row("als", "certified", epsilon, 1.0 / epsilon, 0) for epsilon in (1.0, 2.0)),
    *(row("als", "certified", epsilon, 1.2 / epsilon, 1) for epsilon in (1.0, 2.0)),
    row("sgld", "paper", 1.0, 1.5),
    row("gaussian", "paper", 3.0, 1.7, unit="rating", neighbours="replace"),
    reference("own-mean", rmse=1.1, recall=0.01),
    reference("popular", rmse=9.0, recall=0.2),
    reference("sgd", rmse=0.8, recall=0.3),
]


def lines_of(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_a_claim_is_hollow_dashed_and_says_so_and_nothing_else_is() -> None:
    lines = lines_of(accuracy_against_epsilon(ROWS))
    assert {label for label in lines if "claim" in label} == {"sgld, paper's claim"}
    for label, line in lines.items():
        if line.get_marker() == "None":
            continue
        hollow = line.get_markerfacecolor() == "white"
        assert hollow == (line.get_linestyle() == "--") == ("claim" in label)


def test_ratings_and_users_never_share_an_axis() -> None:
    users = lines_of(accuracy_against_epsilon(ROWS, unit="user"))
    ratings = lines_of(accuracy_against_epsilon(ROWS, unit="rating"))
    references = {"per-user mean", "not private (sgd)"}
    assert set(users) - references == {"als, certified", "sgld, paper's claim"}
    assert set(ratings) - references == {"gaussian, paper's claim"}


def test_a_figure_has_one_panel_per_unit() -> None:
    assert [ax.get_xlabel() for ax in accuracy_figure(ROWS).axes] == ["ε per user", "ε per rating"]
    only = [one for one in ROWS if one.unit != "rating"]
    assert units_with(only, "rmse") == ["user"]
    assert [ax.get_xlabel() for ax in accuracy_figure(only).axes] == ["ε per user"]


def test_axes_that_are_given_are_drawn_on_and_returned() -> None:
    left, right = matplotlib_figure.Figure().subplots(1, 2)
    assert accuracy_against_epsilon(ROWS, ax=right) is right
    assert right.get_lines()
    assert not left.get_lines()


def test_the_line_is_the_mean_and_the_error_bars_are_min_and_max() -> None:
    ax = accuracy_against_epsilon(ROWS)
    line = lines_of(ax)["als, certified"]
    assert list(line.get_xdata()) == [1.0, 2.0]
    assert list(line.get_ydata()) == pytest.approx([1.1, 0.55])
    (bars,) = ax.collections
    assert [tuple(segment[:, 1]) for segment in bars.get_segments()] == [
        pytest.approx((1.0, 1.2)),
        pytest.approx((0.5, 0.6)),
    ]
    assert "error bars: min–max" in ax.get_title()


def test_one_repeat_has_no_bars() -> None:
    ax = accuracy_against_epsilon([one for one in ROWS if one.repeat == 0])
    assert not ax.collections
    assert not ax.containers
    assert "least" not in ax.get_title()


def test_epsilon_is_that_of_the_guarantee_on_a_logarithmic_axis() -> None:
    ax = accuracy_against_epsilon([row("als", "certified", 0.83, 1.0, asked=1.0)])
    assert list(lines_of(ax)["als, certified"].get_xdata()) == [0.83]
    assert ax.get_xscale() == "log"


def test_seeded_noise_failed_runs_and_empty_guarantees_are_left_out() -> None:
    left_out = [
        row("sketch", "certified", 1.0, 0.1, certified=False),
        row("sketch", "paper", 1.0, 0.1, guarantee=claimed("sketch", 1.0, seeded=True).guarantee),
        row("sketch", "certified", 2.0, 0.1, error="broken off"),
        row("sketch", "none", 1.0, 0.1),
        row("sketch", "paper", math.inf, 0.1),
    ]
    assert set(lines_of(accuracy_against_epsilon(ROWS + left_out))) == set(lines_of(accuracy_against_epsilon(ROWS)))
    with pytest.raises(InvalidArgument, match="nothing to draw"):
        accuracy_figure(left_out)


def test_reference_lines_are_where_the_references_are() -> None:
    assert reference_lines(ROWS, "rmse") == {"own-mean": 1.1, "sgd": 0.8}
    assert reference_lines(ROWS, "recall") == {"own-mean": 0.01, "popular": 0.2, "sgd": 0.3}
    line = lines_of(accuracy_against_epsilon(ROWS))["per-user mean"]
    assert list(line.get_ydata()) == [1.1, 1.1]


@pytest.mark.parametrize(("field", "other", "named"), [("neighbours", "replace", "replace"), ("delta", 0.0, "δ = 0")])
def test_what_differs_within_a_panel_is_named(field: str, other: Any, named: str) -> None:
    plain = lines_of(accuracy_against_epsilon(ROWS))
    assert not any(named in label for label in plain)
    changed = lines_of(accuracy_against_epsilon([*ROWS, row("gaussian", "certified", 1.0, 1.0, **{field: other})]))
    assert [label for label in changed if named in label] == [f"gaussian, certified, {named}"]
    assert sum(label.startswith("als") for label in changed) == 1


def test_unknown_figures_and_units_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="metric='speed'"):
        accuracy_against_epsilon(ROWS, metric="speed")
    with pytest.raises(InvalidArgument, match="unit='item'"):
        accuracy_against_epsilon(ROWS, unit="item")
    ranking = {"ndcg@10", "ndcg@100", "recall@20", "recall@50"}
    assert set(METRICS) == {"rmse", "mae", "recall", "ndcg", "kld"} | ranking


def test_new_users_have_intervals_and_a_line_of_popularity_under_the_same_budget() -> None:
    def figures(mean: float) -> dict[str, Any]:
        return {"ndcg@100": mean, "ndcg@100_interval": [mean - 0.125, mean + 0.0625]}

    rows = [
        *(certified("als", epsilon, ranking=figures(0.5)) for epsilon in (1.0, 5.0)),
        *(Row("private-popular", "none", epsilon, 0, 0, ranking=figures(0.2)) for epsilon in (1.0, 5.0)),
        Row("popular", "none", math.inf, 0, 0, ranking=figures(0.25)),
        Row("exact-ease", "none", math.inf, 0, 0, ranking=figures(0.4)),
    ]
    (line,) = accuracy_series(rows, "ndcg@100", "user")
    assert (line.least, line.most, line.intervals) == ([0.375] * 2, [0.5625] * 2, True)
    assert reference_lines(rows, "ndcg@100") == {"popular": 0.25, "exact-ease": 0.4}
    popular = same_budget_line(rows, "ndcg@100")
    assert popular is not None
    assert (popular.epsilons, popular.means) == ([1.0, 5.0], [0.2, 0.2])
    labels = accuracy_against_epsilon(rows, "ndcg@100").get_legend_handles_labels()[1]
    assert labels == ["als, certified", "popular, same budget", "most popular, not private", "EASE, not private"]


def test_a_claim_that_is_off_does_not_stretch_the_axis() -> None:
    proven = [row("als", "certified", epsilon, rmse) for epsilon, rmse in ((1.0, 0.95), (5.0, 0.9))]
    beside = [reference("own-mean", rmse=1.0), reference("sgd", rmse=0.85)]
    far = [row("sgld", "paper", epsilon, rmse) for epsilon, rmse in ((1.0, 2.5), (5.0, 0.88))]
    low, high = accuracy_against_epsilon([*proven, *beside, *far]).get_ylim()
    assert low == pytest.approx(0.85 - 0.08 * 0.15)
    assert high == pytest.approx(1.0 + 0.08 * 0.15)
    labels = [line.get_label() for line in accuracy_against_epsilon([*proven, *beside, *far]).get_lines()]
    assert "sgld, paper's claim (0.88 to 2.5: off the axis)" in labels
    near = [row("sgld", "paper", 1.0, 1.05)]
    labels = [line.get_label() for line in accuracy_against_epsilon([*proven, *beside, *near]).get_lines()]
    assert "sgld, paper's claim" in labels
    assert accuracy_against_epsilon(far).get_ylim()[1] > 2.5  # nothing certified to look at
