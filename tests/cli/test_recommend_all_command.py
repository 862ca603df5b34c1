"""`dpmf recommend-all`: the lists of `dpmf recommend`, for everybody, in a file that is whole or not there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf.methods import SGD
from dpmf.model import Model, Ranking, Recommendation, Release
from dpmf.ratings import Ratings
from dpmf.ratings.formats.database import open_database

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


def read(path: Path | str) -> tuple[list[str], dict[object, list[tuple[Any, ...]]]]:
    """Return the columns after the user, and everybody's rows in the order of the file."""
    with open_database() as connection:
        rows = connection.execute("SELECT * FROM read_parquet($path)", {"path": str(path)})
        columns = [column[0] for column in rows.description]
        lists: dict[object, list[tuple[Any, ...]]] = {}
        for user, *row in rows.fetchall():
            lists.setdefault(user, []).append(tuple(row))
    assert columns[0] == "user"
    return columns[1:], lists


def agree(rows: list[tuple[Any, ...]], expected: list[Recommendation]) -> None:
    """Compare rows with a person's own recommendations; sums are formed in another order, so they agree nearly."""
    assert [row[:2] for row in rows] == [(one.item, rank) for rank, one in enumerate(expected, start=1)]
    assert [row[2] for row in rows] == pytest.approx([one.score for one in expected], abs=2e-4)
    if expected and expected[0].rating is not None:
        assert [row[3] for row in rows] == pytest.approx([one.rating for one in expected], abs=2e-4)


def own(ratings: Ratings, user: int) -> dict[object, float]:
    items, values = ratings.of_user(user)
    return {ratings.catalogue.ids[item]: value for item, value in zip(items.tolist(), values.tolist(), strict=True)}


@pytest.mark.parametrize("ranks", [False, True])
def test_a_release_serves_everybody_as_it_would_each_alone(
    answer: Answer,
    data_folder: Path,
    release_folder: Path,
    small_ratings: Ratings,
    ranking_of: Callable[..., Ranking],
    ranks: bool,
) -> None:
    release = Release.load(release_folder)
    if ranks:
        release = replace(release, ranking=ranking_of(len(release.items)))
    release.save("release")
    asked = ("recommend-all", "release", "--ratings", data_folder, "--out", "top.parquet", "-k", 4)
    assert answer(*asked) == {"people": 120, "rows": 480, "out": "top.parquet"}
    columns, lists = read("top.parquet")
    assert columns == ["item", "rank", "score", *(["rating"] if ranks else [])]
    assert list(lists) == list(small_ratings.user_ids)
    for place, user in enumerate(small_ratings.user_ids):
        agree(lists[user], release.fold_in(own(small_ratings, place)).recommend(4))
    assert Path("top.parquet").stat().st_mode & 0o777 == 0o600


def test_a_model_serves_its_users_or_those_in_data(answer: Answer, small_ratings: Ratings) -> None:
    model = SGD(n_factors=4, n_epochs=3).fit(small_ratings, n_threads=1)
    model.save("model")
    assert answer("recommend-all", "model", "--out", "all.parquet")["people"] == 120
    some = list(small_ratings.user_ids)[3:5]
    Path("some.csv").write_text("user,item,rating\n" + "".join(f"{user},1,4\n" for user in some))
    assert answer("recommend-all", "model", "--ratings", "some.csv", "--out", "some.parquet")["people"] == 2
    lists, fewer = read("all.parquet")[1], read("some.parquet")[1]
    assert fewer == {user: lists[user] for user in some}
    for user in some:
        agree(lists[user], Model.load("model").recommend(user))


def test_filters_hold_for_everybody(answer: Answer, data_folder: Path, release_folder: Path) -> None:
    words = ("--only-genre", "Space", "--exclude", 1, "--most-per-genre", 2, "--include-rated", "-k", 50)
    answer("recommend-all", release_folder, "--ratings", data_folder, "--out", "top.parquet", *words)
    items = Release.load(release_folder).items
    for rows in read("top.parquet")[1].values():
        genres = [items.genres[items.find(item) or 0].split("|") for item, *_ in rows]
        assert len(rows) == sum("Space" in own for own in genres) == 2
        assert 1 not in [item for item, *_ in rows]


