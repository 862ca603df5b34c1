"""`dpmf data`: the catalogue, and what it makes of files."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf.model import Release
from dpmf.ratings import Ratings
from dpmf.ratings.catalogue import CATALOGUE

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


def test_data_list_names_every_data_set(
    command: Command, answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    (tmp_path / "movielens-100k").mkdir()
    rows = {row["name"]: row for row in answer("data", "list")["datasets"]}
    assert list(rows) == list(CATALOGUE)
    assert rows["synthetic"]["here"]
    assert rows["movielens-100k"]["here"]
    assert not rows["movielens-1m"]["here"]
    shown = command("data", "list").stdout
    assert all(name in shown for name in CATALOGUE)


def test_data_describe_counts(answer: Answer, data_folder: Path, small_ratings: Ratings) -> None:
    report = answer("data", "describe", data_folder)
    assert (report["users"], report["items"], report["ratings"]) == (120, 60, len(small_ratings))
    assert report["scale"] == "1:5"


def test_data_describe_knows_the_catalogue_without_the_data(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    report = answer("data", "describe", "movielens-1m")
    assert report["licence"]
    assert "dpmf data fetch movielens-1m" in report["note"]


def test_data_ingest_writes_what_can_be_read_again(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("user,item,rating\nann,Heat,5\nbob,Heat,3\n")
    assert answer("data", "ingest", "my.csv", "store", "--scale", "1:5") == {
        "folder": "store",
        "ratings": 2,
        "users": 2,
        "items": 1,
    }
    assert Ratings.read("store").values.tolist() == [5.0, 3.0]


def test_data_fetch_leaves_alone_what_is_there(answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    (tmp_path / "movielens-1m").mkdir()
    (tmp_path / "movielens-1m" / CATALOGUE["movielens-1m"].ratings_file).write_text("1::2::3::4\n")
    report = answer("data", "fetch", "movielens-1m")
    assert report == {"name": "movielens-1m", "folder": str(tmp_path / "movielens-1m")}


def test_synthetic_ratings_on_disk_can_be_trained_on(command: Command, tmp_path: Path) -> None:
    folder = f"{tmp_path}/made"
    line = f"data make {folder} --like yahoo-music --ratings 3000 --users 90 --items 40 --json".split()
    assert json.loads(command(*line).stdout)["n_ratings"] == 3000
    report = json.loads(
        command("train", folder, "--method", "sgd", "--epochs", "2", "--holdout", "0.1", "--json").stdout
    )
    assert report["rmse"] > 0
    assert command(*line).returncode == 1


def test_what_describe_proposes_makes_a_release_with_titles(command: Command, answer: Answer, tmp_path: Path) -> None:
    rows = [f'"{user}";"{(user * item) % 9}X";"{10 * (item % 2)}"' for user in range(30) for item in range(1, 9)]
    (tmp_path / "BX-Book-Ratings.csv").write_text("\n".join(['"User-ID";"ISBN";"Book-Rating"', *rows]) + "\n")
    books = [f'"{item}X";"Caf\u00e9 \\"{item}\\""' for item in range(9)]
    (tmp_path / "BX-Books.csv").write_bytes("\n".join(['"ISBN";"Book-Title"', *books, ""]).encode("latin-1"))
    report = answer("data", "describe", "BX-Book-Ratings.csv")
    assert (report["scale"], report["missing"], report["items_file"]) == ("1:10", 0, "BX-Books.csv")
    assert report["zeros"] == 0.5
    program, *line = shlex.split(report["command"])
    assert program == "dpmf"
    assert command(*line).returncode == 0
    assert Release.load("release").items.titles[3] == 'Café "3"'


def test_a_dataset_that_describe_wrote_is_confirmed_by_hand(command: Command, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "".join(f"u{n},{n % 5},{n % 10 / 2}\n" for n in range(40)))
    shown = command("data", "describe", "r.csv", "--scale", "1:5", "--write-dataset", "mine").stdout
    assert "no: there are values off the declared 1:5" in shown
    assert "assumption of the guarantee" in shown
    assert "dpmf train mine --items-public --epsilon 1 --out release" in shown
    refused = command("train", "mine", "--epsilon", "1")
    assert "set confirmed to true" in refused.stderr
    facts = json.loads((tmp_path / "mine/dataset.json").read_text())
    assert facts["scale"] == [0, 5]
    (tmp_path / "mine/dataset.json").write_text(json.dumps(facts | {"confirmed": True}))
    assert "assert with --items-public" in command("train", "mine", "--epsilon", "1").stderr
    assert command("train", "mine", "--items-public", "--epsilon", "1", "--out", "release").returncode == 0
    assert "The list of item ids was taken from the data" in " ".join(command("explain", "release").stdout.split())
    assert "--write-dataset is for a file" in command("data", "describe", "mine", "--write-dataset", "x").stderr
