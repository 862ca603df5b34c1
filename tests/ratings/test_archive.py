"""Zip archives and packed files are read where they are."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

HEADER = "userId,movieId,rating,timestamp\n"
SMALL = {
    "ml-latest-small/": "",
    "ml-latest-small/links.csv": "movieId,imdbId\n",
    "ml-latest-small/ratings.csv": HEADER + "1,1,4.0,964982703\n1,3,0.5,964981247\n",
    "ml-latest-small/movies.csv": "movieId,title,genres\n1,Toy Story (1995),Comedy\n3,Heat (1995),Crime\n",
    "__MACOSX/ml-latest-small/ratings.csv": "junk",
}
READ = {("1", 1): 4.0, ("1", 3): 0.5}


@pytest.fixture
def zipped(tmp_path: Path) -> Callable[..., Path]:
    def write(files: dict[str, str], name: str = "ml-latest-small.zip") -> Path:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, content in files.items():
                archive.writestr(member, content)
        return tmp_path / name

    return write


@pytest.mark.parametrize("source", ["", "ratings.csv", "ml-latest-small/ratings.csv"])
@pytest.mark.parametrize("items", ["movies.csv", "ml-latest-small/movies.csv"])
def test_ratings_and_items_are_read_from_an_archive(
    source: str, items: str, zipped: Callable[..., Path], table: Table
) -> None:
    path = zipped(SMALL)
    ratings = Ratings.read(path / source, items=path / items, scale=(0.5, 5))
    assert table(ratings) == READ
    assert ratings.catalogue.titles == ("Toy Story (1995)", "Heat (1995)")
    assert ratings.name


def test_an_archive_can_be_streamed(zipped: Callable[..., Path], tmp_path: Path, table: Table) -> None:
    location = locate(zipped(SMALL), ReadOptions(scale=Scale(0.5, 5), items=zipped(SMALL) / "movies.csv"))
    sizes = location.sizes()
    assert sizes is not None
    assert sizes.ratings >= len(READ)
    (tmp_path / "sorted").mkdir()
    (tmp_path / "store").mkdir()
    with location.stream(memory=1, scratch=tmp_path / "sorted") as source:
        assert table(RatingsOnDisk.write(source, tmp_path / "store").load()) == READ


def test_what_lies_beside_the_ratings_is_heeded(zipped: Callable[..., Path]) -> None:
    facts = {"a/dataset.json": '{"scale": [1, 5], "name": "mine"}', "a/items.csv": "item,title\n1,Heat\n"}
    ratings = Ratings.read(zipped({"a/ratings.csv": "user,item,rating\nx,1,2\n"} | facts))
    assert (ratings.name, ratings.scale, ratings.catalogue.titles) == ("mine", Scale(1, 5), ("Heat",))


@pytest.mark.parametrize(
    ("files", "name", "words"),
    [
        ({"BX-Users.csv": "", "book-ratings.csv": ""}, "", ["several files", "as in", "small.zip/book-ratings.csv"]),
        (SMALL, "tags.csv", ["no files called tags.csv", "ml-latest-small/links.csv"]),
        ({"a/x.csv": "", "b/x.csv": ""}, "x.csv", ["several files called x.csv", "a/x.csv, b/x.csv"]),
    ],
)
def test_a_file_that_is_not_clear_is_asked_for(
    files: dict[str, str], name: str, words: list[str], zipped: Callable[..., Path], refused: Refused
) -> None:
    path = zipped(files)
    with refused(*words):
        Ratings.read(path / name)


def test_an_archive_that_is_none_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK nonsense")
    for read in (Ratings.read, Items.read):
        with refused("x.zip", "not a zip file"):
            read(tmp_path / "x.zip")


def test_items_may_be_packed(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "movies.dat.gz").write_bytes(gzip.compress(b"1::Heat::Crime\n"))
    assert Items.read(tmp_path / "movies.dat.gz").titles == ("Heat",)
    (tmp_path / "movies.csv.gz").write_bytes(b"item,title\n")
    with refused("movies.csv.gz", "gzip"):
        Items.read(tmp_path / "movies.csv.gz")


def test_what_is_wrong_in_an_archive_is_told_of_the_archive(zipped: Callable[..., Path], refused: Refused) -> None:
    path = zipped({"a/ratings.csv": "user,item,rating\nx,1,2\nx,2\n"})
    with refused(f"{path}/ratings.csv", "line 3"):
        Ratings.read(path, bad_rows="refuse", encoding="latin-1")
