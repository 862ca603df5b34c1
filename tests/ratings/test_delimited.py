"""Delimited text is read as written, whatever the delimiter, quotes, ids and file names; bad text is refused."""

from __future__ import annotations

import csv
import gzip
import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import InvalidRatings
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

HEADER = "user,item,rating\n"
SECOND_OF_2020 = 1577836801


@pytest.fixture
def text_file(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "ratings.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def parquet_file(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "user,item,rating\nann,Heat,4.5\nbob,Up,3\n",
        "user;item;rating\nann;Heat;4.5\nbob;Up;3\n",
        "user\titem\trating\nann\tHeat\t4.5\nbob\tUp\t3\n",
        "user|item|rating\nann|Heat|4.5\nbob|Up|3\n",
        "user::item::rating\nann::Heat::4.5\nbob::Up::3\n",
        "UserID,MovieID,Rating\nann,Heat,4.5\nbob,Up,3\n",
        "User-ID;Item_Id;STARS\nann;Heat;4.5\nbob;Up;3\n",
        "rating,extra,item,user\n4.5,x,Heat,ann\n3,y,Up,bob\n",
        '"user","item","rating"\n"ann","Heat","4.5"\n"bob","Up","3"\n',
        "\ufeffuser,item,rating\nann,Heat,4.5\nbob,Up,3\n",
        "user,item,rating\r\nann,Heat,4.5\r\nbob,Up,3\r\n",
        "user,item,rating\nann,Heat,4.5\n\nbob,Up,3\n\n\n",
        "user,item,rating\nann,Heat,4.5\nbob,Up,3",
    ],
)
def test_the_usual_layouts_are_recognised(text: str, text_file: Callable[..., Path], table: Table) -> None:
    assert table(Ratings.read(text_file(text))) == {("ann", "Heat"): 4.5, ("bob", "Up"): 3.0}


@pytest.mark.parametrize(
    "text", ["ann,Heat,4.5\nbob,Up,3\n", "ann::Heat::4.5\nbob::Up::3\n", "\ufeffann,Heat,4.5\nbob,Up,3\n"]
)
@pytest.mark.parametrize("name", ["ratings.dat", "U.DATA", "ratings.csv"])
def test_a_file_without_a_header_says_so_or_is_called_so(
    text: str, name: str, text_file: Callable[..., Path], table: Table, refused: Refused
) -> None:
    """Its first line is somebody's, and must not decide."""
    path, expected = text_file(text, name), {("ann", "Heat"): 4.5, ("bob", "Up"): 3.0}
    assert table(Ratings.read(path, header=False)) == expected
    if name == "ratings.csv":
        with refused("should name the columns", "header"):
            Ratings.read(path)
    else:
        assert table(Ratings.read(path)) == expected
        with refused("should be a rating", "header"):
            Ratings.read(text_file("user,item,rating\n" + text, name))


def test_a_first_line_that_may_be_separated_in_two_ways_is_asked_about(
    text_file: Callable[..., Path], table: Table, refused: Refused
) -> None:
    path = text_file("a;b;c,Heat,4\n", "ratings.dat")
    with refused("';' or ','", "delimiter"):
        Ratings.read(path, header=False)
    assert table(Ratings.read(path, delimiter=",")) == {("a;b;c", "Heat"): 4}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("who,what,how much\na,b,2\n", {"columns": {"user": "who", "item": "what", "rating": "how much"}}),
        ("who,what,how much\na,b,2\n", {"columns": {"user": 0, "item": 1, "rating": 2}}),
        ('who,"what, exactly",much\na,b,2\n', {"columns": {"user": 0, "item": "what, exactly", "rating": 2}}),
        ("2,b,a\n", {"header": False, "columns": {"user": 2, "item": 1, "rating": 0}}),
        ("time,a,b,2\n", {"header": False, "columns": {"user": 1, "item": 2, "rating": 3}}),
        ("7,8,9\na,b,2\n", {"columns": {"user": "7", "item": "8", "rating": "9"}}),
        ("7,8,9\na,b,2\n", {"header": True, "columns": {"user": 0, "item": 1, "rating": 2}}),
        ("aXbX2\n", {"header": False, "delimiter": "X"}),
        ("a\t\tb\t\t2\n", {"header": False, "delimiter": "\t\t"}),
    ],
)
def test_columns_header_and_delimiter_can_be_given(
    text: str, options: dict[str, Any], text_file: Callable[..., Path], table: Table
) -> None:
    assert table(Ratings.read(text_file(text), **options)) == {("a", "b"): 2.0}


def test_a_header_that_is_said_not_to_be_one_is_a_bad_rating(text_file: Callable[..., Path], refused: Refused) -> None:
    with refused("row 1"):
        Ratings.read(text_file(HEADER), header=False)


