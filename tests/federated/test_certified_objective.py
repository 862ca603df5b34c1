"""Objective perturbation over the parties: the value of one rating is protected, and who rated what is public."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified import Agreement, CertifiedOutcome, CertifiedScenario, User, simulate_certified
from dpmf.federated.certified.messages import Answer, Inquiry
from dpmf.federated.certified.simulation import Parties, noise_of
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.methods import ALS, ObjectivePerturbation
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.plan import Stage
from dpmf.methods.objective.certified import ProfiledObjective, PublicObjective
from dpmf.methods.objective.plan import SUMS
from dpmf.methods.objective.profiles import PROFILES, Profiles
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import LARGEST_DRAW, STEPS_PER_SD
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids
from dpmf.ratings.synthetic import make

from .certified_world import (
    BUDGET,
    N_ITEMS,
    OBJECTIVE,
    PAID,
    PUBLIC_RELEASE,
    SEED,
    TABLE,
    USERS,
    VALUE,
    World,
    agreement_of,
    told_of,
)
from .test_certified_simulation import SEED as SUMMED
from .test_certified_simulation import SummedNoise, bits, losing

RATINGS = make(40, 30, seed=4)
METHOD = ObjectivePerturbation(budget=VALUE)
SCENARIO = CertifiedScenario(VALUE, method=METHOD)
SEEDED = replace(SCENARIO, noise_seed=SUMMED, method=replace(METHOD, noise_seed=SUMMED))
sources = pytest.mark.parametrize("source", ["table", "release"])


def profiles_of(source: str, ratings: Ratings = RATINGS) -> Profiles:
    if source == "table":
        return Profiles.public(ratings.user_ids.array, np.random.default_rng(1).normal(0, 0.6, (ratings.n_users, 3)))
    base = ALS(n_factors=1, n_epochs=1, budget=Budget(9.0, neighbours="replace")).fit(ratings, n_threads=1)
    return Profiles.from_release(base.release, VALUE)


def simulated(source: str, scenario: CertifiedScenario = SCENARIO, **options: Any) -> CertifiedOutcome:
    return simulate_certified(RATINGS, scenario, profiles=profiles_of(source), **options)


# The same as where one party holds all ratings


@sources
def test_at_equal_noise_a_run_equals_the_central_one_bit_for_bit(source: str) -> None:
    scenario = replace(SEEDED, dropouts=0.0, colluders=0.0)
    profiles = profiles_of(source)
    outcome = simulate_certified(RATINGS, scenario, profiles=profiles)
    agreement, learner = outcome.agreement, scenario.learner_of(RATINGS, profiles)
    public = learner.public_half(RATINGS.catalogue, RATINGS.scale, agreement.crowd)
    mechanism = Mechanism(agreement.plan.events(), SummedNoise(RATINGS.n_users))
    central = Curator(RatingsAnswerer(RATINGS, np.ones(RATINGS.n_users), 2), mechanism, "replace")
    for stage in agreement.stages:
        assert converse(public, stage, central)
    central.finish()
    release = outcome.model.release
    assert isinstance(public, PublicObjective)
    assert release.item_factors.any()
    assert release.item_factors.tobytes() == public.V.tobytes()
    assert (release.ridge, release.mean) == (public.ridge, RATINGS.scale.middle)
    assert outcome.refused == outcome.discarded == 0


@sources
def test_whoever_drops_out_is_left_out_of_the_equations(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent people are as people without a profile: whatever their ratings, the release is the same."""
    scenario, profiles = replace(SEEDED, leave=0.1, dropouts=0.4), profiles_of(source)
    honest, silent = Parties._choose, {3, 8, 21}

    def choose(parties: Parties) -> dict[int, int]:
        return {user: (0 if user in silent else 9) for user in honest(parties)}

    monkeypatch.setattr(Parties, "_choose", choose)
    wanted = np.isin(RATINGS.users, list(silent))
    other = replace(RATINGS, values=np.where(wanted, 6 - RATINGS.values, RATINGS.values).astype(np.float32))
    one, two = (simulate_certified(ratings, scenario, profiles=profiles) for ratings in (RATINGS, other))
    assert one.model.release.item_factors.tobytes() == two.model.release.item_factors.tobytes()
    assert one.agreement.least <= RATINGS.n_users - len(silent)


# What is guaranteed


