"""Spent budgets end where the guarantee says, and nothing uncertified is drawn as one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpmf.compare.plots.personal import paid_by_users, personal_budgets
from dpmf.compare.plots.popularity import concentration, popularity_figure, popularity_figures, rank_and_count
from dpmf.compare.plots.spending import budget_spent, spending_of
from dpmf.errors import InvalidArgument, NotVerified
from dpmf.methods import ALS, SGD
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.events import PoissonGaussianEvent
from dpmf.ratings import Ratings

matplotlib_figure = pytest.importorskip("matplotlib.figure")

EVENTS = [GaussianEvent("biases", 20.0, 1, 10), GaussianEvent("factors", 8.0, 5, 50)]
CLAIM = Guarantee.paper(
    epsilon=1.0, delta=0.0, unit="rating", neighbours="replace", claim="so they say", releases=["x"], assumptions=["y"]
)


def certified(events: Any = EVENTS, **budget: Any) -> Guarantee:
    return Guarantee.certified_by(Budget(**{"epsilon": 50.0, **budget}), events, releases=["item factors"])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_course_rises_from_nothing_to_the_epsilon_of_the_guarantee(neighbours: str) -> None:
    guarantee = certified(neighbours=neighbours)
    course = spending_of(guarantee)
    assert (course.rounds, course.epsilons[0], course.epsilons[-1]) == (list(range(7)), 0.0, guarantee.epsilon)
    assert all(low < high for low, high in pairwise(course.epsilons))
    assert course.epsilons[1] == pytest.approx(epsilon_of(EVENTS[:1], 1e-6, neighbours=neighbours), abs=2e-6)
    assert [course.whats[place] for place in course.ends] == ["biases", "factors"]


def test_many_sampled_rounds_are_accounted_for_at_some_of_them() -> None:
    guarantee = certified([PoissonGaussianEvent("steps", 2.0, 0.01, 500, 500)])
    course = spending_of(guarantee)
    assert len(course.rounds) <= 14
    assert (course.rounds[-1], course.epsilons[-1]) == (500, guarantee.epsilon)
    assert all(low < high for low, high in pairwise(course.epsilons))


@pytest.mark.parametrize(
    ("guarantee", "reason"),
    [
        (Guarantee.none(), "has no guarantee"),
        (CLAIM, "a paper's claim"),
        (Guarantee.certified_by(Budget(50.0), EVENTS, releases=["x"], seeded=True), "noise from a seed"),
    ],
)
def test_what_is_not_certified_is_no_spent_budget(guarantee: Guarantee, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        spending_of(guarantee)


def test_an_epsilon_that_does_not_follow_from_the_events_is_not_drawn() -> None:
    with pytest.raises(NotVerified, match="is stated"):
        spending_of(replace(certified(), epsilon=0.1))


def test_budgets_are_drawn_on_the_axes_given_and_units_are_not_mixed() -> None:
    ax = matplotlib_figure.Figure().subplots()
    user, rating = spending_of(certified()), spending_of(certified(unit="rating"))
    assert budget_spent({"mine": user}, ax) is ax
    (line,) = ax.get_lines()
    assert list(line.get_ydata()) == user.epsilons
    assert ax.get_ylabel().startswith("ε per user")
    with pytest.raises(InvalidArgument, match="draw them apart"):
        budget_spent({"one": user, "two": rating})


def test_personal_epsilons_are_those_of_the_list(small_ratings: Ratings) -> None:
    wanted = {"person-00001": 0.5, "person-00002": 99.0, "nobody": 0.1}
    method = ALS(n_factors=2, n_epochs=1, budget=Budget(2.0))
    model = method.fit(small_ratings, n_threads=1, user_budgets=wanted)
    paid = paid_by_users(model, wanted)
    assert (len(paid), paid.count(0.5), paid.count(model.guarantee.epsilon or 0)) == (120, 1, 119)
    with pytest.raises(InvalidArgument, match="without budgets of users"):
        paid_by_users(method.fit(small_ratings, n_threads=1), wanted)
    with pytest.raises(InvalidArgument, match="guarantees nothing"):
        paid_by_users(SGD(n_factors=2, n_epochs=1).fit(small_ratings, n_threads=1), wanted)


def test_personal_budgets_show_the_share_of_users_below() -> None:
    ax = matplotlib_figure.Figure().subplots()
    assert personal_budgets([0.5, 1.0, 2.0, 2.0], 2.0, ax) is ax
    steps, budget, median = ax.get_lines()
    assert list(steps.get_xdata()) == [0.0, 0.5, 1.0, 2.0, 2.0]
    assert list(steps.get_ydata()) == [0.0, 0.25, 0.5, 1.0, 1.0]
    assert (budget.get_xdata()[0], median.get_xdata()[0]) == (2.0, 1.5)


def test_popularity_counts_what_there_is() -> None:
    counts = np.array([1, 0, 6, 3])
    assert popularity_figures(counts) == {
        "items": 4,
        "rated_items": 3,
        "ratings": 10,
        "most": 6,
        "share_of_top": {0.01: 0.6, 0.1: 0.6, 0.5: 0.9},
    }
    left, right = popularity_figure(counts).axes
    assert list(left.get_lines()[0].get_ydata()) == [6, 3, 1]
    assert left.get_title() == "1 of 4 items have no rating"
    assert list(right.get_lines()[0].get_ydata()) == pytest.approx([0, 0.6, 0.9, 1.0, 1.0])
    for draw in (rank_and_count, concentration):
        ax = matplotlib_figure.Figure().subplots()
        assert draw(counts, ax) is ax
        with pytest.raises(InvalidArgument, match="no item has a rating"):
            draw(np.zeros(3, np.int64))
