"""Two data sets that differ in one person, through the real rounds: no released sum differs by more than its bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from dpmf.methods.als.central import CentralRounds
from dpmf.methods.als.implicit_plan import ObservedPlan
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.methods.als import implicit_plan as observed_plan
from dpmf.methods.als import plan as private_plan
from dpmf.methods.als.certified import PrivateRounds
from dpmf.methods.als.implicit_certified import ObservedRounds
from dpmf.methods.als.plan import Plan
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import STEPS_PER_SD, Noise
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.trim import trimmed

ROUNDS = 3
PUBLIC_STATE = ("c", "V", "weights", "totals", "popularity", "n_users", "mean", "clip", "ridge", "total", "counts")
Rounds = CentralRounds | ObservedRounds
Pair = tuple[int, float]


class Record(NamedTuple):
    """One release: what was summed exactly, and what everybody saw of it."""

    what: str
    sums: NDArray[np.int64]
    steps: float
    sensitivity: float
    seen: NDArray[np.float64]


class Recorder(Mechanism):
    """A mechanism with public noise that keeps the exact sums; it may show what was seen in another world instead."""

    def __init__(self, events: tuple[GaussianEvent, ...], script: list[Record] | None = None) -> None:
        super().__init__(events, Noise(noise_seed=1))
        self.records: list[Record] = []
        self._script: Iterator[Record] | None = None if script is None else iter(script)

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        """Keep the sums, and show what the script says, or else the sums with public noise."""
        seen = super().release(what, sums, sensitivity)  # refuses what is not in the plan
        if self._script is not None:
            seen = next(self._script).seen
        self.records.append(Record(what, sums.copy(), self.steps(what, sensitivity), sensitivity, seen))
        return seen.copy()


@dataclass(frozen=True)
class Someone:
    """A person: an id, pairs of item and rating, and the part of the full weight they agreed to."""

    name: int
    rated: list[Pair]
    share: float = 1.0


@dataclass(frozen=True)
class Setting:
    """What is public."""

    plan: Plan | ObservedPlan
    cap: int | None
    scale: Scale
    checked: bool  # whether ratings come in by the front door, which refuses what is no rating
    n_threads: int
    lost: frozenset[int] = frozenset()  # stages that another process began and did not finish

    def ratings(self, people: list[Someone]) -> Ratings:
        catalogue = Items.of(np.arange(self.plan.n_items))
        rows = [(one.name, item, value) for one in people for item, value in one.rated]
        if self.checked:
            users, items, values = ([row[column] for row in rows] for column in range(3))
            return Ratings.of(users, items, values, scale=self.scale, items=catalogue)
        people = sorted(people, key=lambda one: one.name)
        return Ratings(
            indptr=np.concatenate([[0], np.cumsum([len(one.rated) for one in people])]).astype(np.int64),
            items=np.array([item for one in people for item, _ in one.rated], np.int32),
            values=np.array([value for one in people for _, value in one.rated], np.float32),
            timestamps=None,
            user_ids=Ids(np.array([one.name for one in people], np.int64)),
            catalogue=catalogue,
            scale=self.scale,
        )

    def run(self, people: list[Someone], script: list[Record] | None = None) -> tuple[Rounds, list[Record]]:
        """Carry out all rounds, on the sums of these people, or on what the script says was seen."""
        ratings = self.ratings(people)
        shares = {one.name: one.share for one in people}
        recorder = Recorder(self.plan.events(), script)
        counted = ratings if self.cap is None else trimmed(ratings, self.cap, seed=5)
        weights = np.array([shares[int(name)] for name in ratings.user_ids])
        state: Rounds
        if isinstance(self.plan, ObservedPlan):
            state = ObservedRounds(self.plan, ratings, counted, weights, recorder, seed=3, n_threads=self.n_threads)
        else:
            state = CentralRounds(self.plan, ratings, counted, weights, recorder, seed=3, n_threads=self.n_threads)
        for place, stage in enumerate(self.plan.stages()):
            if place in self.lost:
                for what in stage.releases:
                    recorder.forfeit(what)
                continue
            state.measure(stage)
            state.settle(stage)
        recorder.finish()
        return state, recorder.records


def plain(scale: Scale) -> st.SearchStrategy[float]:
    """Ratings on the scale, its ends more often than others."""
    return st.one_of(st.floats(scale.lo, scale.hi, width=32), st.sampled_from([scale.lo, scale.hi]))


def wild(scale: Scale) -> st.SearchStrategy[float]:
    """Ratings that the front door would have refused."""
    odd = [math.nan, math.inf, -math.inf, 1e30, -1e30, 3e38, 1e-45]
    return st.one_of(plain(scale), st.sampled_from(odd))


@st.composite
def settings_of_runs(draw: st.DrawFn, neighbours: str, implicit: bool) -> Setting:
    n_items, ridge = draw(st.integers(2, 8)), draw(st.sampled_from([0.1, 1e-3]))
    n_factors = draw(st.one_of(st.integers(0, 3), st.none()))
    budget = Budget(draw(st.sampled_from([0.2, 5.0, 50.0])), neighbours=neighbours)
    plan: Plan | ObservedPlan
    if implicit:
        plan = ObservedPlan(n_items, n_factors, ROUNDS, ridge, draw(st.sampled_from([0.0, 2.0])), budget)
    else:
        plan = Plan(n_items, n_factors, ROUNDS, draw(st.booleans()), ridge, budget)
    scale = draw(st.sampled_from([Scale(1, 5), Scale(0.5, 5), Scale(0, 100), Scale(-1, 1)]))
    cap = draw(st.sampled_from([None, 1, 3]))
    last = len(plan.stages()) - 1
    some = st.frozensets(st.integers(1, last)) if last else st.nothing()
    lost = draw(st.one_of(st.just(frozenset[int]()), some))
    return Setting(plan, cap, scale, draw(st.booleans()), draw(st.sampled_from([1, 2])), lost)


def someone(setting: Setting, name: int, share: float = 1.0) -> st.SearchStrategy[Someone]:
    """The worst person there could be: any items, any number of times, in any order, at any value."""
    m = setting.plan.n_items
    value = plain(setting.scale) if setting.checked else wild(setting.scale)
    least = 1 if setting.checked else 0
    any_pairs = st.lists(st.tuples(st.integers(0, m - 1), value), min_size=least, max_size=3 * m)
    all_items = st.lists(value, min_size=m, max_size=m).map(lambda values: list(enumerate(values)))
    one_item = st.tuples(st.integers(0, m - 1), value).map(lambda pair: [pair])
    return st.one_of(any_pairs, all_items, one_item).map(lambda rated: Someone(name, rated, share))


@st.composite
def worlds(draw: st.DrawFn, neighbours: str, implicit: bool) -> tuple[Setting, list[Someone], Someone, Someone]:
    """Draw a setting, a crowd, and two people who are not in it and have the same name and share."""
    setting = draw(settings_of_runs(neighbours, implicit))
    crowd = [draw(someone(setting, name)) for name in range(10, 10 + draw(st.integers(1, 3)))]
    name = draw(st.sampled_from([-7, 11, 99]))  # before, among or after the others
    crowd = [replace(one, name=one.name + (one.name >= name)) for one in crowd]
    share = draw(st.sampled_from([1.0, 1.0, 0.37, 1e-3, 0.0]))
    return setting, crowd, draw(someone(setting, name, share)), draw(someone(setting, name, share))


def check_distances(first: list[Record], second: list[Record], setting: Setting, share: float) -> None:
    """Hold every release against the bound that it was given, and against what its event promises, in exact numbers."""
    multipliers = {one.what: one.noise_multiplier for one in setting.plan.events()}
    assert [one.what for one in first] == [one.what for one in second]
    for one, other in zip(first, second, strict=True):
        assert (one.steps, one.sensitivity) == (other.steps, other.sensitivity)
        distance = sum(int(gap) ** 2 for gap in (one.sums - other.sums).ravel())
        assert distance <= (Fraction(share) * Fraction(one.sensitivity) * Fraction(one.steps)) ** 2, one.what
        assert distance * Fraction(multipliers[one.what]) ** 2 <= (Fraction(share) * STEPS_PER_SD) ** 2, one.what


def public_part(state: Rounds) -> PrivateRounds | ObservedRounds:
    """Return where a run keeps what may be released."""
    return state.public if isinstance(state, CentralRounds) else state


def check_same_public_state(first: Rounds, second: Rounds) -> None:
    """What everybody saw was the same, so everything that is made public has the same bits."""
    one, other = public_part(first), public_part(second)
    for name in PUBLIC_STATE:
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


feedback = pytest.mark.parametrize("implicit", [False, True], ids=["explicit", "implicit"])


@pytest.fixture
def chosen_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handful of people be enough for a run to choose several factors."""
    monkeypatch.setattr(private_plan, "_NO_FACTORS", 0)
    for module in (private_plan, observed_plan):
        monkeypatch.setattr(module, "_FACTOR_POINT", 30)


