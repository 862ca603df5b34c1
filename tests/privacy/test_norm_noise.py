"""Noise of gamma-distributed length: the numbers of its proof, its law on a coarse grid, and on the fine one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from dpmf.errors import InvalidArgument
from dpmf.privacy import norm_noise as module
from dpmf.privacy.noise import DELTA_PER_COORDINATE, EPSILON_PER_COORDINATE, STEPS_PER_SD, Noise
from dpmf.privacy.norm_noise import MOST_COLUMNS, SLACK_WEIGHT, STEPS_PER_SCALE, norm_integers

A = 2**27
VARIANCE = STEPS_PER_SD**2 * (A**4 + A**2 + 1)
LEAST_P = 1e-9  # with 6.5 standard errors elsewhere: a right sampler fails once in ten million runs

Vector = NDArray[np.float64]


# The constants


def test_wide_gaussians_are_as_close_as_proven() -> None:
    assert 2**164 < VARIANCE < 2**164 * (1 + Fraction(1, 2**53))
    assert VARIANCE * STEPS_PER_SCALE // 2**164 >= STEPS_PER_SCALE  # b is no smaller than stated
    inner = Fraction(STEPS_PER_SD**2, 1 + A**2)
    outer = 1 / (Fraction(1, STEPS_PER_SD**2 * (A**2 + 1)) + Fraction(A**2, STEPS_PER_SD**2))
    assert outer == Fraction(STEPS_PER_SD**2 * (1 + A**2), 1 + A**2 + A**4)
    assert min(inner, outer) > Fraction(39999, 10000)
    ripple = 2 * math.exp(-2 * math.pi**2 * 3.9999) * 1.0001
    assert 3 * DELTA_PER_COORDINATE + 2 * ripple < 3.7 * 2.0**-111
    assert Fraction(8, VARIANCE) < Fraction(1, 2**160)


def test_the_slack_weight_covers_every_error_of_the_proof() -> None:
    K = np.arange(1, MOST_COLUMNS + 1, dtype=np.float64)
    bracket = (1 + np.sqrt(K + 1) / 2) * (1 + 14 / np.sqrt(K)) + (np.sqrt(K + 1) + 13) / 2
    assert bracket.argmax() == MOST_COLUMNS - 1
    assert 270 < bracket.max() < 271.2
    off = STEPS_PER_SCALE * math.sqrt(VARIANCE) / 2**164 * bracket.max() + 2.0**-64
    assert 2.0**-46 < off < 2**-45.9
    assert 2 * off + 2.0**-158 < 2.0**-44 == SLACK_WEIGHT * EPSILON_PER_COORDINATE
    assert 2 * math.exp(-(13**2) / 2) < 2.0**-120
    missed = 1.01 * (3 * 3.7 * 2.0**-111 + 2.0**-120 + 2.0**-127)
    assert missed < 2.0**-107 < SLACK_WEIGHT * DELTA_PER_COORDINATE


def test_no_draw_leaves_the_range_of_int64() -> None:
    largest = np.full((1, 2 * MOST_COLUMNS + 1, 3), 2**33)  # more than a draw can be
    real = module._real(module._wide(largest))
    assert real.max() < 2**47 * 2**64
    assert real.max() > 2**45 * 2**64


def test_the_rows_of_noise_in_a_million_numbers_cost_next_to_nothing() -> None:
    assert 10**6 * SLACK_WEIGHT * EPSILON_PER_COORDINATE < 1e-7
    assert 10**6 * SLACK_WEIGHT * DELTA_PER_COORDINATE * (1 + math.exp(20)) < 1e-15


# The code equals a plain one


def plain_run(words: list[int]) -> int:
    """Count the zeros at the end of a number of 128 bits."""
    bits = f"{words[1]:064b}{words[0]:064b}"
    return len(bits) - len(bits.rstrip("0"))


@pytest.mark.parametrize(("rows", "columns"), [(23_000, 3), (33_000, 1), (2, 40_000)])
def test_the_noise_equals_the_plain_sampler_number_for_number(rows: int, columns: int) -> None:
    got = norm_integers(Noise(5), (rows, columns), "bällchen", 7)
    assert got.dtype == np.int64
    noise = Noise(5)
    gaussians = noise.integers((rows, 2 * columns + 1, 3), "bällchen", 7)
    words = noise.words((rows, columns, 5), "bällchen, rounding", 7)
    for row in sorted({0, 1, rows // 2, *range(max(0, rows - 100), rows)} if columns < 9 else {0, 1}):
        wide = [first * A**2 + second * A + third for first, second, third in gaussians[row].tolist()]
        length = math.isqrt(sum(one**2 for one in wide[: columns + 1]))
        for column in range(columns) if columns < 9 else range(0, columns, 999):
            real = Fraction(length * wide[columns + 1 + column] * STEPS_PER_SCALE, 2**164)
            word = words[row, column].tolist()
            whole = math.floor(Fraction(math.floor(real * 2**64) + word[0], 2**64))
            assert got[row, column] == whole + plain_run(word[1:3]) - plain_run(word[3:5])


@pytest.mark.parametrize(
    ("words", "tails"),
    [([1, 0], 0), ([2**64 - 1, 5], 0), ([6, 0], 1), ([2**63, 1], 63), ([0, 1], 64), ([0, 12], 66), ([0, 2**63], 127),
     ([0, 0], 128), ([2**53 + 2**20, 0], 20), ([2**64 - 2**40, 0], 40)],
)  # fmt: skip
def test_runs_are_counted_to_their_end(words: list[int], tails: int) -> None:
    assert module._run(np.array(words, np.uint64)) == tails


@pytest.mark.parametrize(
    ("real", "word", "whole"),
    [(0, 2**64 - 1, 0), (1, 2**64 - 1, 1), (1, 2**64 - 2, 0), (-1, 0, -1), (-1, 1, 0), (-(2**64), 2**64 - 1, -1),
     (2**110 + 2**63, 2**63, 2**46 + 1), (2**110 + 2**63, 2**63 - 1, 2**46), (-(2**110), 0, -(2**46))],
)  # fmt: skip
def test_a_number_goes_up_with_the_probability_of_its_fraction(real: int, word: int, whole: int) -> None:
    words = np.array([[[word, 1, 0, 1, 0]]], np.uint64)
    assert module._rounded(np.array([[real]], object), words) == whole
    words = np.array([[[word, 8, 0, 2, 0]]], np.uint64)
    assert module._rounded(np.array([[real]], object), words) == whole + 3 - 1


# The law on a coarse grid, exactly


def rounding_law(k: NDArray[np.int64], x: float) -> Vector:
    """Return the probabilities that x is rounded to k, from the definition."""
    steps = np.abs(k - math.floor(x))
    fraction = x - math.floor(x)
    return np.asarray(((1 - fraction) * 0.5**steps + fraction * 0.5 ** np.abs(k - math.floor(x) - 1)) / 3)


def test_rounding_follows_its_law() -> None:
    n, k = 300_000, np.arange(-9, 12)
    for index, fraction in enumerate((0.0, 0.3, 0.9)):
        real = np.full((n, 1), int(fraction * 2**64), object)
        drawn = module._rounded(real, Noise().words((n, 1, 5), "rounding", index)).ravel()
        seen = np.array([(drawn == one).sum() for one in k])
        law = rounding_law(k, fraction)
        rest_seen, rest = n - seen.sum(), 1 - law.sum()
        assert stats.chisquare([*seen, rest_seen], n * np.array([*law, rest])).pvalue > LEAST_P


def test_rounding_forgives_as_much_as_the_lemma_says() -> None:
    k = np.arange(-30, 31)
    places = np.linspace(-2, 2, 1601)
    laws = np.log([rounding_law(k, x) for x in places])
    slopes = np.abs(np.diff(laws, axis=0)) / np.diff(places)[:, None]
    assert 0.99 < slopes.max() <= 1 + 1e-9
    assert np.exp(laws).sum(axis=1) == pytest.approx(1.0)


def rounded_gaussian(sd: Vector, reach: int) -> Vector:
    """Return P(k) for |k| <= reach of N(0, sd²) after rounding, a row for each standard deviation."""
    x = np.arange(-reach - 61, reach + 62) / sd[:, None]
    excess = sd[:, None] * (np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) - x * special.ndtr(-x))  # E max(Y - x, 0)
    up_or_down = np.diff(excess, 2, axis=1)
    run = 0.5 ** np.abs(np.arange(-60, 61)) / 3
    return np.array([np.convolve(row, run, mode="valid") for row in up_or_down])


def coarse_law(columns: int, scale: float, reach: int) -> Vector:
    """Return P(row) for rows of one or two numbers up to `reach`, by integrating over the mixture of Gaussians."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    lengths = 6 * (nodes + 1)  # of columns + 1 Gaussians: hardly ever more than 12
    weights = weights * stats.chi.pdf(lengths, columns + 1) * 6
    laws = rounded_gaussian(scale * lengths, reach)
    return np.asarray(np.einsum("r,ri->i" if columns == 1 else "r,ri,rj->ij", weights, *[laws] * columns))


