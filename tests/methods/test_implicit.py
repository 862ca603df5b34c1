"""ALS on implicit feedback as a whole: exact and private, what it refuses, promises and recommends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import evaluate
from dpmf.kernels.als_implicit import solve_implicit_reference
from dpmf.methods import configure
from dpmf.methods.als import ALS
from dpmf.model import Model, Release
from dpmf.model.person import fold_in_many
from dpmf.privacy import Budget
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

N = 40  # users, and items, of the checkerboard


def learner(epsilon: float = 5.0, **fields: Any) -> ALS:
    return ALS(**{"feedback": "implicit", "n_factors": 3, "n_epochs": 3, "budget": Budget(epsilon), **fields})


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(211, 40, mean_ratings=12)


@pytest.fixture(scope="module", params=[5.0, math.inf], ids=["private", "exact"])
def model(request: pytest.FixtureRequest, ratings: Ratings) -> Model:
    return learner(request.param).fit(ratings, n_threads=2)


def checkerboard(n_users: int = N) -> Ratings:
    """Return what people have if even users have even items, and odd users odd ones."""
    users, items = np.nonzero((np.arange(n_users)[:, None] + np.arange(N)) % 2 == 0)
    return Ratings.of(users, items, np.ones(len(users)), scale=(0, 1), items=range(N))


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes()


# What it learns


@pytest.mark.parametrize(("epsilon", "n_users"), [(math.inf, N), (20.0, 3000)])
def test_recommended_are_items_of_the_right_class(epsilon: float, n_users: int) -> None:
    train, held_out = checkerboard(n_users).split(0.2, seed=3)
    model = learner(epsilon, n_factors=2, n_epochs=5, items_public=True).fit(train)
    assert evaluate(model, held_out, k=10)["recall@10"] > 0.95
    newcomer = model.release.fold_in([0, 2, 4])
    right = sum(int(one.item) % 2 == 0 for one in newcomer.recommend(k=10))
    assert right == 10 if math.isinf(epsilon) else right >= 7  # fresh noise may lift an item of the other class


def test_private_factors_beat_popularity_where_there_is_enough_to_learn_from() -> None:
    train, test = checkerboard(2000).split(0.2, seed=1)
    ours, popular = (learner(1.0, n_factors=K, noise_seed=1).fit(train) for K in (2, 0))
    assert evaluate(ours, test)["ndcg@10"] > 1.5 * evaluate(popular, test)["ndcg@10"]


def test_without_factors_the_ranking_is_popularity(ratings: Ratings) -> None:
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    exact = learner(math.inf, n_factors=0).fit(ratings).release.item_biases
    np.testing.assert_allclose(exact, counts / ratings.n_users, rtol=1e-6)
    private = learner(50.0, n_factors=0).fit(ratings).release.item_biases
    assert np.corrcoef(private, counts)[0, 1] > 0.95


# People


def test_fold_in_is_the_formula_of_training(model: Model, ratings: Ratings) -> None:
    release = model.release
    _, folded = fold_in_many(release, ratings.indptr, ratings.items, ratings.values)
    for user in range(0, ratings.n_users, 20):
        own = ratings.of_user(user)[0]
        expected = solve_implicit_reference(
            own, release.item_factors, release.item_biases.astype(np.float64), release.ridge.factors, release.alpha
        )
        np.testing.assert_allclose(folded[user], expected, rtol=1e-3, atol=1e-4)
    if model.guarantee.mode != "none":  # exact training ends with the items, so people are one half-step behind
        np.testing.assert_allclose(model.user_factors, folded, rtol=1e-5, atol=1e-6)


def test_fold_in_takes_items_alone_or_with_values_that_do_not_matter(model: Model) -> None:
    release = model.release
    expected = release.fold_in([1, 2, 3]).factors
    for mine in ({1: 5, 2: -1, 3: math.nan}, {3, 2, 1}, (1, 2, 3, 1), dict.fromkeys([1, 2, 3], "yes"), iter([1, 2, 3])):
        np.testing.assert_array_equal(release.fold_in(mine).factors, expected)
    title = release.items.titles[0]
    np.testing.assert_array_equal(release.fold_in([title, 1, 2, 3]).factors, expected)
    assert release.fold_in([1, "Gremlins"]).unknown == ("Gremlins",)
    with pytest.raises(InvalidArgument, match="not a list of items"):
        release.fold_in("Heat")
    with pytest.raises(InvalidArgument, match="none of the rated items"):
        release.fold_in(["Gremlins"])


def test_scores_are_not_clipped_to_a_scale(model: Model, ratings: Ratings) -> None:
    release = model.release
    large = replace(release, item_biases=np.full(len(release.items), 3.0, np.float32))
    person = replace(release.fold_in([1]), release=large, factors=np.zeros(3, np.float32))
    assert person.recommend(1)[0].score == person.predict([5])[0] == 3.0
    alone = model.recommend(ratings.user_ids[0], k=5)
    assert model.recommend_batch([ratings.user_ids[0]], k=5)[0] == alone


def test_figures_are_of_ranking_alone(ratings: Ratings) -> None:
    train, test = ratings.split(0.2, seed=2)
    model = learner().fit(train)
    figures = evaluate(model, test)
    assert sorted(figures) == ["coverage@10", "hit_rate@10", "ndcg@10", "recall@10"]
    folded = evaluate(model.release, test, known=train)
    assert folded["recall@10"] == pytest.approx(figures["recall@10"], abs=0.01)


# What it promises


def test_a_private_run_promises_what_it_did(model: Model) -> None:
    guarantee = model.guarantee
    if guarantee.mode == "none":
        assert model.release.item_biases.max() == 0
        return
    assert guarantee.certified
    assert verify(guarantee).ok
    assert {event.what for event in guarantee.events} == {
        "number of users", "item popularity", "user moments", "item factors"
    }  # fmt: skip


def test_values_do_not_matter_at_all(ratings: Ratings) -> None:
    other = replace(ratings, values=np.ones_like(ratings.values))
    for epsilon in (5.0, math.inf):
        method = learner(epsilon, noise_seed=3 if epsilon < math.inf else None)
        assert bits(method.fit(ratings)) == bits(method.fit(other))


def test_a_scale_found_in_the_data_is_no_matter_and_not_told(tmp_path: Path) -> None:
    found = Ratings.of([1, 1, 2], [1, 2, 2], [3, 77, 5], items=range(6))
    assert not found.scale.declared
    learner().fit(found).release.save(tmp_path / "release")
    scale = Release.load(tmp_path / "release").scale
    assert (scale.lo, scale.hi) == (0, 1)


def test_a_catalogue_found_in_the_data_is_refused() -> None:
    found = Ratings.of([1, 1, 2], [1, 2, 2], [3, 4, 5], scale=(1, 5))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        learner().fit(found)
    assert learner(items_public=True).fit(found).guarantee.certified


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_number_of_threads_does_not_change_a_bit(ratings: Ratings, n_threads: int) -> None:
    method = learner(noise_seed=1, cap=6)
    assert bits(method.fit(ratings, n_threads=n_threads)) == bits(method.fit(ratings, n_threads=2))


def test_personal_budgets_are_taken(ratings: Ratings) -> None:
    name = ratings.user_ids[3]
    assert learner().fit(ratings, user_budgets={name: 0.0}).guarantee.certified


# What it refuses


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"feedback": "both"}, "feedback='both'"),
        ({"alpha": -1.0}, "alpha=-1"),
        ({"alpha": math.nan}, "alpha=nan"),
        ({"moments": "per-item"}, "moments means nothing for implicit"),
        ({"feedback": "explicit", "alpha": 1.0}, "alpha means nothing for explicit"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        learner(**fields)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-250, 1e-20])
def test_an_epsilon_that_no_noise_can_keep_is_refused(epsilon: float, ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot be kept .* a larger epsilon"):
        learner(epsilon).fit(ratings)


def test_sgd_has_no_such_setting() -> None:
    with pytest.raises(InvalidArgument, match="sgd has no setting 'feedback'"):
        configure("sgd", {"feedback": "implicit"})


def test_few_people_and_items_are_fine() -> None:
    tiny = Ratings.of([1, 1, 2], [1, 2, 3], [5, 1, 4], scale=(1, 5), items=range(6))
    train = tiny.select(np.array([True, True, False]))  # user 2 has nothing left
    for epsilon in (0.1, 5.0, math.inf):
        model = learner(epsilon).fit(train)
        for user in (1, 2):
            assert np.isfinite(model.predict(user, range(6))).all()
            assert len(model.recommend(user, k=6, include_rated=True)) == 6


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_hundreds_of_rounds_leave_numbers(feedback: str, ratings: Ratings) -> None:
    release = learner(feedback=feedback, n_epochs=200).fit(ratings).release
    assert np.isfinite(release.item_factors).all()
    assert np.isfinite(release.item_biases).all()


# Stopping and going on


class _Killed(BaseException):
    pass


@pytest.fixture
def die_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Return a function that says at which draw of noise from now on a run dies."""
    honest, left = Noise.integers, [0]

    def integers(noise: Noise, shape: Any, label: str, index: int) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise _Killed
        return honest(noise, shape, label, index)

    monkeypatch.setattr(Noise, "integers", integers)

    def say(draw: int | None) -> None:
        left[0] = draw or 0

    return say