def test_a_first_row_whose_ids_look_like_column_names_is_not_lost(text_file: Callable[..., Path], table: Table) -> None:
    ratings = Ratings.read(text_file("user,movie,4\nann,Heat,5\n", "ratings.dat"))
    assert table(ratings) == {("user", "movie"): 4, ("ann", "Heat"): 5}


def test_movielens_files_are_read(text_file: Callable[..., Path], table: Table) -> None:
    dat = Ratings.read(text_file("1::1193::5::978300760\n1::661::3::978302109\n", "ratings.dat"))
    data = Ratings.read(text_file("196\t242\t3\t881250949\n186\t302\t4\t891717742\n", "u.data"))
    assert table(dat) == {("1", "661"): 3, ("1", "1193"): 5}
    assert dat.timestamps is not None
    assert dat.timestamps.tolist() == [978302109, 978300760]
    assert table(data) == {("186", "302"): 4, ("196", "242"): 3}


@pytest.mark.parametrize("name", ["ratings.csv.gz", "RATINGS.CSV.GZ"])
def test_packed_text_is_unpacked(name: str, tmp_path: Path, table: Table) -> None:
    (tmp_path / name).write_bytes(gzip.compress((HEADER + "a,b,2\n").encode()))
    assert table(Ratings.read(tmp_path / name)) == {("a", "b"): 2}


@pytest.mark.parametrize("folder", ["data", "data[0]"])
@pytest.mark.parametrize("name", ["ratings[1]", "rat*", "rating?", "it's", 'say "hi"', "with space", "{a,b}é"])
def test_the_file_named_is_read_and_no_other(folder: str, name: str, tmp_path: Path, table: Table) -> None:
    """To DuckDB, brackets and stars in a path are a pattern, which other files may match."""
    for decoy in ("data", "data0", "data[0]"):
        (tmp_path / decoy).mkdir()
        for file in ("ratings1", "ratings", "ratingx", name):
            (tmp_path / decoy / f"{file}.csv").write_text(HEADER + "decoy,decoy,1\n")
            parquet_file(tmp_path / decoy / f"{file}.parquet", user=["decoy"], item=["decoy"], rating=[1])
    path = tmp_path / folder / f"{name}.csv"
    path.write_text(HEADER + "a,b,2\n")
    parquet_file(path.with_suffix(".parquet"), user=["a"], item=["b"], rating=[2])
    assert table(Ratings.read(path)) == {("a", "b"): 2}
    assert table(Ratings.read(path.with_suffix(".parquet"))) == {("a", "b"): 2}


