"""Courses, errors, groups and spectra of runs: what is chosen, how it is marked, and that numbers are true."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpmf.compare.plots.convergence import model_courses, run_courses
from dpmf.compare.plots.errors import error_distribution
from dpmf.compare.plots.groups import by_group
from dpmf.compare.plots.runs import panels, runs_of, units_of
from dpmf.compare.plots.spectrum import release_spectra, run_spectra
from dpmf.compare.results import Row
from dpmf.errors import InvalidArgument
from dpmf.methods import SGD
from dpmf.model import Release
from dpmf.ratings import Ratings

matplotlib_figure = pytest.importorskip("matplotlib.figure")


def row(method: str, mode: str, asked: float, level: float, repeat: int = 0, **others: Any) -> Row:
    guarantee = {"epsilon": asked, "delta": 1e-6, "unit": "user", "neighbours": "add-remove"}
    shown: dict[str, Any] = {
        "history": [[1, 0.1, level + 1], [2, 0.1, level]],
        "error_cdf": [[0.0, 0.1], [1.0, level / 10]],
        "by_popularity": [[0.01, 10, level], [0.1, 0, None], [1.0, 5, level + 1]],
        "by_activity": [[0.5, 10, level], [1.0, 5, level + 1]],
        "spectrum": [level + 2, level],
    }
    return Row(
        method, mode, asked, repeat, repeat, **{**guarantee, "certified": mode == "certified", **shown, **others}
    )


NOTHING: dict[str, Any] = {"epsilon": None, "delta": None, "unit": None, "neighbours": None}
ROWS = [
    *(row("als", "certified", epsilon, 1.0, repeat) for epsilon in (0.5, 1.0, 2.0) for repeat in (0, 1)),
    row("sgld", "paper", 1.0, 3.0),
    row("sketch", "paper", 1.0, 4.0, unit="rating"),
    row("gaussian", "certified", 1.0, 9.0, certified=False),
    row("gaussian", "certified", 2.0, 9.0, error="broken off"),
    row("own-mean", "none", math.inf, 2.0, history=[], spectrum=[], **NOTHING),
    row("sgd", "none", math.inf, 0.5, **NOTHING),
]
BASELINE, FREE = "not private (sgd)", "per-user mean"
DRAWERS = [run_courses, error_distribution, run_spectra, by_group]


def lines_of(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize("draw", DRAWERS)
def test_claims_are_hollow_and_dashed_and_units_stay_apart(draw: Callable[..., Any]) -> None:
    for unit, claimed in (("user", "sgld"), ("rating", "sketch")):
        lines = lines_of(draw(ROWS, unit=unit))
        assert [label.split(",")[0] for label in lines if "claim" in label] == [claimed]
        assert all(f"per {unit}" in label for label in lines if "ε" in label)
        assert not any(label.startswith("gaussian") for label in lines)
        for label, line in lines.items():
            if line.get_marker() != "None":
                hollow = line.get_markerfacecolor() == "white"
                assert hollow == (line.get_linestyle() == "--") == ("claim" in label)


@pytest.mark.parametrize("draw", DRAWERS)
def test_axes_that_are_given_are_drawn_on_and_returned(draw: Callable[..., Any]) -> None:
    left, right = matplotlib_figure.Figure().subplots(1, 2)
    assert draw(ROWS, ax=right) is right
    assert right.get_lines()
    assert not left.get_lines()


def test_a_course_has_a_line_per_repeat_and_the_errors_of_the_history() -> None:
    ax = run_courses(ROWS)
    assert len(ax.get_lines()) == 6 + 1 + 1
    assert list(lines_of(ax)[BASELINE].get_ydata()) == [1.5, 0.5]


def test_models_can_be_compared_by_name(small_ratings: Ratings) -> None:
    model = SGD(n_factors=2, n_epochs=3).fit(small_ratings, n_threads=1)
    ((label, line),) = lines_of(model_courses({"mine": model})).items()
    assert label == "mine, not private"
    assert list(line.get_ydata()) == [record.train_rmse for record in model.history]


def test_errors_are_the_mean_of_repeats_beside_the_baseline() -> None:
    rows = [row("als", "certified", 1.0, level, repeat) for repeat, level in enumerate((2.0, 6.0))]
    lines = lines_of(error_distribution([*rows, ROWS[-2]]))
    assert list(lines["als, ε = 1 per user, certified"].get_ydata()) == pytest.approx([0.1, 0.4])
    assert list(lines[FREE].get_ydata()) == pytest.approx([0.1, 0.2])


def test_one_epsilon_can_be_chosen_and_one_that_is_not_there_is_refused() -> None:
    labels = lines_of(error_distribution(ROWS, epsilon=2.0))
    assert [label for label in labels if "ε" in label] == ["als, ε = 2 per user, certified"]
    with pytest.raises(InvalidArgument, match=r"epsilon=7: there is 0\.5, 1, 2"):
        units_of(ROWS, "error_cdf", 7.0)


def test_empty_groups_are_left_out_and_the_others_stay_in_place() -> None:
    line = lines_of(by_group(ROWS))[FREE]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 1], [2.0, 3.0])
    assert [tick.get_text() for tick in by_group(ROWS, "by_activity").get_xticklabels()] == ["top 50%", "50–100%"]
    with pytest.raises(InvalidArgument, match="groups='by_age'"):
        by_group(ROWS, "by_age")


def test_spectra_are_those_of_the_rows_and_of_releases(release: Release) -> None:
    assert list(lines_of(run_spectra(ROWS))[BASELINE].get_ydata()) == [2.5, 0.5]
    (line,) = release_spectra({"one": release}).get_lines()
    assert sum(value**2 for value in line.get_ydata()) == pytest.approx(float((release.item_factors**2).sum()))


def test_of_many_epsilons_the_ends_are_kept() -> None:
    many = [row(method, "certified", 2.0**power, 1.0) for method in ("als", "sgld") for power in range(9)]
    labels = [run.label for run in runs_of(many, "spectrum", most=6)]
    assert [label.split(" ")[3] for label in labels] == ["1", "16", "256"] * 2


def test_panels_are_one_per_unit_and_nothing_to_draw_is_refused() -> None:
    picture = panels(ROWS, "spectrum", lambda unit, ax: run_spectra(ROWS, unit, ax))
    assert [ax.get_title() for ax in picture.axes] == ["ε per user", "ε per rating"]
    with pytest.raises(InvalidArgument, match="singular values of item factors"):
        units_of([ROWS[-2]], "spectrum")


def test_repeats_with_different_guarantees_are_never_averaged() -> None:
    rows = [row("als", "certified", 1.0, 1.0), row("als", "certified", 1.0, 3.0, 1, epsilon=7.0)]
    assert [(run.label, len(run.rows)) for run in runs_of(rows, "error_cdf")] == [
        ("als, ε = 1 per user, certified", 1),
        ("als, ε = 7 per user, certified", 1),
    ]


def test_runs_with_the_same_label_keep_their_own_numbers() -> None:
    rows = [row("als", "certified", 1.0, 1.0), row("als", "certified", 1.0000001, 3.0, epsilon=1.0)]
    drawn = [list(line.get_ydata()) for line in by_group(rows, "by_activity").get_lines()]
    assert drawn == [[1.0, 2.0], [3.0, 4.0]]


def test_a_release_without_factors_has_no_spectrum(release: Release) -> None:
    with pytest.raises(InvalidArgument, match="none has no factors"):
        release_spectra({"none": replace(release, item_factors=release.item_factors[:, :0])})


def test_what_is_not_private_looks_like_nothing_that_is(release: Release) -> None:
    (line,) = release_spectra({"mine": release}).get_lines()
    assert (line.get_linestyle(), line.get_marker()) == (":", "x")
