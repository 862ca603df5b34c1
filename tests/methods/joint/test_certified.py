"""A release that ranks and predicts, as a whole: what each half finds, and what becomes of it if one finds nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.disclosure.explain import explain_release
from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate
from dpmf.evaluation.metrics import rmse
from dpmf.methods import ALS, EASE, Joint
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.joint.defaults import MOST_GIVEN
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings

from ..watch import Killed, Watch

N_USERS, N_ITEMS = 600, 24


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """Return ratings of people of two classes, who like half of the items of their own, and know a few others."""
    generator = np.random.default_rng(4)
    own = (np.arange(N_USERS)[:, None] + np.arange(N_ITEMS)) % 2 == 0
    users, items = np.nonzero(generator.random((N_USERS, N_ITEMS)) < np.where(own, 0.5, 0.1))
    values = np.where(own[users, items], 5, 1)
    return Ratings.of(users, items, values, scale=(1, 5), items=range(N_ITEMS))


def private(epsilon: float = 12.0, **fields: Any) -> Joint:
    return Joint(budget=Budget(epsilon), **fields)


def test_lists_beat_popularity_and_predictions_beat_own_means(ratings: Ratings) -> None:
    train, held_out = ratings.split(0.2, seed=1)
    ours = evaluate(private(n_factors=1, noise_seed=1).fit(train), held_out, k=5)
    alone = evaluate(private(noise_seed=1).without_factors().fit(train), held_out, k=5)
    assert ours["ndcg@5"] > 1.2 * alone["ndcg@5"]
    assert ours["rmse"] < 0.9 * rmse(baseline_errors(train, held_out))


def test_lists_are_ordered_by_the_ranking_and_rated_by_the_rating_model(ratings: Ratings, tmp_path: Path) -> None:
    model = private(n_factors=1).fit(ratings)
    model.release.save(tmp_path / "release")
    back = Release.load(tmp_path / "release")
    person = back.fold_in({0: 5.0, 2: 4.0, 3: 1.0})
    listed = person.recommend(5)
    assert [one.score for one in listed] == sorted((one.score for one in listed), reverse=True)
    stars = person.predict([one.item for one in listed])
    assert [one.rating for one in listed] == pytest.approx(stars.tolist(), abs=1e-3)
    assert model.recommend_batch(k=3)[7] == model.recommend(model.user_ids[7], k=3)
    configuration = back.configuration
    assert (configuration["method"], configuration["n_factors"]) == ("joint", 1)
    assert configuration["head"] == N_ITEMS
    assert 0 < configuration["share"] < 1
    assert verify(back.guarantee).ok
    words = " ".join(sentence for section in explain_release(back) for sentence in section.sentences)
    assert "For ranking, it holds" in words
    assert "predicts no ratings" not in words


def test_ratings_are_predicted_with_the_factors_of_the_ranking(ratings: Ratings) -> None:
    train, held_out = ratings.split(0.2, seed=1)
    given, none = private(noise_seed=1).fit(train), private(n_factors=0, noise_seed=1).fit(train)
    assert 0 < given.release.n_measured_factors <= MOST_GIVEN
    assert none.release.n_measured_factors == 0
    assert evaluate(given, held_out)["rmse"] < 0.95 * evaluate(none, held_out)["rmse"]
    assert len(given.history) == private().n_turns


def test_rounds_of_many_people_start_from_the_factors_of_the_ranking(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmf.methods.joint.MEASURED_FACTORS", FactorRule(1, 1, 1.0, 10.0))
    train, held_out = ratings.split(0.2, seed=1)
    method = private(n_epochs=1, noise_seed=1)  # too few to find them from a random start
    public = method.public_half(train.catalogue, train.scale)
    model = method.fit(train)
    assert public.ratings.plan.most_factors == 1
    assert model.release.n_measured_factors == 1
    without = private(n_factors=0, noise_seed=1).fit(train)
    assert evaluate(model, held_out)["rmse"] < 0.8 * evaluate(without, held_out)["rmse"]


def test_there_is_one_entry_in_a_ledger(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(13.0))
    model = private().fit(ratings, ledger=ledger)
    assert [entry.guarantee for entry in ledger.entries()] == [model.guarantee]


@pytest.mark.parametrize("fields", [{}, {"n_users": 30}, {"head": 0, "n_factors": 0}])
def test_where_nothing_can_be_found_it_still_ranks_and_predicts(
    ratings: Ratings, fields: dict[str, Any], tmp_path: Path
) -> None:
    few = ratings.select(ratings.users < 30)
    release = private(0.05, noise_seed=1, **fields).fit(few).release  # a seed, so that it never fails by chance
    assert release.ranks
    assert release.predicts_ratings
    assert release.ranking is not None
    assert not len(release.ranking.items)
    release.save(tmp_path / "release")
    person = Release.load(tmp_path / "release").fold_in({0: 5.0, 2: 5.0, 4: 5.0})
    assert person.predict([1])[0] > 3.5  # one's own mean is still there
    assert release.configuration["head"] == 0


def killed_in_stage(place: int, ratings: Ratings, folder: Path, watch: Watch) -> Model:
    """Kill a run at the first draw of a stage, all of which but the first draw once, and resume it."""
    fields: dict[str, Any] = {"n_factors": 1, "n_epochs": 2}
    watch.drawn.clear()
    watch.kill_at = 2 + place
    with pytest.raises(Killed):
        private(40.0, **fields).fit(ratings, checkpoint=Checkpoint(folder))
    watch.kill_at = None
    return private(40.0, **fields).fit(ratings, checkpoint=Checkpoint(folder, resume=True))


def test_a_lost_stage_of_one_half_does_not_end_the_other(
    ratings: Ratings, tmp_path: Path, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    train, held_out = ratings.split(0.2, seed=1)
    without_pairs = killed_in_stage(1, train, tmp_path / "pairs", watch)
    assert without_pairs.release.ranking is not None
    assert not len(without_pairs.release.ranking.items)
    without_totals = killed_in_stage(2, train, tmp_path / "totals", watch)
    assert [message.split(" was")[0] for message in caplog.messages] == ["pairs of items", "the count of ratings"]
    for model in (without_pairs, without_totals):  # the guess of totals is good enough
        assert evaluate(model, held_out)["rmse"] < rmse(baseline_errors(train, held_out))


def test_without_privacy_it_is_both_methods_in_one_release(ratings: Ratings) -> None:
    nothing = Budget(math.inf)
    both = Joint(budget=nothing, n_factors=2, n_epochs=3).fit(ratings, n_threads=1)
    rated = ALS(budget=nothing, n_factors=2, n_epochs=3).fit(ratings, n_threads=1)
    ranked = EASE(budget=nothing).fit(ratings, n_threads=1)
    np.testing.assert_array_equal(both.release.item_factors, rated.release.item_factors)
    np.testing.assert_array_equal(both.user_factors, rated.user_factors)
    assert both.release.ranking is not None
    assert ranked.release.ranking is not None
    np.testing.assert_array_equal(both.release.ranking.left, ranked.release.ranking.left)
    assert [one.item for one in both.recommend(3, k=5)] == [one.item for one in ranked.recommend(3, k=5)]
    assert both.guarantee.mode == "none"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"share": 0}, "share=0 should be a number from 0.01 to 0.99"),
        ({"share": 1e-300}, "share=1e-300 should be"),
        ({"share": 0.991}, "share=0.991 should be"),
        ({"share": 1.0}, "share=1.0"),
        ({"share": "half"}, "share='half'"),
        ({"share": True}, "share=True"),
        ({"head": -1}, "head=-1"),
        ({"n_factors": 257}, "n_factors=257"),
        ({"budget": Budget(1.0, unit="rating")}, "unit='rating'"),
        ({"budget": 1.0}, "Joint needs Budget"),
    ],
)
def test_what_it_cannot_use_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Joint(**{"budget": Budget(1.0), **fields})