@feedback
@pytest.mark.usefixtures("chosen_factors")
@given(data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_moves_a_sum_too_far_in_a_run_that_chooses_its_factors(implicit: bool, data: st.DataObject) -> None:
    setting, crowd, worst, _ = data.draw(worlds("add-remove", implicit))
    setting = replace(setting, plan=replace(setting.plan, n_factors=None))
    without, before = setting.run(crowd)
    within, after = setting.run([*crowd, worst], script=before)
    assert 0 < public_part(without).V.shape[1] == public_part(within).V.shape[1]
    check_distances(before, after, setting, worst.share)
    check_same_public_state(without, within)


@feedback
@given(data=st.data())
@settings(max_examples=100)
def test_nobody_who_joins_moves_a_sum_by_more_than_its_bound(implicit: bool, data: st.DataObject) -> None:
    setting, crowd, worst, _ = data.draw(worlds("add-remove", implicit))
    without, before = setting.run(crowd)
    within, after = setting.run([*crowd, worst], script=before)
    event(f"K={setting.plan.n_factors} checked={setting.checked}")
    check_distances(before, after, setting, worst.share)
    check_same_public_state(without, within)


@feedback
@given(data=st.data())
@settings(max_examples=40)
def test_nobody_who_leaves_moves_a_sum_by_more_than_its_bound(implicit: bool, data: st.DataObject) -> None:
    """Here the sums that everybody saw are those with the person, so that the rounds follow their ratings."""
    setting, crowd, worst, _ = data.draw(worlds("add-remove", implicit))
    within, before = setting.run([*crowd, worst])
    without, after = setting.run(crowd, script=before)
    check_distances(before, after, setting, worst.share)
    check_same_public_state(within, without)


@feedback
@given(data=st.data())
@settings(max_examples=70)
def test_nobody_who_is_replaced_moves_a_sum_by_more_than_its_bound(implicit: bool, data: st.DataObject) -> None:
    setting, crowd, worst, opposite = data.draw(worlds("replace", implicit))
    one, before = setting.run([*crowd, worst])
    other, after = setting.run([*crowd, opposite], script=before)
    check_distances(before, after, setting, worst.share)
    check_same_public_state(one, other)


def opposites() -> tuple[list[Someone], Someone, Someone]:
    """Return two people, somebody of strong opinions, and somebody of the opposite ones."""
    crowd = [Someone(10, [(0, 5.0), (3, 1.0)]), Someone(11, [(1, 2.0), (2, 4.0)])]
    mixed = [(item, 5.0 if item % 2 else 1.0) for item in range(4)]
    return crowd, Someone(12, mixed), Someone(12, [(item, 6.0 - value) for item, value in mixed])


@pytest.mark.parametrize("per_item", [False, True])
def test_strong_opinions_come_near_the_bounds(per_item: bool) -> None:
    """So the search for somebody who passes them is not idle: sensitivities half as large would be found out."""
    crowd, mixed, flipped = opposites()
    for neighbours, before, after in (("add-remove", [], [mixed]), ("replace", [mixed], [flipped])):
        plan = Plan(4, 2, ROUNDS, per_item, 1e-3, Budget(50.0, neighbours=neighbours))
        setting = Setting(plan, None, Scale(1, 5), checked=True, n_threads=1)
        _, first = setting.run([*crowd, *before])
        _, second = setting.run([*crowd, *after], script=first)
        check_distances(first, second, setting, 1.0)
        reached: dict[str, float] = {}
        for one, other in zip(first, second, strict=True):
            distance = math.dist(one.sums.ravel(), other.sums.ravel()) / one.steps / one.sensitivity
            reached[one.what] = max(distance, reached.get(one.what, 0.0))
        assert reached["item biases"] > 0.9
        if neighbours == "add-remove":
            assert min(reached["number of users"], reached["item popularity"], reached["item weights"]) > 0.99
            assert min(reached["item factors"], reached["user moments"]) > 0.6


def test_rounding_cannot_lift_a_count_of_people_to_its_bound() -> None:
    """What one person adds is below the bound by more than products of floating-point numbers are off."""
    crowd, mixed, _ = opposites()
    setting = Setting(Plan(4, 0, ROUNDS, False, 0.1, Budget(5.0)), None, Scale(1, 5), True, 1)
    _, before = setting.run(crowd)
    _, after = setting.run([*crowd, mixed], script=before)
    for one, other in zip(before[:3], after[:3], strict=True):
        assert math.dist(one.sums, other.sums) <= (1 - 5e-7) * one.sensitivity * one.steps, one.what


def test_a_person_of_no_weight_moves_nothing() -> None:
    crowd, mixed, _ = opposites()
    setting = Setting(Plan(4, 2, ROUNDS, True, 0.1, Budget(5.0)), None, Scale(1, 5), True, 1)
    _, before = setting.run(crowd)
    _, after = setting.run([*crowd, replace(mixed, share=0.0)])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)


