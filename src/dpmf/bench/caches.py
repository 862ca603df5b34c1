"""The caches between a processor and memory, as the operating system describes them.

>>> from_sysctl("hw.l1dcachesize: 65536\\nhw.l2cachesize: 4194304\\nhw.perflevel0.cpusperl2: 4\\n", n_cpus=8)
(Cache(name='L1', size=65536, instances=8), Cache(name='L2', size=4194304, instances=2))
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cache(NamedTuple):
    """A level of the caches for data.

    Attributes:
        name: L1, L2 and so on.
        size: bytes of one such cache.
        instances: how many there are for the CPUs that this process may use.
    """

    name: str
    size: int
    instances: int


def caches() -> tuple[Cache, ...]:
    """Return the levels, the nearest to the processor first; none where the system does not say."""
    if sys.platform == "darwin":
        told = subprocess.run(["/usr/sbin/sysctl", "hw"], capture_output=True, text=True, check=False).stdout
        return from_sysctl(told, os.cpu_count() or 1)
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return from_sysfs([Path(f"/sys/devices/system/cpu/cpu{cpu}/cache") for cpu in sorted(cpus)])


def from_sysfs(folders: list[Path]) -> tuple[Cache, ...]:
    """Return what Linux says of the caches of some CPUs, one folder each."""
    sizes: dict[int, int] = {}
    sharers: dict[int, set[str]] = {}
    for path in [path for folder in folders for path in folder.glob("index*")]:
        try:
            kind, level, size, cpus = (
                (path / name).read_text().strip() for name in ("type", "level", "size", "shared_cpu_list")
            )
            n_bytes = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and n_bytes > 0:
            sizes[int(level)] = max(sizes.get(int(level), 0), n_bytes)
            sharers.setdefault(int(level), set()).add(cpus)
    return tuple(Cache(f"L{level}", sizes[level], len(sharers[level])) for level in sorted(sizes))


def from_sysctl(told: str, n_cpus: int) -> tuple[Cache, ...]:
    """Return what macOS says of the caches of its fastest processors, by `sysctl hw`."""
    numbers: dict[str, int] = {}
    for line in told.splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdecimal():
            numbers[name.strip()] = int(value)
    found = []
    for name, key, sharing in (("L1", "l1dcachesize", "cpusperl1"), ("L2", "l2cachesize", "cpusperl2")):
        size = numbers.get(f"hw.perflevel0.{key}") or numbers.get(f"hw.{key}", 0)
        if size:
            found.append(Cache(name, size, -(-n_cpus // max(numbers.get(f"hw.perflevel0.{sharing}", 1), 1))))
    return tuple(found)
