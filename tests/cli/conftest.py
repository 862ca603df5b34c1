"""What tests of the command line share."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.ratings import Ratings

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a command writes by default out of the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def answer(command: Command) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a command with --json and returns the one object it prints."""

    def ask(*arguments: object) -> dict[str, Any]:
        done = command(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        content: dict[str, Any] = json.loads(done.stdout)
        return content

    return ask


@pytest.fixture
def profiles(small_ratings: Ratings, tmp_path: Path) -> Path:
    """Return a file with a public table of factors of the users in the data folder."""
    path, rng = tmp_path / "profiles.csv", np.random.default_rng(1)
    lines = [f"{user},{rng.normal():.3f},{rng.normal():.3f},1" for user in small_ratings.user_ids]
    path.write_text("user,x1,x2,x3\n" + "\n".join(lines) + "\n")
    return path
