"""Caches as the operating system describes them, or does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpmf.bench.caches import Cache, caches, from_sysctl, from_sysfs


def _index(folder: Path, number: int, **facts: str) -> None:
    (folder / f"index{number}").mkdir(parents=True)
    for name, text in facts.items():
        (folder / f"index{number}" / name).write_text(text + "\n")


def test_linux_says_which_processors_share_a_cache(tmp_path: Path) -> None:
    folders = [tmp_path / str(cpu) for cpu in range(4)]
    for cpu, folder in enumerate(folders):
        pair = "0-1" if cpu < 2 else "2-3"
        _index(folder, 0, type="Data", level="1", size="48K", shared_cpu_list=str(cpu))
        _index(folder, 1, type="Instruction", level="1", size="64K", shared_cpu_list=str(cpu))
        _index(folder, 2, type="Unified", level="2", size="2M", shared_cpu_list=pair)
        _index(folder, 3, type="Unified", level="3", size="32768K", shared_cpu_list="0-3")
    expected = (Cache("L1", 48 << 10, 4), Cache("L2", 2 << 20, 2), Cache("L3", 32 << 20, 1))
    assert from_sysfs(folders) == expected
    assert from_sysfs(folders[:1]) == tuple(cache._replace(instances=1) for cache in expected)


def test_what_linux_does_not_say_is_left_out(tmp_path: Path) -> None:
    assert from_sysfs([tmp_path / "nowhere"]) == ()
    _index(tmp_path, 0, type="Data", level="1", size="", shared_cpu_list="0")
    _index(tmp_path, 1, type="Unified", level="2", size="0K", shared_cpu_list="0")
    _index(tmp_path, 2, type="Unified", level="3")
    assert from_sysfs([tmp_path]) == ()


def test_macos_has_faster_and_slower_processors() -> None:
    told = """hw.ncpu: 8
hw.l1dcachesize: 65536
hw.l2cachesize: 4194304
hw.perflevel0.l1dcachesize: 131072
hw.perflevel0.l2cachesize: 12582912
hw.perflevel0.cpusperl2: 4
hw.machine: arm64"""
    assert from_sysctl(told, 8) == (Cache("L1", 131072, 8), Cache("L2", 12582912, 2))
    assert from_sysctl("", 8) == ()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_caches_of_this_machine_grow() -> None:
    sizes = [cache.size for cache in caches()]
    assert sizes == sorted(sizes)
