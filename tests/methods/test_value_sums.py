"""Sums of factors times ratings: exact, and bounded whatever one rating or a profile is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.methods.objective.value_sums import LEVELS, levels_of, public_products, release_products
from dpmf.privacy import GaussianEvent, NormNoiseEvent
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.synthetic import make

any_float = st.floats(width=32, allow_nan=True, allow_infinity=True)
EVENTS = (
    GaussianEvent("sums", noise_multiplier=3.0, coordinates=1000),
    NormNoiseEvent("sums", noise_multiplier=3.0, coordinates=1000),
)


class Recorder(Mechanism):
    """Keeps what it was asked to release, in steps."""

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        self.sums, self.bound = sums.copy(), self.steps(what, sensitivity) * sensitivity
        return super().release(what, sums, sensitivity)


def recorded(
    event: GaussianEvent | NormNoiseEvent, side: SparseRows, factors: NDArray[np.float32], longest: float, scale: Scale
) -> Recorder:
    recorder = Recorder([event], Noise(1))
    release_products(recorder, "sums", side, factors, longest, scale, n_threads=2)
    return recorder


@given(
    before=any_float,
    after=any_float,
    factors=arrays(np.float32, (3, 4), elements=any_float),
    longest=st.floats(0.01, 100),
    event=st.sampled_from(EVENTS),
    scale=st.sampled_from([Scale(1, 5), Scale(0.5, 5), Scale(-10, 10), Scale(100, 101)]),
)
def test_one_rating_moves_one_row_by_the_bound_at_most(
    before: float, after: float, factors: NDArray[np.float32], longest: float, event: GaussianEvent, scale: Scale
) -> None:
    """Whatever the two values of the rating are, on the scale or off it, and whatever the factors."""
    indptr, columns = np.array([0, 2, 3]), np.array([0, 2, 1], np.int32)
    sums = []
    for value in (before, after, scale.lo, scale.hi):
        values = np.array([scale.hi, value, scale.lo], np.float32)
        recorder = recorded(event, SparseRows(indptr, columns, values), factors, longest, scale)
        sums.append(recorder.sums)
    for one, other in ((sums[0], sums[1]), (sums[2], sums[3])):
        moved = [sum(int(step) ** 2 for step in row) for row in one - other]
        assert moved[1] == 0
        assert math.isqrt(moved[0]) <= recorder.bound


@pytest.mark.parametrize("event", EVENTS, ids=["gaussian", "norm"])
def test_the_bound_is_nearly_reached(event: GaussianEvent) -> None:
    """A person of the greatest length whose rating goes from one end of the scale to the other."""
    sums = []
    for value in (1, 5):
        side = SparseRows(np.array([0, 1]), np.array([0], np.int32), np.array([value], np.float32))
        recorder = recorded(event, side, np.array([[3.0, 4.0]], np.float32), 1.0, Scale(1, 5))
        sums.append(recorder.sums[0])
    moved = math.sqrt(sum(int(step) ** 2 for step in sums[1] - sums[0]))
    assert 0.9999 * recorder.bound < moved <= recorder.bound


def test_without_much_noise_the_sums_are_the_sums() -> None:
    ratings = make(60, 30, mean_ratings=10)
    side = SparseRows.by_user(ratings).transposed(ratings.n_items)
    rng = np.random.default_rng(1)
    factors = rng.normal(0, 0.3, (ratings.n_users, 4)).astype(np.float32)
    mechanism = Mechanism([NormNoiseEvent("sums", 1e-4, coordinates=4 * ratings.n_items)], Noise(3))
    noisy, rows = release_products(mechanism, "sums", side, factors, 2.0, ratings.scale, n_threads=1)
    np.testing.assert_allclose(rows, factors, atol=1e-5)
    expected = np.zeros(noisy.shape)
    np.add.at(expected, ratings.items, (ratings.values - 1)[:, None].astype(float) * rows[ratings.users])
    np.testing.assert_allclose(noisy, expected, atol=0.02)
    offsets = rng.normal(0, 1, ratings.n_users).astype(np.float32)
    expected[:] = 0
    np.add.at(expected, ratings.items, offsets[ratings.users, None].astype(float) * rows[ratings.users])
    np.testing.assert_allclose(public_products(side, rows, offsets, n_threads=2), expected, atol=1e-5)


def test_public_sums_do_not_look_at_values(small_ratings: Ratings) -> None:
    side = SparseRows.by_user(small_ratings)
    factors, offsets = np.ones((small_ratings.n_items, 2), np.float32), np.ones(small_ratings.n_items, np.float32)
    other = replace(side, values=np.full(len(side.values), np.nan, np.float32))
    np.testing.assert_array_equal(
        public_products(side, factors, offsets, 1), public_products(other, factors, offsets, 1)
    )  # fmt: skip


def test_levels_of_usual_scales_are_exact() -> None:
    for scale, step in ((Scale(1, 5), 0.5), (Scale(0.5, 5), 0.5), (Scale(1, 10), 1), (Scale(-10, 10), 0.5)):
        values = np.arange(scale.lo, scale.hi + step / 2, step)
        levels = levels_of(values.astype(np.float32), scale)
        np.testing.assert_allclose(scale.lo + levels / LEVELS * (scale.hi - scale.lo), values, atol=1e-12)
    assert levels_of(np.array([-np.inf, np.inf, np.nan, 1e30], np.float32), Scale(1, 5)).tolist() == [
        0,
        LEVELS,
        0,
        LEVELS,
    ]