@pytest.mark.parametrize("stored", [False, True])
def test_ratings_can_be_streamed(
    answer: Answer, data_folder: Path, release_folder: Path, small_ratings: Ratings, stored: bool
) -> None:
    data = data_folder
    if not stored:
        users, items = list(small_ratings.user_ids), list(small_ratings.catalogue.ids)
        columns = (small_ratings.users.tolist(), small_ratings.items.tolist(), small_ratings.values.tolist())
        lines = [f"{users[user]},{items[item]},{value}" for user, item, value in zip(*columns, strict=True)]
        data = Path("ratings.csv")
        data.write_text("\n".join(["user,item,rating", *lines]))
    asked = ("recommend-all", release_folder, "--ratings", data, "-k", 3)
    assert answer(*asked, "--out", "memory.parquet") == {"people": 120, "rows": 360, "out": "memory.parquet"}
    assert answer(*asked, "--memory", "20kB", "--out", "disk.parquet")["rows"] == 360
    assert read("disk.parquet") == read("memory.parquet")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a release knows no users: name their ratings with --ratings DATA"),
        (("--ratings", "nowhere"), "no data at nowhere"),
        (("--ratings", "synthetic", "-k", 0), "k=0: ask for at least 1 item"),
        (("--ratings", "synthetic", "--only", "Nothing"), "item 'Nothing' is not in the catalogue"),
        (("--ratings", "synthetic", "--items", "items.csv"), "--items cannot be given here"),
        (("--ratings", "synthetic", "--out", "."), "is a folder: name a file to write"),
        (("--ratings", "synthetic", "--out", "no/top.parquet"), "there is no folder no"),
        (("--ratings", "synthetic", "--memory", "much"), "'much' is not an amount of memory"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(
    command: Command, release_folder: Path, words: tuple[object, ...], message: str
) -> None:
    done = command("recommend-all", release_folder, "--out", "top.parquet", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_what_is_no_file_of_its_own_is_not_replaced(command: Command, release_folder: Path) -> None:
    ratings, pipe = Path("ratings.csv"), Path("pipe")
    ratings.write_text("user,item,rating\neve,1,4\n")
    os.mkfifo(pipe)
    for out, message in ((ratings, "holds the ratings"), (pipe, "is not a file")):
        done = command("recommend-all", release_folder, "--ratings", ratings, "--out", out)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert f"dpmf: {out} {message}" in done.stderr
    assert ratings.read_text() == "user,item,rating\neve,1,4\n"
    assert pipe.is_fifo()


def test_users_that_a_model_does_not_know_are_refused(command: Command, small_ratings: Ratings) -> None:
    SGD(n_factors=2, n_epochs=1).fit(small_ratings, n_threads=1).save("model")
    Path("new.csv").write_text("user,item,rating\neve,1,4\n")
    done = command("recommend-all", "model", "--ratings", "new.csv", "--out", "top.parquet")
    assert done.returncode == 1
    assert done.stderr == "dpmf: user 'eve' was not in the training ratings: recommend from the release instead\n"
    assert not Path("top.parquet").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whoever_ends_it_finds_the_older_file(
    signalled: Command, command: Command, data_folder: Path, release_folder: Path, tmp_path: Path, number: int
) -> None:
    (tmp_path / "top.parquet").write_text("older")
    words = ("recommend-all", release_folder, "--ratings", data_folder, "--out", "top.parquet")
    done = signalled(*words, number=number, kind="os.rename", start=".top.parquet.")
    assert (tmp_path / "top.parquet").read_text() == "older"
    if number == signal.SIGKILL:
        assert command(*words).returncode == 0  # and removes what was half-written
    else:
        assert done.returncode == 130
        assert done.stderr.splitlines()[-1] == "dpmf: interrupted; nothing half-written was left behind"
    assert [path.name for path in tmp_path.iterdir()] == ["top.parquet"]
