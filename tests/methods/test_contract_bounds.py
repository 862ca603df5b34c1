"""Two data sets that differ in one person, through real conversations: no released sum differs by more than its bound.

After each release both worlds continue from what the first one saw: composition takes care of the rest.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.certified.steps import PublicSteps
from dpmf.privacy import Budget
from dpmf.privacy.noise import STEPS_PER_SD
from dpmf.ratings import Ratings, Scale

from .cases import CERTIFIED, RATINGS, Case, label_of
from .halves import HALVES, Facts, Half, Setting, Someone, public_state
from .watch import Record, Watch

half = pytest.mark.parametrize("half", HALVES)


def plain(scale: Scale) -> st.SearchStrategy[float]:
    """Ratings on the scale, its ends more often than others."""
    return st.one_of(st.floats(scale.lo, scale.hi, width=32), st.sampled_from([scale.lo, scale.hi]))


def wild(scale: Scale) -> st.SearchStrategy[float]:
    """Ratings that the front door would have refused."""
    odd = [math.nan, math.inf, -math.inf, 1e30, -1e30, 3e38, 1e-45]
    return st.one_of(plain(scale), st.sampled_from(odd))


@st.composite
def settings_of_runs(draw: st.DrawFn, half: str, neighbours: str) -> Setting:
    budget = Budget(draw(st.sampled_from([0.2, 5.0, 50.0])), neighbours=neighbours)
    chosen = FactorRule(1, 3, 30.0)  # a handful of people is enough for several factors
    factors = draw(st.one_of(st.integers(0, 3).map(FactorRule.exactly), st.just(chosen)))
    scale = draw(st.sampled_from([Scale(1, 5), Scale(0.5, 5), Scale(0, 100), Scale(-1, 1)]))
    facts = Facts(draw(st.integers(2, 8)), scale, budget, factors, draw(st.sampled_from([0.1, 1e-3])))
    setting = Setting(half, facts, draw(st.sampled_from([None, 1, 3])), draw(st.booleans()), draw(st.integers(1, 2)))
    last = len(setting.public().plan.stages()) - 1
    some = st.frozensets(st.integers(1, last)) if last else st.nothing()
    return replace(setting, lost=draw(st.one_of(st.just(frozenset[int]()), some)))


def someone(setting: Setting, name: int, share: float = 1.0) -> st.SearchStrategy[Someone]:
    """The worst person there could be: any items, any number of times, in any order, at any value."""
    m = setting.facts.n_items
    value = plain(setting.facts.scale) if setting.checked else wild(setting.facts.scale)
    least = 1 if setting.checked else 0
    any_pairs = st.lists(st.tuples(st.integers(0, m - 1), value), min_size=least, max_size=3 * m)
    all_items = st.lists(value, min_size=m, max_size=m).map(lambda values: list(enumerate(values)))
    one_item = st.tuples(st.integers(0, m - 1), value).map(lambda pair: [pair])
    return st.one_of(any_pairs, all_items, one_item).map(lambda rated: Someone(name, rated, share))


World = tuple[Setting, list[Someone], Someone, Someone]


@st.composite
def worlds(draw: st.DrawFn, half: str, neighbours: str) -> World:
    """Draw a setting, a crowd, and two people who are not in it and have the same name and share."""
    setting = draw(settings_of_runs(half, neighbours))
    crowd = [draw(someone(setting, name)) for name in range(10, 10 + draw(st.integers(1, 3)))]
    name = draw(st.sampled_from([-7, 11, 99]))  # before, among or after the others
    crowd = [replace(one, name=one.name + (one.name >= name)) for one in crowd]
    share = draw(st.sampled_from([1.0, 1.0, 0.37, 1e-3, 0.0]))
    pair = draw(someone(setting, name, share)), draw(someone(setting, name, share))
    return replace(setting, always=name), crowd, *pair


def check_distances(first: list[Record], second: list[Record], setting: Setting, share: float) -> None:
    """Hold every release against the bound that it was given, and against what its event promises, in exact numbers."""
    multipliers = {one.what: one.noise_multiplier for one in setting.public().plan.events()}
    # The noise of a sampled step is relative to one contribution: its accountant knows what replacing one means.
    sampled = setting.half.startswith(("sgld", "sketch"))
    twice = 2 if sampled and setting.facts.budget.neighbours == "replace" else 1
    assert [one.what for one in first] == [one.what for one in second]
    for one, other in zip(first, second, strict=True):
        assert (one.steps, one.sensitivity) == (other.steps, other.sensitivity)
        distance = sum(int(gap) ** 2 for gap in (one.sums - other.sums).ravel())
        most = twice * Fraction(share)
        assert distance <= (most * Fraction(one.sensitivity) * Fraction(one.steps)) ** 2, one.what
        assert distance * Fraction(multipliers[one.what]) ** 2 <= (most * STEPS_PER_SD) ** 2, one.what


def check_same_public_state(first: Half, second: Half) -> None:
    """What everybody saw was the same, so everything that is made public has the same bits."""
    one, other = public_state(first), public_state(second)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


@half
@given(data=st.data())
@settings(max_examples=50)
def test_nobody_who_joins_or_leaves_moves_a_sum_by_more_than_its_bound(half: str, data: st.DataObject) -> None:
    """Everybody sees the sums without the person, or those with them: then conversations follow their ratings."""
    setting, crowd, worst, _ = data.draw(worlds(half, "add-remove"))
    groups = crowd, [*crowd, worst]
    joins = data.draw(st.booleans())
    event(f"checked={setting.checked} joins={joins}")
    one, before = setting.run(groups[0 if joins else 1])
    other, after = setting.run(groups[1 if joins else 0], script=before)
    check_distances(before, after, setting, worst.share)
    check_same_public_state(one, other)


@half
@given(data=st.data())
@settings(max_examples=25)
def test_nobody_who_is_replaced_moves_a_sum_by_more_than_its_bound(half: str, data: st.DataObject) -> None:
    setting, crowd, worst, opposite = data.draw(worlds(half, "replace"))
    one, before = setting.run([*crowd, worst])
    other, after = setting.run([*crowd, opposite], script=before)
    check_distances(before, after, setting, worst.share)
    check_same_public_state(one, other)


CROWD = [Someone(10, [(0, 5.0), (3, 1.0)]), Someone(11, [(1, 2.0), (2, 4.0)])]
MIXED = Someone(12, [(item, 5.0 if item % 2 else 1.0) for item in range(4)])  # somebody of strong opinions
SINGLE = Someone(12, [(0, 5.0)])
THOUSANDS = Someone(12, [(item, 5.0 if item % 2 else 1.0) for item in [0, 1, 2, 3] * 1000])
OFF_SCALE = Someone(12, [(item, 1e6 * (-1) ** item) for item in range(4)])
SHUFFLED = Someone(12, [(item, 5.0 if item % 2 else 1.0) for item in (3, 0, 2, 1, 3)])


@half
@pytest.mark.parametrize(
    "worst", [SINGLE, THOUSANDS, OFF_SCALE, SHUFFLED], ids=["one", "many", "off scale", "shuffled"]
)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_worst_people_move_no_sum_by_more_than_its_bound(half: str, worst: Someone, neighbours: str) -> None:
    setting = Setting(half, checked=False).with_neighbours(neighbours)
    before = [MIXED] if neighbours == "replace" else []
    one, first = setting.run([*CROWD, *before])
    other, second = setting.run([*CROWD, worst], script=first)
    check_distances(first, second, setting, 1.0)
    check_same_public_state(one, other)


@half
def test_huge_factors_move_no_sum_by_more_than_its_bound(half: str) -> None:
    """Everybody sees sums of any size, from which the public half makes items of any size."""
    setting = Setting(half, checked=False)
    _, before = setting.run(CROWD)
    for size in (1e6, 1e12):
        huge = [one._replace(seen=np.sign(one.seen) * size * (1 + np.abs(one.seen))) for one in before]
        with np.errstate(all="ignore"):
            _, first = setting.run(CROWD, script=huge)
            _, second = setting.run([*CROWD, MIXED], script=huge)
        check_distances(first, second, setting, 1.0)


@pytest.mark.parametrize("case", [case for case in CERTIFIED if case.method != "objective"], ids=label_of)
def test_whoever_is_added_to_a_file_moves_no_sum_by_more_than_its_bound(
    case: Case, tmp_path: Path, watch: Watch
) -> None:
    """Through everything: reading, the cap, and the run itself."""
    names, items = RATINGS.user_ids.array[RATINGS.users], RATINGS.catalogue.ids.array
    rows = [
        f"{name},{item},{value:g}"
        for name, item, value in zip(names, items[RATINGS.items], RATINGS.values, strict=True)
    ]
    worst = [f"zz,{item},{value}" for value in (5, 1) for item in items] + [f"zz,{item},5" for item in items[::2]]
    changes = {"cap": 5} if case.takes_cap else {}
    found = []
    for people in (rows, [*worst, *rows]):
        (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *people]) + "\n")
        ratings = Ratings.read(tmp_path / "ratings.csv", scale=(1, 5), duplicates="last")
        assert ratings.catalogue.ids.keys.tolist() == RATINGS.catalogue.ids.keys.tolist()
        case.fit(ratings, {**changes, "noise_seed": 6, "items_public": True})
        found.append(watch.records)
        watch.script = watch.records
    assert [one.what for one in found[0]] == [one.what for one in found[1]]
    gaps = [sum(int(gap) ** 2 for gap in (one.sums - other.sums).ravel()) for one, other in zip(*found, strict=True)]
    for one, gap in zip(found[0], gaps, strict=True):
        assert gap <= (Fraction(one.sensitivity) * Fraction(one.steps)) ** 2, one.what
    assert any(gaps)


NEARLY = {  # how near to its bound somebody comes, so that sensitivities half as large would be found out
    "number of users": 0.99, "item popularity": 0.99, "item weights": 0.99, "item biases": 0.9, "item factors": 0.6,
    "user moments": 0.6, "item pairs": 0.99, "linked pairs": 0.95,
    "gradients with respect to item factors and biases": 0.99,
    "gradients with respect to the cells of a sketch of items": 0.99,
}  # fmt: skip


@half
def test_somebody_comes_near_the_bounds(half: str) -> None:
    """So the search for somebody who passes them is not idle."""
    setting, reached = Setting(half), dict[str, float]()
    _, first = setting.run(CROWD)
    for person in (MIXED, SINGLE):
        _, second = setting.run([*CROWD, person], script=first)
        for one, other in zip(first, second, strict=True):
            distance = math.dist(one.sums.ravel(), other.sums.ravel()) / one.steps / one.sensitivity
            reached[one.what] = max(distance, reached.get(one.what, 0.0))
    assert reached.keys() == {one.what for one in setting.public().plan.events()}
    assert all(distance > NEARLY[what] for what, distance in reached.items()), reached


def test_rounding_cannot_lift_a_count_of_people_to_its_bound() -> None:
    """What one person adds is below the bound by more than products of floating-point numbers are off."""
    setting = Setting("als", Facts(budget=Budget(5.0), factors=FactorRule.exactly(0)))
    _, before = setting.run(CROWD)
    _, after = setting.run([*CROWD, MIXED], script=before)
    for one, other in zip(before[:3], after[:3], strict=True):
        assert math.dist(one.sums, other.sums) <= (1 - 5e-7) * one.sensitivity * one.steps, one.what


@half
@pytest.mark.parametrize("share", [0.0, math.nan, math.inf, -1.0, 1.1])
def test_whoever_has_no_share_or_none_that_is_one_moves_nothing(half: str, share: float) -> None:
    setting = Setting(half)
    _, before = setting.run(CROWD)
    _, after = setting.run([*CROWD, replace(MIXED, share=share)], script=before)
    check_distances(before, after, setting, 0.0)


@half
def test_whoever_counts_for_less_moves_sums_by_less(half: str) -> None:
    setting = Setting(half)
    _, before = setting.run(CROWD)
    _, after = setting.run([*CROWD, replace(MIXED, share=0.25)], script=before)
    check_distances(before, after, setting, 0.25)
    assert any((one.sums != other.sums).any() for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("half", ["als-implicit", "ease-implicit"])
def test_how_people_rate_what_they_have_moves_nothing_of_implicit_feedback(half: str) -> None:
    setting = Setting(half)
    others = [replace(one, rated=[(item, 6.0 - value) for item, value in one.rated]) for one in CROWD]
    for one, other in zip(setting.run(CROWD)[1], setting.run(others)[1], strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)


@half
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("n_factors", [0, 1, 5])
def test_the_plan_lists_every_number_that_is_released(half: str, neighbours: str, n_factors: int) -> None:
    setting = replace(Setting(half), facts=Facts(factors=FactorRule.exactly(n_factors))).with_neighbours(neighbours)
    public, records = setting.run([*CROWD, MIXED])
    for one in public.plan.events():
        sizes = [record.sums.size for record in records if record.what == one.what]
        few = half.endswith("-of-few") and one.what.endswith("pairs")  # as many as there are pairs are planned
        grouped = half == "ease-grouped" and one.what == "item pairs"  # of items, and there are fewer groups
        expected = setting.facts.n_items if few else sum(sizes) if grouped else one.coordinates
        assert (len(sizes), sum(sizes)) == (one.count, expected)
        assert sum(sizes) <= one.coordinates
    assert [record.what for record in records] == [what for stage in public.plan.stages() for what in stage.releases]
    if isinstance(public, PublicSteps):
        assert {record.sensitivity for record in records} == {public.plan.sensitivity}
