"""Certified full-batch steps: what one user can change, what is promised, and going on after a stop."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import SGLD, GaussianGD
from dpmf.methods.certified.steps import CLIP, GRADIENTS, ClippedSteps
from dpmf.methods.gaussian.certified import FullBatchPlan, centre_of
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.store import columns as ondisk
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

METHOD = GaussianGD(n_factors=3, n_epochs=6, budget=Budget(3.0), noise_seed=4)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return (release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes())


class Seen(Mechanism):
    """Keeps the sums, and releases them as any other mechanism does."""

    def __init__(self, event: GaussianEvent, noise: Noise) -> None:
        super().__init__([event], noise)
        self.sums: list[NDArray[np.int64]] = []
        self.sensitivities: list[float] = []

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        self.sums.append(sums.copy())
        self.sensitivities.append(sensitivity)
        return super().release(what, sums, sensitivity)


def with_first_user(ratings: Ratings, values: NDArray[np.float64]) -> tuple[Ratings, int]:
    """Return ratings in which the first user has rated everything so, and that user."""
    users, items = ratings.users, ratings.items
    others, everything = users != 0, np.arange(ratings.n_items)
    ids = np.array(list(ratings.user_ids), object)
    made = Ratings.of(
        np.concatenate([np.repeat(ids[0], len(everything)), ids[users[others]]]),
        ratings.catalogue.ids.array[np.concatenate([everything, items[others]])],
        np.concatenate([values, ratings.values[others]]),
        scale=ratings.scale, items=ratings.catalogue,
    )  # fmt: skip
    place = made.user_ids.position(ids[0])
    assert place is not None
    return made, place


def distances(
    plan: FullBatchPlan, pair: tuple[Ratings, Ratings], shares: NDArray[np.float64], centering: str
) -> list[float]:
    """Carry out the real steps on two data sets side by side; return how far apart their sums are, in units of C.

    After each step both go on from what the first released: composition takes care of the rest.
    """
    seen = [Seen(plan.event, Noise(9)) for _ in range(2)]
    states = [
        ClippedSteps(
            plan, data, shares, mechanism, centre_of(centering, data.scale, plan.n_factors), 1.0, 3, seed=1, n_threads=2
        )
        for data, mechanism in zip(pair, seen, strict=True)
    ]
    found = []
    for stage in plan.stages():
        for state in states:
            state.measure(stage)
        states[1].take_up(states[0].released())
        here, there = (mechanism.sums[-1] for mechanism in seen)
        exact = math.isqrt(sum(int(one) ** 2 for one in (here - there).ravel()))
        assert set(seen[0].sensitivities) == {plan.sensitivity}
        found.append(exact / seen[0].steps(GRADIENTS, plan.sensitivity))
    return found


@pytest.mark.parametrize("centering", ["mean", "raw"])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_one_user_changes_no_sum_by_more_than_the_clip(ratings: Ratings, share: float, centering: str) -> None:
    full, adversary = with_first_user(ratings, np.where(np.arange(60) % 2, 5.0, 1.0))
    plan = FullBatchPlan(60, 3, 8, 0.5, Budget(3.0))
    shares = np.ones(full.n_users)
    shares[adversary] = share
    found = distances(plan, (full, full.select(full.users != adversary)), shares, centering)
    assert max(found) <= share * CLIP
    assert min(found) > 0.99 * share * CLIP  # everybody takes part in every step, and this one reaches the bound


def test_a_user_replaced_by_another_changes_no_sum_by_more_than_the_replace_sensitivity(ratings: Ratings) -> None:
    places = np.arange(60)
    one, place = with_first_user(ratings, np.where(places % 2, 5.0, 1.0))
    other, same_place = with_first_user(ratings, np.where(places % 4 < 2, 5.0, 1.0))
    assert place == same_place
    plan = FullBatchPlan(60, 3, 8, 0.5, Budget(3.0, neighbours="replace"))
    assert plan.sensitivity == 2 * CLIP
    found = distances(plan, (one, other), np.ones(one.n_users), "mean")
    assert CLIP < max(found) <= plan.sensitivity


def test_what_is_promised_follows_from_what_was_done(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(4.0))
    guarantee = replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 2.99 < guarantee.epsilon <= 3.0
    (event,) = guarantee.events
    assert isinstance(event, GaussianEvent)
    assert (event.count, event.coordinates) == (6, 6 * 60 * 4)
    assert gdp_of([event]) == pytest.approx(math.sqrt(6) / event.noise_multiplier)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_noise_on_a_sum_is_what_the_event_says(ratings: Ratings, neighbours: str) -> None:
    plan = FullBatchPlan(60, 3, 6, 0.5, Budget(3.0, neighbours=neighbours))
    noise = Mechanism([plan.event], Noise(5)).release(GRADIENTS, np.zeros((60, 4), np.int64), plan.sensitivity)
    assert noise.std() == pytest.approx(plan.event.noise_multiplier * plan.sensitivity, rel=0.15)
    left = plan.step_size * plan.event.noise_multiplier * plan.sensitivity * math.sqrt(plan.n_steps)
    assert left == pytest.approx(0.5)


def test_steps_are_halved_where_a_gradient_turns_round_beyond_noise(ratings: Ratings) -> None:
    plan = FullBatchPlan(60, 3, 6, 0.5, Budget(3.0))
    mechanism = Mechanism([plan.event], Noise(5))
    state = ClippedSteps(
        plan, ratings, np.ones(ratings.n_users), mechanism, centre_of("mean", ratings.scale, 3), 1.0, 3, 1, n_threads=1
    )
    noise = mechanism.sd(GRADIENTS, plan.sensitivity)
    gradient = np.zeros((60, 4))
    gradient[0], gradient[1], gradient[2] = 2 * noise, noise / 2, 100 * noise
    moved = state.moves(gradient)
    np.testing.assert_allclose(moved[:2], plan.step_size * gradient[:2])
    np.testing.assert_allclose(moved[2], plan.step_size * 2.5 * noise)  # no further than that, whatever it says
    moved = state.moves(-gradient)
    np.testing.assert_allclose(moved[0], -plan.step_size * gradient[0] / 2)  # there was no noise like that
    np.testing.assert_allclose(moved[1], -plan.step_size * gradient[1])  # this may have been noise


def test_seeded_noise_is_not_certified_and_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings) -> None:
    models = [METHOD.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert len({model.history[-1].train_rmse for model in models}) == 1
    assert SEEDED in models[0].guarantee.assumptions
    assert not models[0].guarantee.certified
    fresh = replace(METHOD, noise_seed=None)
    assert bits(fresh.fit(ratings)) != bits(fresh.fit(ratings))


@pytest.mark.parametrize(("centering", "part"), [("mean", 0.9), ("raw", 1.1)])
def test_it_learns(centering: Literal["mean", "raw"], part: float) -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = GaussianGD(budget=Budget(8.0), centering=centering).fit(train)
    assert rmse(prediction_errors(model, test)) < part * rmse(baseline_errors(train, test))


def test_raw_ratings_have_no_biases(ratings: Ratings) -> None:
    model = replace(METHOD, centering="raw").fit(ratings)
    assert model.release.configuration["centering"] == "raw"
    assert (model.release.mean, set(model.release.item_biases.tolist())) == (1.0, {-1.0})
    assert np.abs(model.user_biases).max() < 1e-6
    centred = METHOD.fit(ratings)
    assert centred.release.configuration["centering"] == "mean"
    assert centred.release.mean == 3.0  # the middle of the scale: the mean itself is private
    assert centred.release.item_biases.all()


def test_a_user_who_wants_nothing_changes_nothing(ratings: Ratings) -> None:
    wishes = {ratings.user_ids[0]: 0.0}
    without = ratings.select(ratings.users != 0)
    one, other = METHOD.fit(ratings, user_budgets=wishes), METHOD.fit(without)
    assert bits(one)[:2] == bits(other)[:2]
    assert any("chose their own epsilon" in assumption for assumption in one.guarantee.assumptions)


def test_a_seeded_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path, ratings: Ratings) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch == 4:
            raise KeyboardInterrupt

    plan = Checkpoint(tmp_path / "run", resume=True)
    with pytest.raises(KeyboardInterrupt):
        METHOD.fit(ratings, checkpoint=plan, callbacks=[interrupt])
    heard: list[int] = []
    resumed = METHOD.fit(ratings, checkpoint=plan, callbacks=[lambda record: heard.append(record.epoch)])
    assert heard == [5, 6]
    assert bits(resumed) == bits(METHOD.fit(ratings))


def test_a_run_that_was_stopped_in_a_step_loses_that_step(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, plan = replace(METHOD, noise_seed=None), Checkpoint(tmp_path / "run", resume=True)
    drawn: list[int] = []
    release = Mechanism.release

    def dying(self: Mechanism, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        drawn.append(1)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        return release(self, what, sums, sensitivity)

    monkeypatch.setattr(Mechanism, "release", dying)
    with pytest.raises(KeyboardInterrupt):
        method.fit(ratings, checkpoint=plan)
    model = method.fit(ratings, checkpoint=plan)
    assert len(drawn) == 6  # the third was started, and is not drawn again
    assert [record.epoch for record in model.history] == [1, 2, 4, 5, 6]
    assert model.guarantee.events[0].to_json()["count"] == 6


def test_a_run_of_one_method_is_not_taken_up_by_another(tmp_path: Path, ratings: Ratings) -> None:
    plan = Checkpoint(tmp_path / "run", resume=True)
    METHOD.fit(ratings, checkpoint=plan)
    others = (replace(METHOD, regularization=2.0), SGLD(n_factors=3, n_epochs=6, budget=METHOD.budget, noise_seed=5))
    for other in others:
        with pytest.raises(InvalidArgument, match="another run"):
            other.fit(ratings, checkpoint=plan)


def test_ratings_on_disk_give_the_same_bits(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ondisk, "_RATINGS_PER_PIECE", 500)  # many pieces, as large data have them
    streamed = METHOD.fit(StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=0))
    assert bits(streamed) == bits(METHOD.fit(ratings))


def test_scale_and_catalogue_must_be_declared(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="public catalogue"):
        METHOD.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="declared, not found"):
        replace(METHOD, items_public=True).fit(Ratings.of([1, 2], [2, 2], [3, 4]))
    with pytest.raises(InvalidArgument, match="protects users"):
        GaussianGD(budget=Budget(1.0, unit="rating"))
