"""Whole runs of the certified protocol: central least squares to the bit, with drop-outs, losses and stops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpmf.methods.als.central import CentralRounds
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified.simulation import (
    CertifiedOutcome,
    CertifiedScenario,
    CertifiedSimulation,
    noise_of,
    simulate_certified,
)
from dpmf.methods.als.plan import Stage
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

SEED = 11
SCENARIO = CertifiedScenario(Budget(20.0), n_factors=3, n_epochs=3, noise_seed=SEED)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(40, 30, seed=4)


class SummedNoise(Noise):
    """Draws for the sum what people draw for their parts."""

    def __init__(self, n_users: int) -> None:
        super().__init__(noise_seed=1)
        self.people = [noise_of(SEED, number) for number in range(n_users)]

    def integers(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.int64]:
        total = np.zeros(shape, np.int64)
        for noise in self.people:
            total += noise.shares(shape, len(self.people), label, index)
        return total


def bits(outcome: CertifiedOutcome) -> bytes:
    model, release = outcome.model, outcome.model.release
    arrays = (release.item_factors, release.item_biases, model.user_factors, model.user_biases)
    return b"".join(one.tobytes() for one in arrays)


@pytest.mark.parametrize("n_factors", [0, 3])
@pytest.mark.parametrize("per_item", [False, True])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_at_equal_noise_a_run_equals_the_central_one_bit_for_bit(
    ratings: Ratings, n_factors: int, per_item: bool, neighbours: str
) -> None:
    budget = Budget(20.0, neighbours=neighbours)
    scenario = replace(SCENARIO, budget=budget, n_factors=n_factors, per_item=per_item, dropouts=0.0, colluders=0.0)
    outcome = simulate_certified(ratings, scenario)
    plan = outcome.agreement.plan
    mechanism = Mechanism(plan.events(), SummedNoise(ratings.n_users))
    central = CentralRounds(plan, ratings, ratings, np.ones(ratings.n_users), mechanism, scenario.seed, 2)
    for stage in plan.stages():
        central.measure(stage)
        central.settle(stage)
    central.solve_users(final=True)
    mechanism.finish()
    model, release = outcome.model, outcome.model.release
    assert release.item_biases.any()
    assert release.item_factors.any() == bool(n_factors)
    for found, expected in (
        (release.item_factors, central.public.V), (release.item_biases, central.public.c),
        (model.user_factors, central.fitted.U), (model.user_biases, central.fitted.b),
    ):  # fmt: skip
        assert found.tobytes() == expected.tobytes()
    assert (release.ridge.bias, release.ridge.factors) == central.public.ridge
    assert outcome.refused == outcome.discarded == 0


def test_a_run_learns_and_its_release_can_be_read_and_verified(tmp_path: Path) -> None:
    world = make(400, 60, seed=2, mean_ratings=30.0)
    scenario = CertifiedScenario(Budget(50.0), n_factors=2, leave=0.01, dropouts=0.1)
    outcome = simulate_certified(world, scenario, n_threads=1)
    model = outcome.model
    spread = float(np.sqrt(np.mean((world.values - world.values.mean()) ** 2)))
    assert model.history[-1].train_rmse < 0.85 * spread
    assert model.guarantee.certified
    assert model.guarantee.epsilon is not None
    assert model.guarantee.epsilon <= 50.0
    assert outcome.rounds == 9
    assert outcome.took_part == 400
    model.release.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    assert loaded.guarantee == model.guarantee
    assert loaded.configuration["mode"] == "certified"


def test_what_passed_is_counted(ratings: Ratings) -> None:
    outcome = simulate_certified(ratings, SCENARIO)
    agreement, traffic = outcome.agreement, outcome.traffic
    sizes = [agreement.n_words(number) * agreement.ring(number).n_bytes for number in range(len(agreement.rounds))]
    overhead = 6 + 24
    assert traffic.up.total == ratings.n_users * sum(size + overhead for size in sizes)
    assert traffic.up.most == max(sizes) + overhead
    assert traffic.up.count == ratings.n_users * len(sizes) == traffic.client_seconds.count
    listed = 4 + 4 * ratings.n_users
    assert traffic.from_third_party.total == sum(size + overhead + listed for size in sizes)
    fit = 24 + 4 * ratings.n_items * 4
    assert traffic.down.most == overhead + 16 + 32 + 8 * ratings.n_items + fit
    assert traffic.to_json()["bytes_up"] == traffic.up.mean
    assert "third party" in outcome.against_third_party


def test_the_same_seeds_give_the_same_bits_and_no_certificate(ratings: Ratings) -> None:
    scenario = replace(SCENARIO, leave=0.03, dropouts=0.3)
    first, second = (simulate_certified(ratings, scenario, n_threads=threads) for threads in (1, 2))
    assert bits(first) == bits(second)
    assert not first.model.guarantee.certified
    other = simulate_certified(ratings, replace(scenario, noise_seed=None))
    assert other.model.guarantee.certified
    assert bits(other) != bits(first)


def test_fewer_people_than_there_are_may_take_part_in_a_round(ratings: Ratings) -> None:
    outcome = simulate_certified(ratings, replace(SCENARIO, per_round=12, come=0.5, leave=0.1, dropouts=0.3))
    assert outcome.agreement.n_users == 12
    assert outcome.took_part > 12
    assert outcome.traffic.up.count <= 12 * outcome.rounds


def test_where_people_come_now_and_then_as_many_are_asked_as_are_usually_there(ratings: Ratings) -> None:
    outcome = simulate_certified(ratings, replace(SCENARIO, come=0.1, leave=0.1, dropouts=0.4))
    assert outcome.agreement.n_users == 18  # nine tenths of half of 40
    assert outcome.took_part > 18
    assert outcome.rounds == len(outcome.agreement.rounds)


def test_people_who_want_to_count_for_less_do(ratings: Ratings) -> None:
    everybody = dict.fromkeys(ratings.user_ids, 0.0)
    none, some = (simulate_certified(ratings, SCENARIO, user_budgets=one) for one in (everybody, {}))
    assert bits(none) != bits(some)
    assert "Everybody chose their own epsilon" in " ".join(none.model.guarantee.assumptions)
    other = replace(ratings, values=6.0 - ratings.values)  # of no weight, ratings make no difference
    again = simulate_certified(other, SCENARIO, user_budgets=everybody)
    assert again.model.release.item_biases.tobytes() == none.model.release.item_biases.tobytes()
    assert again.model.release.item_factors.tobytes() == none.model.release.item_factors.tobytes()


def losing(monkeypatch: pytest.MonkeyPatch, *lost: int) -> None:
    """Let nobody answer in these rounds."""
    honest = CertifiedSimulation._choose

    def choose(run: CertifiedSimulation) -> dict[int, int]:
        moments = honest(run)
        return dict.fromkeys(moments, 0) if run._chosen - 1 in lost else moments

    monkeypatch.setattr(CertifiedSimulation, "_choose", choose)


@pytest.mark.parametrize("lost", [(2,), (3,), (5,), (2, 3), (3, 4, 5)])
def test_rounds_that_are_lost_stay_charged_and_are_left_out(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch, lost: tuple[int, ...]
) -> None:
    whole = simulate_certified(ratings, SCENARIO)
    losing(monkeypatch, *lost)
    outcome = simulate_certified(ratings, SCENARIO)
    assert (outcome.discarded, outcome.rounds) == (len(lost), len(outcome.agreement.rounds))
    assert outcome.model.guarantee == whole.model.guarantee
    assert [record.epoch for record in outcome.model.history] == [n for n in (1, 2, 3) if n + 2 not in lost]
    assert bits(outcome) != bits(whole)
    assert all(np.isfinite(one).all() for one in (outcome.model.release.item_factors, outcome.model.user_factors))


@pytest.mark.parametrize("lost", [0, 1])
def test_without_the_first_stage_there_is_nothing_to_go_on_from(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    losing(monkeypatch, lost)
    with pytest.raises(BudgetExceeded, match="first stage"):
        simulate_certified(ratings, SCENARIO)


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("stage", [2, 4])
@pytest.mark.parametrize("seeded", [False, True])
def test_a_run_that_was_stopped_goes_on(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: int, seeded: bool
) -> None:
    scenario = replace(SCENARIO, leave=0.02, dropouts=0.3, noise_seed=SEED if seeded else None)
    whole = simulate_certified(ratings, scenario)
    honest = CertifiedSimulation.measure
    plan = whole.agreement.stages

    def measure(run: CertifiedSimulation, one: Stage) -> None:
        if one == plan[stage]:
            raise Killed
        honest(run, one)

    monkeypatch.setattr(CertifiedSimulation, "measure", measure)
    with pytest.raises(Killed):
        simulate_certified(ratings, scenario, checkpoint=Checkpoint(tmp_path / "run"))
    monkeypatch.undo()
    resumed = simulate_certified(ratings, scenario, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    epochs = [record.epoch for record in resumed.model.history]
    if seeded:
        assert bits(resumed) == bits(whole)
        assert epochs == [1, 2, 3]
    else:
        assert epochs == [epoch for epoch in (1, 2, 3) if epoch != stage - 1]


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": Budget(math.inf)}, {"per_round": 0}, {"dropouts": 1.0}, {"colluders": -0.1}, {"leave": 2.0},
        {"come": 0.0}, {"n_epochs": 0}, {"n_factors": -1}, {"regularization": -1.0},
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        replace(SCENARIO, **settings)
