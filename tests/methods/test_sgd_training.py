"""SGD: the same bits for any number of threads, when it stops, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpmf.engine import layout
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.methods import SGD
from dpmf.model import EpochRecord, Model
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(300, 120, mean_ratings=30)


@pytest.fixture
def _many_blocks(monkeypatch: pytest.MonkeyPatch, ratings: Ratings) -> None:
    """Let small data have a grid as large data have it."""
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)
    assert layout.grid_size(len(ratings)) >= 8


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    arrays = (model.user_factors, model.user_biases, release.item_factors, release.item_biases)
    return (*(array.tobytes() for array in arrays), np.float64(release.mean).tobytes())


@pytest.mark.usefixtures("_many_blocks")
@pytest.mark.parametrize("validation", [0.0, 0.1])
def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings, validation: float) -> None:
    method = SGD(n_factors=10, n_epochs=4, validation=validation, seed=5)
    models = [method.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3, 8, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    errors = [[(one.train_rmse, one.validation_rmse) for one in model.history] for model in models]
    assert all(one == errors[0] for one in errors)


def test_another_seed_gives_another_model(ratings: Ratings) -> None:
    one, other = (SGD(n_factors=10, n_epochs=2, seed=seed).fit(ratings) for seed in (1, 2))
    assert bits(one) != bits(other)


def test_the_order_in_which_ratings_come_does_not_matter(ratings: Ratings) -> None:
    shuffled = np.random.default_rng(0).permutation(len(ratings))
    users = np.array(list(ratings.user_ids), object)[ratings.users][shuffled]
    items = ratings.catalogue.ids.array[ratings.items][shuffled]
    again = Ratings.of(users, items, ratings.values[shuffled], scale=ratings.scale, items=ratings.catalogue)
    method = SGD(n_factors=4, n_epochs=2)
    assert bits(method.fit(again)) == bits(method.fit(ratings))


def test_early_stopping_returns_the_best_epoch(ratings: Ratings) -> None:
    method = SGD(n_factors=32, n_epochs=200, learning_rate=0.05, regularization=0.0, decay=0.0, validation=0.2, seed=4)
    model = method.fit(ratings)
    errors = [record.validation_rmse or math.nan for record in model.history]
    best = int(np.argmin(errors))
    assert 0 < best < len(errors) - 1 < 199  # it got better, then worse, and did not run to the end
    assert len(errors) == best + 1 + method.patience
    _, held_out = ratings.split(0.2, seed=4)
    release = model.release
    predicted = release.mean + model.user_biases[held_out.users] + release.item_biases[held_out.items]
    predicted += np.einsum("nk,nk->n", model.user_factors[held_out.users], release.item_factors[held_out.items])
    rmse = np.sqrt(np.mean((np.clip(predicted, 1, 5) - held_out.values) ** 2))
    assert rmse == pytest.approx(min(errors), rel=1e-5)


def test_ratings_kept_for_validation_are_not_recommended(ratings: Ratings) -> None:
    model = SGD(n_factors=4, n_epochs=1, validation=0.5).fit(ratings)
    user = next(iter(ratings.user_ids))
    offered = {one.item for one in model.recommend(user, k=ratings.n_items)}
    assert not offered & {ratings.catalogue.ids[int(item)] for item in ratings.of_user(0)[0]}


def test_callbacks_hear_of_every_epoch_and_may_stop(ratings: Ratings) -> None:
    heard: list[EpochRecord] = []
    asked = []

    def stop_after_three(record: EpochRecord) -> bool:
        asked.append(record.epoch)
        return record.epoch == 3

    model = SGD(n_factors=4, n_epochs=9).fit(ratings, callbacks=[heard.append, stop_after_three])
    assert asked == [1, 2, 3]
    assert tuple(heard) == model.history


def test_an_error_in_a_callback_is_passed_on(ratings: Ratings) -> None:
    with pytest.raises(ZeroDivisionError):
        SGD(n_factors=4, n_epochs=9).fit(ratings, callbacks=[lambda record: record.epoch // 0 > 1])


def test_the_error_falls_while_learning(ratings: Ratings) -> None:
    errors = [record.train_rmse for record in SGD(n_factors=8, n_epochs=10).fit(ratings).history]
    assert errors == sorted(errors, reverse=True)


def test_linear_decay_ends_near_zero() -> None:
    method = SGD(n_epochs=4, learning_rate=0.1)
    assert [method.rate(epoch) for epoch in (1, 2, 3, 4)] == pytest.approx([0.1, 0.075, 0.05, 0.025])
    assert SGD(n_epochs=100, learning_rate=0.1).rate(100) == pytest.approx(0.1 * 0.02)


def test_power_decay_follows_its_exponent() -> None:
    assert SGD(learning_rate=0.1, decay=0.5).rate(4) == pytest.approx(0.05)
    assert SGD(learning_rate=0.1, decay=0.0).rate(4) == pytest.approx(0.1)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_a_rate_that_diverges_ends_in_a_clear_error(ratings: Ratings, n_threads: int) -> None:
    with pytest.raises(DpmfError, match=r"diverged in epoch \d+ at learning rate [\d.]+: use a smaller learning_rate"):
        SGD(n_factors=8, learning_rate=5.0).fit(ratings, n_threads=n_threads)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_factors", 0), ("n_factors", 2.5), ("n_factors", True), ("n_epochs", 0), ("n_epochs", "many"),
        ("patience", 0), ("seed", -1), ("seed", 0.5), ("learning_rate", 0.0), ("learning_rate", math.nan),
        ("learning_rate", math.inf), ("regularization", -0.1), ("regularization", math.nan), ("initial_sd", 0.0),
        ("validation", 1.0), ("validation", -0.1), ("validation", math.nan), ("decay", -1.0), ("decay", math.inf),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name_and_value(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=rf"{field}={value!r}"):
        SGD(**{field: value})


def test_a_validation_part_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"validation=0\.5 leaves nothing"):
        SGD(validation=0.5).fit(Ratings.of([1], [1], [4], scale=(1, 5)))


def test_a_wider_scale_gives_the_same_model_in_its_own_units(ratings: Ratings) -> None:
    """One learning rate and one penalty serve every scale: ratings times 25 give predictions times 25."""
    users, items = ratings.users, ratings.items
    narrow = Ratings.of(users, items, ratings.values, scale=(1, 5), items=range(ratings.n_items))
    wide = Ratings.of(users, items, 25 * ratings.values, scale=(25, 125), items=range(ratings.n_items))
    method = SGD(n_factors=8, n_epochs=10)
    small, large = method.fit(narrow), method.fit(wide)
    for user in range(0, 300, 50):
        expected = 25 * small.predict(user, range(ratings.n_items))
        np.testing.assert_allclose(large.predict(user, range(ratings.n_items)), expected, rtol=1e-3)
    mine = {0: 5, 3: 1, 7: 2}
    folded = small.release.fold_in(mine).predict(range(20))
    folded_wide = large.release.fold_in({item: 25 * value for item, value in mine.items()}).predict(range(20))
    np.testing.assert_allclose(folded_wide, 25 * folded, rtol=1e-3)
