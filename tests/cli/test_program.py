"""The real program, in a process of its own: from start to finish, interrupted, and with nobody reading."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

import dpmf
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

Program = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = ("numba", "scipy", "duckdb", "matplotlib", "rich")


def one_line(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("dpmf: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def write_csv(ratings: Ratings, path: Path) -> None:
    users, items = list(ratings.user_ids), list(ratings.catalogue.ids)
    rows = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
    text = "".join(f"{users[user]},{items[item]},{value:g}\n" for user, item, value in rows)
    path.write_text("user,item,rating\n" + text)


def test_from_a_file_of_ratings_to_recommendations(program: Program, tmp_path: Path) -> None:
    write_csv(make(150, 60), tmp_path / "ratings.csv")
    trained = program(
        "train", "ratings.csv", "--method", "sgd", "--scale", "1:5", "--holdout", 0.1, "--out", "r", "--json"
    )
    assert (trained.returncode, trained.stderr) == (0, "")
    report = json.loads(trained.stdout)
    assert report["rmse"] < report["baseline_rmse"]
    (tmp_path / "mine.csv").write_text("item,rating\n1,5\n9,4\n3,1\n")
    found = json.loads(program("recommend", "r", "--ratings", "mine.csv", "-k", 3, "--json").stdout)
    assert [set(one) for one in found["recommendations"]] == [{"item", "title", "score"}] * 3
    assert not {one["item"] for one in found["recommendations"]} & {1, 9, 3}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.csv", "r", "ratings.csv"]


def test_snapshots_keep_to_the_memory_limit_with_user_factors_on_the_disk(
    program: Program, signalled: Program, tmp_path: Path
) -> None:
    program("data", "make", "made", "--users", 100_000, "--items", 1000, "--ratings", 560_000, check=True)
    program("data", "ingest", "made", "store", check=True)
    plain = ["train", "store", "--method", "sgd", "--factors", "256", "--epochs", "2", "--memory", "20MB", "--json"]
    words = [*plain, "--checkpoint", "run", "--resume"]
    assert signalled(*words, kind="os.rename", start="epoch-", after=True).returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("run/epoch-*"))) == 1
    for folder, command in (("whole", plain), ("resumed", words)):
        report = json.loads(program(*command, "--out", folder, check=True).stdout)
        assert report["streamed"]
        # The program itself takes about 200 MB; with copies of user factors, of 102 MB each, it would not be enough.
        assert report["peak_memory"] is None or report["peak_memory"] < 320e6
    whole, resumed = ((tmp_path / folder / "release.safetensors").read_bytes() for folder in ("whole", "resumed"))
    assert whole == resumed
    (snapshot,) = tmp_path.glob("run/epoch-*/state.safetensors")
    with snapshot.open("r+b") as file:
        file.seek(10**7)
        file.write(b"damage")
    one_line(program(*words), "is damaged")


def test_the_demonstration_tells_its_story_and_draws_a_picture(program: Program, tmp_path: Path) -> None:
    done = program("demo", "--threads", 2)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("rmse", "The Electric Pulsar", "expected rating", "not private", "demo-output/release"):
        assert words in done.stdout
    assert sorted(file.name for file in (tmp_path / "demo-output").iterdir()) == ["demo.png", "release"]


def test_bad_ratings_end_in_one_line(program: Program, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("user,item,rating\nann,Heat,nan\n")
    one_line(program("train", "bad.csv", "--method", "sgd", "--out", "r"), "row 2")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


def test_a_damaged_release_ends_in_one_line(program: Program, release_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    for file in release_folder.iterdir():
        (tmp_path / "r" / file.name).write_bytes(file.read_bytes()[:-1])
    one_line(program("explain", "r"), "is damaged")


def test_an_output_that_cannot_be_written_ends_in_one_line(program: Program, data_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one_line(program("train", data_folder, "--method", "sgd", "--epochs", 1, "--out", "file/r"), "file")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_fetch_without_a_network_ends_in_one_line(program: Program, tmp_path: Path) -> None:
    nowhere = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "no_proxy": ""}
    done = program("data", "fetch", "movielens-1m", "--folder", "ml", "--json", env={**os.environ, **nowhere})
    one_line(done, "could not reach https://")
    assert not (tmp_path / "ml").exists()


def test_no_arguments_show_the_help_and_are_an_error(program: Program) -> None:
    done = program()
    assert done.returncode == 2
    assert "Start with `dpmf demo`" in done.stdout
    assert done.stderr == ""


def test_ctrl_c_ends_training_quietly_and_leaves_no_file(tmp_path: Path) -> None:
    """Standard error is a terminal here, so the progress bar tells when training is under way."""
    ours, theirs = pty.openpty()
    words = ["train", "synthetic", "--method", "sgd", "--epochs", "1000000", "--out", "r", "--model", "m"]
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from dpmf.cli import main; main()"
    process = subprocess.Popen(  # Ctrl-C counts even if whoever runs the tests ignores it
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    with process, os.fdopen(ours, "rb", buffering=0) as terminal:
        seen = read_until(terminal, b"train rmse")
        assert b"train rmse" in seen
        process.send_signal(signal.SIGINT)
        rest = read_until(terminal, b"never said")
        assert process.wait(timeout=120) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert b"dpmf: interrupted; nothing half-written was left behind" in rest
    assert b"Traceback" not in seen + rest
    assert list(tmp_path.iterdir()) == []


def read_until(terminal: IO[bytes], words: bytes) -> bytes:
    """Read until the words have come, or the other side is gone (which Linux reports as an error)."""
    seen = b""
    while words not in seen:
        try:
            part = terminal.read(4096)
        except OSError:
            part = b""
        if not part:
            return seen
        seen += part
    return seen


@pytest.mark.parametrize("words", [["data", "list"], ["data", "list", "--json"], ["--help"]])
def test_a_reader_that_leaves_early_is_no_trouble(words: list[str]) -> None:
    process = subprocess.Popen([sys.executable, "-m", "dpmf", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=120) in (0, 1)


def test_version(program: Program) -> None:
    assert program("--version").stdout == f"dpmf, version {dpmf.__version__}\n"


@pytest.mark.parametrize(
    ("words", "needed"),
    [("--help", []), ("train --help", []), ("--version", []), ("data list --json", []), ("data list", ["rich"])],
)
def test_what_only_answers_loads_nothing_heavy(words: str, needed: list[str]) -> None:
    code = (
        f"import sys; sys.argv = {['dpmf', *words.split()]}\nfrom dpmf.cli import main\nmain()\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines()[-1] == str(needed)


def test_a_terminal_that_cannot_show_a_sign_is_no_reason_to_fail(program: Program) -> None:
    done = program("data", "list", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "1?5" in done.stdout  # written with a dash where there is one
