"""`--cluster`: the release of one machine from the real program, and nothing left when it ends, however it ends."""

from __future__ import annotations

import importlib
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

from dpmf.engine.cluster import Ray
from dpmf.engine.ray_connect import own_cluster
from dpmf.ratings.formats.database import open_database

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
    assert files_in("there") == files_in("here")
    assert reports[1]["epsilon"] is None
    assert not reports[1]["streamed"]
    refused = command(*words, "--cluster", "local:2", "--holdout", "0.1")
    assert refused.returncode == 1
    assert "nothing can be held out on a cluster" in refused.stderr
    assert list(scratch.iterdir()) == []
    assert processes_of(scratch) == []


def test_commands_give_on_a_cluster_what_they_give_here(command: Command, scratch: Path) -> None:
    def run(*words: str) -> str:
        done = command(*words)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    Path("data").mkdir()
    for number in (3, 4):
        with open_database() as connection:
            source = f"SELECT i AS user, (i * 7 + {number}) % 50 AS item, 1 + i % 5 AS rating FROM range(200) t(i)"
            connection.execute(f"COPY ({source}) TO 'data/{number}.parquet' (FORMAT parquet)")
    ray = importlib.import_module("ray")
    scale = ["--scale", "1:5"]
    run("data", "ingest", "data", "here", *scale, "--strips", "2")
    with own_cluster(ray, Ray("local:2"), 2):
        als = ["--method", "als", "--epsilon", "inf", "--factors", "4"]
        there = ["--cluster", "auto", "--workers", "2"]
        run("data", "ingest", "data/*.parquet", "store", *scale, "--strips", "2", *there)
        assert files_in("store") == files_in("here")
        run("train", "store", *als, "--out", "release")
        lists = json.loads(run("recommend-all", "release", "--ratings", "store", "--out", "lists", "--json", *there))
        figures = json.loads(run("evaluate", "release", "store", "--json", *there[:2], "--workers", "1"))
    run("recommend-all", "release", "--ratings", "store", "--out", "lists.parquet")
    with open_database() as connection:
        rows = [
            connection.execute(f"SELECT * FROM '{name}' ORDER BY user, rank").fetchall()
            for name in ("lists/*.parquet", "lists.parquet")
        ]
    assert rows[0] == rows[1]
    assert lists["rows"] == len(rows[0])
    alone = json.loads(run("evaluate", "release", "store", "--json"))
    assert figures["rmse"] == pytest.approx(alone["rmse"], abs=2e-6)


def files_in(folder: str) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}


def test_no_worker_outlives_the_program(command: Command, scratch: Path) -> None:
    assert command("data", "ingest", "synthetic", "store").returncode == 0
    words = "train store --method sgd --epochs 100000 --factors 8 --cluster local:1 --checkpoint"
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dpmf.cli import main; main()"
    programs = {}
    for name in ("a", "b"):
        (scratch / name).mkdir()
        programs[name] = subprocess.Popen(  # Ctrl-C counts even if whoever runs the tests ignores it
            [sys.executable, "-c", code, *words.split(), name],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(scratch / name)},
        )
    for name, program in programs.items():
        while not list(Path(name).glob("epoch-*")):
            assert program.poll() is None, program.communicate()
            time.sleep(0.05)
    interrupted, killed = programs.values()
    interrupted.send_signal(signal.SIGINT)
    killed.kill()
    _, errors = interrupted.communicate()
    killed.communicate()
    while processes_of(scratch):  # those that nobody could end look for their parent every few seconds
        time.sleep(0.1)
    assert interrupted.returncode == 130
    assert errors.splitlines()[-1] == "dpmf: interrupted; nothing half-written was left behind"
    assert list((scratch / "a").iterdir()) == []
