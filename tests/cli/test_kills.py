"""`kill -9` at defined places: what was complete is still there, and the next run removes what was not."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf.model import Release
from dpmf.temporary import SUFFIX

Program = Callable[..., subprocess.CompletedProcess[str]]
WORDS = "train synthetic --method sgd --epochs 1 --factors 2 --threads 1 --out release"
TRAIN = WORDS.split()


def test_ratings_that_a_killed_run_left_on_the_disk_are_removed(
    signalled: Program, command: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = [*TRAIN, "--memory", "20kB"]
    assert signalled(*words, kind="open", start="blocks.bin", after=True, scratch=scratch).returncode == -signal.SIGKILL
    assert [path.suffix for path in scratch.iterdir()] == [SUFFIX]
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert command(*words).returncode == 0
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "start"), [("open", ".release.json."), ("shutil.rmtree", ".release.")], ids=["before", "after"]
)
def test_a_release_is_there_whenever_the_run_that_replaces_it_is_killed(
    kind: str, start: str, signalled: Program, command: Program, tmp_path: Path
) -> None:
    assert command(*TRAIN, "--seed", "1").returncode == 0
    before = (tmp_path / "release" / "release.json").read_text()
    done = signalled(*TRAIN, "--seed", "2", kind=kind, start=start)
    assert done.returncode == -signal.SIGKILL
    Release.load(tmp_path / "release")
    assert ((tmp_path / "release" / "release.json").read_text() == before) == (kind == "open")
    assert command(*TRAIN, "--seed", "2").returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
