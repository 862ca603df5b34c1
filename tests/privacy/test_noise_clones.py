"""A copy of a machine, with other data, draws other noise."""

from __future__ import annotations

import os
import secrets
import time

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.privacy import GaussianEvent
from dpmf.privacy import noise as module
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import (
    Noise,
)


@pytest.fixture
def cloned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every source of noise the same bytes from the operating system, at the same moment."""
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    monkeypatch.setattr(module, "_circumstances", bytes)


SUMS = np.arange(6, dtype=np.int64).reshape(2, 3)


def after(*sums: NDArray[np.int64], noise_seed: int | None = None) -> list[int]:
    """Return what is drawn once these sums were absorbed."""
    noise = Noise(noise_seed)
    for one in sums:
        noise.absorb(one)
    coins = noise.coins(64, 0.5, "who takes part", 0)
    return [*noise.integers(3, "x", 0).tolist(), *noise.words(2, "y", 0).tolist(), *coins.tolist()]


@pytest.mark.usefixtures("cloned")
def test_a_clone_draws_the_same_for_the_same_sums_and_something_else_for_others() -> None:
    assert after(SUMS) == after(SUMS.copy()) == after(np.asfortranarray(SUMS))
    others = [after(), after(SUMS + 1), after(SUMS, SUMS), after(SUMS[:1], SUMS[1:]), after(SUMS[:0])]
    drawn = [tuple(one) for one in (after(SUMS), *others)]
    assert len({one[:3] for one in drawn}) == len({one[3:5] for one in drawn}) == len({one[5:] for one in drawn}) == 6


@pytest.mark.usefixtures("cloned")
def test_a_mechanism_of_a_clone_adds_other_noise_to_other_sums() -> None:
    def noise_on(sums: NDArray[np.int64]) -> list[int]:
        one = Mechanism([GaussianEvent("sums", 2.0, 2, 12)], Noise())
        return [*(one.noisy("sums", sums, 1.0) - sums).ravel().tolist()]

    assert noise_on(SUMS) == noise_on(SUMS)
    assert not set(noise_on(SUMS)) & set(noise_on(SUMS + 1))


@pytest.mark.parametrize("part", ["token_bytes", "getpid", "time_ns", "monotonic_ns"])
def test_a_clone_draws_something_else_at_another_moment_or_with_other_bytes(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"token_bytes": secrets, "getpid": os, "time_ns": time, "monotonic_ns": time}
    for name, source in sources.items():
        monkeypatch.setattr(source, name, (lambda size: bytes(size)) if name == "token_bytes" else (lambda: 1))
    first, again = after(SUMS), after(SUMS)
    assert first == again
    noise = Noise()
    noise.absorb(SUMS)
    changed = (lambda size: bytes([1] * size)) if part == "token_bytes" else (lambda: 2)
    monkeypatch.setattr(sources[part], part, changed)
    if part == "getpid":
        noise = Noise()
        noise.absorb(SUMS)
    assert noise.integers(3, "x", 0).tolist() != first[:3]


def test_noise_of_a_seed_is_the_same_whatever_it_is_added_to() -> None:
    assert after(SUMS, noise_seed=7) == after(SUMS + 1, noise_seed=7) == after(noise_seed=7)