@sources
def test_the_guarantee_says_what_is_protected_and_what_is_public(source: str, tmp_path: Path) -> None:
    profiles = profiles_of(source)
    ledger = Ledger(tmp_path / "ledger", replace(VALUE, epsilon=50.0))
    scenario = replace(SCENARIO, leave=0.02, dropouts=0.3)
    outcome = simulate_certified(RATINGS, scenario, profiles=profiles, ledger=ledger)
    guarantee = outcome.model.guarantee
    assert (guarantee.certified, guarantee.unit, guarantee.neighbours) == (True, "rating", "replace")
    assert verify(guarantee).ok
    assert ledger.entries()[0].guarantee == guarantee
    names = [event.what for event in guarantee.events]
    assert names == [*(event.what for event in profiles.spent), *([PROFILES] if source == "release" else []), SUMS]
    assert guarantee.epsilon is not None
    if source == "table":
        assert 4.99 < guarantee.epsilon <= 5.0
    else:
        assert guarantee.epsilon > 9.0  # the release that profiles are made with is part of it
    text = " ".join(guarantee.assumptions)
    assert "one rating of one person has another value" in text
    assert "does not hide which items were rated" in text
    assert "told the recommender which items they rated" in text
    assert "contribution is replaced" not in guarantee.assumptions[0]
    assert outcome.model.release.configuration["of"]["noise"] == "gaussian"


def test_without_shares_the_central_run_costs_the_same() -> None:
    central = replace(METHOD, noise="gaussian").fit(RATINGS, profiles=profiles_of("table")).guarantee
    outcome = simulated("table", replace(SCENARIO, dropouts=0.0, colluders=0.0))
    assert outcome.model.guarantee.epsilon == pytest.approx(central.epsilon, abs=1e-5)
    assert set(central.assumptions) < set(outcome.model.guarantee.assumptions)


# What the value of one rating can change


def answers(agreement: Agreement, rated: tuple[Any, Any], told: dict[str, NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Return what a real user adds in every round, without the mask; noise is the same every time."""
    asking, adding = KeyPair(), KeyPair()
    user = User(*rated, agreement, asking.public, adding.public, noise=noise_of(SEED, 0), place=4)
    down, up, found = Channel(asking, user.public), Channel(adding, user.public), []
    for number in range(len(agreement.rounds)):
        seed, ring = new_seed(), agreement.ring(number)
        numbers = {one.name: told.get(one.name, told_of(agreement, number)[one.name]) for one in agreement.told(number)}
        inquiry = Inquiry(number, agreement.digest, seed, numbers)
        (answer,) = user.receive(down.seal(inquiry.encoded(agreement)))
        elements = Answer.decoded(up.open(answer.message), agreement).elements
        signed = ring.signed(elements - mask_elements(seed, ring, len(elements)))
        found.append(signed.reshape(agreement.shapes(number)[0]))
    return found


wild = st.one_of(st.floats(1, 5), st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0]))


@given(
    values=st.lists(wild, min_size=N_ITEMS, max_size=N_ITEMS),
    other=wild,
    place=st.integers(0, N_ITEMS - 1),
    size=st.sampled_from([0.0, 1e-3, 1.0, 1e6]),
    learner=st.sampled_from(["objective", "objective-release"]),
)
@settings(max_examples=40, deadline=None)
def test_one_value_moves_one_row_of_an_answer_by_the_bound_at_most(
    values: list[float], other: float, place: int, size: float, learner: str
) -> None:
    """Whatever the ratings, and whatever profiles the recommender tells."""
    agreement, items = agreement_of(learner), np.arange(N_ITEMS)
    told = {"U": np.full((11, 4), size, np.float32)}
    changed = [other if number == place else value for number, value in enumerate(values)]
    both = [answers(agreement, (items, np.array(one)), told) for one in (values, changed)]
    for number, (one, two) in enumerate(zip(*both, strict=True)):
        (what,) = agreement.rounds[number].releases
        multiplier = next(event.noise_multiplier for event in agreement.events if event.what == what)
        moved = [math.hypot(*row.tolist()) for row in one - two]
        assert np.flatnonzero(moved).tolist() in ([], [4 if what == PROFILES else place])
        assert max(moved) <= STEPS_PER_SD / multiplier


def test_the_bound_is_nearly_reached() -> None:
    agreement, told = agreement_of("objective-release"), {"U": np.full((11, 4), 1e6, np.float32)}
    ratings = [np.full(N_ITEMS, 3.0), np.full(N_ITEMS, 3.0)]
    ratings[0][5], ratings[1][5] = 1.0, 5.0
    *_, one = answers(agreement, (np.arange(N_ITEMS), ratings[0]), told)
    *_, two = answers(agreement, (np.arange(N_ITEMS), ratings[1]), told)
    bound = STEPS_PER_SD / agreement.events[-1].noise_multiplier
    assert 0.999 * bound < np.linalg.norm((one - two)[5]) <= bound


def test_no_sum_is_too_large_for_its_ring() -> None:
    """A person's row adds up all of their ratings, however few people there are."""
    agreement = agreement_of("objective-release", n_users=3, dropouts=0, colluders=0)
    for number, event in enumerate(agreement.events):
        most = max(3, N_ITEMS if event.what == PROFILES else 0)
        assert agreement.ring(number).half > most * STEPS_PER_SD / event.noise_multiplier + LARGEST_DRAW


# Stopped, lost, refused


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("seeded", [False, True])
def test_a_run_that_was_stopped_goes_on_or_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeded: bool
) -> None:
    scenario, profiles = SEEDED if seeded else SCENARIO, profiles_of("release")

    def run(**options: Any) -> CertifiedOutcome:
        return simulate_certified(RATINGS, scenario, profiles=profiles, **options)

    whole, honest = run(), Parties.begin

    def begin(parties: Parties, one: Stage) -> None:
        if one == whole.agreement.stages[1]:
            raise Killed
        honest(parties, one)

    with monkeypatch.context() as patch:
        patch.setattr(Parties, "begin", begin)
        with pytest.raises(Killed):
            run(checkpoint=Checkpoint(tmp_path / "run"))
    with pytest.raises(InvalidArgument, match="another run"):  # other profiles
        simulated("table", scenario, checkpoint=Checkpoint(tmp_path / "run", resume=True))
    if seeded:
        resumed = run(checkpoint=Checkpoint(tmp_path / "run", resume=True))
        assert bits(resumed) == bits(whole)
        assert len(resumed.model.history) == 1
        return
    with pytest.raises(BudgetExceeded, match="item factors was lost"):
        run(checkpoint=Checkpoint(tmp_path / "run", resume=True))
    finished = run(checkpoint=Checkpoint(tmp_path / "other"))
    assert bits(run(checkpoint=Checkpoint(tmp_path / "other", resume=True))) == bits(finished)


def test_without_a_round_there_is_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    losing(monkeypatch, 0)
    with pytest.raises(BudgetExceeded, match="without which nothing can be learnt"):
        simulated("table")


def test_fewer_people_than_there_are_may_take_part_in_a_round() -> None:
    outcome = simulated("release", replace(SEEDED, per_round=12, come=0.5, leave=0.1, dropouts=0.3))
    (shape,) = outcome.agreement.shapes(0)
    assert (outcome.agreement.n_users, shape[0]) == (12, 40)
    assert np.isfinite(outcome.model.release.item_factors).all()


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"noise='norm' has no shares.*use noise='gaussian'"):
        CertifiedScenario(VALUE, method=replace(METHOD, noise="norm"))
    with pytest.raises(InvalidArgument, match="objective needs profiles"):
        simulate_certified(RATINGS, SCENARIO)
    with pytest.raises(InvalidArgument, match="als has no use for profiles"):
        simulate_certified(RATINGS, CertifiedScenario(BUDGET), profiles=TABLE)
    with pytest.raises(InvalidArgument, match="a rating, not a person"):
        simulated("table", user_budgets={RATINGS.user_ids[0]: 1.0})
    with pytest.raises(InvalidArgument, match="none of the people"):
        simulate_certified(RATINGS, SCENARIO, profiles=Profiles.public(["x"], [[1.0]]))
    keys = KeyPair().public, KeyPair().public
    rated = np.arange(2), np.ones(2)
    with pytest.raises(InvalidArgument, match="a rating, not a person"):
        User(*rated, agreement_of("objective"), *keys, 0.5, place=0)
    for place in (None, 11, -1):
        with pytest.raises(InvalidArgument, match="from 0 to 10"):
            User(*rated, agreement_of("objective"), *keys, place=place)


