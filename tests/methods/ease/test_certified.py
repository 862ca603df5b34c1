"""Private EASE as a whole: what it releases of whom, what it says about itself, and how little it can be given."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.disclosure.explain import explain_release
from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import evaluate
from dpmf.methods import EASE
from dpmf.methods.ease.plan import EasePlan
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource

from ..watch import Killed, Watch

N_USERS, N_ITEMS = 600, 24
ALONE = "popularity alone"


def classes(n_users: int = N_USERS) -> Ratings:
    """Return ratings of people of two classes, who like half of the items of their own, and know a few others."""
    generator = np.random.default_rng(4)
    own = (np.arange(n_users)[:, None] + np.arange(N_ITEMS)) % 2 == 0
    users, items = np.nonzero(generator.random((n_users, N_ITEMS)) < np.where(own, 0.5, 0.1))
    values = np.where(own[users, items], 5, 1)
    return Ratings.of(users, items, values, scale=(1, 5), items=range(N_ITEMS))


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return classes()


def private(epsilon: float = 8.0, **fields: Any) -> EASE:
    return EASE(budget=Budget(epsilon), **fields)


# What it learns and says


def test_it_recommends_what_people_like_and_beats_popularity(ratings: Ratings) -> None:
    train, held_out = ratings.split(0.2, seed=1)
    ours = evaluate(private().fit(train), held_out, k=5)
    popular = evaluate(private().without_factors().fit(train), held_out, k=5)
    assert "rmse" not in ours
    assert ours["ndcg@5"] > 1.3 * popular["ndcg@5"]


def test_a_release_is_what_was_measured(ratings: Ratings, tmp_path: Path) -> None:
    """Saving rounds nothing any more: what is tested is what is read back."""
    model = private().fit(ratings)
    model.release.save(tmp_path / "release")
    back = Release.load(tmp_path / "release")
    assert back.ranking is not None
    assert model.release.ranking is not None
    for name, one in vars(back.ranking).items():
        np.testing.assert_array_equal(one, getattr(model.release.ranking, name))
    mine = {0: 5.0, 2: 4.0, 3: 1.0}
    assert back.fold_in(mine).recommend(5) == model.release.fold_in(mine).recommend(5)
    with pytest.raises(InvalidArgument, match="only ranks"):
        back.fold_in(mine).predict([1])


def test_people_are_known_by_their_weighted_items_in_memory_and_from_disk(ratings: Ratings, tmp_path: Path) -> None:
    stored = StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=0)
    models = [private(noise_seed=1).fit(one) for one in (ratings, stored)]
    for model in models:
        assert model.seen_weights is not None
        np.testing.assert_array_equal(model.seen_weights, ratings.values == 5)  # 1 does not count
        assert model.recommend(7) == models[0].recommend(7)
    implicit = [private(noise_seed=1, feedback="implicit").fit(one) for one in (ratings, stored)]
    assert all((model.rated().values == 1).all() for model in implicit)
    person = models[0].release.fold_in(dict(zip(*(one.tolist() for one in ratings.of_user(7)), strict=True)))
    assert [one.item for one in person.recommend(5)] == [one.item for one in models[0].recommend(7, 5)]
    models[1].save(tmp_path / "model")
    assert Model.load(tmp_path / "model").recommend(7) == models[0].recommend(7)


def test_it_says_what_it_releases(ratings: Ratings) -> None:
    release = private().fit(ratings).release
    assert str(release.guarantee).endswith("certified; releases the ranking of items and the configuration")
    assert [one.what for one in release.guarantee.events] == ["number of users", "item popularity", "item pairs"]
    assert verify(release.guarantee).ok
    words = "\n".join(line for part in explain_release(release) for line in part.sentences)
    for said in ("the ranking of items", "number of users: a sum", "item pairs: a sum", "It predicts no ratings"):
        assert said in words
    assert release.configuration["head"] == N_ITEMS
    assert release.configuration["n_users"] is None


def test_a_number_of_users_that_was_declared_is_not_measured(ratings: Ratings) -> None:
    for declared in (private(n_users=500).fit(ratings), private().fit(replace(ratings, users_about=500))):
        assert [one.what for one in declared.guarantee.events] == ["item popularity", "item pairs"]
        assert any("number of users is public" in one for one in declared.guarantee.assumptions)
        assert declared.release.configuration["n_users"] == 500
    both = private(n_users=400).fit(replace(ratings, users_about=500))
    assert both.release.configuration["n_users"] == 400
    counted = private().fit(ratings).guarantee
    assert any("as released, with noise" in one for one in counted.assumptions)


# Nothing to be found


def test_too_few_people_are_asked_twice_about_items_and_it_says_so(
    ratings: Ratings, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    model = private(0.5).fit(ratings)
    last = watch.records[-1]
    assert (last.what, last.sums.shape) == ("item pairs", (N_ITEMS,))
    popularity = watch.records[1]
    np.testing.assert_allclose(popularity.sums / popularity.steps, last.sums / last.steps, atol=1e-6)  # the same sums
    assert model.release.ranking is not None
    weights = [
        1 / next(e.noise_multiplier for e in model.guarantee.events if e.what == what) ** 2  # type: ignore[union-attr]
        for what in ("item popularity", "item pairs")
    ]
    both = np.average([popularity.seen, last.seen], axis=0, weights=weights)
    np.testing.assert_allclose(model.release.ranking.popularity, both, rtol=1e-6)
    assert (ALONE in caplog.text, "too few people" in caplog.text) == (True, True)
    assert model.release.configuration["head"] == 0


def test_where_nothing_stands_out_from_the_noise_it_says_so(ratings: Ratings, caplog: pytest.LogCaptureFixture) -> None:
    model = private(0.05, head=N_ITEMS, noise_seed=3).fit(ratings)
    assert "no pairs of items stand out" in caplog.text
    assert ALONE in caplog.text
    assert model.release.configuration["head"] == 0
    assert [one.item for one in model.recommend(0, 3)] != []
    caplog.clear()
    private(head=0).fit(ratings)
    assert not caplog.text  # popularity is what was asked for


def test_if_the_stage_of_pairs_is_lost_items_are_ranked_by_popularity(
    ratings: Ratings, tmp_path: Path, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    watch.kill_at = 3
    with pytest.raises(Killed):
        private().fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    watch.kill_at = None
    model = private().fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    assert model.release.ranking is not None
    assert len(model.release.ranking.items) == 0
    assert model.release.ranking.popularity.std() > 0
    assert "pairs of items was lost" in caplog.text
    assert verify(model.guarantee).ok
    assert [one.what for one in model.guarantee.events] == ["number of users", "item popularity", "item pairs"]


# Plans


def test_a_plan_counts_the_numbers_of_what_is_asked_last() -> None:
    def coordinates(**facts: Any) -> list[int]:
        plan = EasePlan(**{"n_items": 100, "head": None, "n_users": None, "budget": Budget(1.0), **facts})
        return [one.coordinates for one in plan.events()]

    assert coordinates() == [1, 100, 5050]
    assert coordinates(head=3) == [1, 100, 6]
    assert coordinates(head=0) == [100]
    assert coordinates(n_users=10) == [100]
    assert coordinates(head=200) == [1, 100, 5050]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"head": -1}, "head=-1"),
        ({"head": 10**6}, "head=1000000"),
        ({"n_users": 0}, "n_users=0"),
        ({"feedback": "loud"}, "feedback='loud'"),
        ({"budget": Budget(1.0, unit="rating")}, "unit='rating'"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        EASE(**{"budget": Budget(1.0), **fields})


# Little


def few(*rows: tuple[int, int, float], items: int = 3) -> Ratings:
    users, rated, values = zip(*rows, strict=True)
    return Ratings.of(users, rated, values, scale=(1, 5), items=range(items))


TINY = {
    "one item": few((1, 0, 5), (2, 0, 4), items=1),
    "two items": few((1, 0, 5), (1, 1, 4), (2, 1, 5), items=2),
    "one item of all": few(*((user, 1, 5) for user in range(30)), items=3),
    "nobody likes anything": few(*((user, user % 3, 1) for user in range(30))),
    "a large catalogue": few((1, 0, 5), (2, 1, 5), items=80),
}


@pytest.mark.parametrize("epsilon", [1e-3, 5.0, 50.0, math.inf])
@pytest.mark.parametrize("head", [None, 0, 1, 1000])
@pytest.mark.parametrize("name", TINY)
def test_tiny_and_odd_data_are_fine(name: str, head: int | None, epsilon: float) -> None:
    ratings = TINY[name]
    for feedback in ("explicit", "implicit"):
        model = EASE(budget=Budget(epsilon), head=head, feedback=feedback).fit(ratings, n_threads=1)
        assert model.release.ranking is not None
        model.release.ranking.check(ratings.n_items)
        assert len(model.recommend(1, ratings.n_items, include_rated=True)) == ratings.n_items
