"""Signals sent to the real program while it works or cleans up: nothing of people's ratings is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The command line, which sends itself signals at defined places. They come in pairs, as if at the same moment: when the
# first file is opened in a scratch folder (unless only its removal is of interest), and at every step of its removal.
SIGNALLED = """
import os, signal, sys
from dpmf.cli import main

PAIR = signal.SIGINT, signal.SIGTERM
first, later = (signal.SIGTERM, signal.SIGINT) if sys.argv.pop(1) == "TERM" else PAIR
place, sent = sys.argv.pop(1), 0

def strike():
    global sent
    sent += 1
    signal.pthread_sigmask(signal.SIG_BLOCK, PAIR)
    os.kill(os.getpid(), first)
    os.kill(os.getpid(), later)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PAIR)

def watch(event, arguments):
    if sent:
        if event in ("shutil.rmtree", "os.remove", "os.rmdir", "os.scandir"):
            strike()
    elif event == place and "dpmf-train-" in (
        os.path.dirname(str(arguments[0])) if place == "open" else str(arguments[0])
    ):
        strike()

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(watch)
try:
    main()
finally:
    print(sent)
"""


@pytest.mark.parametrize("first", ["INT", "TERM"])
@pytest.mark.parametrize("place", ["open", "shutil.rmtree"])
def test_signals_during_cleanup_leave_no_ratings_behind(tmp_path: Path, first: str, place: str) -> None:
    (tmp_path / "scratch").mkdir()
    words = "train synthetic --method sgd --memory 20kB --epochs 1 --factors 2 --model m --out r --holdout 0.1"
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, first, place, *words.split()],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert list((tmp_path / "scratch").iterdir()) == []
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "dpmf: interrupted; nothing half-written was left behind"
    assert "Traceback" not in done.stderr
    assert int(done.stdout.splitlines()[-1]) > 3
