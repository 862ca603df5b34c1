"""What the certified protocol states, refuses, and keeps out of its messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.methods import ALS, SGD
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.synthetic import make

from .certified_world import BUDGET, METHODS, World, agreement_of

IMPLICIT = CertifiedScenario(BUDGET, method=METHODS["als-implicit"])


@pytest.mark.parametrize("name", METHODS)
def test_secret_coins_are_an_assumption_where_people_toss_them(name: str) -> None:
    stated = agreement_of(name).guarantee(["Else nothing."], seeded=False).assumptions
    assert any("coin that the person tosses and tells nobody" in one for one in stated) == (name in ("sgld", "sketch"))


def test_a_cap_is_refused_where_people_answer_for_themselves() -> None:
    with pytest.raises(InvalidArgument, match="cap means nothing"):
        agreement_of(ALS(n_factors=2, cap=5, budget=BUDGET))


def test_a_method_without_a_protocol_is_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidArgument, match="SGD has no protocol"):
        CertifiedScenario(BUDGET, method=SGD())  # type: ignore[arg-type]


def implicit_ratings(highest: float) -> Ratings:
    """Return what a few people have, on a scale that is found in the data."""
    items = Items.of([1, 2, 3])
    return Ratings.of([1, 1, 2, 3], [1, 2, 2, 3], [1, 2, 4, highest], items=items)


def test_without_ratings_nothing_that_is_sent_depends_on_a_rating() -> None:
    one, other = implicit_ratings(4), implicit_ratings(5)
    assert one.scale != other.scale
    assert IMPLICIT.agreement(one).digest == IMPLICIT.agreement(other).digest


def test_what_is_said_to_be_declared_was_declared() -> None:
    outcome = simulate_certified(implicit_ratings(4), replace(IMPLICIT, dropouts=0.0, colluders=0.0))
    stated = outcome.model.guarantee.assumptions
    assert not any("Rating scale" in one for one in stated)
    assert any(one.startswith("Configuration and number of rounds are public") for one in stated)
    central = METHODS["als-implicit"].fit(implicit_ratings(4), n_threads=1).guarantee.assumptions
    assert set(central) < set(stated)


def test_a_number_of_factors_that_follows_from_a_public_count_is_not_said_to_follow_from_a_noisy_one() -> None:
    method = ALS(n_epochs=2, budget=BUDGET)
    stated = simulate_certified(make(40, 30), CertifiedScenario(BUDGET, method=method)).model.guarantee.assumptions
    assert not any("as released, with noise" in one for one in stated)


def test_a_wide_scale_costs_no_round() -> None:
    ratings = make(40, 30)
    wide = replace(ratings, values=2500 * (ratings.values - 1), scale=Scale(0, 10_000, declared=True))
    outcome = simulate_certified(wide, CertifiedScenario(Budget(20.0), n_factors=4, n_epochs=2))
    assert outcome.refused == outcome.discarded == 0
    assert outcome.model.release.item_biases.any()


def test_what_nobody_would_answer_is_refused_before_it_is_charged() -> None:
    world = World(agreement_of("als"))
    (question,) = world.questions()
    with pytest.raises(InvalidArgument, match="weights is out of the range"):
        world.recommender.ask(range(8), [replace(question, weights=np.full(12, np.nan))])  # type: ignore[type-var]
    world.play()  # the same round, which has not been charged
