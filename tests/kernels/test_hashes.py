"""Keyed uniforms equal their references, are uniform, and depend on nothing but their keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.hashes import (
    mix_one,
    pair_uniforms,
    pair_uniforms_reference,
    row_uniforms,
    row_uniforms_reference,
)
from dpmf.streams import id_keys, mix

words = st.integers(0, 2**64 - 1)


def keys_of(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, np.uint64)


def pairs(
    key: np.uint64,
    users: NDArray[np.uint64],
    items: NDArray[np.uint64],
    rated: CsrPattern,
) -> NDArray[np.float64]:
    out = np.full(len(rated.items), -1.0)
    pair_uniforms(key, users, items, rated, 0, len(users), out)
    return out


@given(values=st.lists(words, min_size=1))
def test_one_and_many_are_mixed_alike(values: list[int]) -> None:
    assert [int(mix_one(value)) for value in keys_of(values)] == mix(keys_of(values)).tolist()


def test_mixing_is_splitmix64() -> None:
    """The first outputs of the published generator for the seed 1234567."""
    state, golden = 1234567, 0x9E3779B97F4A7C15
    states = keys_of([(state + step * golden) % 2**64 for step in range(3)])
    assert mix(states).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(key=words, users=st.lists(words, min_size=1, max_size=5), items=st.lists(words, min_size=1), data=st.data())
def test_pair_uniforms_equal_the_reference(key: int, users: list[int], items: list[int], data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=len(users), max_size=len(users)))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    positions = st.integers(0, len(items) - 1)
    rated = np.array(data.draw(st.lists(positions, min_size=sum(lengths), max_size=sum(lengths))), np.int32)
    arguments = np.uint64(key), keys_of(users), keys_of(items), CsrPattern(indptr, rated)
    found = pairs(*arguments)
    for start in range(len(users) + 1):
        part = np.full(len(rated), -1.0)
        pair_uniforms_reference(*arguments, start, len(users), part)
        assert part.tolist() == [-1.0] * indptr[start] + found.tolist()[indptr[start] :]
    assert all(0 <= number < 1 for number in found)


def test_pair_uniforms_of_some_users_leave_the_others_alone() -> None:
    out = np.full(3, -1.0)
    keys, rated = keys_of([1, 2, 3]), CsrPattern(np.arange(4, dtype=np.int64), np.zeros(3, np.int32))
    pair_uniforms(np.uint64(5), keys, keys, rated, 1, 2, out)
    assert (out >= 0).tolist() == [False, True, False]


@given(key=words, keys=st.lists(words, min_size=1), width=st.integers(0, 5), scale=st.floats(0.01, 100))
def test_row_uniforms_equal_the_reference_and_touch_only_their_columns(
    key: int, keys: list[int], width: int, scale: float
) -> None:
    out = np.full((len(keys), 6), np.float32(-777))
    row_uniforms(np.uint64(key), keys_of(keys), width, scale, out)
    assert np.array_equal(out[:, :width], row_uniforms_reference(np.uint64(key), keys_of(keys), width, scale))
    assert (out[:, width:] == -777).all()
    assert (abs(out[:, :width]) <= np.float32(scale)).all()


def test_uniforms_are_uniform_and_uncorrelated_even_for_neighbouring_ids() -> None:
    ids = id_keys(np.arange(200))
    rated = CsrPattern(np.arange(0, 200 * 200 + 1, 200), np.tile(np.arange(200, dtype=np.int32), 200))
    square = pairs(np.uint64(3), ids, ids, rated).reshape(200, 200)
    rows = row_uniforms_reference(np.uint64(3), ids, 200)
    for numbers in (square, (rows.astype(float) + 1) / 2):
        shares = np.histogram(numbers, 20, (0, 1))[0] / numbers.size
        assert abs(shares - 0.05).max() < 5 * np.sqrt(0.05 * 0.95 / numbers.size)
        for matrix in (numbers, numbers.T):
            off_diagonal = np.asarray(np.corrcoef(matrix))[~np.eye(200, dtype=bool)]
            assert abs(off_diagonal).max() < 5.5 / np.sqrt(200)
    assert abs(np.corrcoef(square.ravel(), square.T.ravel())[0, 1] - 200 / 200**2) < 0.03
