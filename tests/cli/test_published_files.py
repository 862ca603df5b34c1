"""Sets of ratings in the form that people publish them in go to a private release with titles in two commands.

The first is `dpmf data describe`, whose last line is the second.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from dpmf.model import Release

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]
USERS, ITEMS = 60, 20


def rated(values: list[float]) -> list[tuple[int, int, float]]:
    """Return user, item and one of these values, for about half of all pairs."""
    rng = np.random.default_rng(5)
    pairs = [(user, item) for user in range(1, USERS + 1) for item in range(1, ITEMS + 1) if rng.random() < 0.5]
    return [(user, item, values[int(rng.integers(len(values)))]) for user, item in pairs]


def movielens_latest(folder: Path) -> None:
    rows = "".join(f"{user},{item},{value},964982703\r\n" for user, item, value in rated([0.5, 3.0, 4.5, 5.0]))
    (folder / "ratings.csv").write_text(f"userId,movieId,rating,timestamp\r\n{rows}")
    movies = "".join(f'{item},"Film {item}, The (1995)",(no genres listed)\r\n' for item in range(1, ITEMS + 3))
    (folder / "movies.csv").write_text(f"movieId,title,genres\r\n{movies}")
    (folder / "tags.csv").write_text("userId,movieId,tag,timestamp\r\n2,6,funny,1445714994\r\n")
    (folder / "links.csv").write_text("movieId,imdbId,tmdbId\r\n1,0114709,862\r\n")


def movielens_1m(folder: Path) -> None:
    rows = "".join(f"{user}::{item}::{value}::978300760\n" for user, item, value in rated([1, 2, 3, 4, 5]))
    (folder / "ratings.dat").write_text(rows)
    movies = "".join(f"{item}::Café {item}, The (1995)::Animation|Children's\n" for item in range(1, ITEMS + 1))
    (folder / "movies.dat").write_text(movies, encoding="latin-1")
    (folder / "users.dat").write_text("1::F::1::10::48067\n")


def movielens_100k(folder: Path) -> None:
    rows = "".join(f"{user}\t{item}\t{value}\t881250949\n" for user, item, value in rated([1, 2, 3, 4, 5]))
    (folder / "u.data").write_text(rows)
    flags = "|0" * 19
    movies = "".join(f"{item}|Café {item} (1995)|01-Jan-1995||http://x{flags}\n" for item in range(1, ITEMS + 1))
    (folder / "u.item").write_text(movies, encoding="latin-1")
    (folder / "u.user").write_text("1|24|M|technician|85711\n")


def book_crossing(folder: Path) -> None:
    rows = [f'"{user}";"04{item:07d}X";"{value}"\r\n' for user, item, value in rated([0, 0, 5, 8, 10])]
    rows += ['"276999";"\\"0432534220\\"";"0"\r\n', '"277000";"caf\xe9";"7"\r\n']
    text = '"User-ID";"ISBN";"Book-Rating"\r\n' + "".join(rows)
    (folder / "BX-Book-Ratings.csv").write_text(text, encoding="latin-1", newline="")
    books = "".join(
        f'"04{item:07d}X";"Caf\xe9 {item} \\"Noir\\"; a tale";"A. B.";"2002"\r\n' for item in range(1, ITEMS + 1)
    )
    named = f'"ISBN";"Book-Title";"Book-Author";"Year-Of-Publication"\r\n{books}'
    (folder / "BX-Books.csv").write_text(named, encoding="latin-1", newline="")
    (folder / "BX-Users.csv").write_text('"User-ID";"Location";"Age"\r\n"1";"nyc";NULL\r\n', newline="")


def lastfm(folder: Path) -> None:
    rows = "".join(f"{user}\t{item}\t{value}\n" for user, item, value in rated([1, 13, 900, 352698]))
    (folder / "user_artists.dat").write_text(f"userID\tartistID\tweight\n{rows}")
    artists = "".join(f'{item}\tCafé "{item}"\thttp://x\thttp://y\n' for item in range(1, ITEMS + 1))
    (folder / "artists.dat").write_text(f"id\tname\turl\tpictureURL\n{artists}")
    (folder / "tags.dat").write_text("tagID\ttagValue\n1\tmetal\n")


def yahoo_r3(folder: Path) -> None:
    rows = "".join(f"{user}\t{item}\t{value}\n" for user, item, value in rated([1, 2, 3, 4, 5]))
    (folder / "ydata-ymusic-rating-study-v1_0-train.txt").write_text(rows)
    (folder / "ydata-ymusic-rating-study-v1_0-test.txt").write_text("1\t2\t3\n")


def jester(folder: Path) -> None:
    matrix = np.full((USERS, ITEMS), 99.0)
    for user, item, value in rated([-9.95, -3.5, 0.0, 7.82, 10.0]):
        matrix[user - 1, item - 1] = value
    lines = [",".join([f"{(row != 99).sum()}", *(f"{cell:g}" for cell in row)]) for row in matrix]
    (folder / "jester-data-1.csv").write_text("\n".join(lines) + "\n")


def ciao(folder: Path) -> None:
    rows = [(user, item, 1 + item % 6, value, item % 5) for user, item, value in rated([1, 2, 3, 4, 5])]
    scipy.io.savemat(folder / "rating.mat", {"rating": np.array(rows, float)})
    scipy.io.savemat(folder / "trustnetwork.mat", {"trustnetwork": np.ones((3, 2))})


def lastfm_360k(folder: Path) -> None:
    rows = [f'{user:040x}\tf{item}\t"weird al" no. {item}\t{value}\n' for user, item, value in rated([1, 13, 0, 900])]
    (folder / "usersha1-artmbid-artname-plays.tsv").write_text("".join(rows))
    (folder / "usersha1-profile.tsv").write_text("00\tf\t22\tGermany\tFeb 1, 2007\n")


def netflix(folder: Path) -> None:
    ratings = rated([1, 2, 3, 4, 5])
    for number in (1, 2):
        items = range(number, ITEMS + 1, 2)
        rows = {one: [f"{user},{value},2005-09-06" for user, item, value in ratings if item == one] for one in items}
        lines = [line for item, of_item in rows.items() for line in (f"{item}:", *of_item)]
        (folder / f"combined_data_{number}.txt").write_text("\n".join(lines) + "\n")
    titles = "".join(f"{item},{2000 + item},Café, Part {item}\n" for item in range(1, ITEMS + 1))
    (folder / "movie_titles.csv").write_text(titles, encoding="latin-1")


SETS: dict[str, tuple[Callable[[Path], None], str, str, str]] = {
    # who writes it, what is described, the scale, and the title of some item
    "ml-latest-small": (movielens_latest, "", "0.5:5", "Film 3, The (1995)"),
    "ml-1m": (movielens_1m, "", "1:5", "Café 3, The (1995)"),
    "ml-100k": (movielens_100k, "u.data", "1:5", "Café 3 (1995)"),
    "book-crossing": (book_crossing, "", "1:10", 'Café 3 "Noir"; a tale'),
    "lastfm-2k": (lastfm, "user_artists.dat", "counts", 'Café "3"'),
    "yahoo-r3": (yahoo_r3, "", "1:5", "3"),
    "jester": (jester, "jester-data-1.csv", "-10:10", "3"),
    "ciao": (ciao, "", "1:5", "3"),
    "lastfm-360k": (lastfm_360k, "", "counts", '"weird al" no. 3'),
    "netflix": (netflix, "", "1:5 (seen in the data, not declared)", "Café, Part 3 (2003)"),
}
PACKED = ("ml-latest-small", "book-crossing", "lastfm-2k")


def check(command: Command, answer: Answer, source: Path, scale: str, title: str) -> None:
    """Describe a set of ratings, run what is printed, and recommend to somebody."""
    report = answer("data", "describe", source)
    assert report["scale"] == scale
    words = shlex.split(report["command"])[1:]
    words[words.index("--epsilon") + 1] = "50"  # so that sixty people are enough for a list of their own
    done = command(*words)
    assert (done.returncode, done.stdout.count("certified")) == (0, 1), done.stderr
    release = Release.load("release")
    assert title in release.items.titles
    assert release.guarantee.certified
    if not release.is_implicit:
        assert str(release.scale) == scale.split()[0]
    item = str(release.items.ids[0]).replace('"', '""')
    Path("mine.csv").write_text(f'item,rating\n"{item}",{release.scale.hi:g}\n')
    done = command("recommend", "release", "--ratings", "mine.csv", "-k", 3, "--json")  # it may say what orders a list
    assert len(json.loads(done.stdout)["recommendations"]) == 3


@pytest.mark.parametrize("name", SETS)
def test_two_commands_make_a_private_release(command: Command, answer: Answer, tmp_path: Path, name: str) -> None:
    write, file, scale, title = SETS[name]
    (folder := tmp_path / name).mkdir()
    write(folder)
    check(command, answer, folder / file, scale, title)


@pytest.mark.parametrize("name", PACKED)
def test_archives_need_no_unpacking(command: Command, answer: Answer, tmp_path: Path, name: str) -> None:
    write, _, scale, title = SETS[name]
    (folder := tmp_path / name).mkdir()
    write(folder)
    with zipfile.ZipFile(f"{name}.zip", "w") as archive:
        for file in sorted(folder.iterdir(), reverse=True):
            archive.write(file, file.name)
    check(command, answer, Path(f"{name}.zip"), scale, title)


FIRST_TRIES = {
    "train ml-latest-small --scale 1:5 --epsilon 1": "describe` finds, or --missing 0.5 if that means no rating",
    "train jester/jester-data-1.csv --scale -10:10 --epsilon 1 --items-public": "say --layout wide if each line is",
    "train jester/jester-data-1.csv --scale -10:10 --epsilon 1 --items-public --layout wide --no-header --missing 99": (
        "if the first column is no item, --leading 1"
    ),
    "train book-crossing --scale 1:10 --epsilon 1": "`dpmf data describe` finds encoding, quotes and bad rows",
    "train book-crossing --scale 1:10 --epsilon 1 --encoding latin-1": "stands before quotes in it, --escape '\\'",
    "train lastfm-2k --epsilon 1": "should be a rating, and is not: say --header or --no-header",
    "train lastfm-2k --epsilon 1 --header": "learn from them with --feedback implicit",
}


def test_first_tries_are_told_what_to_do_next(command: Command, tmp_path: Path) -> None:
    for name, (write, *_) in SETS.items():
        (folder := tmp_path / name).mkdir()
        write(folder)
    for words, message in FIRST_TRIES.items():
        done = command(*words.split(), "--out", "release")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), words
        assert message in done.stderr, words
        assert not Path("release").exists()
