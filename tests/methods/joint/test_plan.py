"""The plan of a run that ranks and predicts: one budget for both halves, and nothing released twice."""

from __future__ import annotations

import math

import pytest

from dpmf.methods import EASE, Joint
from dpmf.methods.als.plan import POPULARITY, USERS, WEIGHTS
from dpmf.methods.certified.script import Crowd
from dpmf.methods.joint.defaults import ranking_share
from dpmf.methods.joint.plan import JointPlan
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of, gdp_of
from dpmf.privacy.calibration import gdp_for, part_of
from dpmf.ratings import Items, Scale

N_ITEMS, STARS = 1_000, Scale(1, 5)


def plan_of(crowd: Crowd | None = None, **fields: object) -> JointPlan:
    method = Joint(**{"budget": Budget(2.0), **fields})  # type: ignore[arg-type]
    return method.public_half(Items.of(range(N_ITEMS)), STARS, crowd).plan


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("share", [0.05, 0.45, 0.9])
def test_both_halves_together_cost_one_budget(share: float, neighbours: str) -> None:
    budget = Budget(2.0, neighbours=neighbours)
    plan = plan_of(budget=budget, share=share)
    events = plan.events()
    assert 0.999 * budget.epsilon < epsilon_of(events, budget.delta, neighbours=neighbours) <= budget.epsilon
    ranking = {part.what for part in plan.ranking.parts()}
    squares = [gdp_of([event]) ** 2 for event in events if event.what in ranking]
    assert math.fsum(squares) / gdp_of(events) ** 2 == pytest.approx(share)


@pytest.mark.parametrize(
    ("fields", "crowd"),
    [
        ({}, None),
        ({"n_users": 5_000}, None),
        ({"n_users": 5}, None),  # too few for pairs
        ({"head": 0}, None),
        ({"n_factors": 0}, None),
        ({}, Crowd(5_000, 4_500)),
    ],
)
def test_every_release_has_a_name_of_its_own_and_people_are_counted_once(
    fields: dict[str, object], crowd: Crowd | None
) -> None:
    plan = plan_of(crowd, **fields)
    names = [event.what for event in plan.events()]
    assert len(set(names)) == len(names)
    assert names.count(USERS) == (crowd is None)
    assert names.count(POPULARITY) == names.count(WEIGHTS) == 1
    staged = [what for stage in plan.stages() for what in stage.releases]
    assert {event.what: event.count for event in plan.events()} == {what: staged.count(what) for what in names}
    assert len({stage.name for stage in plan.stages()}) == len(plan.stages())
    assert [stage.essential for stage in plan.stages()] == [True, *[False] * (len(plan.stages()) - 1)]


def test_a_part_of_a_budget_is_worth_what_its_noise_alone_would_give() -> None:
    whole = Budget(3.0)
    part = part_of(whole, 0.25)
    assert gdp_for(part.epsilon, part.delta) == pytest.approx(gdp_for(3.0, whole.delta) / 2, rel=1e-6)
    assert part_of(whole, 1.0).epsilon == pytest.approx(3.0)
    assert part_of(Budget(1e-9), 0.5).epsilon > 0


def test_what_a_half_can_find_follows_from_its_share() -> None:
    heads = [plan_of(n_users=50_000, share=share).ranking.most_head for share in (0.05, 0.5)]
    assert heads[0] < heads[1]
    alone = EASE(budget=part_of(Budget(2.0), 0.5), n_users=50_000)
    assert heads[1] == alone.public_half(Items.of(range(N_ITEMS)), STARS).plan.most_head
    few = plan_of(share=0.9).ratings.n_factors(200_000)
    assert few < plan_of(share=0.1).ratings.n_factors(200_000)


def test_the_share_is_a_public_choice() -> None:
    for epsilon in (0.1, 1.0, 20.0):
        for n_users in (None, 1_000, 1_000_000):
            assert 0 < ranking_share(epsilon, n_users) < 1
            method = Joint(budget=Budget(epsilon), n_users=n_users)
            assert method.configuration()["share"] == ranking_share(epsilon, n_users)
    assert Joint(budget=Budget(math.inf)).configuration()["share"] is None
