"""A journal moves forward only, is of one run, and is held by one process at a time."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf import Checkpoint
from dpmf.engine.journal import locked, open_journal
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument

IDENTITY = {"method": "test"}


@pytest.fixture
def plan(tmp_path: Path) -> Checkpoint:
    (tmp_path / "run").mkdir(mode=0o700)
    return Checkpoint(tmp_path / "run", resume=True)


def test_what_was_started_is_known_to_the_next_process(plan: Checkpoint) -> None:
    first = open_journal(plan, IDENTITY)
    first.start(0)
    first.enter()
    first.start(1)
    second = open_journal(plan, IDENTITY)
    assert (second.started, second.entered, second.run) == (2, True, first.run)


@pytest.mark.parametrize("stage", [0, 1, 3])
def test_nothing_is_started_twice_or_passed_over(plan: Checkpoint, stage: int) -> None:
    journal = open_journal(plan, IDENTITY)
    journal.start(0)
    journal.start(1)
    with pytest.raises(BudgetExceeded, match="none is started twice"):
        journal.start(stage)
    assert open_journal(plan, IDENTITY).started == 2


def test_what_cannot_be_written_down_is_not_started(plan: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = open_journal(plan, IDENTITY)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpmf.engine.journal.write_text", full)
    with pytest.raises(OSError, match="No space"):
        journal.start(0)


def test_the_journal_of_another_run_is_refused(plan: Checkpoint) -> None:
    open_journal(plan, IDENTITY).start(0)
    with pytest.raises(InvalidArgument, match="another run"):
        open_journal(plan, {"method": "other"})
    with pytest.raises(InvalidArgument, match="resume it, or choose another folder"):
        open_journal(Checkpoint(plan.folder), IDENTITY)


def test_a_run_that_started_nothing_binds_nobody(plan: Checkpoint) -> None:
    first = open_journal(plan, IDENTITY)
    assert open_journal(plan, IDENTITY).run == first.run
    assert open_journal(Checkpoint(plan.folder), IDENTITY).run != first.run
    assert open_journal(plan, {"method": "other"}).run != first.run


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.update(started=0),
        lambda content: content.pop("started"),
        lambda content: content.pop("digest"),
        lambda content: content.update(run=None),
    ],
)
def test_a_journal_that_was_tampered_with_is_refused(plan: Checkpoint, damage: Callable[[Any], object]) -> None:
    open_journal(plan, IDENTITY).start(0)
    path = Path(plan.folder) / "started.json"
    content = json.loads(path.read_text())
    damage(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DamagedFile, match="damaged"):
        open_journal(plan, IDENTITY)
    path.write_text("[1]")
    with pytest.raises(DamagedFile, match="damaged"):
        open_journal(plan, IDENTITY)


def test_a_snapshot_without_a_journal_is_refused(plan: Checkpoint) -> None:
    (Path(plan.folder) / "epoch-000001").mkdir()
    with pytest.raises(DamagedFile, match="what the run has spent is unknown"):
        open_journal(plan, IDENTITY)


def test_two_processes_cannot_be_at_work_at_once(tmp_path: Path) -> None:
    code = f"from dpmf.engine.journal import locked\nwith locked({str(tmp_path / 'run')!r}): print('in')"
    with locked(tmp_path / "run"):
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
        refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "another process is using" in refused.stderr
        assert not refused.stdout
        with pytest.raises(InvalidArgument, match="another process"), locked(tmp_path / "run"):
            pass
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "in\n"
