"""Sets of ratings in the form that people publish them in go to a private release with titles in two commands.

The first is `dpmf data describe`, whose last line is the second.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.published import HALVES, PACKED, SETS, TENS, N, of_items, of_ratings, pack
from dpmf.model import Release

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]
HEADER, RATED = "userId,movieId,rating", of_ratings("{u},{i},{r}")
ITEMS = "movieId,title", of_items('{i},"Film {i}, The"')


def check(command: Command, answer: Answer, source: Path, scale: str, title: str, ratings: int) -> dict[str, Any]:
    """Describe a set of ratings, run what is printed, and recommend to somebody; return the description."""
    report = answer("data", "describe", source)
    assert (report["scale"], report["ratings"]) == (scale, ratings)
    words = shlex.split(report["command"])[1:]
    words[words.index("--epsilon") + 1] = "50"  # so that sixty people are enough for a list of their own
    done = command(*words)
    assert (done.returncode, done.stdout.count("certified")) == (0, 1), done.stderr
    assert f"Trained on {ratings:,} " in done.stdout
    release = Release.load("release")
    assert title in release.items.titles
    assert release.guarantee.certified
    assert release.is_implicit == (scale == "counts")
    if not release.is_implicit:
        assert str(release.scale) == scale
    item = str(release.items.ids[0]).replace('"', '""')
    Path("mine.csv").write_text(f'item,rating\n"{item}",{release.scale.hi:g}\n')
    done = command("recommend", "release", "--ratings", "mine.csv", "-k", 3, "--json")  # it may say what orders a list
    listed = json.loads(done.stdout)["recommendations"]
    assert len(listed) == 3
    assert all(one["title"] in release.items.titles for one in listed)
    return report


@pytest.mark.parametrize("name", SETS)
def test_two_commands_make_a_private_release(command: Command, answer: Answer, tmp_path: Path, name: str) -> None:
    one = SETS[name]
    (folder := tmp_path / name).mkdir()
    one.write(folder)
    check(command, answer, folder / one.source, one.scale, one.title, one.ratings)


@pytest.mark.parametrize("name", PACKED)
def test_archives_need_no_unpacking(command: Command, answer: Answer, tmp_path: Path, name: str) -> None:
    one = SETS[name]
    (folder := tmp_path / name).mkdir()
    one.write(folder)
    pack(folder, Path(f"{name}.zip"))
    check(command, answer, Path(f"{name}.zip"), one.scale, one.title, one.ratings)


def table(header: str, rows: list[str], end: str = "\n") -> str:
    return end.join([header, *rows]) + end


FILMS = table(*ITEMS)
ODD: dict[str, tuple[str | bytes, str | bytes, str, str, int]] = {
    # ratings, items, the scale, the title of some item, and the number of ratings
    "ends of lines as in DOS": (table(HEADER, RATED, "\r\n"), table(*ITEMS, "\r\n"), "1:5", "Film 3, The", N),
    "byte order marks": ("\ufeff" + table(HEADER, RATED), "\ufeff" + FILMS, "1:5", "Film 3, The", N),
    "Latin-1": (
        table(HEADER, of_ratings("josé{u},{i},{r}")).encode("latin-1"),
        FILMS.replace("Film", "Café").encode("latin-1"),
        *("1:5", "Café 3, The", N),
    ),
    "CP-1252": (
        table(HEADER, of_ratings("“{u}”,{i},{r}")).encode("cp1252"),
        FILMS.replace("Film", "“Café” –").encode("cp1252"),
        *("1:5", "“Café” – 3, The", N),
    ),
    "everything quoted": (
        table('"userId","movieId","rating"', of_ratings('"{u}","{i}","{r}"')),
        FILMS.replace("movieId,title", '"movieId","title"'),
        *("1:5", "Film 3, The", N),
    ),
    "doubled quotes": (
        *(table(HEADER, RATED), table("movieId,title", of_items('{i},"""Film"" {i}, The"'))),
        *("1:5", '"Film" 3, The', N),
    ),
    "escaped quotes": (
        *(table(HEADER, RATED), table("movieId,title", of_items('{i},"\\"Film\\" {i}, The"'))),
        *("1:5", '"Film" 3, The', N),
    ),
    "quotes as text": (
        *(table(HEADER, RATED), table("movieId\ttitle", of_items('{i}\t"Film" {i}, The'))),
        *("1:5", '"Film" 3, The', N),
    ),
    "separators at the end": (table(HEADER + ",", of_ratings("{u},{i},{r},")), FILMS, "1:5", "Film 3, The", N),
    "empty lines": (table(HEADER, RATED) + "\n\n", FILMS + "\n", "1:5", "Film 3, The", N),
    "missing columns": (table(HEADER, [*RATED, "7", "8,9"]), FILMS, "1:5", "Film 3, The", N),
    "more columns": (table(HEADER, [*RATED, "7,8,9,10,11"]), FILMS, "1:5", "Film 3, The", N),
    "no user, no number": (table(HEADER, [*RATED, "7,8,good", ",5,3"]), FILMS, "1:5", "Film 3, The", N),
    "no rating": (table(HEADER, [*RATED, "7,21,NULL", "8,21,"]), FILMS, "1:5", "Film 3, The", N),
    "half stars": (table(HEADER, of_ratings("{u},{i},{r}", HALVES)), FILMS, "0.5:5", "Film 3, The", N),
    "-10 to 10": (table(HEADER, of_ratings("{u},{i},{r}", (-9.95, 0, 10))), FILMS, "-10:10", "Film 3, The", N),
    "0 to 100": (table(HEADER, of_ratings("{u},{i},{r}", (0, *TENS, 30, 77, 100))), FILMS, "0:100", "Film 3, The", N),
    "0 for not rated": (table(HEADER, of_ratings("{u},{i},{r}", (0, 0, 3, 5))), FILMS, "1:5", "Film 3, The", 339),
    "no value": (table("userId,movieId", of_ratings("{u},{i}")), FILMS, "counts", "Film 3, The", N),
    "semicolons": (
        *(table("userId;movieId;rating", of_ratings("{u};{i};{r}")), table("movieId;title", of_items("{i};A, {i}"))),
        *("1:5", "A, 3", N),
    ),
}


