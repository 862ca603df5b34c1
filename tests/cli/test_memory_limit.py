"""`dpmf train --memory`: ratings that do not fit are streamed, with the same result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf.ratings import Ratings

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("split", ["random", "per-user"])
def test_too_little_memory_streams_to_the_same_bytes(
    command: Command, tmp_path: Path, data_folder: Path, split: str
) -> None:
    def train(name: str, *options: str) -> dict[str, Any]:
        folders = ("--out", f"{tmp_path}/{name}", "--model", f"{tmp_path}/{name}-model")
        line = f"--method sgd --factors 4 --epochs 3 --holdout 0.2 --split {split} --json".split()
        report: dict[str, Any] = json.loads(command("train", str(data_folder), *line, *folders, *options).stdout)
        return report

    inside, streamed = train("inside"), train("streamed", "--memory", "1KB")
    assert (inside["streamed"], streamed["streamed"]) == (False, True)
    for figure in ("rmse", "mae", "baseline_rmse"):
        assert streamed[figure] == pytest.approx(inside[figure], abs=1e-6)
    for file in ("/release.safetensors", "/release.json", "-model/model.safetensors"):
        assert Path(f"{tmp_path}/streamed{file}").read_bytes() == Path(f"{tmp_path}/inside{file}").read_bytes()
    assert not train("roomy", "--memory", "1GB")["streamed"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on addresses to set")
@pytest.mark.parametrize("more", [2**28, 2**29])
@pytest.mark.parametrize(
    "words", ["data ingest ratings.csv store --scale 1:5", "train ratings.csv --method sgd --out r"]
)
def test_too_few_addresses_for_libraries_are_one_line(tmp_path: Path, words: str, more: int) -> None:
    """Without a check before they are loaded, they crash, abort, go on for ever or print tracebacks."""
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,2,3\n")
    code = (
        "import resource, sys\n"
        "from dpmf.cli import main\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {more}, used + {more}))\n"
        f"sys.argv = ['dpmf', *{words.split()}]\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("dpmf: out of memory: a limit of")
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.csv"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on addresses to set")
def test_too_few_addresses_for_the_database_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,2,3\n")
    code = (
        "import resource, duckdb, dpmf, numpy as np\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))\n"
        "try:\n"
        "    dpmf.Ratings.read('ratings.csv', scale=(1, 5))\n"
        "except MemoryError as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "TooFewAddresses\n"), done.stderr


CERTIFIED = {
    "joint": "--epsilon 5",  # which chooses the number of factors itself
    "als": "--for ratings --epsilon 5",  # which chooses the number of factors itself
    "als implicit": "--method als --epsilon 5 --feedback implicit --set cap=10",
    "gaussian": "--method gaussian --epsilon 5 --epochs 2 --factors 3",
    "sgld": "--method sgld --epsilon 5 --epochs 2 --factors 3",
    "sketch": "--method sketch --epsilon 5 --epochs 2 --factors 3",
    "objective": "--method objective --epsilon 2 --profiles profiles.csv",
}


@pytest.mark.parametrize("options", CERTIFIED.values(), ids=CERTIFIED)
def test_certified_runs_stream_to_the_same_bytes(
    command: Command, small_ratings: Ratings, data_folder: Path, options: str
) -> None:
    lines = [f"{user},{place % 3 / 3},{place % 5 / 5}" for place, user in enumerate(small_ratings.user_ids)]
    Path("profiles.csv").write_text("\n".join(["user,x1,x2", *lines]))
    reports = {}
    for name, memory in {"inside": "1GB", "streamed": "1KB"}.items():
        line = f"{options} --set noise_seed=3 --holdout 0.2 --memory {memory} --out {name} --model {name}-model --json"
        done = command("train", data_folder, *line.split())
        assert done.returncode == 0, done.stderr
        reports[name] = json.loads(done.stdout)
    assert [reports[name]["streamed"] for name in ("inside", "streamed")] == [False, True]
    for file in ("/release.safetensors", "/release.json", "-model/model.safetensors"):
        assert Path(f"streamed{file}").read_bytes() == Path(f"inside{file}").read_bytes()
    figures = {"recall@10", "ndcg@10", "popularity_recall@10"} if "implicit" in options else {"rmse", "mae"}
    if "--method" not in options and "implicit" not in options:
        figures.add("biases_rmse")
    for figure in figures:
        assert reports["streamed"][figure] == pytest.approx(reports["inside"][figure], abs=1e-6)


def test_user_budgets_and_ledgers_work_when_streamed(answer: Answer, data_folder: Path) -> None:
    Path("wishes.csv").write_text("person-00001,0.5\nperson-00002,0\n")
    private = "--epsilon 2 --user-budgets wishes.csv --ledger ledger.json --cap 5 --memory 1KB --checkpoint run"
    report = answer("train", data_folder, *private.split(), "--factors", 2, "--out", "release")
    assert (report["streamed"], report["certified"], report["user_epsilons"]["least"]) == (True, True, 0)
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["recomputed_epsilon"]) == (True, 2.0)
    assert answer("ledger", "ledger.json")["spent"] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("options", ["", "--holdout 0.2", "--holdout 1 --split last"])
def test_a_file_and_its_store_train_to_the_same_bytes(command: Command, tmp_path: Path, options: str) -> None:
    rows = [(user, item, 1 + (user * item) % 5, user + 7 * item) for user in range(60) for item in range(user % 9 + 3)]
    source, store = tmp_path / "ratings.csv", tmp_path / "store"
    source.write_text("\n".join(["user,item,rating,timestamp", *(",".join(map(str, row)) for row in rows)]))
    scale = ("--scale", "1:5")
    assert command("data", "ingest", str(source), str(store), *scale, "--memory", "1KB").returncode == 0
    assert command("data", "ingest", str(source), f"{store}2", *scale).returncode == 0
    for file in ("store.json", "items.bin", "values.bin", "times.bin", "blocks/blocks.bin"):
        assert (store / file).read_bytes() == Path(f"{store}2", file).read_bytes()
    releases = set()
    ways = [(source, scale), (source, (*scale, "--memory", "1KB")), (store, ()), (store, ("--memory", "1KB"))]
    for number, (data, more) in enumerate(ways):
        line = f"--method sgd --factors 4 --epochs 2 {options} --out {tmp_path}/{number}".split()
        assert command("train", str(data), *line, *more).returncode == 0
        releases.add((tmp_path / str(number) / "release.safetensors").read_bytes())
    assert len(releases) == 1
    assert not list(store.glob("seen*"))


def test_synthetic_ratings_can_be_streamed_too(command: Command) -> None:
    done = command("train", "synthetic", "--method", "sgd", "--epochs", "1", "--memory", "100KB", "--json")
    assert json.loads(done.stdout)["streamed"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--memory", "lots"], "amount of memory"),
        (["--memory", "1KB", "--split", "last", "--holdout", "1"], "needs a timestamp"),
        (["--memory", "1KB", "--scale", "1:9"], "scale cannot be given for ratings that are ingested"),
    ],
)
def test_streaming_refuses_what_it_cannot_do(
    command: Command, data_folder: Path, options: list[str], complaint: str
) -> None:
    done = command("train", str(data_folder), "--method", "sgd", *options)
    assert done.returncode == 1
    assert complaint in done.stderr
