"""`dpmf` itself: version, help, errors, and what this machine offers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import dpmf
from dpmf.errors import InvalidArgument
from dpmf.model import Release

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


def test_doctor_shows_versions_and_threads(command: Command, answer: Answer) -> None:
    report = answer("doctor")
    assert report["dpmf"] == dpmf.__version__
    assert report["threads"] >= 1
    assert report["numba_cache_files"] >= 0
    assert "numpy" in command("doctor").stdout


def test_version_and_help(command: Command) -> None:
    assert command("--version").stdout.strip().endswith(dpmf.__version__)
    assert "Start with `dpmf demo`" in command("-h").stdout
    for name in ("demo", "train", "evaluate", "recommend", "similar", "explain", "verify", "ledger", "data", "doctor"):
        done = command(name, "--help")
        assert done.returncode == 0
        assert f"dpmf {name}" in done.stdout


def test_an_error_of_several_lines_is_printed_as_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InvalidArgument("first\nsecond")

    monkeypatch.setattr(Release, "load", fail)
    done = command("explain", "anything")
    assert (done.returncode, done.stderr) == (1, "dpmf: first second\n")
