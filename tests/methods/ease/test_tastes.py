"""Factors of items that the ranking finds on its way."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.item_pairs import Ramp
from dpmf.methods.ease.certified import Measured, PublicEase
from dpmf.methods.ease.plan import EasePlan
from dpmf.methods.ease.shrinkage import Array
from dpmf.methods.ease.tastes import taste_factors
from dpmf.privacy import Budget

HEAD = np.array([1, 2, 4, 5], np.int32)


def measured(matrix: Array, sd: float) -> PublicEase:
    """Return the state after pairs of the head were measured as this matrix."""
    public = PublicEase(EasePlan(7, len(HEAD), 100, Budget(1.0)), Ramp(2.0, 5.0))
    rows, columns = np.tril_indices(len(HEAD))
    scale = np.where(rows == columns, 1.0, 2.0**0.5)
    public.head, public.pairs = HEAD, Measured(matrix[rows, columns] * scale, sd)
    return public


def two_tastes() -> Array:
    """Return the matrix of items of which the first two are liked by some, and the last two by others."""
    return np.kron(np.array([[9.0, 1.0], [1.0, 6.0]]), np.ones((2, 2)))


def test_items_of_a_taste_are_alike_and_others_are_not() -> None:
    factors = taste_factors(measured(two_tastes(), 0.1), 48)
    assert factors.shape == (7, 2)
    assert not factors[[0, 3, 6]].any()
    directions = factors[HEAD] / np.linalg.norm(factors[HEAD], axis=1, keepdims=True)
    alike = directions @ directions.T
    assert alike[0, 1] == pytest.approx(1.0, abs=1e-3)
    assert alike[2, 3] == pytest.approx(1.0, abs=1e-3)
    assert abs(alike[0, 2]) < 0.6


def test_the_largest_come_first_and_no_more_than_asked_for() -> None:
    public = measured(two_tastes(), 0.1)
    both, one = taste_factors(public, 2), taste_factors(public, 1)
    np.testing.assert_array_equal(both[:, :1], one)
    assert len(np.unique(np.sign(both[HEAD, 0]))) == 1  # what everybody likes, more or less
    assert taste_factors(public, 0).shape == (7, 0)


def test_noise_has_no_tastes() -> None:
    assert taste_factors(measured(two_tastes(), 100.0), 48).shape == (7, 0)
    nothing = PublicEase(EasePlan(7, None, 100, Budget(1.0)), Ramp(2.0, 5.0))
    assert taste_factors(nothing, 48).shape == (7, 0)
