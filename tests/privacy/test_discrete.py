from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.privacy import discrete as module
from dpmf.privacy.discrete import Scratch, Table, columns_of, table_of

LARGEST = Fraction(2**56)
SQUARES = [LARGEST / n for n in (1, 3, 64, 943, 2**20)]
LEAST_P = 1e-9  # a right sampler fails once in a hundred million runs


@pytest.fixture(scope="module", params=SQUARES, ids=lambda square: f"σ²={float(square):.3g}")
def table(request: pytest.FixtureRequest) -> Table:
    """A table, for numbers of several sizes."""
    return table_of(request.param)


def weights_of(table: Table) -> list[int]:
    """What the alias table gives each column, in units of 2**-160, read back from its thresholds."""
    height_bits = 32 - table.column_bits
    weights = [0] * 2**table.column_bits
    for column, (word, refined, move) in enumerate(
        zip(table.thresholds.tolist(), table.refined, table.moves.tolist(), strict=True)
    ):
        assert word >> height_bits == column
        threshold = ((word % 2**height_bits) << 128) + refined
        weights[column] += threshold
        weights[column + move] += 2 ** (160 - table.column_bits) - threshold
    return weights


def drawn(table: Table, words: NDArray[np.uint32], refine: Callable[[memoryview], bytes]) -> NDArray[np.intp]:
    """Return the columns of given words."""
    scratch = Scratch.of(len(words))
    scratch.words[:] = words
    return columns_of(table, scratch, refine)


# Which table


@pytest.mark.parametrize("n", [*range(1, 70), *(2**e + d for e in range(7, 20) for d in (-1, 0, 1)), 943, 2**20])
def test_parameters_are_those_that_the_proof_needs(n: int) -> None:
    square = LARGEST / n
    stretch, base_square = module._stretch(square)
    assert base_square * (stretch**4 + stretch**2 + 1) == square
    inner = 1 / (1 / base_square + stretch**2 / base_square)
    outer = 1 / (1 / (base_square * (1 + stretch**2)) + stretch**2 / base_square)
    assert min(inner, outer) >= Fraction(39999, 10000)
    larger = stretch + 1  # does not suffice, so that tables are no larger than need be
    assert square / ((1 + larger**2) * (1 + larger**2 + larger**4)) < Fraction(39999, 10000)


def test_columns_reach_to_sixteen_and_there_are_not_too_many(table: Table) -> None:
    assert 16**2 * table.base_square <= table.centre**2 < 32**2 * table.base_square
    assert len(table.moves) == len(table.thresholds) == len(table.refined) == 2 * table.centre <= 2**15


def test_the_largest_numbers_have_the_stretch_of_a_power_of_two() -> None:
    table = table_of(LARGEST)
    assert (table.stretch, table.column_bits, table.centre) == (2**9, 15, 2**14)


# The table, exactly


def test_the_table_is_as_close_to_the_discrete_gaussian_as_proven(table: Table) -> None:
    weights = weights_of(table)
    assert sum(weights) == 2**160
    assert weights[0] == 0
    assert weights[1:] == weights[:0:-1]
    with localcontext(Context(prec=80)):
        rate = Decimal(table.base_square.denominator) / Decimal(2 * table.base_square.numerator)
        densities = [(-rate * x * x).exp() for x in range(table.centre)]
        total = 2 * sum(densities) - 1
        errors = [
            abs(density / total - Decimal(weight) / 2**160)
            for density, weight in zip(densities, weights[table.centre :], strict=True)
        ]
        # Total variation: half the sum over all x, which is the sum over x > 0 and half of x = 0.
        assert Decimal(2) ** (table.column_bits - 164) < sum(errors[1:]) + errors[0] / 2 <= Decimal(2) ** -145


def test_tables_do_not_depend_on_the_callers_decimal_precision(table: Table) -> None:
    with localcontext(Context(prec=5)):
        assert module._weights(table.base_square, table.column_bits) == weights_of(table)


# Drawing from it


@pytest.mark.parametrize("above", [False, True])
def test_undecided_words_are_decided_by_further_bits(table: Table, above: bool) -> None:
    chosen = [column for column in range(0, len(table.moves), 13) if table.refined[column] > 0]
    answers = iter([table.refined[column] - (not above) for column in chosen])
    got = drawn(table, table.thresholds[chosen], lambda zeros: next(answers).to_bytes(len(zeros), "little"))
    assert got.tolist() == [column + int(table.moves[column]) * above for column in chosen]
    assert len(chosen) > 100
    assert np.count_nonzero(table.moves[chosen]) > 90


def test_words_next_to_a_threshold_are_decided_without_further_bits(table: Table) -> None:
    top = 2 ** (32 - table.column_bits)
    inside = np.array([column for column, word in enumerate(table.thresholds.tolist()) if 0 < word % top < top - 1])

    def never(_: memoryview) -> bytes:
        raise AssertionError

    below = drawn(table, table.thresholds[inside] - np.uint32(1), never)
    above = drawn(table, table.thresholds[inside] + np.uint32(1), never)
    np.testing.assert_array_equal(below, inside)
    np.testing.assert_array_equal(above, inside + table.moves[inside])


def test_what_is_drawn_fits_the_probabilities(table: Table) -> None:
    n = 2_000_000
    words = np.frombuffer(secrets.token_bytes(4 * n), np.uint32)
    seen = np.bincount(drawn(table, words, lambda zeros: secrets.token_bytes(len(zeros))), minlength=len(table.moves))
    x = np.arange(len(seen)) - table.centre
    density = np.exp(-(x**2) / (2 * float(table.base_square)))
    expected = density * (n / density.sum())
    often = expected > 20
    chi, cells = float(((seen - expected)[often] ** 2 / expected[often]).sum()), int(often.sum())
    rest_seen, rest = seen[~often].sum(), expected[~often].sum()
    assert stats.chi2.sf(chi + (rest_seen - rest) ** 2 / rest, cells) > LEAST_P
    assert cells > 5 * math.sqrt(table.base_square)
