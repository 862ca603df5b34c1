"""Rounds in the clear are those of the protocol: the same people, the same steps, noise of the same distribution."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from experiments.hua2015.rounds import Rounds

from dpmf import Ratings
from dpmf.federated.published import Scenario, Simulation
from dpmf.ratings.synthetic import make as make_ratings

SCENARIO = Scenario(
    "s3", rounds=12, epsilon=math.inf, per_round=20, n_factors=6, come=0.3, leave=0.2, items_public=True, seed=5
)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make_ratings(60, 30, mean_ratings=12)


def _simulated(ratings: Ratings, scenario: Scenario) -> tuple[Simulation, Rounds]:
    """Return both after all rounds, from the same start."""
    simulation = Simulation(ratings, scenario, 1)
    start = np.array([simulation.user(number).profile for number in range(ratings.n_users)])
    rounds = Rounds(ratings, scenario, U=start, V=simulation.recommender.V)
    simulation.run((), None)
    rounds.play(scenario.rounds)
    return simulation, rounds


@pytest.mark.parametrize("kind", ["s2", "s3"])
def test_without_noise_profiles_are_the_same(ratings: Ratings, kind: Literal["s2", "s3"]) -> None:
    simulation, rounds = _simulated(ratings, replace(SCENARIO, scenario=kind))
    profiles = np.array([simulation.users[number].profile for number in range(ratings.n_users)])
    np.testing.assert_allclose(rounds.V, simulation.recommender.V, atol=1e-4)
    np.testing.assert_allclose(rounds.U, profiles, atol=1e-4)
    assert not np.allclose(rounds.V, Rounds(ratings, SCENARIO, V=rounds.V + 1).V)


def _moves(ratings: Ratings, scenario: Scenario, seeds: range) -> tuple[list[float], list[float]]:
    """Return how far items move in one round, in root mean square, by the protocol and in the clear."""
    found: tuple[list[float], list[float]] = ([], [])
    for seed in seeds:
        simulation = Simulation(ratings, replace(scenario, noise_seed=seed), 1)
        rounds = Rounds(ratings, simulation.scenario, V=simulation.recommender.V)
        start = rounds.V.copy()
        simulation.run((), None)
        rounds.play(scenario.rounds)
        for moves, V in zip(found, (simulation.recommender.V, rounds.V), strict=True):
            moved = np.abs(V - start)[np.abs(V - start).sum(axis=1) > 0]
            moves.append(float(np.mean(moved)))
    return found


@pytest.mark.parametrize("kind", ["s2", "s3"])
@pytest.mark.parametrize("rounds", [1, 6])
def test_noise_moves_items_as_far_as_in_the_protocol(ratings: Ratings, kind: Literal["s2", "s3"], rounds: int) -> None:
    noisy = replace(SCENARIO, scenario=kind, epsilon=0.1, rounds=rounds)
    protocol, clear = (np.array(moves) for moves in _moves(ratings, noisy, range(8)))
    spread = math.sqrt((protocol.var() + clear.var()) / len(protocol))
    assert abs(protocol.mean() - clear.mean()) < 4 * spread
    assert spread < 0.1 * protocol.mean()


def test_users_who_leave_take_their_noise_share_along(ratings: Ratings) -> None:
    """With half of the noise shares the variance is half; the fixed noise stays whole."""
    rounds = Rounds(ratings, replace(SCENARIO, epsilon=1.0, noise_seed=3))
    whole, half = (np.concatenate([rounds._laplace(np.full(30, part)) for _ in range(300)]) for part in (1.0, 0.5))
    scale = rounds._terms.amplitude
    assert np.mean(np.abs(whole)) == pytest.approx(scale, rel=0.03)
    assert np.var(whole) == pytest.approx(2 * scale**2, rel=0.05)
    assert np.var(half) == pytest.approx(scale**2, rel=0.05)


def test_noise_divided_by_the_ratings_is_that_of_a_larger_epsilon(ratings: Ratings) -> None:
    """In S2, for an item with k raters of M ratings: that of M/k times the epsilon."""
    base = replace(SCENARIO, scenario="s2", rounds=1, epsilon=1.0, noise_seed=3)
    start = Rounds(ratings, base)
    divided = Rounds(ratings, base, divided=True)
    whole = Rounds(ratings, base)
    quiet = Rounds(ratings, replace(base, epsilon=math.inf), U=start.U, V=start.V)
    for one in (divided, whole, quiet):
        one.play(1)
    k = np.bincount(ratings.items, minlength=ratings.n_items)[:, None]
    np.testing.assert_allclose(divided.V - quiet.V, (whole.V - quiet.V) * k / len(ratings), rtol=2e-3, atol=1e-6)


def test_users_who_were_never_asked_are_folded_in(ratings: Ratings) -> None:
    rounds = Rounds(ratings, replace(SCENARIO, come=0.02, per_round=2, epsilon=10.0))
    rounds.play(3)
    assert 0 < rounds.asked.mean() < 0.5
    U, V = rounds.profiles()
    np.testing.assert_array_equal(U[rounds.asked], rounds.U[rounds.asked])
    stranger = int(np.flatnonzero(~rounds.asked)[0])
    items, values = ratings.of_user(stranger)
    rows = V[items].astype(np.float64)
    expected = np.linalg.solve(rows.T @ rows + 0.001 * np.eye(rows.shape[1]), rows.T @ values)
    np.testing.assert_allclose(U[stranger], expected, rtol=1e-2, atol=1e-3)