def write(ratings: str | bytes, items: str | bytes) -> None:
    for name, content in (("ratings.csv", ratings), ("movies.csv", items)):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize("name", ODD)
def test_odd_files_go_the_same_way(command: Command, answer: Answer, name: str) -> None:
    ratings, items, scale, title, number = ODD[name]
    write(ratings, items)
    assert check(command, answer, Path("ratings.csv"), scale, title, number)["items_file"] == "movies.csv"


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ("", "is empty"),
        ("\ufeff", "is empty"),
        ("\n", "is empty"),
        (HEADER + "\n", "there are no ratings"),
        ("userId\n1\n2\n", "one column"),
        (table(HEADER, ["a,b,c", "d,e,f"]), "the rating in row 2 is"),
        (table("who,what,how", RATED), "name it with --columns user=NAME"),
        (table(HEADER, RATED).encode("utf-16"), "not UTF-8 text"),
        (bytes(range(256)), "not UTF-8 text"),
    ],
)
def test_what_holds_no_ratings_is_refused(command: Command, ratings: str | bytes, message: str) -> None:
    write(ratings, FILMS)
    describing, training = ("data", "describe", "ratings.csv"), ("train", "ratings.csv", "--scale", "1:5")
    for words in (describing, (*training, "--items", "movies.csv", "--epsilon", 1, "--out", "release")):
        done = command(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), words
        assert not Path("release").exists()
        if words == describing:
            assert message in done.stderr


FIRST_TRIES = {
    "train ml-latest-small --scale 1:5 --epsilon 1": "describe` finds, or --missing 0.5 if that means no rating",
    "train jester-csv/jester-data-1.csv --scale -10:10 --epsilon 1 --items-public": "say --layout wide if each line is",
    "train jester-1/jester-data-1.xls --scale -10:10 --epsilon 1 --items-public": "say --layout wide if each line is",
    "train jester-1 --scale -10:10 --items-public --layout wide --no-header --missing 99 --epsilon 1": (
        "if the first column is no item, --leading 1"
    ),
    "train book-crossing --scale 1:10 --epsilon 1": "`dpmf data describe` finds encoding, quotes and bad rows",
    "train book-crossing --scale 1:10 --epsilon 1 --encoding latin-1": "stands before quotes in it, --escape '\\'",
    "train lastfm-hetrec --epsilon 1": "should be a rating, and is not: say --header or --no-header",
    "train lastfm-hetrec --epsilon 1 --header": "learn from them with --feedback implicit",
}


def test_first_tries_are_told_what_to_do_next(command: Command, tmp_path: Path) -> None:
    for name in {words.split()[1].split("/")[0] for words in FIRST_TRIES}:
        (folder := tmp_path / name).mkdir()
        SETS[name].write(folder)
    for words, message in FIRST_TRIES.items():
        done = command(*words.split(), "--out", "release")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), words
        assert message in done.stderr, words
        assert not Path("release").exists()
