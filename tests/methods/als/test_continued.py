"""Starting from an earlier release: what it brings, what it costs, and what cannot be started from."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf import ALS, Budget, Joint, Release
from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.methods.als.continued import CONTINUES, before_of, n_factors_of
from dpmf.methods.verification import verify_release
from dpmf.model import EpochRecord
from dpmf.model.person import fold_in_many
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import PERSONAL
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def halves() -> tuple[Ratings, Ratings, Ratings]:
    """Return earlier and later ratings of the same people, and some to test on."""
    ratings = make(3000, 60, mean_ratings=24)
    part = np.random.default_rng(2).random(len(ratings))
    return ratings.select(part < 0.6), ratings.select((part >= 0.6) & (part < 0.8)), ratings.select(part >= 0.8)


@pytest.fixture(scope="module")
def earlier(halves: tuple[Ratings, Ratings, Ratings]) -> Release:
    return ALS(budget=Budget(20.0), noise_seed=1).fit(halves[0]).release


@pytest.fixture(scope="module")
def first(halves: tuple[Ratings, Ratings, Ratings]) -> Release:
    """Return an earlier release whose noise was not seeded."""
    return ALS(budget=Budget(2.0), n_factors=2, n_epochs=1).fit(halves[0]).release


def error_of(release: Release, known: Ratings, test: Ratings) -> float:
    """Return the rmse of everybody folded in by what is known of them."""
    biases, factors = fold_in_many(release, known.indptr, known.items, known.values)
    users, items = test.users, test.items
    scores = np.einsum("nk,nk->n", factors[users], release.item_factors[items])
    scores += biases[users] + release.item_biases[items] + release.mean
    return math.sqrt(float(np.square(np.clip(scores, 1, 5) - test.values).mean()))


def test_little_budget_goes_farther_from_an_earlier_release(
    halves: tuple[Ratings, Ratings, Ratings], earlier: Release, first: Release
) -> None:
    old, new, test = halves
    method = ALS(budget=Budget(0.5), noise_seed=5)
    certified = replace(earlier, guarantee=first.guarantee)
    continued, alone = method.fit(new, start=certified).release, method.fit(new).release
    assert continued.n_used_factors == earlier.n_used_factors > 0
    errors = [error_of(one, old, test) for one in (continued, alone, earlier)]
    assert errors[0] < errors[1] - 0.005
    assert errors[0] < errors[2] + 0.01


def test_it_is_certified_for_the_new_ratings_and_says_where_it_started(
    halves: tuple[Ratings, Ratings, Ratings], first: Release, tmp_path: Path
) -> None:
    new = halves[1]
    run = ALS(budget=Budget(1.0), n_epochs=2)
    release = run.fit(new, start=first).release
    alone = replace(run, n_factors=n_factors_of(first)).plan_of(new.catalogue, new.scale)
    assert release.guarantee.own_events() == alone.events()  # starting from what is public costs nothing more
    assert len(release.guarantee.events) == len(first.guarantee.events) + len(alone.events())
    assert first.guarantee.epsilon is not None
    assert release.guarantee.epsilon is not None
    assert first.guarantee.epsilon < release.guarantee.epsilon < first.guarantee.epsilon + 1.0
    assert release.configuration[CONTINUES]["epsilon"] == 2.0
    assert any("earlier release" in one and "is included" in one for one in release.guarantee.assumptions)
    release.save(tmp_path / "r")
    assert verify_release(Release.load(tmp_path / "r")).ok
    hidden = {name: value for name, value in release.configuration.items() if name != CONTINUES}
    assert not verify_release(replace(release, configuration=hidden)).ok
    cheaper = replace(release.guarantee, events=release.guarantee.own_events(), epsilon=1.0)
    assert not verify_release(replace(release, guarantee=cheaper)).ok


def test_the_guarantee_rests_on_what_either_of_the_two_rests_on(first: Release) -> None:
    alone = first.guarantee
    earlier = replace(alone, personal=True, assumptions=(*alone.assumptions, "Ids are public.", PERSONAL))
    both = alone.after(earlier)
    assert both.personal
    assert both.assumptions == (*alone.assumptions, "Ids are public.", PERSONAL)  # each once
    assert Guarantee.from_json(both.to_json()) == both


def test_more_than_can_be_accounted_for_is_refused_before_it_is_spent(
    halves: tuple[Ratings, Ratings, Ratings], first: Release, tmp_path: Path
) -> None:
    ledger, new = Ledger(tmp_path / "ledger", Budget.recorded(math.inf, 1e-6, "user", "add-remove")), halves[1]
    plan = ALS(budget=Budget(45.0), n_factors=0).plan_of(new.catalogue, new.scale)
    large = replace(first, guarantee=Guarantee.certified_by(*plan.guaranteed(), releases=["item factors"]))
    with pytest.raises(BudgetExceeded, match="epsilon=45 after the earlier 45 is more than can be accounted for"):
        ALS(budget=Budget(45.0)).fit(new, start=large, ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize("stated", [{"epsilon": 0.1}, {"delta": 1e-3}, {"users": 2718}], ids=["cost", "delta", "more"])
def test_a_release_tells_of_the_one_before_what_its_events_say(
    halves: tuple[Ratings, Ratings, Ratings], first: Release, stated: dict[str, float]
) -> None:
    release = ALS(budget=Budget(1.0), n_epochs=1).fit(halves[1], start=first).release
    record = {**release.configuration[CONTINUES], **stated}
    verdict = verify_release(replace(release, configuration={**release.configuration, CONTINUES: record}))
    assert not verdict.ok
    assert "the release that it starts from" in verdict.reason


def test_the_ranking_of_a_joint_release_is_kept(
    halves: tuple[Ratings, Ratings, Ratings], first: Release, tmp_path: Path
) -> None:
    old, new, _ = halves
    start = Joint(budget=Budget(20.0)).fit(old).release
    ids = list(new.catalogue.ids)
    catalogue = Items.of([ids[1], 9999, *reversed(ids[2:])])
    users, items = new.user_ids.array[new.users], new.catalogue.ids.array[new.items]
    listed = Ratings.of(users, items, new.values, scale=(1, 5), items=catalogue)
    run = ALS(budget=Budget(1.0), n_epochs=1)
    release = run.fit(listed, start=start).release
    assert start.ranking is not None
    assert release.ranking is not None
    assert len(start.ranking.items) > 20
    own = {ids[3]: 5.0, ids[9]: 4.0}
    lists = [
        [one.item for one in of.fold_in(own).recommend(60) if one.item not in (ids[0], 9999)] for of in (start, release)
    ]
    assert lists[0] == lists[1]
    assert release.fold_in(own).recommend(60)[-1].item == 9999
    assert release.learnt.popular == min(start.learnt.popular or 0, 59)
    release.save(tmp_path / "r")
    saved = Release.load(tmp_path / "r")
    assert verify_release(saved).ok
    forged = replace(run.fit(listed, start=first).release, ranking=saved.ranking)
    assert "no event released pairs of items" in str(verify_release(forged).reason)


def test_of_a_release_of_other_items_nothing_is_known(first: Release) -> None:
    others = Items.of([f"other {number}" for number in range(30)])
    before = before_of(first, others)
    assert before.n_known == 0
    assert not before.with_ratings.any()


def test_a_run_that_is_resumed_goes_on_from_the_same_release(
    halves: tuple[Ratings, Ratings, Ratings], first: Release, tmp_path: Path
) -> None:
    new = halves[1]
    method = ALS(budget=Budget(1.0), noise_seed=3, n_epochs=3)
    whole = method.fit(new, start=first).release

    def stop(record: EpochRecord) -> None:
        if record.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        method.fit(new, start=first, callbacks=[stop], checkpoint=Checkpoint(tmp_path / "c"))
    resumed = method.fit(new, start=first, checkpoint=Checkpoint(tmp_path / "c", resume=True)).release
    assert np.array_equal(resumed.item_factors, whole.item_factors)
    other = replace(first, item_biases=first.item_biases + np.float32(0.1))
    with pytest.raises(InvalidArgument):
        method.fit(new, start=other, checkpoint=Checkpoint(tmp_path / "c", resume=True))


def test_items_are_found_by_their_ids(earlier: Release) -> None:
    catalogue = Items.of([7, 3, 999])
    before = before_of(earlier, catalogue)
    for place, item in enumerate((7, 3)):
        position = earlier.items.ids.position(item)
        assert position is not None
        np.testing.assert_array_equal(before.factors[place], earlier.item_factors[position, : n_factors_of(earlier)])
        assert before.biases[place] == earlier.item_biases[position]
    assert not before.factors[2].any()
    assert not before.biases[2]
    assert not before.with_factors[2]


def test_what_cannot_be_started_from_is_refused(
    halves: tuple[Ratings, Ratings, Ratings], earlier: Release, first: Release
) -> None:
    new = halves[1]
    run = ALS(budget=Budget(1.0))
    refusals = [
        (run, earlier, "not certified"),  # its noise was seeded
        (run, replace(first, guarantee=replace(first.guarantee, epsilon=0.5)), "contradicts itself: epsilon=0.5"),
        (run, replace(first, configuration={"method": "sketch"}), "this one is of sketch"),
        (run, replace(first, feedback="implicit"), "on implicit feedback"),
        (ALS(budget=Budget(1.0, neighbours="replace")), first, "neighbours='add-remove'"),
        (run, replace(first, scale=Scale(0, 5), mean=2.5), "the scale 0:5"),
        (replace(run, n_factors=5), first, "n_factors=5: the release to start from has"),
        (ALS(budget=Budget(math.inf)), first, "only a certified run"),
        (replace(run, feedback="implicit"), first, "only a certified run"),
    ]
    for method, start, words in refusals:
        with pytest.raises(InvalidArgument, match=words):
            method.fit(new, start=start)
