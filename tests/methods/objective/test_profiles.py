"""Factors of users from elsewhere: what is refused, what they cost, and what they are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.methods import ALS, SGD
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.curator import Curator
from dpmf.methods.objective.pattern import Pattern
from dpmf.methods.objective.profiles import PROFILES, Profiles, RatingFacts
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Items, Ratings
from dpmf.ratings.synthetic import make

BUDGET = Budget(2.0, 1e-6, "rating", "replace")


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(300, 60, mean_ratings=30)


@pytest.fixture(scope="module")
def certified(ratings: Ratings) -> Release:
    return ALS(n_factors=3, n_epochs=2, budget=Budget(50.0, neighbours="replace")).fit(ratings).release


def factors_of(
    profiles: Profiles, ratings: Ratings, seed: int = 1
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return everybody's factors, asked for as a certified run does."""
    curator = Curator(
        RatingsAnswerer(ratings, np.ones(ratings.n_users), 2),
        Mechanism(profiles.events(ratings.n_users), Noise(seed)),
        "replace",
    )
    facts = RatingFacts(ratings.user_ids, ratings.catalogue.ids, ratings.scale, Pattern.of(ratings), 2)
    question = profiles.question(ratings.catalogue.ids, ratings.scale, ratings.n_users)
    found = profiles.known(ratings.user_ids)
    assert (question is None) == (found is not None)
    if question is not None:
        (noisy,) = curator.ask([question])
        found = profiles.factors(facts, noisy)
    curator.finish()
    return np.asarray(found, np.float32)


def test_a_table_is_looked_up_by_id(ratings: Ratings) -> None:
    some = Ratings.of(["ann", "bob", "eve"], [1, 1, 1], [3, 4, 5], scale=(1, 5))
    table = Profiles.public(["eve", "ann"], [[3, 4], [0.5, 0]])
    np.testing.assert_array_equal(factors_of(table, some), [[0.5, 0], [0, 0], [3, 4]])
    assert table.events(3) == table.spent == ()
    assert any("asserts to be public" in one for one in table.assumptions)
    with pytest.raises(InvalidArgument, match="none of the people"):
        Profiles.public(["x"], [[1.0]]).check(ratings)


@pytest.mark.parametrize(
    ("ids", "table", "words"),
    [
        (["a"], [[1.0], [2.0]], "a row of numbers for each"),
        (["a"], [1.0], "a row of numbers for each"),
        (["a"], [["x"]], "a row of numbers for each"),
        (["a"], [[]], "a row of numbers for each"),
        (["a"], [[math.nan]], "not finite"),
        (["a"], [[1e300]], "not finite"),
        (["a", "a"], [[1.0], [2.0]], "two rows for one user"),
    ],
)
def test_a_table_that_is_none_is_refused(ids: list[str], table: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Profiles.public(ids, np.array(table))


def test_a_release_has_to_be_certified_for_replacement_or_public(ratings: Ratings, certified: Release) -> None:
    added = ALS(n_factors=2, n_epochs=1, budget=Budget(50.0)).fit(ratings).release
    plain = SGD(n_factors=2, n_epochs=2).fit(ratings).release
    seeded = ALS(n_factors=2, n_epochs=1, budget=Budget(50.0, neighbours="replace"), noise_seed=1).fit(ratings).release
    for release in (added, plain, seeded):
        with pytest.raises(InvalidArgument, match=r"certified with neighbours='replace'.*public=True"):
            Profiles.from_release(release, BUDGET)
        public = Profiles.from_release(release, BUDGET, public=True)
        assert public.spent == ()
        assert any("other people's ratings" in one for one in public.assumptions)
    paid = Profiles.from_release(certified, BUDGET)
    assert [one.what.removesuffix(", in the release for profiles") for one in paid.spent] == [
        one.what for one in certified.guarantee.events
    ]
    assert epsilon_of(paid.spent, 1e-6) == epsilon_of(certified.guarantee.events, 1e-6)
    assert set(certified.guarantee.assumptions) < set(paid.assumptions)


def test_budgets_of_another_kind_are_refused(certified: Release) -> None:
    for budget in (Budget(1.0), Budget(math.inf, 1e-6, "rating", "replace"), Budget(1.0, 1e-6, "user", "replace")):
        with pytest.raises(InvalidArgument, match="give a finite epsilon, unit='rating' and neighbours='replace'"):
            Profiles.from_release(certified, budget)


def test_an_implicit_release_or_other_items_are_refused(ratings: Ratings, certified: Release) -> None:
    with pytest.raises(InvalidArgument, match="implicit"):
        Profiles.from_release(replace(certified, feedback="implicit"), BUDGET)
    other = replace(certified, items=Items.of([f"x{place}" for place in range(len(certified.items))]))
    with pytest.raises(InvalidArgument, match="none of the items"):
        Profiles.from_release(other, BUDGET).check(ratings)


def test_what_they_cost_is_the_budget(ratings: Ratings, certified: Release) -> None:
    (event,) = Profiles.from_release(certified, BUDGET).events(ratings.n_users)
    assert event.what == PROFILES
    assert event.coordinates == ratings.n_users * (certified.n_factors + 1)
    assert 1.99 < epsilon_of([event], BUDGET.delta, neighbours="replace") <= 2.0


def test_profiles_are_bounded_and_say_something(ratings: Ratings, certified: Release) -> None:
    """With next to no noise they predict the ratings; and none is ever longer than 1."""
    model = SGD(n_factors=3, n_epochs=30).fit(ratings)
    for budget, least in ((Budget(50, 1e-6, "rating", "replace"), 0.5), (BUDGET, -1)):
        profiles = Profiles.from_release(model.release, budget, public=True)
        U = factors_of(profiles, ratings)
        assert U.shape == (ratings.n_users, profiles.n_factors) == (300, 5)
        assert np.linalg.norm(U.astype(float), axis=1).max() <= 1 + 1e-6
        np.testing.assert_allclose(U[:, 0], math.sqrt(0.5), rtol=1e-6)
        rest = np.corrcoef(U[:, 1], model.user_factors[:, 0])[0, 1]
        assert abs(rest) > least


def test_the_same_noise_gives_the_same_profiles(ratings: Ratings, certified: Release) -> None:
    profiles = Profiles.from_release(certified, BUDGET)
    np.testing.assert_array_equal(factors_of(profiles, ratings), factors_of(profiles, ratings))
    assert (factors_of(profiles, ratings) != factors_of(profiles, ratings, seed=2)).any()
