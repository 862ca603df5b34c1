"""The noise of the published protocol: Laplace together, whoever leaves, and honest variances."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmf.errors import InvalidArgument
from dpmf.federated.published import recommender as module
from dpmf.federated.published.laplace import draw_variances, noise_shares, own_noise
from dpmf.federated.published.randomness import Draws

from .published_world import World, both_kinds


def noise_of(silent: list[int], n_items: int = 400, K: int = 30) -> tuple[World, np.ndarray[Any, Any]]:
    """Return a world of users with zero profiles, and their sums: noise alone."""
    ratings = {user: dict.fromkeys(range(n_items), 3.0) for user in range(6)}
    here = World(ratings, shared_noise=True, seed=11, n_items=n_items, n_factors=K, item_penalty=0.0)
    for user in here.users.values():
        user.profile[:] = 0.0
    before = here.recommender.V.copy()
    here.play(silent=silent)
    return here, here.sums_of_last_step(before, [user for user in ratings if user not in silent])


@pytest.mark.parametrize("silent", [[], [2, 5]])
def test_shares_add_up_to_the_stated_noise_also_if_users_leave(silent: list[int]) -> None:
    here, sums = noise_of(silent)
    ring, b = here.terms.ring, here.terms.amplitude
    fixed = ring.signed(here.recommender.snapshot()["fixed"] - here.third_party.snapshot()["secret"]) / here.terms.steps
    assert stats.kstest(fixed.ravel() / b, "laplace").pvalue > 1e-4
    of_round = (sums - fixed).ravel() / b
    thinned = math.sqrt((6 - len(silent)) / 6)  # users who leave take their shares with them
    assert stats.kstest(of_round / thinned, "laplace").pvalue > 1e-4
    if silent:
        assert stats.kstest(of_round, "laplace").pvalue < 1e-4
    assert abs(np.corrcoef(fixed.ravel(), of_round)[0, 1]) < 0.05


def test_noise_of_a_round_is_another_one_in_every_round() -> None:
    here, first = noise_of([], n_items=100)
    before = here.recommender.V.copy()
    for user in here.users.values():
        user.profile[:] = 0.0
    here.play()
    second = here.sums_of_last_step(before, here.ratings)
    fixed = here.terms.ring.signed(here.recommender.snapshot()["fixed"] - here.third_party.snapshot()["secret"])
    first, second = first - fixed / here.terms.steps, second - fixed / here.terms.steps
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1


def test_noise_that_users_draw_once_is_the_same_in_every_round() -> None:
    ratings = {user: dict.fromkeys(range(300), 3.0) for user in range(5)}
    here = World(ratings, shared_noise=False, seed=11, n_factors=20, item_penalty=0.0)
    here.play()
    fixed = np.sum([user.fixed for user in here.users.values()], axis=0) / here.terms.steps
    assert stats.kstest(fixed.ravel() / here.terms.amplitude, "laplace").pvalue > 1e-4
    for user in here.users.values():
        user.profile[:] = 0.0
    before = here.recommender.V.copy()
    here.play()
    of_round = here.sums_of_last_step(before, ratings) - fixed  # it is in the answers, and fresh noise besides
    assert stats.kstest(of_round.ravel() / here.terms.amplitude, "laplace").pvalue > 1e-4
    again = {number: user.fixed.copy() for number, user in here.users.items()}
    here.play()
    for number, user in here.users.items():
        np.testing.assert_array_equal(user.fixed, again[number])


@pytest.mark.parametrize("k", [1, 7, 300])
def test_shares_of_k_users_are_laplace_together(k: int) -> None:
    draws, counts = Draws(11), np.full(150, k, np.uint32)
    codes = draw_variances(draws, (150, 40))
    total = sum(noise_shares(draws, codes, counts, 10.0, 4096.0) for _ in range(k))
    assert stats.kstest(np.ravel(total) / 4096.0 / 10.0, "laplace").pvalue > 1e-4


def test_noise_of_a_single_user_has_a_gamma_length_and_any_direction() -> None:
    noise = own_noise(Draws(11), 4000, 10, 3.0, 1e6) / 1e6
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths / 3.0, "gamma", args=(10,)).pvalue > 1e-4
    directions = noise / lengths[:, None]
    assert stats.kstest(directions[:, 0] ** 2, "beta", args=(0.5, 4.5)).pvalue > 1e-4
    assert np.abs(directions.mean(axis=0)).max() < 5 / math.sqrt(10 * 4000)


def test_without_a_third_party_noise_is_far_larger() -> None:
    moved = {}
    for third_party in (True, False):
        ratings = {user: dict.fromkeys(range(40), 3.0) for user in range(60)}
        here = World(ratings, shared_noise=False, seed=11, third_party=third_party, n_factors=8, item_penalty=0.0)
        for user in here.users.values():
            user.profile[:] = 0.0
        before = here.recommender.V.copy()
        here.play()
        moved[third_party] = float(np.abs(here.sums_of_last_step(before, ratings)).mean())
    # A sum of 60 users' own noise, against one fixed and one fresh draw for all of them together.
    assert moved[False] > 2.5 * moved[True]


def test_a_recommender_that_draws_small_variances_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = {user: dict.fromkeys(range(20), 3.0) for user in range(3)}
    here = World(ratings, shared_noise=True, seed=11, n_factors=20)

    def little(draws: Draws, shape: tuple[int, int]) -> Any:
        return np.maximum(draw_variances(draws, shape), np.uint16(50000))  # code 0 is the largest H

    monkeypatch.setattr(module, "draw_variances", little)
    here.play()
    assert here.recommender.discarded == 1
    for user in here.users.values():
        assert user.refusals.by_reason == {"the noise variances do not have the distribution that was agreed": 1}


@both_kinds
def test_small_variances_of_the_fixed_noise_are_caught_too(shared_noise: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = {user: dict.fromkeys(range(20), 3.0) for user in range(3)}
    honest, calls = draw_variances, itertools.count()

    def little_at_first(draws: Draws, shape: tuple[int, int]) -> Any:
        drawn = honest(draws, shape)
        return drawn if next(calls) else np.maximum(drawn, np.uint16(50000))

    monkeypatch.setattr(module, "draw_variances", little_at_first)
    here = World(ratings, shared_noise=shared_noise, seed=11, n_factors=20)
    if not shared_noise:
        here.play()
    assert here.recommender.discarded == 1
    for user in here.users.values():
        assert user.refusals.by_reason == {"the noise variances do not have the distribution that was agreed": 1}


def test_the_recommender_does_not_know_the_fixed_noise() -> None:
    """What it stores is uniform: it includes the third party's secret."""
    ratings = {user: dict.fromkeys(range(400), 3.0) for user in range(3)}
    stored = World(ratings, shared_noise=True, n_factors=20).recommender.snapshot()["fixed"].ravel()
    for shift in (0, 8, 16, 24):
        counts = np.bincount(stored >> np.uint32(shift) & np.uint32(255), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9


def test_another_process_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidArgument, match="another process"):
        draws.integers(4)