@pytest.mark.parametrize("draw", range(1, 2 + 2 * 3 + 1))
def test_a_run_that_was_stopped_goes_on(
    tmp_path: Path, ratings: Ratings, die_at: Callable[[int | None], None], draw: int
) -> None:
    method, seeded = learner(), learner(noise_seed=7)
    for one, folder in ((method, tmp_path / "run"), (seeded, tmp_path / "seeded")):
        die_at(draw)
        with pytest.raises(_Killed):
            one.fit(ratings, checkpoint=Checkpoint(folder))
        die_at(None)
    whole = seeded.fit(ratings)
    assert bits(seeded.fit(ratings, checkpoint=Checkpoint(tmp_path / "seeded", resume=True))) == bits(whole)
    again = Checkpoint(tmp_path / "run", resume=True)
    if draw <= 2:  # nothing was kept, and the budget is spent
        with pytest.raises(BudgetExceeded):
            method.fit(ratings, checkpoint=again)
        return
    model = method.fit(ratings, checkpoint=again)
    lost = (draw - 3) // 2 + 1
    assert [record.epoch for record in model.history] == [number for number in (1, 2, 3) if number != lost]
    assert verify(model.guarantee).ok
    _, folded = fold_in_many(model.release, ratings.indptr, ratings.items, ratings.values)
    np.testing.assert_allclose(model.user_factors, folded, rtol=1e-5, atol=1e-6)


def test_exact_and_explicit_runs_are_not_taken_for_this_one(tmp_path: Path, ratings: Ratings) -> None:
    learner().fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    for other in (learner(feedback="explicit"), learner(alpha=2.0)):
        with pytest.raises(InvalidArgument):
            other.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))
