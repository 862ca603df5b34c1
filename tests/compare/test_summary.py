"""Repeats are summed up, failures are named, and guarantees of different kinds are never mixed."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.compare.results import Row
from dpmf.compare.summary import is_seeded, summarize

from .measured import certified, claimed


def row(method: str = "als", mode: str = "certified", asked: float = 1.0, repeat: int = 0, **others: Any) -> Row:
    guarantee = {"epsilon": asked, "delta": 1e-6, "unit": "user", "neighbours": "add-remove"}
    return Row(method, mode, asked, repeat, seed=repeat, **{**guarantee, "certified": mode == "certified", **others})


def test_repeats_become_mean_least_most_and_standard_deviation() -> None:
    (point,) = summarize([row(repeat=place, rmse=rmse) for place, rmse in enumerate((0.9, 1.0, 1.4))])
    assert point.n == 3
    assert point.mean["rmse"] == pytest.approx(1.1)
    assert (point.least["rmse"], point.most["rmse"]) == (0.9, 1.4)
    assert point.sd["rmse"] == pytest.approx(statistics.stdev((0.9, 1.0, 1.4)))


def test_what_was_not_measured_is_not_there_and_one_repeat_has_no_deviation() -> None:
    (point,) = summarize([row(rmse=0.9, recall=math.nan)])
    assert set(point.mean) == set(point.least) == set(point.most) == {"rmse"}
    assert point.sd == {}


def test_failed_runs_are_named_and_change_no_figure() -> None:
    (point,) = summarize([row(rmse=0.9), row(repeat=1, rmse=7.0, error="no memory"), row(repeat=2, error="no memory")])
    assert (point.n, point.mean["rmse"], point.errors) == (1, 0.9, ("no memory",))
    (alone,) = summarize([row(error="no memory", epsilon=None, unit=None)])
    assert (alone.n, alone.mean, alone.errors) == (0, {}, ("no memory",))


@pytest.mark.parametrize(
    "other", [{"epsilon": 0.9}, {"unit": "rating"}, {"neighbours": "replace"}, {"delta": 0.0}, {"certified": False}]
)
def test_guarantees_of_different_kinds_are_not_mixed(other: dict[str, Any]) -> None:
    points = summarize([row(rmse=1.0), row(repeat=1, rmse=2.0, **other)])
    assert sorted(point.mean["rmse"] for point in points) == [1.0, 2.0]


def test_another_event_or_assumption_makes_another_guarantee() -> None:
    rows = [certified("als", 5.0, rmse=1.0), certified("als", 5.0, 1, rmse=2.0, noise=99.0)]
    rows.append(replace(certified("als", 5.0, 2, rmse=3.0), guarantee={**rows[0].guarantee, "assumptions": ["Other."]}))
    points = summarize([*rows, certified("als", 5.0, 3, rmse=1.5)])
    assert sorted((point.n, point.mean["rmse"]) for point in points) == [(1, 2.0), (1, 3.0), (2, 1.25)]
    for point in points:
        assert all(one.guarantee == point.guarantee for one in point.rows)


@given(st.floats(1e-6, 10.0), st.integers(1, 9))
def test_a_mean_lies_between_the_least_and_the_most(value: float, n: int) -> None:
    (point,) = summarize([row(repeat=repeat, recall=value) for repeat in range(n)])
    assert point.least["recall"] == point.mean["recall"] == point.most["recall"] == value


def test_references_come_first_and_epsilons_rise() -> None:
    nothing: dict[str, Any] = {"epsilon": None, "delta": None, "unit": None, "neighbours": None}
    points = summarize(
        [
            row("sgld", "paper", 1.0, unit="rating"),
            row(asked=4.0),
            row(asked=0.5),
            row("gaussian", asked=2.0),
            row("sgld", "paper"),
            row("sgd", "none", math.inf, **nothing),
            row("own-mean", "none", math.inf, **nothing),
        ]
    )
    assert [(point.method, point.asked, point.unit) for point in points] == [
        ("own-mean", math.inf, None),
        ("sgd", math.inf, None),
        ("als", 0.5, "user"),
        ("als", 4.0, "user"),
        ("gaussian", 2.0, "user"),
        ("sgld", 1.0, "user"),
        ("sgld", 1.0, "rating"),
    ]
    assert [point.is_reference for point in points] == [True, True, False, False, False, False, False]


def test_seeded_noise_is_recognised_in_both_modes() -> None:
    assert not is_seeded(row())
    assert not is_seeded(row(mode="paper"))
    assert is_seeded(row(certified=False))
    assert is_seeded(row(mode="paper", guarantee=claimed("sketch", 1.0, seeded=True).guarantee))


def test_points_are_a_table_of_means() -> None:
    points = summarize([row(rmse=0.9), row(repeat=1, rmse=1.1), row(method="own-mean", mode="none", rmse=1.2)])
    frame = points.to_pandas()
    assert sorted(frame["rmse"]) == pytest.approx([1.0, 1.2])
    assert sorted(frame["n"]) == [1, 2]
    assert "recall" not in frame
    assert list(points.to_polars().columns) == list(frame.columns)
    assert "<th>rmse</th>" in points._repr_html_()
