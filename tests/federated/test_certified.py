"""The certified protocol: sums, noise, bounds, and that they are right or a round is lost, whatever happens."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import BudgetExceeded
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Inquiry
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.certified.user import User
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.methods import EASE, Joint
from dpmf.methods.certified.conversation import StageLost
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.joint.defaults import MOST_GIVEN
from dpmf.privacy import Budget
from dpmf.privacy.noise import LARGEST_DRAW, STEPS_PER_SD
from dpmf.ratings import Items, Scale

from .certified_world import (
    BUDGET,
    LEARNERS,
    METHODS,
    N_ITEMS,
    SEED,
    World,
    agreement_of,
    drawn_by,
    questions_of,
    told_of,
)

# Sums


@pytest.mark.parametrize("silent", [(), (3,), (0, 7)])
@pytest.mark.parametrize("method", LEARNERS)
def test_every_round_gives_the_exact_sum_and_noise_of_those_who_answered(silent: tuple[int, ...], method: str) -> None:
    agreement = agreement_of(method)
    world = World(agreement)
    n = agreement.n_users - len(silent)
    for _ in agreement.rounds:
        questions = world.questions()
        expected = []
        for question in questions:
            parts = [world.parts(number, question) for number in world.users if number not in silent]
            assert any(sums.any() for sums, _ in parts)
            exact = np.sum([sums + share for sums, share in parts], axis=0)
            scale = agreement.n_users / n if question.scales_up else 1.0
            expected.append(exact / world.steps(question) * scale)
        for question, noisy, values in zip(questions, world.play(questions, silent=silent), expected, strict=True):
            np.testing.assert_array_equal(noisy.values, values)
            nominal = world.recommender.mechanism.sd(question.what, question.sensitivity(agreement.budget.neighbours))
            scale = agreement.n_users / n if question.scales_up else 1.0
            assert noisy.sd == pytest.approx(nominal * math.sqrt(n / agreement.crowd.n_shares) * scale)
            np.testing.assert_array_equal(noisy.answered, [one for one in world.users if one not in silent])
    world.recommender.mechanism.finish()


def test_with_too_few_people_nothing_is_revealed_and_the_round_is_charged() -> None:
    world = World(agreement_of())
    with pytest.raises(StageLost, match="too few people answered"):
        world.play(silent=(0, 1, 2))
    assert len(world.total) < 60  # no room for a sum
    with pytest.raises(BudgetExceeded):
        world.recommender.mechanism.forfeit(world.agreement.rounds[0].releases[0])
    assert not world.third_party._sum.size
    assert world.third_party.close() == []
    world.play()  # and the next round is as good as any


@pytest.mark.parametrize("dropped", [0, 5])
def test_the_noise_of_a_sum_is_normal_with_the_spread_that_is_told(dropped: int) -> None:
    agreement = agreement_of(n_items=3000, n_users=20, dropouts=5, colluders=3)
    world = World(agreement, lambda _: (np.zeros(0, np.int64), np.zeros(0, np.float32)))
    world.play(silent=range(dropped))
    (noisy,) = world.play(silent=range(dropped))
    assert stats.kstest(noisy.values / noisy.sd, "norm").pvalue > 1e-3
    nominal = world.recommender.mechanism.sd("item weights", 1.0)
    assert noisy.sd * (20 - dropped) / 20 >= nominal  # never less than the guarantee needs, drop-outs or not


@pytest.mark.parametrize("method", ["als", "als-implicit", "gaussian"])
def test_no_sum_is_too_large_for_its_ring(method: str) -> None:
    for n_users, epsilon in ((1, 1.0), (943, 20.0), (1 << 20, 5.0)):
        agreement = agreement_of(
            replace(METHODS[method], budget=Budget(epsilon)),  # type: ignore[call-arg]
            n_users=n_users,
            dropouts=0,
            colluders=0,
        )
        for number, one in enumerate(agreement.rounds):
            bounds = [STEPS_PER_SD / event.noise_multiplier for event in agreement.events if event.what in one.releases]
            ring = agreement.ring(number)
            assert ring.half > n_users * max(bounds) + LARGEST_DRAW
            assert (
                ring.n_bytes == 1
                or replace(ring, n_bytes=ring.n_bytes - 1).half <= n_users * max(bounds) + LARGEST_DRAW
            )


# What a person may add


@st.composite
def garbage(draw: st.DrawFn) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return what is no rating, and some that are."""
    item = st.one_of(st.integers(-3, N_ITEMS + 3), st.sampled_from([-(2**31), 2**31 - 1, 2**40]))
    value = st.one_of(st.floats(1, 5), st.sampled_from([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0]))
    pairs = draw(st.lists(st.tuples(item, value), max_size=30))
    return np.array([one for one, _ in pairs], np.int64), np.array([one for _, one in pairs], np.float64)


