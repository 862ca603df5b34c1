"""What a killed run leaves behind is removed by the next one; what somebody still uses, or made himself, is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpmf import temporary
from dpmf.files import new_folder, scratch_folder, write_text
from dpmf.temporary import SUFFIX, claimed_folder, remove_leftovers

HANG = 600.0  # seconds after which something that should happen never will

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")

KILLED = """
import os, signal, sys
from pathlib import Path
from dpmf import files
what, folder = sys.argv[1], Path(sys.argv[2])
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if what == "file":
    os.fsync = die
    files.write_text(folder / "x", "ratings")
elif what == "folder":
    with files.new_folder(folder / "x") as work:
        (work / "ratings").write_text("ratings")
        die()
else:
    with files.scratch_folder("train") as work:
        (work / "ratings").write_text("ratings")
        die()
"""


def kill_while_writing(what: str, folder: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", KILLED, what, str(folder)], env=environment, timeout=HANG, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("what", ["file", "folder", "scratch"])
def test_the_next_run_removes_what_a_killed_one_left(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kill_while_writing(what, tmp_path)
    if what == "file":
        write_text(tmp_path / "x", "1")
    elif what == "folder":
        with new_folder(tmp_path / "x"):
            pass
    else:
        with scratch_folder("ingest"):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ([] if what == "scratch" else ["x"])


def test_what_another_run_is_using_stays(tmp_path: Path) -> None:
    with claimed_folder(tmp_path, "dpmf-train-") as work:
        remove_leftovers(tmp_path, "dpmf-[a-z]+-")
        assert work.is_dir()
    remove_leftovers(tmp_path, "dpmf-[a-z]+-")
    assert not work.exists()


@pytest.mark.parametrize("name", [".x.original", ".x.backup00.old", f".y.abcdefgh{SUFFIX}", f".x.abcdefg{SUFFIX}"])
def test_what_somebody_named_alike_stays(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    write_text(tmp_path / "x", "1")
    assert {path.name for path in tmp_path.iterdir()} == {name, "x"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / f".x.abcdefgh{SUFFIX}").symlink_to(tmp_path / "precious")
    write_text(tmp_path / "x", "1")
    assert (tmp_path / "precious").is_dir()


def test_what_is_removed_before_it_is_held_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = temporary._lock
    taken: list[Path] = []

    def late(handle: int, *, wait: bool) -> bool:
        if not taken:  # another run, at the worst moment
            taken.extend(tmp_path.iterdir())
            taken[0].rmdir()
        return lock(handle, wait=wait)

    monkeypatch.setattr(temporary, "_lock", late)
    with claimed_folder(tmp_path, "dpmf-train-") as work:
        assert work.is_dir()
        assert [work] == list(tmp_path.iterdir())
        assert work != taken[0]