def test_too_many_users_for_profiles_from_a_release_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmf.methods.objective.certified._MOST_NUMBERS", 100)
    with pytest.raises(InvalidArgument, match="use a public table"):
        simulated("release")


def test_users_and_profiles_are_part_of_the_agreement() -> None:
    learners = [
        ProfiledObjective(OBJECTIVE, TABLE, USERS),
        ProfiledObjective(OBJECTIVE, TABLE, Ids(USERS.array[::-1])),
        ProfiledObjective(OBJECTIVE, Profiles.public(USERS.array, np.ones((len(USERS), 3))), USERS),
        ProfiledObjective(OBJECTIVE, PAID, USERS),
        ProfiledObjective(
            OBJECTIVE, Profiles.from_release(PUBLIC_RELEASE, replace(VALUE, epsilon=4.0), public=True), USERS
        ),
    ]
    assert len({agreement_of(one).digest for one in learners}) == len(learners)
    assert agreement_of(learners[0]).digest == agreement_of("objective").digest


def test_a_round_of_objective_hides_what_was_rated_from_the_third_party() -> None:
    sizes = []
    for ratings in (lambda _: (np.arange(N_ITEMS), np.full(N_ITEMS, 5.0)), lambda _: (np.zeros(0, int), np.zeros(0))):
        world = World(agreement_of("objective"), ratings)
        world.play()
        sizes.append({len(message) for message in world.seen.values()})
    assert sizes[0] == sizes[1]
