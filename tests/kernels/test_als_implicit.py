"""Fits to implicit feedback against weighted least squares over the whole catalogue."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import (
    Confidence,
    extra_weight,
    extra_weights,
    implicit_squared_errors,
    implicit_squared_errors_reference,
    prepare_items,
    solve_implicit,
    solve_implicit_person,
    solve_implicit_reference,
    sum_items,
    sum_items_reference,
)
from dpmf.kernels.csr import Csr

N_ITEMS, RIDGE = 30, 0.4
ONCE, LOG, LINEAR = Confidence(2.5), Confidence(2.5, 16.0), Confidence(0.5, 8.0, True)
INDPTR = np.array([0, 5, 5, 6, 26])  # five items, none, one, twenty


def problem(n_factors: int) -> tuple[Csr, NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(n_factors)
    own = [np.sort(rng.choice(N_ITEMS, n, replace=False)) for n in np.diff(INDPTR)]
    V, c = rng.normal(0, 1, (N_ITEMS, n_factors)), rng.uniform(0, 1, N_ITEMS)
    counts = rng.choice(np.array([0, 1, 2, 3.5, 16, 900], np.float32), INDPTR[-1])
    return Csr(INDPTR, np.concatenate(own).astype(np.int32), counts), V.astype(np.float32), c.astype(np.float32)


@pytest.mark.parametrize("n_factors", [0, 1, 7, 20])
def test_sums_over_items_equal_the_reference(n_factors: int) -> None:
    _, V, c = problem(n_factors)
    V, c = np.tile(V, (5, 1)), np.tile(c, 5)  # more than are summed at a time
    for found, expected in zip(sum_items(V, c, RIDGE), sum_items_reference(V, c, RIDGE), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, V.T.astype(np.float64) @ c, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("confidence", [ONCE, LOG, LINEAR], ids=["once", "log", "linear"])
@pytest.mark.parametrize("n_factors", [1, 7, 20])
def test_people_are_fitted_as_by_the_reference(n_factors: int, confidence: Confidence) -> None:
    owned, V, c = problem(n_factors)
    U, items = np.full((4, n_factors), 9, np.float32), prepare_items(V, c, RIDGE)
    solve_implicit(owned, 2, 4, items, confidence, U)
    assert (U[:2] == 9).all()  # only the people asked for
    solve_implicit(owned, 0, 2, items, confidence, U)
    for i in (0, 2, 3):
        own = slice(INDPTR[i], INDPTR[i + 1])
        alpha = extra_weights(owned.values[own], confidence)
        expected = solve_implicit_reference(owned.items[own], V, c, RIDGE, alpha)
        np.testing.assert_allclose(U[i], expected, rtol=1e-4, atol=1e-5)
        alone = solve_implicit_person(owned.items[own], owned.values[own], items, confidence)
        np.testing.assert_allclose(alone, expected, rtol=1e-6, atol=1e-8)
    assert not U[1].any()  # nothing is known about a person without items
    assert not solve_implicit_person(np.zeros(0, np.int32), np.zeros(0), items, confidence).any()


@pytest.mark.parametrize("confidence", [ONCE, LOG, LINEAR], ids=["once", "log", "linear"])
def test_a_weight_is_between_that_of_one_and_that_of_the_most(confidence: Confidence) -> None:
    most = extra_weight(confidence.most, confidence)
    wild = np.array([np.nan, -np.inf, -3, 0, 0.2, 1, 1.5, 2, 7, 8, 15, 16, 17, 1e30, np.inf])
    found = [extra_weight(count, confidence) for count in wild.tolist()]
    np.testing.assert_allclose(found, extra_weights(wild, confidence), rtol=1e-12)
    assert all(confidence.alpha <= one <= most for one in found)
    assert found[:6] == [confidence.alpha] * 6
    assert found[-1] == most


def test_weights_rise_as_they_are_said_to() -> None:
    assert [extra_weight(count, LOG) / LOG.alpha for count in (1.0, 2.0, 4.0, 16.0)] == [1, 1.25, 1.5, 2]
    assert [extra_weight(count, LINEAR) / LINEAR.alpha for count in (1.0, 2.0, 3.5, 8.0)] == [1, 2, 3.5, 8]
    assert {extra_weight(count, ONCE) for count in (1.0, 2.0, 1e9)} == {ONCE.alpha}


@pytest.mark.parametrize("bad", [-1, 3, N_ITEMS, N_ITEMS + 7])
def test_items_that_are_repeated_or_not_in_the_catalogue_do_not_count(bad: int) -> None:
    _, V, c = problem(4)
    items, U = prepare_items(V, c, RIDGE), np.empty((2, 4), np.float32)
    own = np.array([3, 8, 3, bad, 8], np.int32)  # after 3 and 8 nothing is in ascending order
    both = Csr(np.array([0, 5, 7]), np.concatenate([own, own[:2]]), np.full(7, 3, np.float32))
    solve_implicit(both, 0, 2, items, LOG, U)
    np.testing.assert_array_equal(U[0], U[1])


def test_squared_errors_equal_the_reference() -> None:
    owned, V, c = problem(6)
    U = np.random.default_rng(1).normal(0, 1, (4, 6)).astype(np.float32)
    parts = [implicit_squared_errors(owned.pattern, start, stop, V, c, U) for start, stop in ((0, 2), (2, 4))]
    assert sum(parts) == pytest.approx(implicit_squared_errors_reference(owned.pattern, V, c, U), rel=1e-5)
