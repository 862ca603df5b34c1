"""Whoever answers, alone or among many, adds the same numbers; and the plan without a count of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dpmf.methods.als.central import CentralRounds
from numpy.typing import NDArray

from dpmf.methods.als.plan import USERS, Plan
from dpmf.methods.certified.questions import (
    Answers,
    Counts,
    Headcount,
    Moments,
    People,
    Question,
    Residuals,
    add_answers,
)
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make
from dpmf.ratings.trim import trimmed


def alone(ratings: Ratings, person: int) -> Answers:
    """Return one person's ratings, and nothing of anybody else's."""
    places = slice(ratings.indptr[person], ratings.indptr[person + 1])
    items, values = ratings.items[places].copy(), ratings.values[places].copy()
    return Answers(np.array([0, len(items)], np.int64), items, values)


class Listening(CentralRounds):
    """Keeps every question that is asked."""

    def ask(self, *questions: Question) -> tuple:  # type: ignore[type-arg]
        self.asked = [*getattr(self, "asked", []), *questions]
        return super().ask(*questions)


def questions_of(plan: Plan, ratings: Ratings, counted: Ratings, shares: NDArray[np.float64]) -> list[Question]:
    """Return what is asked for in the course of a run."""
    state = Listening(plan, ratings, counted, shares, Mechanism(plan.events(), Noise(noise_seed=2)), 3, 1)
    for stage in plan.stages():
        state.measure(stage)
        state.settle(stage)
    return state.asked


@pytest.mark.parametrize("n_factors", [0, 1, 4, 9])
@pytest.mark.parametrize("per_item", [False, True])
def test_people_answer_alone_to_the_same_bits(n_factors: int, per_item: bool) -> None:
    ratings = make(40, 30, seed=1)
    counted = trimmed(ratings, 6, seed=2)
    shares = np.linspace(0.2, 1.0, ratings.n_users)
    plan = Plan(ratings.n_items, n_factors, 3, per_item, 0.5, Budget(20.0))
    asked = questions_of(plan, ratings, counted, shares)
    kinds = {Headcount, Counts, Residuals} | ({Moments} if n_factors else set())
    assert {type(question) for question in asked} == kinds
    answered = set()
    for question in asked:
        together, apart = np.zeros(question.shape, np.int64), np.zeros(question.shape, np.int64)
        add_answers(question, People(ratings, counted, shares), 0, ratings.n_users, 1e7, together)
        for person in range(ratings.n_users):
            one = People(alone(ratings, person), alone(counted, person), shares[person : person + 1])
            add_answers(question, one, 0, 1, 1e7, apart)
        if together.any():
            answered.add(type(question))
        np.testing.assert_array_equal(together, apart)
    assert answered == kinds


def test_a_public_number_of_people_is_not_paid_for() -> None:
    plan = Plan(30, 2, 3, False, 0.5, Budget(2.0))
    known = replace(plan, n_users=40)
    assert {event.what for event in plan.events()} - {event.what for event in known.events()} == {USERS}
    assert all(USERS not in stage.releases for stage in known.stages())
    before = {event.what: event.noise_multiplier for event in plan.events()}
    assert all(event.noise_multiplier < before[event.what] for event in known.events() if event.what == "item factors")
    ratings = make(40, 30, seed=1)
    asked = questions_of(known, ratings, ratings, np.ones(40))
    assert not any(isinstance(question, Headcount) for question in asked)
