"""Whole runs of the certified protocol: central least squares to the bit, with drop-outs, losses and stops."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified import CertifiedOutcome, CertifiedScenario, simulate_certified
from dpmf.federated.certified.simulation import Parties, noise_of
from dpmf.federated.simulate.population import BEFORE_ANSWERING, Population
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.certified.plan import Stage
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

from .certified_world import BUDGET, METHODS

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

    def coins(self, n: int, probability: float, label: str, index: int) -> NDArray[np.bool_]:
        tossed = [noise.coins(1, probability, label, index)[0] for noise in self.people]
        assert len(tossed) == n
        return np.array(tossed, np.bool_)

    def integers(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.int64]:
        total = np.zeros(shape, np.int64)
        for noise in self.people:
            total += noise.shares(shape, len(self.people), label, index)
        return total


def bits(outcome: CertifiedOutcome) -> bytes:
    model, release = outcome.model, outcome.model.release
    arrays = (release.item_factors, release.item_biases, model.user_factors, model.user_biases)
    return b"".join(one.tobytes() for one in arrays)


def tensors_of(release: Release) -> list[bytes]:
    """Return the ranking part of a release, byte for byte; nothing if it has none."""
    if release.ranking is None:
        return []
    return [one.tobytes() for one in vars(release.ranking).values() if isinstance(one, np.ndarray)]


def scenario_of(method: CertifiedMethod, **changes: Any) -> CertifiedScenario:
    return CertifiedScenario(method.facts()["budget"], noise_seed=SEED, method=method, **changes)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_at_equal_noise_a_run_equals_the_central_one_bit_for_bit(ratings: Ratings, name: str, neighbours: str) -> None:
    changes: dict[str, Any] = {"budget": Budget(20.0, neighbours=neighbours), "noise_seed": SEED}
    method = replace(METHODS[name], **changes)
    outcome = simulate_certified(ratings, scenario_of(method, dropouts=0.0, colluders=0.0))
    agreement, catalogue = outcome.agreement, ratings.catalogue
    public = method.public_half(catalogue, ratings.scale, agreement.crowd)
    mechanism = Mechanism(agreement.plan.events(), SummedNoise(ratings.n_users))
    central = Curator(RatingsAnswerer(ratings, np.ones(ratings.n_users), 2), mechanism, neighbours)
    for stage in agreement.stages:
        assert converse(public, stage, central)
    central.finish()
    release = outcome.model.release
    expected = method.release_of(public, catalogue, ratings.scale, release.configuration, release.guarantee)
    assert release.item_biases.any() == release.predicts
    assert tensors_of(release) == tensors_of(expected)
    assert bool(release.n_measured_factors) == (release.predicts and name != "als-biases")
    assert release.item_factors.tobytes() == expected.item_factors.tobytes()
    assert release.item_biases.tobytes() == expected.item_biases.tobytes()
    assert (release.mean, release.ridge) == (expected.mean, expected.ridge)
    assert outcome.refused == outcome.discarded == 0


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_certified_also_if_people_drop_out(ratings: Ratings, name: str) -> None:
    scenario = CertifiedScenario(BUDGET, method=METHODS[name], leave=0.02, dropouts=0.3)
    outcome = simulate_certified(ratings, scenario)
    guarantee = outcome.model.guarantee
    assert guarantee.certified
    assert verify(guarantee).ok
    assert len(outcome.model.history) == len([one for one in outcome.agreement.stages if one.round is not None])
    assert outcome.rounds == len(outcome.agreement.rounds)
    assert all(np.isfinite(one).all() for one in (outcome.model.release.item_factors, outcome.model.user_factors))


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
    sizes = [agreement.n_elements(number) * agreement.ring(number).n_bytes for number in range(len(agreement.rounds))]
    overhead = 6 + 24
    assert traffic.up.total == ratings.n_users * sum(size + overhead for size in sizes)
    assert traffic.up.most == max(sizes) + overhead
    assert traffic.up.count == ratings.n_users * len(sizes) == traffic.client_seconds.count
    listed = 4 + 4 * ratings.n_users
    assert traffic.from_third_party.total == sum(size + overhead + listed for size in sizes)
    fit = 32 + 4 * ratings.n_items * 4  # ridges, the length of first guesses, the size of traits; biases and factors
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
    all_but_one = {user: 0.0 for user in ratings.user_ids if user != ratings.user_ids[0]}
    none, some = (simulate_certified(ratings, SCENARIO, user_budgets=one) for one in (all_but_one, {}))
    assert bits(none) != bits(some)
    assert "Everybody chose their own epsilon" in " ".join(none.model.guarantee.assumptions)
    # Of no weight, ratings make no difference.
    other = replace(ratings, values=np.where(ratings.users > 0, 6.0 - ratings.values, ratings.values))
    again = simulate_certified(other, SCENARIO, user_budgets=all_but_one)
    assert again.model.release.item_biases.tobytes() == none.model.release.item_biases.tobytes()
    assert again.model.release.item_factors.tobytes() == none.model.release.item_factors.tobytes()


def losing(monkeypatch: pytest.MonkeyPatch, *lost: int) -> None:
    """Let nobody answer in these rounds."""
    honest, rounds = Population.departures, count()

    def departures(population: Population, n: int) -> NDArray[Any]:
        moments = honest(population, n)
        return np.full_like(moments, BEFORE_ANSWERING) if next(rounds) in lost else moments

    monkeypatch.setattr(Population, "departures", departures)


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


def test_what_was_lost_before_a_stop_has_no_record_after_it(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(monkeypatch, 3)  # the first round of factors
    honest = Parties.begin

    def begin(parties: Parties, one: Stage) -> None:
        if one == parties.agreement.stages[3]:
            raise Killed
        honest(parties, one)

    with monkeypatch.context() as patch:
        patch.setattr(Parties, "begin", begin)
        with pytest.raises(Killed):
            simulate_certified(ratings, SCENARIO, checkpoint=Checkpoint(tmp_path / "run"))
    outcome = simulate_certified(ratings, SCENARIO, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    assert [record.epoch for record in outcome.model.history] == [2, 3]


@pytest.mark.parametrize("lost", [0, 1])
def test_without_the_first_stage_there_is_nothing_to_go_on_from(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    losing(monkeypatch, lost)
    with pytest.raises(BudgetExceeded, match="without which nothing can be learnt"):
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
    honest = Parties.begin

    def begin(parties: Parties, one: Stage) -> None:
        if one == whole.agreement.stages[stage]:
            raise Killed
        honest(parties, one)

    monkeypatch.setattr(Parties, "begin", begin)
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
