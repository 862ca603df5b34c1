"""Certified steps: how far they go, which noise they are made with, and what a centre without biases releases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmf.methods.certified.questions import Noisy
from dpmf.methods.certified.steps import GRADIENTS, PublicSteps
from dpmf.methods.gaussian.certified import FullBatchPlan, centre_of
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Scale
from dpmf.ratings.ids import Ids

STARS = Scale(1, 5)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_noise_on_a_sum_is_what_the_event_says(neighbours: str) -> None:
    plan = FullBatchPlan(60, 3, 6, 0.5, Budget(3.0, neighbours=neighbours))
    noise = Mechanism([plan.event], Noise(5)).release(GRADIENTS, np.zeros((60, 4), np.int64), plan.sensitivity)
    assert noise.std() == pytest.approx(plan.event.noise_multiplier * plan.sensitivity, rel=0.15)
    left = plan.step_size * plan.event.noise_multiplier * plan.sensitivity * math.sqrt(plan.n_steps)
    assert left == pytest.approx(0.5)


def test_steps_are_halved_where_a_gradient_turns_round_beyond_noise() -> None:
    plan, keys = FullBatchPlan(60, 3, 6, 0.5, Budget(3.0)), Ids(np.arange(60)).keys
    public = PublicSteps(plan, STARS, keys, centre_of("mean", STARS, 3), 1.0, 3, 1)
    noise = plan.event.noise_multiplier * plan.sensitivity
    gradient = np.zeros((60, 4))
    gradient[0], gradient[1], gradient[2] = 2 * noise, noise / 2, 100 * noise
    moved = public.moves(Noisy(gradient, noise, 1.0))
    np.testing.assert_allclose(moved[:2], plan.step_size * gradient[:2])
    np.testing.assert_allclose(moved[2], plan.step_size * 2.5 * noise)  # no further than that, whatever it says
    moved = public.moves(Noisy(-gradient, noise, 1.0))
    np.testing.assert_allclose(moved[0], -plan.step_size * gradient[0] / 2)  # there was no noise like that
    np.testing.assert_allclose(moved[1], -plan.step_size * gradient[1])  # this may have been noise
