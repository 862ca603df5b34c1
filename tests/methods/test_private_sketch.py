"""A certified sketch: what one user can change in its cells, what is promised, and going on after a stop."""

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
from dpmf.methods import Sketch
from dpmf.methods.certified.steps import Centre
from dpmf.methods.sketch.certified import CELLS, SketchedPlan, SketchedSteps
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = Sketch(n_factors=3, n_epochs=6, budget=Budget(3.0), sampling_rate=0.3, noise_seed=4)


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

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        assert sensitivity == 1.0
        self.sums.append(sums.copy())
        return super().release(what, sums, sensitivity)


def with_adversary(ratings: Ratings, chosen: NDArray[np.bool_]) -> tuple[Ratings, int]:
    """Return ratings in which the first user has rated some items, as wrongly as can be, and that user."""
    users, items = ratings.users, ratings.items
    others, mine = users != 0, np.flatnonzero(chosen)
    ids = np.array(list(ratings.user_ids), object)
    wrong = Ratings.of(
        np.concatenate([np.repeat(ids[0], len(mine)), ids[users[others]]]),
        ratings.catalogue.ids.array[np.concatenate([mine, items[others]])],
        np.concatenate([np.where(mine % 2, 5.0, 1.0), ratings.values[others]]),
        scale=ratings.scale, items=ratings.catalogue,
    )  # fmt: skip
    place = wrong.user_ids.position(ids[0])
    assert place is not None
    return wrong, place


def started(
    plan: SketchedPlan, ratings: Ratings, shares: NDArray[np.float64], mechanism: Mechanism, n_threads: int = 1
) -> SketchedSteps:
    return SketchedSteps(plan, ratings, shares, mechanism, Centre(3.0), 1.0, 3, 1, n_threads, Noise(8))


@pytest.mark.parametrize(("depth", "width"), [(4, 45), (1, 7), (4, 1)])
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_one_user_changes_no_sum_by_more_than_the_clip(ratings: Ratings, share: float, depth: int, width: int) -> None:
    """The real steps on neighbouring data, side by side, in tables in which items collide a little, or all of them.

    After each step both go on from the same release.
    """
    full, adversary = with_adversary(ratings, np.ones(60, np.bool_))
    without = full.select(full.users != adversary)
    plan = SketchedPlan(60, 3, 12, 0.5, Budget(3.0), 0.5, depth=depth, width=width, median=False)
    shares = np.ones(full.n_users)
    shares[adversary] = share
    pair = [Seen(plan.event, Noise(9)) for _ in range(2)]
    states = [
        started(plan, data, shares, mechanism, n_threads=2)
        for data, mechanism in zip((full, without), pair, strict=True)
    ]
    distances = []
    for stage in plan.stages():
        for state in states:
            state.measure(stage)
        states[1].take_up({name: tensor.copy() for name, tensor in states[0].released().items()})
        here, there = (mechanism.sums[-1] for mechanism in pair)
        assert here.shape == (depth * width,)
        exact = math.isqrt(sum(int(one) ** 2 for one in here - there))
        distances.append(exact / pair[0].steps(CELLS, 1.0))
    assert max(distances) <= share
    assert max(distances) > 0.99 * share  # this adversary reaches the bound
    assert min(distances) == 0.0  # in a step that they did not take part in


def test_items_that_collide_with_equal_signs_do_not_add_up_beyond_the_clip(ratings: Ratings) -> None:
    """Bounded item by item, or before collisions, the sum of what meets in one cell would be longer than the clip."""
    plan = SketchedPlan(60, 3, 12, 0.5, Budget(3.0), 0.9, depth=1, width=1, median=False)
    probe = started(plan, ratings, np.ones(150), Mechanism([plan.event], Noise(1)))
    same_sign = probe._signs[:, -1] > 0  # of the bias, in the only cell there is
    full, adversary = with_adversary(ratings, same_sign)
    mechanism = Seen(plan.event, Noise(9))
    shares = np.zeros(full.n_users)
    shares[adversary] = 1.0
    state = started(plan, full, shares, mechanism)
    for stage in plan.stages():
        state.measure(stage)
    lengths = np.array([abs(int(sums[0])) for sums in mechanism.sums]) / mechanism.steps(CELLS, 1.0)
    assert lengths.max() <= 1.0
    assert lengths.max() > 0.999


def test_every_cell_gets_noise_whether_or_not_anything_lives_there(ratings: Ratings) -> None:
    plan = SketchedPlan(60, 3, 2, 0.5, Budget(3.0), 0.3, depth=2, width=5000, median=False)
    state = started(plan, ratings, np.ones(150), Mechanism([plan.event], Noise(1)))
    before = state.table.cells.copy()
    state.measure(plan.stages()[0])
    assert (state.table.cells != 0.5 * before).all()
    assert np.std(state.table.cells - 0.5 * before) == pytest.approx(0.5 / math.sqrt(2), rel=0.1)


def test_what_is_promised_follows_from_what_was_done(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(4.0))
    guarantee = replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 2.9 < guarantee.epsilon <= 3.0
    (event,) = guarantee.events
    assert isinstance(event, PoissonGaussianEvent)
    cells = 4 * 45  # 60 items of 3 factors at a gain of 1
    assert (event.what, event.sampling_rate, event.count, event.coordinates) == (CELLS, 0.3, 6, 6 * cells)
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(ratings, ledger=ledger)


def test_nothing_public_depends_on_how_many_users_there_are(ratings: Ratings) -> None:
    fewer = ratings.select(ratings.users < 40)
    one, other = METHOD.fit(ratings).release, METHOD.fit(fewer).release
    assert one.configuration == other.configuration
    assert one.guarantee == other.guarantee
    assert (one.mean, one.ridge, one.item_factors.shape) == (other.mean, other.ridge, other.item_factors.shape)


def test_seeded_noise_is_not_certified_and_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings) -> None:
    models = [METHOD.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert SEEDED in models[0].guarantee.assumptions
    assert not models[0].guarantee.certified
    fresh = replace(METHOD, noise_seed=None)
    assert bits(fresh.fit(ratings)) != bits(fresh.fit(ratings))
    assert bits(replace(METHOD, query="median").fit(ratings)) != bits(models[0])


def test_it_learns() -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = Sketch(budget=Budget(8.0)).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.95 * rmse(baseline_errors(train, test))


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
    with pytest.raises(InvalidArgument):
        replace(METHOD, gain=2.0).fit(ratings, checkpoint=plan)


def test_a_scale_or_catalogue_from_the_data_is_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="public catalogue"):
        METHOD.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="rating scale"):
        METHOD.fit(Ratings.of([1, 2], [2, 2], [3, 4], items=[2]))