@pytest.mark.parametrize("share", [math.nan, math.inf, -1.0, 1.1])
def test_a_share_that_is_none_counts_as_nothing(share: float) -> None:
    crowd, mixed, _ = opposites()
    setting = Setting(Plan(4, 2, ROUNDS, True, 0.1, Budget(5.0)), None, Scale(1, 5), True, 1)
    _, before = setting.run(crowd)
    _, after = setting.run([*crowd, replace(mixed, share=share)], script=before)
    check_distances(before, after, setting, 0.0)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("per_item", [False, True])
@pytest.mark.parametrize("n_factors", [0, 1, 5])
def test_the_plan_lists_every_number_that_is_released(n_factors: int, per_item: bool, neighbours: str) -> None:
    crowd, mixed, _ = opposites()
    plan = Plan(4, n_factors, ROUNDS, per_item, 0.1, Budget(5.0, neighbours=neighbours))
    setting = Setting(plan, None, Scale(1, 5), True, 1)
    _, records = setting.run([*crowd, mixed])
    for one in plan.events():
        sizes = [record.sums.size for record in records if record.what == one.what]
        assert (len(sizes), sum(sizes)) == (one.count, one.coordinates)
    assert [record.what for record in records] == [what for stage in plan.stages() for what in stage.releases]


