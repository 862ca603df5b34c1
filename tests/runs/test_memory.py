"""The peak of the memory that a process takes."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.runs.peak_memory import forget_peak_memory, peak_memory


def test_peak_memory_is_in_bytes() -> None:
    peak = peak_memory()
    assert peak is None or 10_000_000 < peak < 10**12


def test_a_peak_can_be_forgotten() -> None:
    if not forget_peak_memory():
        pytest.skip("this system does not let a process forget its peak")
    before = peak_memory()
    assert before is not None
    hump = np.ones(100_000_000, np.uint8)
    assert (peak_memory() or 0) >= before + 90_000_000
    del hump
    assert forget_peak_memory()
    assert (peak_memory() or 0) < before + 50_000_000
