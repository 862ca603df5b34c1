"""Certified sampling: what one user can change, what is promised, personal clips, and going on after a stop."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import SGLD
from dpmf.methods.certified.steps import GRADIENTS, Centre
from dpmf.methods.sgld.certified import SampledSteps, SteppingPlan, sampled_shares
from dpmf.methods.sgld.convergence import diagnose
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = SGLD(n_factors=3, n_epochs=6, budget=Budget(3.0), sampling_rate=0.3, noise_seed=4)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return (release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes())


class Seen(Mechanism):
    """Keeps the sums, and releases them as any other mechanism does."""

    def __init__(self, event: PoissonGaussianEvent, noise: Noise) -> None:
        super().__init__([event], noise)
        self.sums: list[NDArray[np.int64]] = []
        self.sensitivities: list[float] = []

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        self.sums.append(sums.copy())
        self.sensitivities.append(sensitivity)
        return super().release(what, sums, sensitivity)


def with_adversary(ratings: Ratings) -> tuple[Ratings, int]:
    """Return ratings in which the first user has rated everything, as wrongly as can be, and that user."""
    users, items = ratings.users, ratings.items
    others = users != 0
    everything = np.arange(ratings.n_items)
    ids = np.array(list(ratings.user_ids), object)
    wrong = Ratings.of(
        np.concatenate([np.repeat(ids[0], len(everything)), ids[users[others]]]),
        ratings.catalogue.ids.array[np.concatenate([everything, items[others]])],
        np.concatenate([np.where(everything % 2, 5.0, 1.0), ratings.values[others]]),
        scale=ratings.scale, items=ratings.catalogue,
    )  # fmt: skip
    place = wrong.user_ids.position(ids[0])
    assert place is not None
    return wrong, place


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_one_user_changes_no_sum_by_more_than_the_clip(ratings: Ratings, share: float) -> None:
    """The real steps on neighbouring data, side by side: after each, both go on from the same release."""
    full, adversary = with_adversary(ratings)
    without = full.select(full.users != adversary)
    plan = SteppingPlan(60, 3, 12, 0.5, Budget(3.0), sampling_rate=0.5)
    shares = np.ones(full.n_users)
    shares[adversary] = share
    pair = [Seen(plan.event, Noise(9)) for _ in range(2)]
    states = [
        SampledSteps(plan, data, shares, mechanism, Centre(3.0), 1.0, 3, seed=1, n_threads=2, noise=Noise(8))
        for data, mechanism in zip((full, without), pair, strict=True)
    ]
    distances = []
    for stage in plan.stages():
        for state in states:
            state.measure(stage)
        states[1].V, states[1].c = states[0].V.copy(), states[0].c.copy()
        here, there = (mechanism.sums[-1] for mechanism in pair)
        exact = math.isqrt(sum(int(one) ** 2 for one in (here - there).ravel()))
        distances.append(exact / pair[0].steps(GRADIENTS, pair[0].sensitivities[-1]))
    assert set(pair[0].sensitivities) == {1.0}
    assert max(distances) <= share
    assert max(distances) > 0.99 * share  # this adversary reaches the bound
    assert min(distances) == 0.0  # in a step that they did not take part in


def test_what_is_promised_follows_from_what_was_done(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(4.0))
    guarantee = replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 2.9 < guarantee.epsilon <= 3.0
    (event,) = guarantee.events
    assert isinstance(event, PoissonGaussianEvent)
    assert (event.sampling_rate, event.count, event.coordinates) == (0.3, 6, 6 * 60 * 4)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger)


def test_seeded_noise_is_not_certified_and_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings) -> None:
    models = [METHOD.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert SEEDED in models[0].guarantee.assumptions
    assert not models[0].guarantee.certified
    fresh = replace(METHOD, noise_seed=None)
    assert bits(fresh.fit(ratings)) != bits(fresh.fit(ratings))


def test_it_learns() -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = SGLD(budget=Budget(8.0)).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.9 * rmse(baseline_errors(train, test))


def test_whoever_asks_for_less_gets_a_shorter_clip(ratings: Ratings) -> None:
    plan = SteppingPlan(60, 3, 6, 0.5, Budget(3.0), sampling_rate=0.3)
    shares = sampled_shares(np.array([3.0, 1.0, 0.0, 1e-14]), plan)
    assert shares[0] == 1
    assert 0 < shares[1] < 1
    assert shares[2] == shares[3] == 0
    lighter = replace(plan.event, noise_multiplier=plan.event.noise_multiplier / shares[1])
    assert epsilon_of([lighter], 1e-6) <= 1.0
    guarantee = METHOD.fit(ratings, user_budgets={ratings.user_ids[0]: 0.0}).guarantee
    assert any("chose their own epsilon" in one for one in guarantee.assumptions)


def test_a_user_who_wants_nothing_changes_nothing(ratings: Ratings) -> None:
    wishes = {ratings.user_ids[0]: 0.0}
    without = ratings.select(ratings.users != 0)
    one, other = METHOD.fit(ratings, user_budgets=wishes), METHOD.fit(without)
    assert bits(one)[:2] == bits(other)[:2]


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


def test_steps_in_which_nobody_takes_part_are_steps_like_others() -> None:
    alone = Ratings.of(["ann"], ["Heat"], [4], scale=(1, 5))
    model = replace(METHOD, n_factors=1, sampling_rate=0.01, items_public=True).fit(alone, n_threads=2)
    assert len(model.history) == 6
    assert model.release.item_biases.all()  # there is noise on everything, whoever takes part


def test_what_makes_no_sense_is_refused(ratings: Ratings) -> None:
    for field, value in (("decay", 0.5), ("kappa", 1.0), ("rho", 1.0), ("table", 0), ("temperature", 0.5)):
        with pytest.raises(InvalidArgument, match=rf"{field}.* means nothing with mode='certified'"):
            replace(METHOD, **{field: value})  # type: ignore[arg-type]
    for rate in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidArgument, match="sampling_rate="):
            replace(METHOD, sampling_rate=rate)
    with pytest.raises(InvalidArgument, match="sampling_rate means nothing with mode='paper'"):
        replace(METHOD, mode="paper")
    with pytest.raises(InvalidArgument, match="public catalogue"):
        METHOD.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="rests on no convergence"):
        diagnose(METHOD, ratings)
