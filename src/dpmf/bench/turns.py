"""Side-by-side measurements on a machine that is not ours alone.

A shared machine runs faster in one second than in the next. So things that are to be compared take turns, and are
compared within a turn. A virtual machine even stands still while its host gives the processor to somebody else. Linux
counts that time as stolen, and turns in which much was stolen do not count as long as there are enough others.

>>> turns = in_turns({"one": lambda: 1.0, "two": lambda: 2.0}, rounds=3, least_seconds=0.0)
>>> len(turns) >= 3, median_ratio(turns, "two", "one")
(True, 2.0)
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Turn = dict[str, float]
_MUCH = 0.01  # of all processors' time
_MANY, _PATIENCE = 40, 4
_STEAL = 8  # its place in the line of all processors, after the name


def in_turns(kinds: Mapping[str, Callable[[], float]], rounds: int, least_seconds: float = 1.0) -> list[Turn]:
    """Return what every kind measures in each turn, of which there are more if they are short.

    Args:
        kinds: what to measure, by name.
        rounds: how many turns are needed. While too many of them are disturbed others follow, up to four times the
            number; then the least disturbed count.
        least_seconds: how long to measure each kind at least.
    """
    for run in kinds.values():
        run()  # to warm up
    turns: list[tuple[float, Turn]] = []
    began = time.perf_counter()
    while True:
        good = sum(stolen <= _MUCH for stolen, _ in turns)
        enough = good >= rounds or len(turns) >= _PATIENCE * rounds
        if enough and (good >= _MANY or time.perf_counter() - began >= least_seconds * len(kinds)):
            break
        started, before = time.perf_counter(), stolen_seconds()
        turn = {name: run() for name, run in kinds.items()}
        passed = (time.perf_counter() - started) * (os.cpu_count() or 1)
        turns.append(((stolen_seconds() - before) / max(passed, 1e-9), turn))
    turns.sort(key=lambda one: one[0])  # stable: undisturbed turns stay in order
    counting = max(rounds, sum(stolen <= _MUCH for stolen, _ in turns))
    return [turn for _, turn in turns[:counting]]


def median_ratio(turns: Sequence[Turn], one: str, other: str) -> float:
    """Return by how much one kind exceeds another, in a typical turn."""
    return statistics.median(turn[one] / turn[other] for turn in turns)


def stolen_seconds(statistics_file: Path = Path("/proc/stat")) -> float:
    """Return for how long a host has kept the processors from this machine, all together; 0 where nobody counts."""
    try:
        fields = statistics_file.read_text().split("\n", 1)[0].split()
        return int(fields[_STEAL]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