def test_the_mixture_is_the_laplace_law_for_one_column() -> None:
    reach, scale = 40, 3.0
    fine = np.arange(-60 * 400, 60 * 400 + 1) / 400  # the trapezoidal rule, with a kink only at a node
    density = np.exp(-np.abs(fine) / scale) / (2 * scale)
    plain = density @ np.array([rounding_law(np.arange(reach + 1), x) for x in fine]) / 400
    assert coarse_law(1, scale, reach)[reach:] == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize(("columns", "scale"), [(1, 0.5), (1, 4.0), (2, 1.0), (2, 4.0)])
def test_no_shift_changes_a_probability_by_more_than_its_length_allows(columns: int, scale: float) -> None:
    reach = 24
    law = coarse_law(columns, scale, reach)
    assert law.sum() > 0.9
    closest = 0.0
    for shift in [(1,), (2,), (5,), (10,)] if columns == 1 else [(1, 0), (1, 1), (-1, 2), (3, -4), (7, 7)]:
        cut = [(slice(max(0, m), min(0, m) or None), slice(max(0, -m), min(0, -m) or None)) for m in shift]
        here, there = (law[tuple(one[side] for one in cut)] for side in (0, 1))
        likely = np.minimum(here, there) > 1e-9  # where the numbers are good to a millionth
        loss = np.abs(np.log(here[likely] / there[likely])).max() / (math.hypot(*shift) / scale)
        assert loss <= 1 + 1e-5
        closest = max(closest, loss)
    # The bound is no looser than it has to be. On the coarsest grids rounding hides more: it halves from step to step.
    assert closest > 0.99 * min(1.0, scale * math.log(2))