# Implicit feedback


def observers(neighbours: str = "add-remove", n_factors: int = 2) -> tuple[Setting, list[Someone], Someone]:
    """Return a setting, two people, and somebody who has one item only, and so counts for as much as anybody can."""
    plan = ObservedPlan(4, n_factors, ROUNDS, 0.3, 1.0, Budget(50.0, neighbours=neighbours))
    return Setting(plan, None, Scale(1, 5), checked=True, n_threads=1), opposites()[0], Someone(12, [(0, 5.0)])


def test_somebody_with_one_item_comes_near_the_bounds() -> None:
    setting, crowd, single = observers()
    _, first = setting.run(crowd)
    _, second = setting.run([*crowd, single], script=first)
    reached: dict[str, float] = {}
    for one, other in zip(first, second, strict=True):
        distance = math.dist(one.sums.ravel(), other.sums.ravel()) / one.steps / one.sensitivity
        reached[one.what] = max(distance, reached.get(one.what, 0.0))
    assert min(reached["number of users"], reached["item popularity"]) > 0.99
    assert min(reached["item factors"], reached["user moments"]) > 0.6


@pytest.mark.parametrize("share", [0.0, math.nan, math.inf, -1.0, 1.1])
def test_whoever_has_no_share_moves_nothing_by_what_they_have(share: float) -> None:
    setting, crowd, single = observers()
    _, before = setting.run(crowd)
    _, after = setting.run([*crowd, replace(single, share=share)], script=before)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)


def test_how_people_rate_what_they_have_moves_nothing() -> None:
    setting, crowd, _ = observers()
    others = [replace(one, rated=[(item, 6.0 - value) for item, value in one.rated]) for one in crowd]
    for one, other in zip(setting.run(crowd)[1], setting.run(others)[1], strict=True):
        np.testing.assert_array_equal(one.sums, other.sums)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("n_factors", [0, 1, 5])
def test_the_plan_for_implicit_feedback_lists_every_number(n_factors: int, neighbours: str) -> None:
    setting, crowd, single = observers(neighbours, n_factors)
    _, records = setting.run([*crowd, single])
    for one in setting.plan.events():
        sizes = [record.sums.size for record in records if record.what == one.what]
        assert (len(sizes), sum(sizes)) == (one.count, one.coordinates)
    assert [record.what for record in records] == [what for stage in setting.plan.stages() for what in stage.releases]
