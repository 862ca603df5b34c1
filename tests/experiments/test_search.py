"""Two line searches on a log scale: where they look, what they choose, what diverges."""

from __future__ import annotations

import math

import pytest
from experiments.search import two_stage_search

from dpmf.errors import InvalidArgument


@pytest.mark.parametrize("centre", [1.0e-4, 3.0e-3, 0.02, 0.7])
def test_the_best_is_found_to_the_spacing_of_the_second_stage(centre: float) -> None:
    best = two_stage_search(lambda setting: math.log(setting / centre) ** 2, 1e-4, 1.0, points=5)
    spacing = math.log(100) / 6  # seven points from one neighbour to the other, two decades
    assert abs(math.log(best / centre)) <= spacing / 2 + 1e-9


def test_settings_are_tried_once_each_and_at_most_twice_as_many_as_points() -> None:
    tried: list[float] = []

    def loss(setting: float) -> float:
        tried.append(setting)
        return abs(setting - 0.1)

    two_stage_search(loss, 1e-3, 10, points=5)
    assert tried[:5] == pytest.approx([1e-3, 1e-2, 0.1, 1, 10])
    assert len(tried) == len(set(tried)) <= 10
    assert all(0.01 < setting < 1 for setting in tried[5:])


def test_the_best_at_an_end_is_refined_on_one_side_only() -> None:
    tried: list[float] = []

    def loss(setting: float) -> float:
        tried.append(setting)
        return setting

    assert two_stage_search(loss, 0.1, 1000, points=5) == 0.1
    assert all(0.1 < setting < 1 for setting in tried[5:])


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_diverges_is_never_chosen(bad: float) -> None:
    best = two_stage_search(lambda setting: bad if setting > 0.05 else -setting, 1e-3, 10, points=5)
    assert 0.01 < best <= 0.05


def test_a_search_in_which_everything_diverges_says_so() -> None:
    with pytest.raises(InvalidArgument, match="diverges with every setting"):
        two_stage_search(lambda setting: math.inf, 0.1, 10)


@pytest.mark.parametrize(("lo", "hi", "points"), [(0.0, 1.0, 5), (1.0, 1.0, 5), (1.0, math.inf, 5), (0.1, 1.0, 2)])
def test_what_cannot_be_searched_is_refused(lo: float, hi: float, points: int) -> None:
    with pytest.raises(InvalidArgument):
        two_stage_search(lambda setting: setting, lo, hi, points=points)
