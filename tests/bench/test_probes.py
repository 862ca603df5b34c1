"""Peaks of a machine: all are measured, none ever gets worse, and what is measured is where it should be."""

from __future__ import annotations

import math

import pytest

from dpmf.bench import probes
from dpmf.bench.caches import Cache
from dpmf.bench.probes import MEMORY, Bandwidth, Machine, probe_sizes

SMALL = (Cache("L1", 1 << 14, 2), Cache("L2", 1 << 16, 2), Cache("L3", 1 << 18, 1))


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is about how exact a figure is."""
    monkeypatch.setattr(probes, "_WINDOW", 1e-4)
    monkeypatch.setattr(probes, "_BYTES_PER_CALL", 1 << 16)


def test_every_place_has_its_peaks() -> None:
    machine = Machine(SMALL, [2, 1, 2])
    machine.measure(0.0)
    for n_threads in (1, 2):
        peaks = machine.peaks(n_threads)
        assert list(peaks.places) == ["L1", "L2", "L3", MEMORY]
        figures = [peaks.multiply_adds, *(rate for place in peaks.places.values() for rate in place)]
        assert all(rate > 0 and math.isfinite(rate) for rate in figures)
    assert machine.seconds > 0


def test_the_best_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine((), [1])
    for rate, best in ((5.0, 5.0), (3.0, 5.0), (7.0, 7.0)):
        monkeypatch.setattr(probes, "_calls_per_second", lambda *_, rate=rate: rate)
        machine.measure(0.0)
        amount = probes._moving(1 << 14, 0, 0)["read"][1]
        assert machine.peaks(1).places["L1"].read == best * amount


def test_rewriting_is_reading_and_writing() -> None:
    machine = Machine((), [1])
    machine._best = {(1, "L1", "read"): 2.0, (1, "L1", "written"): 4.0, (1, "L1", "rewritten"): 3.0}
    machine._best[1, "", "multiply_adds"] = 1.0
    assert machine.peaks(1).places == {"L1": Bandwidth(3.0, 4.0, 3.0)}


@pytest.mark.parametrize("n_threads", [1, 2, 8, 64])
@pytest.mark.parametrize(
    "caches",
    [
        (Cache("L1", 32 << 10, 64), Cache("L2", 1 << 20, 64), Cache("L3", 32 << 20, 8)),
        (Cache("L1", 48 << 10, 64), Cache("L2", 2 << 20, 64), Cache("L3", 105 << 20, 1)),
        (Cache("L1", 128 << 10, 8), Cache("L2", 16 << 20, 2)),
        (Cache("L1", 32 << 10, 64), Cache("L2", 2 << 20, 64), Cache("L3", 16 << 20, 1)),
    ],
)
def test_a_probe_exceeds_the_caches_below_and_fits_its_own(caches: tuple[Cache, ...], n_threads: int) -> None:
    sizes = probe_sizes(caches, n_threads)
    below = 0
    for cache in caches:
        share = cache.size * min(cache.instances, n_threads) // n_threads
        for size in sizes[cache.name]:
            assert below < size <= below + share
            assert size % 64 == 0
        below += cache.size
    last = caches[-1].size * min(caches[-1].instances, n_threads)
    assert n_threads * sizes[MEMORY][0] <= 1 << 29
    assert n_threads * sizes[MEMORY][0] >= 2 * last