@pytest.mark.parametrize("columns", [1, 2])
def test_the_code_follows_the_exact_law_on_a_coarse_grid(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scale_bits, reach, n = 1, 12, 400_000
    monkeypatch.setattr(module, "_SURPLUS_BITS", 2 * 82 - 64 - scale_bits)
    drawn = norm_integers(Noise(), (n, columns), "coarse", 0)
    law = coarse_law(columns, 2.0**scale_bits, reach)
    inside = drawn[(np.abs(drawn) <= reach).all(axis=1)] + reach
    seen = np.zeros(law.shape)
    np.add.at(seen, tuple(inside.T), 1)
    often = law * n > 10
    expected = np.append(law[often], 1 - law[often].sum()) * n
    assert stats.chisquare(np.append(seen[often], n - seen[often].sum()), expected).pvalue > LEAST_P
    assert often.sum() > (20 if columns == 1 else 200)


# The law on the fine grid


@pytest.mark.parametrize(("rows", "columns"), [(200_000, 1), (100_000, 2), (50_000, 7), (10_000, 50), (300, 3000)])
def test_length_is_gamma_and_direction_uniform(rows: int, columns: int) -> None:
    drawn = norm_integers(Noise(), (rows, columns), "rows", 0) / STEPS_PER_SCALE
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, "gamma", (columns,)).pvalue > LEAST_P
    directions = drawn / lengths[:, None]
    if columns > 1:
        half = (columns - 1) / 2
        for towards in (0, columns - 1, np.ones(columns) / math.sqrt(columns)):
            cosine = directions[:, towards] if isinstance(towards, int) else directions @ towards
            assert stats.kstest((1 + cosine) / 2, "beta", (half, half)).pvalue > LEAST_P
            assert abs(np.corrcoef(cosine**2, lengths)[0, 1]) * math.sqrt(rows) < 6.5
        products = directions[:, 0] * directions[:, 1]
        assert abs(products.mean()) / products.std() * math.sqrt(rows) < 6.5
    assert stats.binomtest(int((drawn[:, 0] > 0).sum()), rows).pvalue > LEAST_P


def test_one_column_is_laplace() -> None:
    drawn = norm_integers(Noise(), (300_000, 1), "numbers", 0).ravel()
    assert stats.kstest(drawn / STEPS_PER_SCALE, "laplace").pvalue > LEAST_P


@pytest.mark.parametrize("modulus", [2, 256, 1000])
def test_lowest_digits_are_uniform(modulus: int) -> None:
    drawn = norm_integers(Noise(), (100_000, 2), "digits", 0).ravel()
    assert stats.chisquare(np.bincount(drawn % modulus, minlength=modulus)).pvalue > LEAST_P


def test_rows_are_independent() -> None:
    drawn = norm_integers(Noise(), (50_000, 4), "rows", 0) / STEPS_PER_SCALE
    lengths = np.linalg.norm(drawn, axis=1)
    for values in (lengths, drawn[:, 0], drawn[:, 3]):
        for lag in (1, 2, module._CHUNK // 4):
            assert abs(np.corrcoef(values[lag:], values[:-lag])[0, 1]) * math.sqrt(len(values) - lag) < 6.5


# Whose noise it is


def test_noise_is_drawn_once() -> None:
    noise = Noise()
    norm_integers(noise, (2, 3), "x", 0)
    with pytest.raises(InvalidArgument, match="drawn before"):
        norm_integers(noise, (2, 3), "x", 0)
    with pytest.raises(InvalidArgument, match="drawn before"):
        noise.integers(2, "x", 0)
    first, second = norm_integers(noise, (2, 3), "x", 1), norm_integers(noise, (2, 3), "y", 0)
    assert len(np.unique([first, second, norm_integers(Noise(), (2, 3), "x", 1)])) == 18


def test_a_seed_repeats_the_noise_whatever_was_drawn_before() -> None:
    noise = Noise(3)
    noise.integers(9, "other", 0)
    np.testing.assert_array_equal(norm_integers(noise, (4, 5), "x", 2), norm_integers(Noise(3), (4, 5), "x", 2))


@pytest.mark.parametrize("columns", [0, MOST_COLUMNS + 1])
def test_rows_without_a_bound_are_refused(columns: int) -> None:
    with pytest.raises(InvalidArgument, match=f"{columns} columns of 'x'"):
        norm_integers(Noise(), (1, columns), "x", 0)


def test_a_table_without_rows_has_no_noise() -> None:
    assert norm_integers(Noise(), (0, 4), "x", 0).shape == (0, 4)
