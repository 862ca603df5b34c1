"""What was chosen by measuring accuracy: whoever changes a number here has measured again, and says so in the docs."""

from __future__ import annotations

import math

import pytest

from dpmf.kernels.item_pairs import Ramp
from dpmf.methods import METHODS
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.ease import defaults as ease
from dpmf.methods.ease import links
from dpmf.methods.joint import defaults as joint
from dpmf.ratings import Scale, titles

EASE = {
    "MOST_HEAD": 8_000,
    "LEAST_MASS": 1_800.0,
    "LEAST_COVERAGE": 0.2,
    "LEAST_IN_HEAD": 0.4,
    "FEW_LIKES": 25.0,
    "GROUPED_MASS": 8_000.0,
    "ALL_GROUPED_MASS": 80_000.0,
}
TITLES = {
    "LEAST_SIMILARITY": 0.1,
    "_CLOSE": 0.3,
    "_MOST_SHARING": 100,
    "_MOST_PER_ITEM": 10,
}
LINKS = {
    "_DEGREES": (0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8),
    "_STANDS_OUT": 3.0,
    "_DEGREE_STANDS_OUT": 1.0,
}
JOINT = {
    "MOST_GIVEN": 48,
    "MEASURED_FACTORS": FactorRule(least=8, most=16, point=100_000, nothing=150_000),
    "LEAST_SHARE": 0.01,
}
SHARES = [  # of the budget
    # users, popularity, links, pairs
    (False, (0.0005, 0.1195, 0.0, 0.88)),
    (True, (0.0005, 0.25, 0.2, 0.5495)),
]
HEADS = [
    # epsilon, people, items of the catalogue, of the head
    (1.0, 1_799, 10_000, 0),
    (1.0, 1_800, 10_000, 169),
    (1.0, 10_000, 10_000, 400),
    (4.0, 10_000, 10_000, 800),
    (4.0, 10_000, 500, 500),
    (20.0, 10_000_000, 20_000, 8_000),
]
RAMPS = [
    # scale, implicit feedback, weights rise from, to
    (Scale(1, 5), False, Ramp(2.0, 5.0)),
    (Scale(0, 100), False, Ramp(25.0, 100.0)),
    (Scale(1, 5), True, Ramp(-math.inf, -math.inf)),
    (Scale.of_counts(), True, Ramp(-4.0, 4.0, counts=True)),
    (Scale(1, 50, counts=True), True, Ramp(-4.0, 4.0, counts=True)),
]


@pytest.mark.parametrize(
    ("module", "table"),
    [(ease, EASE), (links, LINKS), (joint, JOINT)],
    ids=["ease", "links", "joint"],
)
def test_limits(module: object, table: dict[str, object]) -> None:
    assert {name: getattr(module, name) for name in table} == table


def test_another_number_of_links_is_another_plan() -> None:
    # Links are found again when a plan is rebuilt: with other numbers here, honest releases would be refused, unless
    # `plan_version` of both methods is raised with them.
    found = {name: getattr(titles, name) for name in TITLES}
    assert (found, METHODS["ease"].plan_version, METHODS["joint"].plan_version) == (TITLES, 2, 2)


@pytest.mark.parametrize(("linked", "expected"), SHARES)
def test_shares_of_a_ranking(linked: bool, expected: tuple[float, ...]) -> None:
    assert tuple(ease.shares_of(linked=linked).values()) == expected
    assert math.isclose(sum(expected), 1.0)


@pytest.mark.parametrize(("epsilon", "n_users", "n_items", "expected"), HEADS)
def test_sizes_of_the_head(epsilon: float, n_users: float, n_items: int, expected: int) -> None:
    assert ease.head_size(epsilon, n_users, n_items) == expected


@pytest.mark.parametrize(("scale", "implicit", "expected"), RAMPS)
def test_weights(scale: Scale, implicit: bool, expected: Ramp) -> None:
    assert ease.ramp_of(scale, implicit=implicit) == expected


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("n_users", [None, 100, 10_000_000])
def test_the_share_of_the_ranking(epsilon: float, n_users: int | None) -> None:
    assert joint.ranking_share(epsilon, n_users) == 0.7
