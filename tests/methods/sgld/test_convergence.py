"""Figures about chains, against sequences whose answer is known, and on chains of SGLD."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.methods import SGLD
from dpmf.methods.sgld.convergence import Convergence, diagnose, effective_sizes, split_r_hat
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make


def autoregressive(correlation: float, shape: tuple[int, int, int], seed: int = 0) -> NDArray[np.float64]:
    """Return stationary chains of variance 1."""
    noise = np.random.default_rng(seed).normal(size=shape)
    chains = np.empty(shape)
    chains[:, 0] = noise[:, 0]
    for place in range(1, shape[1]):
        chains[:, place] = correlation * chains[:, place - 1] + math.sqrt(1 - correlation**2) * noise[:, place]
    return chains


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregressive_sequence_is_known(correlation: float) -> None:
    sizes = effective_sizes(autoregressive(correlation, (4, 4000, 10)))
    expected = 16_000 * (1 - correlation) / (1 + correlation)
    assert sizes.mean() == pytest.approx(expected, rel=0.1)


def test_chains_that_agree_have_an_r_hat_of_one() -> None:
    assert split_r_hat(autoregressive(0.3, (3, 2000, 20))).max() < 1.01


def test_chains_apart_and_chains_that_drift_are_found_out() -> None:
    good = autoregressive(0.0, (2, 500, 3))
    apart = good + np.array([0.0, 1.0])[:, None, None]
    # Two chains with means 0 and 1 and variance 1: four halves, whose means have a variance of 1/3.
    assert split_r_hat(apart).mean() == pytest.approx(math.sqrt(1 + 1 / 3), rel=0.05)
    drift = good + np.linspace(0, 3, 500)[None, :, None]  # both alike, so only the halves tell
    assert split_r_hat(drift).min() > 1.2
    assert effective_sizes(apart).max() < 100


def test_what_never_moves_is_as_good_as_it_gets_and_what_never_meets_is_not() -> None:
    still = np.ones((2, 10, 1))
    assert split_r_hat(still).tolist() == [1.0]
    assert effective_sizes(still).tolist() == [20.0]
    still[1] = 2
    assert split_r_hat(still).tolist() == [math.inf]


def test_the_verdict_is_in_the_words() -> None:
    good = Convergence.of(autoregressive(0.0, (2, 2000, 5)))
    assert good.converged
    assert "evidence and not proof" in str(good)
    bad = Convergence.of(autoregressive(0.0, (2, 2000, 5)) + np.array([0.0, 3.0])[:, None, None])
    assert not bad.converged
    assert "Not converged: do not rely on this" in str(bad)
    assert bad.to_json() == {
        "chains": 2, "r_hat": bad.r_hat, "effective_size": bad.effective_size, "converged": False,
    }  # fmt: skip
    few = Convergence.of(autoregressive(0.0, (2, 20, 5)))  # however well they agree
    assert not few.converged


@pytest.mark.parametrize("epsilon", [math.inf, 50.0])
def test_chains_of_sgld_start_apart_and_come_together(epsilon: float) -> None:
    ratings = make(100, 40, mean_ratings=15)
    method = SGLD(
        n_factors=2, n_epochs=4000, budget=Budget(epsilon), mode="paper", learning_rate=0.1, decay=0.0,
        items_public=True, noise_seed=None if math.isinf(epsilon) else 3,
    )  # fmt: skip
    long, short = diagnose(method, ratings), diagnose(replace(method, n_epochs=8, learning_rate=0.001), ratings)
    assert long.traces.shape == (2, 4000, 64)
    assert (long.traces[0, 0] != long.traces[1, 0]).all()
    assert long.r_hat < 1.1
    assert long.effective_size > 50
    assert short.r_hat > 1.2
    assert not short.converged


def test_too_few_chains_or_epochs_are_refused() -> None:
    ratings, method = make(20, 10), SGLD(n_factors=2, budget=Budget(math.inf))
    with pytest.raises(InvalidArgument, match="n_chains=1"):
        diagnose(method, ratings, n_chains=1)
    with pytest.raises(InvalidArgument, match="n_epochs=7"):
        diagnose(replace(method, n_epochs=7), ratings)
