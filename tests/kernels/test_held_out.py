"""Held-out residuals against a reference that fits every person once per rating; bounds are in `test_bounded_sums`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from numpy.typing import NDArray

from dpmf.kernels.held_out import add_held_out_residuals_reference

from .crowds import (
    Crowd,
    agree,
    crowds,
    held_out_settings,
    lone_residual_steps,
    lone_residuals,
    residual_steps,
    residuals,
)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_well_behaved_people_count_as_the_reference_says(crowd: Crowd) -> None:
    assume(crowd.level > 1e9)
    of = crowd
    for person in range(of.n_people):
        items, values = of.of(person)
        given = items, values.astype(np.float64), of.weights, float(of.shares[person]), of.V, of.c.astype(np.float64)
        fitted = add_held_out_residuals_reference(*given, held_out_settings(of)._replace(length=0.0), of.n_asked)
        if points_nowhere(fitted, of.height):
            of = replace(of, fit=(*of.fit[:2], 0.0))
        expected = add_held_out_residuals_reference(*given, held_out_settings(of), of.n_asked)
        agree(residuals(of, person, person + 1) / residual_steps(of), expected, of.clip * (of.radius + of.height))
        alone = lone_residuals(of, person, person + 1) / lone_residual_steps(of)
        expected = add_held_out_residuals_reference(*given, held_out_settings(of), 0)
        agree(alone, expected, of.clip * of.height)


def points_nowhere(rows: NDArray[np.float64], height: float) -> bool:
    """Tell whether factors are so short that rounding alone decides on the direction in which they are rescaled."""
    some = rows[rows[:, -1] != 0]
    lengths = np.linalg.norm(some[:, :-1], axis=1) / np.abs(some[:, -1]) * height
    return bool((lengths < 1e-6).any())