@pytest.mark.parametrize(
    ("written", "order"),
    [
        (["-3", "7", "10"], [0, 1, 2]),
        (["-9223372036854775808", "9223372036854775807"], [0, 1]),
        (["1", "9223372036854775808"], [0, 1]),
        (["007", "7"], [1, 0]),
        (["+1", "1.0"], [0, 1]),
        (["NULL", "nan"], [0, 1]),
        (["10", "9", "ten", "1"], [3, 1, 0, 2]),
        (["Ünïcödé", "七人😀"], [0, 1]),
        (["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "x"], [0, 1]),
    ],
)
def test_ids_in_text_stay_texts_numbers_first(
    written: list[str], order: list[int], text_file: Callable[..., Path]
) -> None:
    """Whatever else is in the column: no id changes the type of others, or the order of two of them."""
    ratings = Ratings.read(text_file(HEADER + "".join(f"{one},{one},1\n" for one in written)))
    assert list(ratings.user_ids) == [written[place] for place in order]
    assert list(ratings.catalogue.ids) == list(ratings.user_ids)
    assert [ratings.user_ids.position(one) for one in ratings.user_ids] == list(range(len(written)))


def test_an_integer_finds_its_text(text_file: Callable[..., Path]) -> None:
    ids = Ratings.read(text_file(HEADER + "7,007,1\n8,9,1\n")).user_ids
    assert [ids.position(one) for one in (7, "7", 8, 9, "07")] == [0, 0, 1, None, None]
    assert ids.encode(np.array([8, 7, 1])).tolist() == [1, 0, -1]
    assert ids == Ids(np.array([7, 8]))
    assert ids != Ids(np.array([7, 9]))


def test_times_may_be_numbers_or_iso_dates_with_or_without_a_zone(text_file: Callable[..., Path]) -> None:
    times = ["2020-01-01", "2020-01-01T00:00:01", "2020-01-01 00:00:01Z", "2020-01-01 02:00:01+02:00", "1577836801"]
    rows = "".join(f"a,{place},1,{time}\n" for place, time in enumerate(times))
    ratings = Ratings.read(text_file("user,item,rating,timestamp\n" + rows))
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [SECOND_OF_2020 - 1] + [SECOND_OF_2020] * 4


@pytest.mark.parametrize("time", ["", "soon", "31/12/2020", "inf", "9223372036854775808"])
def test_unreadable_times_are_refused_or_left_out_with_a_message(
    time: str, text_file: Callable[..., Path], caplog: pytest.LogCaptureFixture, refused: Refused
) -> None:
    path = text_file(f"user,item,rating,date\nann,b,1,5\nann,c,1,{time}\n")
    if time:
        with refused("time in row 3"):
            Ratings.read(path)
    assert Ratings.read(path, columns={"timestamp": None}).timestamps is None
    assert not caplog.text
    path = text_file(f"user,item,rating,date\nann,b,1,{time}\nann,c,1,{time}\n")
    with caplog.at_level(logging.WARNING):
        assert Ratings.read(path).timestamps is None
    assert "row 2" in caplog.text
    assert "ann" not in caplog.text


SECONDS = pa.array([SECOND_OF_2020])


def test_times_do_not_depend_on_where_the_machine_is(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating,timestamp\n1,1,1,2020-01-01 00:00:01\n")
    parquet_file(
        tmp_path / "r.parquet", user=[1], item=[1], rating=[1], timestamp=SECONDS.cast(pa.timestamp("s", "UTC"))
    )
    program = (
        "from dpmf import Ratings\n"
        "table = Ratings.of([1], [1], [1], ['2020-01-01 00:00:01'])\n"
        "print(*(ratings.timestamps[0] for ratings in (table, Ratings.read('r.csv'), Ratings.read('r.parquet'))))"
    )
    environment = {**os.environ, "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(SECOND_OF_2020)] * 3, done.stderr


def test_memory_can_be_limited(text_file: Callable[..., Path]) -> None:
    path = text_file(HEADER + "".join(f"user {i},item {i % 7},3\n" for i in range(5000)))
    assert len(Ratings.read(path, memory="64MB")) == 5000


written_ids = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.text(",;|\t\"' 0", min_size=1, max_size=4),
)
rows_of_text = st.lists(st.tuples(written_ids, written_ids, st.integers(-8, 40).map(lambda n: n / 4)), min_size=1)


@given(rows=rows_of_text, delimiter=st.sampled_from(",;\t|"), ending=st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=60)
def test_any_table_comes_back_as_a_dict_would_hold_it(
    rows: list[tuple[str, str, float]],
    delimiter: str,
    ending: str,
    table: Table,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ending)
    writer.writerows([("user", "item", "rating"), *rows])
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(text.getvalue().encode())
    assert table(Ratings.read(path, scale=(-2, 10))) == {(user, item): value for user, item, value in rows}


@pytest.mark.parametrize("times", [("2020-01-01 00:00:00.4", "2020-01-01 00:00:00.1"), ("100.9", "100.1")])
def test_fractions_of_a_second_count(tmp_path: Path, times: tuple[str, str]) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"user,item,rating,timestamp\n1,2,3,{times[0]}\n1,2,5,{times[1]}\n")
    assert Ratings.read(path, scale=(1, 5)).values.tolist() == [3.0]


@pytest.mark.parametrize("time", ["", "soon"])
def test_times_of_some_do_not_choose_among_duplicates(time: str, text_file: Callable[..., Path]) -> None:
    path = text_file(f"user,item,rating,date\nann,b,1,5\nann,b,2,4\nbob,c,1,{time}\n")
    if time:
        with pytest.raises(InvalidRatings, match="time in row 4 is neither"):
            Ratings.read(path)
    else:
        assert Ratings.read(path).values.tolist() == [1, 1]
    path.write_text(f"user,item,rating,date\nann,b,1,{time}\nann,b,2,{time}\nbob,c,1,{time}\n")
    assert Ratings.read(path).values.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["ratings.csv", "empty"]),
        ("\n" + HEADER + "a,b,1\n", ["ratings.csv", "begins with an empty line"]),
        (HEADER, ["no ratings"]),
        ("hello\nworld\n", ["ratings.csv", "fewer than three columns"]),
        ("who,item,rating\na,b,1\n", ["column for the user", "who, item, rating"]),
        ("user,item,ratling\na,b,1\n", ["column for the rating", "ratling"]),
        ("a,b,good\nc,d,3\n", ["column for the user", "a, b, good"]),
        (HEADER + "a,b,1\nc,d,good\n", ["rating in row 3"]),
        ("a,b,1\nc,d,good\n", ["should name the columns"]),
        ("user;item;rating\na;b;3,5\n", ["rating in row 2"]),
        (HEADER + "a,b,1\nc,d,\n", ["rating in row 3"]),
        (HEADER + "a,b,1\nc,d,NaN\n", ["rating in row 3"]),
        (HEADER + "a,b,1\nc,d,-inf\n", ["rating in row 3"]),
        (HEADER + "a,b,1\nc,d,1e300\n", ["rating in row 3"]),
        (HEADER + "a,b,1\nc,d,5.5\n", ["rating 5.5 in row 3", "scale 1:5"]),
        (HEADER + "a,b,1\nc,d,0\n", ["rating 0 in row 3", "scale 1:5"]),
        (HEADER + "a,b,1\n,d,2\n", ["user in row 3"]),
        (HEADER + 'a,b,1\nc,"",2\n', ["item in row 3"]),
        (HEADER + "a,b,1\nc,d\n", ["line 3", "Columns: 3 Found: 2"]),
        (HEADER + "a,b,1\nc,d,2,9\n", ["line 3", "Columns: 3 Found: 4"]),
        (HEADER + "a,b,1\n   \n", ["line 3"]),
        (HEADER + 'a,b,1\n"c,d,2\n', ["line 3", "quote"]),
        (HEADER + 'a,b,1\n"c\nd",e,2\n', ["ratings.csv", "spans several lines"]),
        (HEADER + 'a,b,1\n"c\rd",e,2\n', ["ratings.csv", "spans several lines"]),
        ('user,item,rating,comment\na,b,1,x\nc,d,2,"x\ne,f,3,y"\n', ["ratings.csv", "spans several lines"]),
        (HEADER + "a,b,1\r\nc,d,2\n", ["lines do not all end in the same way"]),
        (HEADER + "\u00e9,b,1\n", ["line 2", "not utf-8"]),
        ((HEADER + "a,b,1\n").encode("utf-16"), ["ratings.csv", "not UTF-8"]),
        (bytes(range(256)), ["ratings.csv", "not UTF-8"]),
        ("x" * 200_000 + ",b,1\n", ["ratings.csv", "first line"]),
    ],
)
def test_bad_text_is_refused_in_one_line(
    content: str | bytes, words: list[str], tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(content.encode("latin-1") if isinstance(content, str) else content)
    with refused(*words):
        Ratings.read(path, scale=(1, 5))


def test_parquet_with_the_ending_of_text_is_refused_in_one_line(tmp_path: Path, refused: Refused) -> None:
    with refused("ratings.csv", "not UTF-8"):
        Ratings.read(parquet_file(tmp_path / "ratings.csv", user=[1], item=[1], rating=[1]))


def test_damaged_packed_text_is_refused_in_one_line(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "r.csv.gz"
    path.write_text(HEADER + "a,b,1\n")
    with refused("r.csv.gz", "gzip"):
        Ratings.read(path)
    whole = gzip.compress((HEADER + "".join(f"user {i},{i},3\n" for i in range(9999))).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with refused("r.csv.gz"):
        Ratings.read(path)


@pytest.mark.parametrize(
    "text",
    [
        "user,item\nann,Heat\nbob,Up\n",
        "itemId;userId\nHeat;ann\nUp;bob\n",
        "user,item,date\nann,Heat,2020-01-01\nbob,Up,2020-01-02\n",
    ],
)
def test_without_ratings_everything_counts_as_1_if_that_is_told(text: str, text_file: Callable[..., Path]) -> None:
    path = text_file(text)
    ratings = Ratings.read(path, unrated=True)
    assert list(ratings.user_ids) == ["ann", "bob"]
    assert sorted(ratings.catalogue.ids) == ["Heat", "Up"]
    assert ratings.values.tolist() == [1.0, 1.0]
    with pytest.raises(InvalidRatings, match=r"no column for the rating|fewer than three columns"):
        Ratings.read(path)


def test_one_column_is_no_table_and_ratings_are_read_where_there_are_any(text_file: Callable[..., Path]) -> None:
    with pytest.raises(InvalidRatings, match="its first line has one column"):
        Ratings.read(text_file("user\nann\n"), unrated=True)
    assert Ratings.read(text_file(f"{HEADER}ann,Heat,4\n"), unrated=True).values.tolist() == [4.0]
    with pytest.raises(InvalidRatings, match="no column 'stars'"):
        Ratings.read(text_file("user,item\nann,Heat\n"), unrated=True, columns={"rating": "stars"})


def test_whether_two_columns_have_a_header_is_asked_if_nobody_can_tell(text_file: Callable[..., Path]) -> None:
    path = text_file("person,product\nann,Heat\nbob,Heat\n")
    assert len(Ratings.read(text_file("1,Heat\n2,Heat\n", "ratings.dat"), unrated=True)) == 2
    with pytest.raises(InvalidRatings, match="header"):
        Ratings.read(path, unrated=True)
    assert len(Ratings.read(path, unrated=True, columns={"user": "person", "item": "product"})) == 2
    assert len(Ratings.read(path, unrated=True, header=False)) == 3
    with pytest.raises(InvalidRatings, match="header"):
        Ratings.read(text_file("user,item\n1,Heat\n", "ratings.dat"), unrated=True)
