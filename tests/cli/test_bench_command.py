"""`dpmf bench`: speed beside the limit, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no longer than the epochs asked for take: no test is about how exact a figure is."""
    monkeypatch.setattr("dpmf.bench.speed._LEAST_SECONDS", 0.0)
    monkeypatch.setattr("dpmf.bench.speed._PROBE_SECONDS", 0.0)


def test_bench_reports_speed_beside_the_limit(command: Command) -> None:
    done = command("bench", "synthetic", "--factors", "4", "--epochs", "1", "--users", "50", "--no-peers", "--json")
    report = json.loads(done.stdout)
    assert report["updates_per_second"] > 0
    assert report["roofline_updates_per_second"] > 0
    assert [row["factors"] for row in report["rows"]] == [4]
    printed = command("bench", "synthetic", "--factors", "4", "--users", "50", "--no-peers").stdout
    words = ("limited", "copy", "Where time goes", "float32", "16 bits", "The machine", "L1", "multiply-adds")
    assert all(word in printed for word in words)


def test_bench_has_a_place_for_peers_that_are_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    small = ("bench", "synthetic", "--factors", "4", "--epochs", "1", "--users", "50")
    report = json.loads(command(*small, "--json").stdout)
    assert report["libmf_updates_per_second"] is None
    assert report["implicit_ratings"] is report["als_over_implicit"] is None
    table = command(*small).stdout.partition("beside implicit")[2]
    assert table.split("\n")[4].split() == ["4", *["–"] * 7]
    assert "implicit" not in command(*small, "--no-peers").stdout


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--factors", "4,x"], "numbers with commas"), (["--libmf", "nowhere.so"], "no file nowhere")],
)
def test_bench_refuses_what_it_cannot_measure(command: Command, options: list[str], complaint: str) -> None:
    done = command("bench", "synthetic", *options)
    assert done.returncode == 1
    assert complaint in done.stderr
