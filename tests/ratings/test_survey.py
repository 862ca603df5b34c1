"""What a look at a file finds: how it is written, its scale, what means "no rating", and the items beside it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpmf.ratings import Ratings, Scale
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.proposal import find_items, find_test, write_dataset
from dpmf.ratings.survey import survey

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

MOVIELENS = "userId,movieId,rating,timestamp\n1,1,4.0,9\n1,3,0.5,9\n2,1,4.5,9\n1,1,3.0,10\n"
BOOKS = (
    b'"User-ID";"ISBN";"Book-Rating"\r\n"1";"034545104X";"0"\r\n"2";"05\xe9";"5"\r\n"3";"\\"0446520802";"10"\r\n'
    b'"4";"034545104X";"0"\r\n'
)
FILES: dict[str, tuple[str | bytes, dict[str, Any], str | None, int]] = {
    "ratings.csv": (MOVIELENS, {"header": True}, "0.5:5", 4),
    "ratings.dat": (
        "1::1193::5::978300760\n1::661::3::978302109\n",
        {"header": False, "delimiter": "::"},
        "1:5",
        2,
    ),
    "u.data": ("196\t242\t3\t881\n186\t302\t3\t891\n", {"header": False, "delimiter": "\t"}, "1:5", 2),
    "jester.csv": (
        "2,-7.82,99,9.5,99\n1,99,0.5,99,99\n",
        {"header": False, "delimiter": ",", "layout": "wide", "leading": 1, "missing": 99},
        "-10:10",
        3,
    ),
    "BX-Book-Ratings.csv": (
        BOOKS,
        {"header": True, "encoding": "latin-1", "escape": "\\", "missing": 0},
        "1:10",
        4,
    ),
    "user_artists.dat": ("userID\tartistID\tweight\n2\t51\t13883\n2\t52\t11690\n", {"header": True}, None, 2),
    "train.txt": ("1\t14\t5\n1\t35\t1\n", {"header": False, "delimiter": "\t"}, "1:5", 2),
    "anime.csv": (
        "user_id,anime_id,rating\n1,20,8\n1,24,9\n2,20,6\nbad\n",
        {"header": True, "bad_rows": "skip"},
        "1:10",
        3,
    ),
    "raw.dat": (
        "1,20,8\n1,24,90\nbad\n",
        {
            "header": False,
            "delimiter": ",",
            "bad_rows": "skip",
            "columns": {"user": 0, "item": 1, "rating": 2},
        },
        "0:100",
        2,
    ),
    "rating.csv": ("user_id,anime_id,rating\n1,20,-1\n1,24,9\n2,20,6\n", {"header": True, "missing": -1}, "1:10", 3),
    "jokes.csv": ("user,item,rating\n1,1,-7.8\n1,2,99\n1,3,-1\n", {"header": True, "missing": 99}, "-10:10", 3),
    "zeros.csv": ("user,item,rating\n1,1,0\n1,2,0.5\n1,3,4\n", {"header": True}, "0:5", 3),
    "jester_ratings.dat": (
        "1\t\t5\t\t0.219\n1\t\t7\t\t-9.281\n",
        {"header": False, "delimiter": "\t\t"},
        "-10:10",
        2,
    ),
    "jokes.dat": (
        "2,-7.82,,9.5,\n1,,0.5,,\n",
        {"header": False, "delimiter": ",", "layout": "wide", "leading": 1},
        "-10:10",
        3,
    ),
    "ratings_data.txt": ("1 100 4\n1 101 5\n", {"header": False, "delimiter": " "}, "1:5", 2),
    "usersha1-artmbid-artname-plays.tsv": (
        'a1\tf0\t"weird al" yankovic\t30\na1\t\t12" records\t0\nb2\tf0\t"weird al" yankovic\t7\n',
        {
            **{"header": False, "delimiter": "\t", "quotes": False, "missing": 0},
            "columns": {"user": 0, "item": 2, "count": 3},
        },
        None,
        3,
    ),
    "userid-timestamp-artid-artname-traid-traname.tsv": (
        "u1\t2009-05-04T23:08:57Z\tf1\tBjörk\t\tJóga\nu1\t2009-05-04T13:54:10Z\tf1\tBjörk\t\tHunter\n",
        {
            **{"header": False, "delimiter": "\t", "unrated": True},
            "columns": {"user": 0, "item": 3, "timestamp": 1},
        },
        None,
        2,
    ),
    "events.csv": (
        "timestamp,visitorid,event,itemid,transactionid\n14,7,view,3,\n15,7,transaction,3,9\n",
        {"header": True, "unrated": True},
        None,
        2,
    ),
    "clicks.csv": ("user,item\na,b\na,c\n", {"header": True, "unrated": True}, None, 2),
}


@pytest.mark.parametrize("name", FILES)
def test_published_files_are_understood(name: str, tmp_path: Path) -> None:
    content, expected, scale, rows = FILES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = survey(tmp_path / name, ReadOptions())
    differing = {key: value for key, value in vars(found.options).items() if value != getattr(ReadOptions(), key)}
    assert differing == expected
    assert (None if found.scale is None else str(found.scale)) == scale
    assert found.rows == rows
    assert len(found.ratings) > 0
    again = Ratings.read(tmp_path / name, **{**vars(found.options), "scale": found.scale})
    assert len(again) == len(found.ratings)


def test_duplicates_zeros_names_and_rows_are_told(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(MOVIELENS)
    found = survey(tmp_path / "ratings.csv", ReadOptions())
    assert (found.duplicates, found.zeros, found.seen, found.separator) == (1, 0, (0.5, 4.5), ",")
    assert found.columns == {"user": "userId", "item": "movieId", "rating": "rating", "timestamp": "timestamp"}
    assert found.sample == [("1", "1", 4.0), ("1", "3", 0.5), ("2", "1", 4.5)]
    (tmp_path / "books.csv").write_bytes(BOOKS)
    assert survey(tmp_path / "books.csv", ReadOptions()).zeros == 0.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,2,6,90,5,2003-05-01\n1,3,6,91,4,2003-05-02\n", ["6 columns without names (0: 1, ", "--columns user=0"]),
        ("ann\tf0\tbjörk\t30\nbob\tf1\tdie ärzte\t7\n", ["4 columns without names", "2: björk", "count=2"]),
        ("only\none\ncolumn\n", ["not a table of ratings", "one column"]),
        ("1,2,3\n1,\x00,3\n", ["is not text"]),
        ("when,who,what,page,more\n1,ann,a,b,c\n2,bob,a,b,c\n", ["no column for the user", "when, who", "columns="]),
    ],
)
def test_columns_whose_meaning_nobody_can_tell_are_a_question(
    content: str, words: list[str], tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "some.txt").write_text(content)
    with refused("some.txt ", *words):
        survey(tmp_path / "some.txt", ReadOptions())


@pytest.mark.parametrize(("scale", "fits"), [(None, None), (Scale(0, 10), True), (Scale(1, 5), False)])
def test_a_declared_scale_is_compared(scale: Scale | None, fits: bool | None, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(MOVIELENS)
    found = survey(tmp_path / "ratings.csv", ReadOptions(scale=scale))
    assert found.fits is fits
    assert found.scale == (scale if fits else Scale(0.5, 5))


def test_the_items_that_are_published_with_ratings_are_found(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(MOVIELENS)
    ratings = survey(tmp_path / "ratings.csv", ReadOptions()).ratings
    (tmp_path / "movies.csv").write_text("movieId,title\n7,Else\n")
    assert find_items(tmp_path / "ratings.csv", "ratings.csv", ratings) is None
    (tmp_path / "movies.csv").write_text("movieId,title\n1,Heat\n3,Up\n")
    found = find_items(tmp_path / "ratings.csv", "ratings.csv", ratings)
    assert found == (tmp_path / "movies.csv", None, 1.0)
    (tmp_path / "movies.csv").write_text("id,movieId,title\n1,700,Heat\n2,800,Up\n")  # as Goodbooks had it at first
    found = find_items(tmp_path / "ratings.csv", "ratings.csv", ratings)
    assert found == (tmp_path / "movies.csv", {"item": "id"}, 0.5)
    (tmp_path / "movies.csv").write_text("movieId,title\n1,Heat\n3,Up\n")
    assert find_items(tmp_path / "ratings.csv", "jester.csv", ratings) is None
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        for name in ("ratings.csv", "movies.csv"):
            archive.write(tmp_path / name, f"ml/{name}")
    packed = find_items(tmp_path / "ml.zip", "ratings.csv", ratings)
    assert packed is not None
    assert packed.path == tmp_path / "ml.zip" / "ml/movies.csv"


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("ydata-ymusic-rating-study-v1_0-train.txt", "ydata-ymusic-rating-study-v1_0-test.txt"),
        ("u1.base", "u1.test"),
        ("train.csv", "test.csv"),
        ("ratings.csv", None),
    ],
)
def test_the_file_to_test_on_is_found_by_its_name(train: str, test: str | None, tmp_path: Path) -> None:
    assert find_test(tmp_path / train) is None
    for name in ("ydata-ymusic-rating-study-v1_0-test.txt", "u1.test", "test.csv"):
        (tmp_path / name).touch()
    assert find_test(tmp_path / train) == (None if test is None else tmp_path / test)


def test_a_proposal_is_read_once_it_is_confirmed(tmp_path: Path, table: Table, refused: Refused) -> None:
    path, folder = tmp_path / "jester.csv", tmp_path / "declared"
    path.write_text(str(FILES["jester.csv"][0]))
    found = survey(path, ReadOptions())
    for _ in range(2):  # what was written before may be replaced
        write_dataset(folder, path, found, found.options)
    assert sorted(file.name for file in folder.iterdir()) == ["dataset.json", "items.csv"]
    with refused("dataset.json is a proposal", "confirmed", "assumption"):
        Ratings.read(folder)
    facts = json.loads((folder / "dataset.json").read_text())
    (folder / "dataset.json").write_text(json.dumps(facts | {"confirmed": True}))
    ratings = Ratings.read(folder)
    assert (ratings.scale, ratings.catalogue.declared) == (Scale(-10, 10), False)  # a private run asks once more
    assert len(ratings.catalogue) == 4
    assert table(ratings) == pytest.approx({("1", 1): -7.82, ("1", 3): 9.5, ("2", 2): 0.5})


def test_a_zero_that_means_nothing_is_part_of_a_proposal(tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_bytes(BOOKS)
    found = survey(tmp_path / "books.csv", ReadOptions())
    write_dataset(tmp_path / "mine", tmp_path / "books.csv", found, found.options)
    reading = {"header": True, "encoding": "latin-1", "escape": "\\", "missing": 0}
    assert json.loads((tmp_path / "mine/dataset.json").read_text())["reading"] == reading


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reading": {"speed": 1}}, ["reading should be an object of"]),
        ({"reading": []}, ["reading should be"]),
        ({"reading": {"delimiter": 5}}, ["delimiter 5"]),
        ({"file": "nowhere.csv"}, ["nowhere.csv"]),
        ({"confirmed": "yes"}, ["is a proposal"]),
        ({"items": "mine"}, ["items 'mine'", "seen in the ratings"]),
    ],
)
def test_a_proposal_that_was_spoilt_is_refused(
    changes: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating\na,1,3\n")
    facts = {"file": "r.csv", "scale": [1, 5], "confirmed": True} | changes
    (tmp_path / "dataset.json").write_text(json.dumps(facts))
    with refused(*words):
        Ratings.read(tmp_path)


@pytest.mark.parametrize(
    ("begins", "words"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ["workbook of Excel", "call it .xls", "CSV"]),
        (b"PK\x03\x04\x14\x00", ["workbook or a zip archive", ".zip"]),
        (b"\x89HDF\r\n\x1a\n", ["HDF5", "Parquet"]),
        (b"7z\xbc\xaf\x27\x1c", ["7-Zip", "unpack"]),
        (b"ratings" + bytes(250) + b"ustar", ["a tar archive", ".zip"]),
    ],
)
def test_what_is_no_text_is_called_by_its_name(
    tmp_path: Path, refused: Refused, begins: bytes, words: list[str]
) -> None:
    path = tmp_path / ("jester-data-1.tar" if b"ustar" in begins else "jester-data-1.txt")
    path.write_bytes(begins + b"\n" * 100)
    with refused(f"{path.name} is ", *words):
        Ratings.read(path)
    with refused(f"{path.name} is ", *words):
        survey(path, ReadOptions())