@given(rated=garbage(), share=st.sampled_from([1.0, 0.3, 0.0, -1.0, 7.0, math.nan]), data=st.data())
@settings(max_examples=60)
def test_whatever_the_ratings_nobody_adds_more_than_the_bound(
    rated: tuple[NDArray[np.int64], NDArray[np.float64]], share: float, data: st.DataObject
) -> None:
    agreement = agreement_of(data.draw(st.sampled_from(sorted(METHODS))))
    asking, adding = KeyPair(), KeyPair()
    user = User(*rated, agreement, asking.public, adding.public, share, noise_of(SEED, 0))
    down, up = Channel(asking, user.public), Channel(adding, user.public)
    for number in range(len(agreement.rounds)):
        questions = questions_of(agreement, number)
        seed = new_seed()
        inquiry = Inquiry(number, agreement.digest, seed, told_of(agreement, number))
        (answer,) = user.receive(down.seal(inquiry.encoded(agreement)))
        words = Answer.decoded(up.open(answer.message), agreement).elements
        ring = agreement.ring(number)
        left = ring.signed(words - mask_elements(seed, ring, len(words)))
        for question in questions:
            size = math.prod(question.shape)
            _, drawn = drawn_by(0, agreement, question, number)
            added, left = left[:size] - drawn.reshape(-1), left[size:]
            multiplier = next(event.noise_multiplier for event in agreement.events if event.what == question.what)
            allowed = share if 0 <= share <= 1 else 0.0
            assert math.hypot(*added.tolist()) <= allowed * STEPS_PER_SD / multiplier


# Whatever happens


schedules = st.lists(
    st.tuples(
        st.sets(st.integers(0, 7), max_size=4),  # who is silent
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3),  # whose answer is passed on as whose
        st.lists(st.tuples(st.integers(-1, 9), st.binary(max_size=40)), max_size=2),  # garbage, and from whom
    ),
    min_size=1,
    max_size=4,
)


@given(schedule=schedules)
@settings(max_examples=40, deadline=None)
def test_sums_are_right_or_the_round_is_lost(schedule: list[tuple[Any, ...]]) -> None:
    world = World(agreement_of())
    for silent, passed_on, garbage in schedule:
        questions = world.questions()
        parts = {
            user: [sum(world.parts(user, question)) for question in questions]
            for user in range(8) if user not in silent
        }  # fmt: skip

        def meddle(here: World, passed_on: Any = passed_on, garbage: Any = garbage) -> None:
            for whose, as_whose in passed_on:
                here.third_party.receive(as_whose, here.seen.get(whose, b""))
            for sender, content in garbage:
                here.third_party.receive(sender, content)
                here.recommender.receive(sender, content)

        if len(silent) > world.agreement.dropouts:
            with pytest.raises(StageLost):
                world.play(questions, silent=silent, meddle=meddle)
            continue
        for place, noisy in enumerate(world.play(questions, silent=silent, meddle=meddle)):
            exact = sum(part[place] for part in parts.values()) * (8 / len(parts))
            found = noisy.values * world.steps(questions[place])
            np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-3)


@pytest.mark.parametrize("method", [EASE(head=5, links=True, budget=BUDGET), Joint(head=5, links=True, budget=BUDGET)])
def test_links_are_agreed_upon(method: CertifiedMethod) -> None:
    """Everybody finds them in the titles of the catalogue: with other titles it is another agreement."""
    names = [f"{series} {part}" for series in ("Dune", "Alien", "Emma") for part in range(4)]
    titled, other = (
        Agreement(method, Items.of(list(range(N_ITEMS)), titles), Scale(1, 5), n_users=8, dropouts=2, colluders=1)
        for titles in (names, [*names[:-1], "Heat"])
    )
    assert any("linked pairs" in one.releases for one in titled.rounds)
    assert titled.digest != other.digest


def test_factors_that_the_ranking_gives_have_a_width_that_was_agreed_upon() -> None:
    agreement = agreement_of("joint-given")
    (biases,) = {agreement.told(number) for number, one in enumerate(agreement.rounds) if "item biases" in one.releases}
    (factors,) = (one for one in biases if one.name == "V")
    assert factors.shape == (N_ITEMS, MOST_GIVEN)
    assert not any("item factors" in one.releases for one in agreement.rounds)
