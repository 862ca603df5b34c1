"""`--cluster`: the release of one machine from the real program, and nothing left when it ends, however it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'dpmf[ray]'")
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place of the test's own for temporary files."""
    folder = Path(f"/tmp/dpmf-test-{os.getpid()}")  # sockets lie in it, whose paths are short
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def processes_of(folder: Path) -> list[str]:
    """Return the processes that were started with a folder of temporary files."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            words = (one / "cmdline").read_text()
        except OSError:
            continue
        if one.name.isdigit() and str(folder) in words:
            found.append(words)
    return found


def test_a_cluster_makes_the_release_of_one_machine(command: Command, scratch: Path) -> None:
    done = command("data", "ingest", "synthetic", "store")
    assert done.returncode == 0, done.stderr
    words = ["train", "store", "--method", "sgd", "--epochs", "3", "--factors", "8", "--json"]
    here = command(*words, "--out", "here")
    there = command(*words, "--out", "there", "--cluster", "local:2")
    assert (there.returncode, there.stderr) == (0, "")
    reports: list[dict[str, Any]] = [json.loads(done.stdout) for done in (here, there)]
    for name in ("release.safetensors", "release.json"):
        assert (Path("there") / name).read_bytes() == (Path("here") / name).read_bytes()
    assert reports[1]["epsilon"] is None
    assert not reports[1]["streamed"]
    tested = command("evaluate", "there", "store", "--json", "--cluster", "local:2")
    assert (tested.returncode, tested.stderr) == (0, "")
    alone = json.loads(command("evaluate", "there", "store", "--json").stdout)
    assert json.loads(tested.stdout)["rmse"] == pytest.approx(alone["rmse"], abs=2e-6)
    refused = command(*words, "--cluster", "local:2", "--holdout", "0.1")
    assert refused.returncode == 1
    assert "nothing can be held out on a cluster" in refused.stderr
    assert list(scratch.iterdir()) == []
    assert processes_of(scratch) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_program(command: Command, scratch: Path, number: signal.Signals) -> None:
    assert command("data", "ingest", "synthetic", "store").returncode == 0
    words = "train store --method sgd --epochs 100000 --factors 8 --cluster local:2 --checkpoint run"
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dpmf.cli import main; main()"
    program = subprocess.Popen(  # Ctrl-C counts even if whoever runs the tests ignores it
        [sys.executable, "-c", code, *words.split()], stderr=subprocess.PIPE, text=True
    )
    while not list(Path().glob("run/epoch-*")):
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(number)
    _, errors = program.communicate()
    while processes_of(scratch):  # Ray's helpers look for their parent every few seconds
        time.sleep(0.1)
    if number == signal.SIGINT:
        assert program.returncode == 130
        assert errors.splitlines()[-1] == "dpmf: interrupted; nothing half-written was left behind"
        assert list(scratch.iterdir()) == []
