"""What further columns and matrices say about items, as numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpmf.ratings.described import MOST_NUMBERS, description, encoded, matrix_description, principal, reduced

RNG = np.random.default_rng(5)


def test_a_column_is_of_mean_0_and_size_1_whatever_it_holds() -> None:
    columns = {
        "numbers": [str(number) for number in RNG.normal(size=60)],
        "categories": ["red", "green", "blue"] * 20,
        "several": ["a|b", "b", "c|a", ""] * 15,
        "texts": [f"the {'old' if place % 3 else 'new'} house number {place}" for place in range(60)],
    }
    for name, values in columns.items():
        found = encoded(values)
        assert found.shape[0] == 60, name
        assert found.shape[1], name
        np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(np.square(found).sum(axis=1).mean(), 1, rtol=1e-5)


def test_what_a_column_holds_follows_from_its_values() -> None:
    assert encoded([str(number) for number in range(40)]).shape == (40, 2)  # a number, and its square
    assert encoded(["red", "green"] * 20).shape == (40, 2)
    assert encoded(["a|b", "b"] * 20).shape == (40, 1)  # b, which all have, says nothing
    words = [f"{'dark' if place % 2 else 'light'} tale of {place}" for place in range(40)]
    assert encoded(words).shape == (40, 2)


def test_a_column_that_says_nothing_is_left_out() -> None:
    for values in (["same"] * 40, [""] * 40, [f"id{place}" for place in range(40)], ["7"] * 40, ["nan"] * 40):
        assert encoded(values).shape == (40, 0)
    assert description("a list", "", {"empty": [""] * 40}) is None


def test_odd_numbers_do_not_bend_the_rest() -> None:
    values = [*map(str, range(39)), "1e300"]
    assert np.isfinite(encoded(values)).all()
    assert encoded([*map(str, range(39)), "inf"]).shape[1] == 0  # no number, and a value of its own for each


def test_numbers_may_be_as_large_or_small_as_there_are() -> None:
    matrix = RNG.normal(size=(40, 3))
    matrix[3] = np.nan
    expected = matrix_description("m", "", matrix)
    for exponent in (1000, -1000):
        found = matrix_description("m", "", np.ldexp(matrix, exponent))
        assert found is not None
        assert expected is not None
        np.testing.assert_array_equal(found.columns, expected.columns)
    with warnings.catch_warnings(action="error"):
        assert np.isfinite(encoded([*map(str, range(38)), "1.7e308", "-1.7e308"])).all()


def test_unknown_values_count_for_nothing() -> None:
    matrix = RNG.normal(size=(50, 3))
    matrix[7] = np.nan
    found = matrix_description("m", "", matrix)
    assert found is not None
    assert np.abs(found.columns[7]).max() < 0.05
    assert matrix_description("m", "", np.ones((50, 3))) is None


def test_many_columns_become_the_directions_in_which_items_differ_most() -> None:
    hidden = RNG.normal(size=(300, 3))
    wide = hidden @ RNG.normal(size=(3, 384)) + 0.01 * RNG.normal(size=(300, 384))
    found = matrix_description("m", "", wide)
    assert found is not None
    assert found.columns.shape == (300, MOST_NUMBERS)
    first = found.columns[:, :3].astype(float)
    fitted = first @ np.linalg.lstsq(first, hidden - hidden.mean(axis=0), rcond=None)[0]
    assert float(np.square(hidden - hidden.mean(axis=0) - fitted).mean()) < 0.01


@pytest.mark.parametrize("most", [2, 5])
def test_directions_have_a_sign_of_their_own(most: int) -> None:
    columns = RNG.normal(size=(80, 6))
    basis = principal(columns, most)
    np.testing.assert_allclose(basis, principal(np.vstack([columns[40:], columns[:40]]), most), atol=1e-9)
    assert (basis[np.abs(basis).argmax(axis=0), np.arange(most)] > 0).all()
    assert reduced(columns, most).shape == (80, most)
