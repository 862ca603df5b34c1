"""Links between titles in private EASE: what they say, what is made of it, and when they are left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import evaluate
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.kernels.linked_pairs import MASS, MOST_MASS
from dpmf.methods import EASE
from dpmf.methods.certified.script import Crowd
from dpmf.methods.ease.certified import Measured, PublicEase
from dpmf.methods.ease.conditional import grouped_sums
from dpmf.methods.ease.links import linked_sums
from dpmf.methods.ease.plan import EasePlan
from dpmf.methods.ease.questions import GroupPairs, ItemPairs, LinkedPairs, link_weights
from dpmf.model import Model
from dpmf.privacy import Budget
from dpmf.privacy.verify import verify
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.titles import Links, catalogue_links

from ..watch import Killed, Watch

N_USERS, N_SERIES, PARTS = 2_000, 200, 4
LETTERS = "abcdefghijklmnop"
TITLES = [
    f"{LETTERS[part]}{LETTERS[series % 16]}q (Saga {LETTERS[series // 16]}{LETTERS[series % 16]}z, #{part + 1})"
    for series in range(N_SERIES)
    for part in range(PARTS)
]
CATALOGUE = Items.of(range(N_SERIES * PARTS), titles=TITLES)
NAMES = ["number of users", "item popularity", "linked pairs", "item pairs"]


def series(n_users: int = N_USERS, catalogue: Items = CATALOGUE) -> Ratings:
    """Return ratings of people who like all parts of a few series; every series is liked by about as many."""
    generator = np.random.default_rng(4)
    liked = generator.random((n_users, N_SERIES)).argsort(axis=1)[:, :3]
    rated = (liked[:, :, None] * PARTS + np.arange(PARTS)).reshape(n_users, -1)
    return Ratings.of(
        np.repeat(np.arange(n_users), rated.shape[1]),
        rated.ravel(),
        np.full(rated.size, 5),
        scale=(1, 5),
        items=catalogue,
    )


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return series()


def private(epsilon: float = 4.0, **fields: Any) -> EASE:
    return EASE(budget=Budget(epsilon), **fields)


def tensors(model: Model) -> list[bytes]:
    assert model.release.ranking is not None
    return [one.tobytes() for one in vars(model.release.ranking).values() if isinstance(one, np.ndarray)]


# What they say

FIRST = np.arange(0, 400, 2, dtype=np.int32)
LINKS = Links(FIRST, FIRST + np.int32(1), np.tile([0.25, 0.9], 100))


def measured(truth: Any, sd: float, seed: int = 0) -> Any:
    """Return noisy sums of pairs that are liked this often, by people each of whom likes two items."""
    weights = link_weights(LINKS) * (1 - MASS**2) ** 0.5
    exact = np.append(weights * truth, MASS / MOST_MASS * np.sum(truth) / 2)
    return exact + np.random.default_rng(seed).normal(0, sd, len(exact))


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_made_of_noise(seed: int) -> None:
    assert linked_sums(measured(np.zeros(200), 5.0, seed), 5.0, LINKS, np.full(400, 50.0)) is None


def test_pairs_are_as_often_liked_as_others_of_their_degree_and_as_measured() -> None:
    counts = np.random.default_rng(1).uniform(20, 200, 400)
    truth = np.where(LINKS.similarity > 0.5, 0.8, 0.2) * np.minimum(counts[FIRST], counts[FIRST + 1])
    for sd, most in ((0.01, 0.01), (20.0, 0.25)):
        found = linked_sums(measured(truth, sd), sd, LINKS, counts)
        assert found is not None
        expected = truth[np.isin(FIRST, found.first)] / 2  # Σ z z' of people with two items, all of them linked
        assert np.abs(found.values - expected).sum() < most * expected.sum()


def test_a_degree_that_says_nothing_is_left_out() -> None:
    truth = np.where(LINKS.similarity > 0.5, 40.0, 0.0)
    found = linked_sums(measured(truth, 3.0), 3.0, LINKS, np.full(400, 50.0))
    assert found is not None
    np.testing.assert_array_equal(found.first, FIRST[LINKS.similarity > 0.5])


# What is made of it


def test_where_popularity_says_nothing_links_find_the_other_parts(ratings: Ratings) -> None:
    train, held_out = ratings.split(0.25, seed=1)
    with_links, without = (
        evaluate(private(1.0, links=one, n_users=N_USERS).fit(train), held_out, k=10) for one in (None, False)
    )
    assert with_links["recall@10"] > 0.9
    assert with_links["recall@10"] > 1.5 * without["recall@10"]


def test_a_head_that_says_little_makes_room_for_links(ratings: Ratings, watch: Watch) -> None:
    model = private(1.0, n_users=N_USERS).fit(ratings)
    sizes = {record.what: record.sums.shape for record in watch.records}
    assert sizes["linked pairs"] == sizes["item pairs"] == (len(catalogue_links(CATALOGUE)) + 1,)
    assert model.release.configuration["head"] > len(TITLES) / 2
    private(1.0, n_users=N_USERS, head=50).fit(ratings)  # as somebody asked for it
    assert watch.records[-1].sums.shape == (50 * 51 // 2,)
    assert verify(model.guarantee).ok
    assert [one.what for one in model.guarantee.events] == NAMES[1:]


def pairs_of_series(n_users: int = N_USERS) -> Ratings:
    """Return ratings of people who like some parts of two series that belong together; titles do not say which do."""
    generator = np.random.default_rng(5)
    one = generator.integers(0, N_SERIES // 2, n_users)
    both = np.stack([one, one + N_SERIES // 2], axis=1)
    parts = generator.random((n_users, 2, PARTS)).argsort(axis=2)[:, :, :2]
    rated = (both[:, :, None] * PARTS + parts).reshape(n_users, -1)
    users = np.repeat(np.arange(n_users), rated.shape[1])
    return Ratings.of(users, rated.ravel(), np.full(rated.size, 5), scale=(1, 5), items=CATALOGUE)


def test_many_people_are_asked_about_groups_and_these_say_what_titles_do_not(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ratings = pairs_of_series()
    monkeypatch.setattr("dpmf.methods.ease.certified.ALL_GROUPED_MASS", 1_000.0)
    monkeypatch.setattr("dpmf.methods.ease.certified.GROUPED_MASS", 1_000.0)
    monkeypatch.setattr("dpmf.methods.ease.defaults._HEAD", 1.5)  # of 800 items, 134: people are few for a test
    model = private(4.0, n_users=N_USERS).fit(ratings)
    assert watch.records[-1].sums.shape == (134 * 133 // 2,)
    assert verify(model.guarantee).ok
    assert [one.what for one in model.guarantee.events] == NAMES[1:]
    assert model.release.ranking is not None
    found = model.release.ranking
    rows = np.repeat(np.arange(len(found.items)), np.diff(found.indptr))
    series_of = found.items // PARTS
    across = series_of[rows] != series_of[found.pairs]
    related = np.abs(series_of[rows] - series_of[found.pairs]) == N_SERIES // 2
    assert found.values[related].mean() > 10 * np.abs(found.values[across & ~related]).mean() > 0


def test_noise_over_pairs_of_groups_says_nothing() -> None:
    groups, head = np.arange(300, dtype=np.int32), np.arange(200, dtype=np.int32)
    noisy = np.random.default_rng(0).normal(0.0, 3.0, 200 * 199 // 2)
    assert grouped_sums(noisy, 3.0, groups, head, np.full(300, 50.0)) is None
    noisy[200] += 60.0
    found = grouped_sums(noisy, 3.0, groups, head, np.full(300, 50.0))
    assert found is not None
    assert found.rows[199] == 199
    assert found.rows[200] == -1


def test_a_run_resumes_with_pairs_of_groups(watch: Watch) -> None:
    public = private(4.0, n_users=10**5).public_half(CATALOGUE, Scale(1, 5))
    restored = private(4.0, n_users=10**5).public_half(CATALOGUE, Scale(1, 5))
    public.grouped_head = np.array([0, 4, 8], np.int32)
    public.grouped = Measured(np.arange(3.0), 2.0)
    restored.restore(public.state())
    assert restored.grouped is not None
    np.testing.assert_array_equal(restored.grouped.values, public.grouped.values)
    np.testing.assert_array_equal(restored.grouped_head, public.grouped_head)
    for name, wrong in (("grouped", np.arange(5.0)), ("grouped head", np.array([4, 0, 8], np.int32))):
        with pytest.raises(ValueError, match=r"grouped has the shape|ascending"):
            restored.restore({**public.state(), name: wrong})


def test_links_are_used_if_enough_of_a_catalogue_has_them(ratings: Ratings) -> None:
    untitled = series(300, Items.of(range(len(TITLES))))
    assert [one.what for one in private().fit(untitled).guarantee.events] == [NAMES[0], NAMES[1], NAMES[3]]
    for fields in ({"links": False}, {"head": 0}):
        model = private(**fields).fit(ratings)
        assert "linked pairs" not in [one.what for one in model.guarantee.events]
        assert not any("Titles" in one for one in model.guarantee.assumptions)
    assert any("Titles" in one for one in private().fit(ratings).guarantee.assumptions)
    few = [*TITLES[:4], *(f"{title[0]}{place}" for place, title in enumerate(TITLES[4:]))]
    sparse = series(300, Items.of(range(len(TITLES)), titles=few))
    assert len(private().fit(sparse).guarantee.events) == 3
    assert len(private(links=True).fit(sparse).guarantee.events) == 4
    with pytest.raises(InvalidArgument, match="links='some'"):
        private(links="some")


def test_without_titles_the_setting_changes_nothing() -> None:
    untitled = series(300, Items.of(range(len(TITLES))))
    one, other = (private(links=links, noise_seed=1).fit(untitled) for links in (True, False))
    assert tensors(one) == tensors(other)


def test_too_few_people_are_asked_about_items_three_times(watch: Watch) -> None:
    private(0.5).fit(series(300))
    assert [record.what for record in watch.records] == NAMES
    assert {record.sums.shape for record in watch.records[1:]} == {(len(TITLES),)}


def test_the_same_sums_come_from_disk_and_from_any_number_of_threads(ratings: Ratings, tmp_path: Path) -> None:
    stored = StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=1 << 16)
    runs = [private(noise_seed=1).fit(one, n_threads=n) for one, n in ((ratings, 1), (ratings, 3), (stored, 2))]
    assert tensors(runs[0]) == tensors(runs[1]) == tensors(runs[2])


@pytest.mark.parametrize("draw", [3, 4])
def test_what_a_stopped_run_lost_is_left_out(ratings: Ratings, tmp_path: Path, watch: Watch, draw: int) -> None:
    watch.kill_at = draw
    with pytest.raises(Killed):
        private(20.0).fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    watch.kill_at = None
    model = private(20.0).fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    assert verify(model.guarantee).ok
    assert [one.what for one in model.guarantee.events] == NAMES
    assert model.release.ranking is not None
    assert len(model.release.ranking.items) > 0  # either pairs or links are left


def test_budgets_of_single_users_count_in_links_too(ratings: Ratings, watch: Watch) -> None:
    found = []
    for wishes in ({}, dict.fromkeys(range(N_USERS // 2), 0.0)):
        private().fit(ratings, user_budgets=wishes)
        found += [record.sums.sum() / record.steps for record in watch.records if record.what == "linked pairs"]
    assert found[1] == pytest.approx(found[0] / 2, rel=0.01)


# Plans, and people who answer for themselves


def test_a_plan_counts_the_numbers_of_what_may_be_asked() -> None:
    def coordinates(**facts: Any) -> list[int]:
        plan = EasePlan(
            **{"n_items": 100, "head": None, "n_users": None, "budget": Budget(1.0), "n_links": 6000, **facts}
        )
        return [one.coordinates for one in plan.events()]

    assert coordinates() == [1, 100, 6001, 6001]
    assert coordinates(n_links=50) == [1, 100, 100, 5050]  # items may be counted once more
    assert coordinates(head=3) == [1, 100, 6001, 6]
    assert coordinates(head=0) == [100]
    assert coordinates(n_users=10) == [100]
    assert coordinates(crowd=Crowd(10**5, 1)) == [100, 6001, 5050]


def test_people_who_answer_for_themselves_agree_on_links() -> None:
    few = series(40)
    method = private(50.0, head=10)
    outcome = simulate_certified(few, CertifiedScenario(Budget(50.0), method=method, dropouts=0.0, colluders=0.0))
    assert [one.what for one in outcome.model.guarantee.events] == NAMES[1:]
    assert outcome.refused == outcome.discarded == 0
    agreement = outcome.agreement
    other = replace(agreement, catalogue=Items.of(range(len(TITLES)), titles=[*TITLES[:-1], TITLES[0]]))
    assert agreement.digest != other.digest


@pytest.mark.parametrize(
    ("likes", "n_users", "part", "expected"),
    [
        (9.0, 10_000, 0.9, "groups"),
        (9.0, 10_000, 0.2, "links"),
        (9.0, 100_000, 0.2, "groups"),
        (9.0, 4_000, 0.9, "head"),
        (64.0, 100_000, 0.9, "head"),
        (64.0, 100_000, 0.2, "links"),
    ],
)
def test_what_is_asked_last_follows_from_noisy_counts(
    likes: float, n_users: int, part: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of people who like few items, groups say more; a small head says less than links."""
    monkeypatch.setattr(PublicEase, "_may_replace", lambda _: True)
    public = private(1.0, n_users=n_users).public_half(CATALOGUE, Scale(1, 5))
    n_items, size = len(CATALOGUE), len(CATALOGUE) // 4
    counts = np.repeat([part / size, (1 - part) / (n_items - size)], [size, n_items - size])
    public.n_users, public.head = float(n_users), np.arange(size, dtype=np.int32)
    public.counts = Measured(counts * n_users * likes**0.5, 1e-6)
    public.linked = Measured(np.zeros(1), 1.0)
    (question,) = next(public.converse(public.plan.stages()[-1]))
    asked = {GroupPairs: "groups", LinkedPairs: "links", ItemPairs: "head"}[type(question)]
    assert asked == expected
