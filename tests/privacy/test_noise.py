"""The sampler equals a plain one word for word, its noise looks as it should, and is drawn once."""

from __future__ import annotations

import copy
import hashlib
import math
import os
import pickle
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.privacy import noise as module
from dpmf.privacy.noise import (
    LARGEST_DRAW,
    STEPS_PER_SD,
    Noise,
)

A = 2**9
S_SQUARED = STEPS_PER_SD**2
BASE_SQUARED = Fraction(S_SQUARED, A**4 + A**2 + 1)
CENTRE = 2**14
LEAST_P = 1e-9  # with 6.5 standard errors elsewhere: a right sampler fails once in ten million runs


@pytest.fixture(scope="module")
def million() -> NDArray[np.int64]:
    """A million integers with a fresh key."""
    return Noise().integers(1_000_000, "test", 0)


# The sampler equals a plain one


def plain_stream(seed: int, label: str, index: int, number: int) -> Callable[[int], int]:
    """Return a function that takes bytes of a key stream as an integer, all derived here from the seed."""
    root = hashlib.sha256(f"dpmf noise_seed {seed}".encode()).digest()
    data = index.to_bytes(8, "little") + label.encode()
    key = hashlib.blake2b(data, key=root, digest_size=32, person=b"dpmf noise").digest()
    encryptor = Cipher(algorithms.ChaCha20(key, bytes(8) + number.to_bytes(8, "little")), mode=None).encryptor()
    return lambda size: int.from_bytes(encryptor.update(bytes(size)), "little")


@pytest.mark.parametrize("n_shares", [1, 2**20])
def test_shares_equal_the_plain_sampler_word_for_word(n_shares: int) -> None:
    n = 2 * module._CHUNK + 1000
    table = module._table(n_shares)
    thresholds, moves = table.thresholds.tolist(), table.moves.tolist()
    height_bits = 32 - table.column_bits
    expected, refinements = [0] * n, 0
    for level in range(3):
        take, refine = (plain_stream(5, "bällchen", 2**40, 2 * level + part) for part in range(2))
        for place in range(n):
            column, height = divmod(take(4), 2**height_bits)
            threshold = ((thresholds[column] % 2**height_bits) << 128) + table.refined[column]
            height <<= 128
            if height >> 128 == threshold >> 128:
                height += refine(16)
                refinements += 1
            column += moves[column] if height >= threshold else 0
            expected[place] += (column - len(moves) // 2) * table.stretch ** (2 - level)
    assert Noise(5).shares(n, n_shares, "bällchen", 2**40).tolist() == expected
    assert n_shares > 1 or refinements > 0


def test_integers_are_what_they_have_always_been() -> None:
    noise = Noise(7)
    assert noise.integers(4, "x", 0).tolist() == [-289646925, -288028366, -381441412, 450213573]
    assert noise.integers((1, 3), "item factors", 2**40).tolist() == [[175254137, -105891303, -26298201]]
    long = Noise(11).integers(200_000, "long", 3)
    known = "779a66f78836a4bfbc892efba79f384e2ab138774cf0817d0c8abc0643307208"
    assert hashlib.sha256(long.astype("<i8").tobytes()).hexdigest() == known


def test_the_key_stream_is_chacha20() -> None:
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert module._key_stream(bytes(32), 0).update(bytes(32)).hex() == known
    assert module._key_stream(bytes(32), 1).update(bytes(32)).hex() != known


# The noise looks as it should


def test_moments_are_those_of_a_gaussian(million: NDArray[np.int64]) -> None:
    z = million / STEPS_PER_SD
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - mean) < 6.5 * math.sqrt(variance / len(z)), power
    assert np.abs(million).max() < LARGEST_DRAW


def test_distribution_is_normal(million: NDArray[np.int64]) -> None:
    assert stats.kstest(million / STEPS_PER_SD, "norm").pvalue > LEAST_P


def test_tails_are_those_of_a_gaussian() -> None:
    drawn = Noise().integers(4_000_000, "tails", 0)
    for limit in (3, 4, 4.5):
        beyond = int((np.abs(drawn) > limit * STEPS_PER_SD).sum())
        assert stats.binomtest(beyond, len(drawn), 2 * stats.norm.sf(limit)).pvalue > LEAST_P


@pytest.mark.parametrize("modulus", [2, 256, 512, 1000, 4096])
def test_lowest_digits_are_uniform(million: NDArray[np.int64], modulus: int) -> None:
    assert stats.chisquare(np.bincount(million % modulus, minlength=modulus)).pvalue > LEAST_P


def correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the correlation in standard errors."""
    return float(np.corrcoef(first, second)[0, 1] * math.sqrt(len(first)))


@pytest.mark.parametrize("lag", [1, 2, 3, 16, module._CHUNK])
def test_draws_are_independent_of_earlier_ones(million: NDArray[np.int64], lag: int) -> None:
    z = million / STEPS_PER_SD
    low = (million % A).astype(float)
    for values in (z, z**2, low):
        assert abs(correlation(values[lag:], values[:-lag])) < 6.5


def test_streams_are_independent(million: NDArray[np.int64]) -> None:
    noise = Noise(3)
    streams = [noise.integers(200_000, label, index) for label, index in (("a", 0), ("a", 1), ("b", 0), ("a0", 0))]
    streams.append(Noise(4).integers(200_000, "a", 0))
    streams.append(million[:200_000])
    for place, first in enumerate(streams):
        for second in streams[:place]:
            assert not np.any(first[:1000] == second[:1000])
            assert abs(correlation(first.astype(float), second.astype(float))) < 6.5


# Whose noise it is


def test_two_objects_draw_different_noise() -> None:
    first, second = Noise(), Noise()
    assert not first.seeded
    assert not np.array_equal(first.integers(8, "x", 0), second.integers(8, "x", 0))
    assert not np.array_equal(first.coins(256, 0.5, "x", 1), second.coins(256, 0.5, "x", 1))


def test_a_seed_repeats_the_noise_and_says_so() -> None:
    assert Noise(7).seeded
    assert Noise(0).seeded
    assert np.array_equal(Noise(7).integers(8, "x", 0), Noise(np.int64(7)).integers(8, "x", 0))  # type: ignore[arg-type]
    assert not np.array_equal(Noise(7).integers(8, "x", 0), Noise(-7).integers(8, "x", 0))
    with pytest.raises(TypeError):
        Noise(1.5)  # type: ignore[arg-type]


def test_order_threads_and_shape_do_not_change_seeded_noise() -> None:
    alone = [Noise(9).integers(20_000, "block", index) for index in range(6)]
    shared = Noise(9)
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda index: shared.integers((100, 200), "block", index), reversed(range(6))))
    for one, other in zip(alone, reversed(together), strict=True):
        np.testing.assert_array_equal(one, other.ravel())


def test_noise_is_drawn_once() -> None:
    noise = Noise()
    noise.integers(2, "x", 0)
    noise.coins(2, 0.5, "x", 1)
    for index in range(2):
        with pytest.raises(DpmfError, match="drawn before"):
            noise.integers(2, "x", index)
        with pytest.raises(DpmfError, match="drawn before"):
            noise.coins(2, 0.5, "x", index)
    noise.integers(2, "y", 0)


def test_of_many_threads_one_draws() -> None:
    noise = Noise()

    def attempt(_: int) -> bool:
        try:
            noise.integers(10, "x", 0)
        except InvalidArgument:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(64))) == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_cannot_be_duplicated(duplicate: Callable[[Noise], object]) -> None:
    with pytest.raises(InvalidArgument, match="copied or pickled"):
        duplicate(Noise())


def test_noise_of_another_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = Noise()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(InvalidArgument, match="another process"):
        noise.integers(2, "x", 0)


def test_the_key_comes_from_the_system_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    key = bytes(range(32))
    monkeypatch.setattr(secrets, "token_bytes", lambda size: key[:size])
    monkeypatch.setattr(module, "_circumstances", bytes)
    noise = Noise()
    noise.integers(2, "x", 0)
    kept = [repr(noise), *(repr(getattr(noise, name)) for name in Noise.__slots__)]
    assert not any(repr(key)[2:20] in text or key.hex()[:16] in text for text in kept)
    assert not hasattr(noise, "__dict__")
    assert not np.array_equal(Noise(1).integers(4, "y", 0), noise.integers(4, "y", 0))
    assert np.array_equal(Noise().integers(4, "z", 0), noise.integers(4, "z", 0))


@pytest.mark.parametrize("shape", [0, 1, (), (0, 3), (2, 3), module._CHUNK, module._CHUNK + 1])
def test_any_shape(shape: int | tuple[int, ...]) -> None:
    drawn = Noise().integers(shape, "x", 0)
    assert drawn.dtype == np.int64
    assert drawn.shape == (shape if isinstance(shape, tuple) else (shape,))


@pytest.mark.parametrize(("shape", "index"), [(-1, 0), (2**32 + 1, 0), ((2**20, 2**20), 0), (1, -1), (1, 2**63)])
def test_sizes_and_indices_out_of_range_are_refused(shape: int | tuple[int, ...], index: int) -> None:
    with pytest.raises(InvalidArgument):
        Noise().integers(shape, "x", index)


# Coins


def test_coins_compare_64_bit_words_with_the_probability() -> None:
    take = plain_stream(5, "coins", 3, 0)
    words = [take(8) for _ in range(module._CHUNK + 1000)]
    assert Noise(5).coins(len(words), 0.3, "coins", 3).tolist() == [word < math.floor(0.3 * 2**64) for word in words]


def test_words_are_those_of_the_key_stream_and_drawn_once() -> None:
    take = plain_stream(5, "words", 3, 0)
    noise, n = Noise(5), module._CHUNK + 1000
    assert noise.words((2, n // 2), "words", 3).ravel().tolist() == [take(8) for _ in range(n)]
    for draw in (noise.words, noise.integers):
        with pytest.raises(InvalidArgument, match="drawn before"):
            draw(2, "words", 3)
    assert noise.words((0, 5), "words", 4).shape == (0, 5)


def test_coins_fall_as_often_as_said() -> None:
    for index, probability in enumerate((0.5, 0.01, 0.999)):
        heads = int(Noise().coins(1_000_000, probability, "coins", index).sum())
        assert stats.binomtest(heads, 1_000_000, probability).pvalue > LEAST_P


def test_probabilities_are_rounded_down() -> None:
    noise = Noise(1)
    assert not noise.coins(1000, 0.0, "none", 0).any()
    assert not noise.coins(1000, 2.0**-65, "less than a word can say", 0).any()
    assert noise.coins(1000, 1.0, "all", 0).all()
    assert noise.coins(1000, 1 - 2.0**-53, "nearly all", 0).all()


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, math.inf])
def test_probabilities_out_of_range_are_refused(probability: float) -> None:
    with pytest.raises(InvalidArgument, match="probability"):
        Noise().coins(10, probability, "x", 0)
