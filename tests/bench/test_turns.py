"""Turns: as many as asked for, and those in which the host took the processors away do not count."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpmf.bench import turns
from dpmf.bench.turns import in_turns, median_ratio, stolen_seconds


@pytest.fixture
def stolen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how much is stolen in the turns to come, nothing in those after; every look at the clock is a second."""
    amounts, total = list[float](), 0.0
    calls = count()

    def so_far() -> float:
        nonlocal total
        if next(calls) % 2 and amounts:  # the second call of a turn
            total += amounts.pop(0)
        return total

    ticks = count()
    monkeypatch.setattr(turns, "stolen_seconds", so_far)
    monkeypatch.setattr(turns, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    return amounts


def test_disturbed_turns_are_left_out_and_made_up_for(stolen: list[float]) -> None:
    stolen += [0.0, 5.0, 0.0, 5.0]
    numbers = count()
    found = in_turns({"number": lambda: float(next(numbers))}, rounds=3, least_seconds=0.0)
    assert [turn["number"] for turn in found] == [1.0, 3.0, 5.0]  # 0 was to warm up


def test_the_least_disturbed_count_where_all_are(stolen: list[float]) -> None:
    stolen += [5e4, 4e4, 3e4, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6]
    numbers = count()
    found = in_turns({"number": lambda: float(next(numbers))}, rounds=3, least_seconds=0.0)
    assert sorted(turn["number"] for turn in found) == [1.0, 2.0, 3.0]
    assert next(numbers) == 13  # four times as many, and one to warm up


@pytest.mark.usefixtures("stolen")
def test_short_turns_go_on_until_there_are_many() -> None:
    assert len(in_turns({"number": lambda: 1.0}, rounds=2, least_seconds=1e9)) == turns._MANY


def test_kinds_are_compared_within_a_turn() -> None:
    assert median_ratio([{"a": 2, "b": 1}, {"a": 40, "b": 10}, {"a": 9, "b": 3}], "a", "b") == 3


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "cpu a b c d e f g h\n"])
def test_nothing_is_stolen_where_nobody_counts(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    assert stolen_seconds(tmp_path / "stat") == 0
    assert stolen_seconds(tmp_path / "none") == 0


def test_stolen_time_is_read(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 300 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert stolen_seconds(tmp_path / "stat") == 300 / os.sysconf("SC_CLK_TCK")
