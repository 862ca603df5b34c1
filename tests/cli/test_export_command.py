"""`dpmf export`: what was written and what it lacks, in words and as JSON, and one line for what cannot be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf.model import Ranking, Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]
PROMISE = Guarantee.certified_by(Budget(1.0), [GaussianEvent("item sums", 5.0, 1, 40)], releases=["item factors"])


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    replace(release, guarantee=PROMISE).save(tmp_path / "release")
    return tmp_path / "release"


def test_vectors_are_written_and_described(command: Command, answer: Answer, folder: Path, tmp_path: Path) -> None:
    done = command("export", folder, "--to", "numpy", "--out", "arrays")
    assert done.returncode == 0
    assert "6 vectors of 3 numbers" in done.stdout
    assert "Guarantee: (0.834118, 1e-06)-DP per user" in done.stdout
    assert {file.name for file in (tmp_path / "arrays").iterdir()} == {"about.json", "items.csv", "vectors.npy"}
    report = answer("export", folder, "--to", "parquet", "--out", "table")
    assert (report["to"], report["part"], report["dimensions"], report["certified"]) == ("parquet", "ratings", 3, True)
    assert set(report["files"]) == {"about.json", "items.csv", "vectors.parquet"}


def test_what_a_ranking_loses_is_said(
    command: Command, release: Release, ranking_of: Callable[..., Ranking], tmp_path: Path
) -> None:
    replace(release, ranking=ranking_of(6)).save(tmp_path / "release")
    ratings = command("export", "release", "--to", "parquet", "--out", "a").stdout
    assert "dpmf orders them by the ranking part: --part ranking, or --to onnx" in ratings
    ranking = command("export", "release", "--to", "parquet", "--part", "ranking", "--out", "b").stdout
    assert "Not in the vectors: contributions of 8 single pairs of items and 2 items outside the head" in ranking
    assert "of 100 entries of lists of ten are as dpmf has them" in ranking


def test_a_card_is_a_file(command: Command, answer: Answer, folder: Path, tmp_path: Path) -> None:
    done = command("export", folder, "--to", "card", "--name", "Films for you", "--out", "README.md")
    assert (done.returncode, done.stdout) == (
        0,
        "A model card in README.md. Its license is unknown until you fill it in.\n",
    )
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "# Films for you" in text
    report = answer("export", folder, "--to", "card", "--out", "card.md")
    assert report["bytes"] == (tmp_path / "card.md").stat().st_size
    assert "# release\n" in (tmp_path / "card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to", "numpy", "--part", "ratings", "--out", "x"], "--part ratings means nothing for --to numpy"),
        (["--to", "parquet", "--part", "ranking", "--out", "x"], "--part ranking: this release has no ranking part"),
        (["--to", "card", "--part", "ranking", "--out", "x"], "--part means nothing for a card"),
        (["--to", "numpy", "--name", "n", "--out", "x"], "--name is for a card"),
        (["--to", "card", "--out", "."], "is a folder: name the file of the card"),
        (["--to", "numpy", "--out", "release"], "holds other files"),
        (["--to", "words", "--out", "x"], "'words' is not one of"),
    ],
)
def test_what_cannot_be_is_one_line(
    command: Command, folder: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    done = command("export", folder, *options)
    assert done.returncode != 0
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()
