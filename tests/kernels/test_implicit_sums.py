"""Sums over implicit feedback against references, person by person; bounds are in `test_bounded_sums`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings

from dpmf.kernels.bounded_sums import symmetric
from dpmf.kernels.implicit_sums import add_held_out_factors_reference, add_implicit_moments_reference

from .crowds import (
    LIFT,
    Crowd,
    agree,
    crowds,
    held_out_factor_steps,
    held_out_factors,
    implicit_moment_steps,
    implicit_moments,
    implicit_settings,
)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_moments_are_those_of_the_reference(crowd: Crowd) -> None:
    assume(crowd.level > 1e9)
    for person in range(crowd.n_people):
        items, share, u = crowd.of(person)[0], float(crowd.shares[person]), crowd.U[person].astype(np.float64)
        found = implicit_moments(crowd, person, person + 1) / implicit_moment_steps(crowd)
        expected = add_implicit_moments_reference(items, crowd.weights, u, share, LIFT, crowd.radius)
        agree(symmetric(found, len(u) + 1), expected, crowd.radius**2 + 1)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_held_out_factors_are_those_of_the_reference(crowd: Crowd) -> None:
    """Directions of first guesses are left out where there is next to nothing to point anywhere."""
    assume(crowd.level > 1e9)
    of = replace(crowd, fit=(*crowd.fit[:2], 0.0), c=np.clip(crowd.c, -1, 1))
    for person in range(of.n_people):
        given = *of.of(person), of.weights, float(of.shares[person]), of.V, of.c, of.fit[1]
        expected = add_held_out_factors_reference(*given, implicit_settings(of))
        agree(held_out_factors(of, person, person + 1) / held_out_factor_steps(of), expected, of.radius + of.height)
