"""Sums of factors times ratings: exact, and bounded whatever one rating or a profile is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.questions import Noisy
from dpmf.methods.objective.pattern import Pattern, offset_sums
from dpmf.methods.objective.questions import LEVELS, ValueSums, levels_of
from dpmf.privacy import GaussianEvent, NormNoiseEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.synthetic import make

from ..watch import Record, Recorder

any_float = st.floats(width=32, allow_nan=True, allow_infinity=True)
Events = GaussianEvent | NormNoiseEvent
EVENTS: tuple[Events, ...] = (
    GaussianEvent("sums", noise_multiplier=3.0, coordinates=1000),
    NormNoiseEvent("sums", noise_multiplier=3.0, coordinates=1000),
)
Rows = Literal["items", "users"]


def ratings_of(indptr: list[int], items: list[int], values: list[float], scale: Scale, n_items: int) -> Ratings:
    """Return ratings that nobody checked."""
    return Ratings(
        indptr=np.array(indptr, np.int64),
        items=np.array(items, np.int32),
        values=np.array(values, np.float32),
        timestamps=None,
        user_ids=Ids(np.arange(len(indptr) - 1)),
        catalogue=Items.of(np.arange(n_items)),
        scale=scale,
    )


def asked(question: ValueSums, ratings: Ratings, event: Events) -> tuple[Noisy, Record]:
    """Return the answer to a question, and what was summed."""
    recorder = Recorder([event], Noise(1))
    curator = Curator(RatingsAnswerer(ratings, np.ones(ratings.n_users), 2), recorder, "replace")
    (noisy,) = curator.ask([question])
    return noisy, recorder.records[0]


@given(
    before=any_float,
    after=any_float,
    factors=arrays(np.float32, (3, 4), elements=any_float),
    longest=st.floats(0.01, 100),
    event=st.sampled_from(EVENTS),
    scale=st.sampled_from([Scale(1, 5), Scale(0.5, 5), Scale(-10, 10), Scale(100, 101)]),
    rows=st.sampled_from(["items", "users"]),
)
def test_one_rating_moves_one_row_by_the_bound_at_most(
    before: float,
    after: float,
    factors: NDArray[np.float32],
    longest: float,
    event: Events,
    scale: Scale,
    rows: Rows,
) -> None:
    """Whatever the two values of the rating are, on the scale or off it, and whatever the factors."""
    question = ValueSums("sums", factors, longest, scale, rows, 3)
    sums = []
    for value in (before, after, scale.lo, scale.hi):
        ratings = ratings_of([0, 2, 2, 3], [0, 2, 1], [scale.hi, value, scale.lo], scale, 3)
        _, record = asked(question, ratings, event)
        assert record.sensitivity == longest * (scale.hi - scale.lo)
        sums.append(record.sums)
    for one, other in ((sums[0], sums[1]), (sums[2], sums[3])):
        moved = [sum(int(step) ** 2 for step in row) for row in one - other]
        assert not any(square for place, square in enumerate(moved) if place != (2 if rows == "items" else 0))
        assert math.isqrt(max(moved)) <= record.steps * record.sensitivity


@pytest.mark.parametrize("event", EVENTS, ids=["gaussian", "norm"])
def test_the_bound_is_nearly_reached(event: Events) -> None:
    """A person of the greatest length whose rating goes from one end of the scale to the other."""
    question = ValueSums("sums", np.array([[3.0, 4.0]], np.float32), 1.0, Scale(1, 5), "items", 1)
    records = [asked(question, ratings_of([0, 1], [0], [value], Scale(1, 5), 1), event)[1] for value in (1, 5)]
    moved = math.sqrt(sum(int(step) ** 2 for step in (records[1].sums - records[0].sums)[0]))
    bound = records[0].steps * records[0].sensitivity
    assert 0.9999 * bound < moved <= bound


@pytest.mark.parametrize("rows", ["items", "users"])
def test_without_much_noise_the_sums_are_the_sums(rows: Rows) -> None:
    ratings = make(60, 30, mean_ratings=10)
    pattern, rng = Pattern.of(ratings), np.random.default_rng(1)
    of, about = (ratings.items, ratings.users) if rows == "items" else (ratings.users, ratings.items)
    n_rows, n_factors = (30, 60) if rows == "items" else (60, 30)
    question = ValueSums(
        "sums", rng.normal(0, 0.3, (n_factors, 4)).astype(np.float32), 2.0, ratings.scale, rows, n_rows
    )
    noisy, _ = asked(question, ratings, NormNoiseEvent("sums", 1e-4, coordinates=4 * n_rows))
    used = question.factors_on_grid(noisy.steps)
    np.testing.assert_allclose(used, question.factors, atol=1e-5)
    expected = np.zeros(noisy.values.shape)
    np.add.at(expected, of, (ratings.values - 1)[:, None].astype(float) * used[about])
    np.testing.assert_allclose(noisy.values, expected, atol=0.02)
    offsets = rng.normal(0, 1, n_factors).astype(np.float32)
    expected[:] = 0
    np.add.at(expected, of, offsets[about, None].astype(float) * used[about])
    side = pattern.by_item if rows == "items" else pattern.by_user
    np.testing.assert_allclose(offset_sums(side, used, offsets, n_threads=2), expected, atol=1e-5)


def test_what_is_public_of_ratings_has_no_values(small_ratings: Ratings) -> None:
    pattern = Pattern.of(replace(small_ratings, values=np.full(len(small_ratings), np.nan, np.float32)))
    assert not len(pattern.by_user.values) + len(pattern.by_item.values)
    side, (n_users, n_items) = SparseRows.by_user(small_ratings), (small_ratings.n_users, small_ratings.n_items)
    np.testing.assert_array_equal(pattern.by_user.columns, side.columns)
    np.testing.assert_array_equal(pattern.by_item.columns, side.transposed(n_items).columns)
    assert (pattern.by_user.n_rows, pattern.by_item.n_rows) == (n_users, n_items)


def test_levels_of_usual_scales_are_exact() -> None:
    for scale, step in ((Scale(1, 5), 0.5), (Scale(0.5, 5), 0.5), (Scale(1, 10), 1), (Scale(-10, 10), 0.5)):
        values = np.arange(scale.lo, scale.hi + step / 2, step)
        levels = levels_of(values.astype(np.float32), scale)
        np.testing.assert_allclose(scale.lo + levels / LEVELS * (scale.hi - scale.lo), values, atol=1e-12)
    wild = levels_of(np.array([-np.inf, np.inf, np.nan, 1e30], np.float32), Scale(1, 5))
    assert wild.tolist() == [0, LEVELS, 0, LEVELS]
