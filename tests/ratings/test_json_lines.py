"""A JSON object a line: fields by their usual names, bad lines, and that nobody's line changes how others are read."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.ratings import Items, Ratings
from ratings.neighbours import NAMES, SCALE, Joined, Row, check, hostile_texts, hostile_values, neighbours

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

AMAZON = [
    {"reviewerID": "A1", "asin": "0205", "overall": 5.0, "summary": 'a, "b"\n', "unixReviewTime": 100},
    {"reviewerID": "A2", "asin": "0205", "overall": 3, "helpful": [0, 1], "unixReviewTime": 200},
    {"overall": "4", "asin": 7, "reviewerID": "A1"},
]
READ = {("A1", "0205"): 5, ("A2", "0205"): 3, ("A1", "7"): 4}


def write(path: Path, objects: list[Any]) -> Path:
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in objects).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("name", ["reviews.json", "reviews.jsonl", "reviews.json.gz"])
def test_fields_are_found_by_their_usual_names(name: str, tmp_path: Path, table: Table) -> None:
    ratings = Ratings.read(write(tmp_path / name, AMAZON), scale=(1, 5))
    assert table(ratings) == READ
    assert ratings.timestamps is not None
    assert sorted(ratings.timestamps.tolist())[1:] == [100, 200]


def test_fields_can_be_named(tmp_path: Path, table: Table) -> None:
    path = write(tmp_path / "r.json", [{"who": 1, "what": "x", "asin": "y", "rating": 2, "n": 3, "date": "2020-01-01"}])
    named = {"user": "who", "item": "what", "timestamp": None}
    ratings = Ratings.read(path, scale=(1, 5), columns=named)
    assert (table(ratings), ratings.timestamps) == ({("1", "x"): 2}, None)
    ratings = Ratings.read(path, columns={"user": "who", "count": "n"})
    assert (table(ratings), ratings.scale.counts) == ({("1", "y"): 3}, True)
    assert Ratings.read(path, columns={"user": "who"}, unrated=True).scale.counts


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", ["line 4 has no JSON"]),
        ("[1, 2]", ["line 4 has no JSON object"]),
        ("[" * 100_000, ["line 4 has no JSON"]),
        ('{"asin": "1", "overall": 3}', ["line 4 has no field for the user", "columns={'user': …}"]),
        ('{"reviewerID": "1", "asin": "1"}', ["line 4 has no field for the rating"]),
        ('{"reviewerID": 1.0, "asin": "1", "overall": 3}', ["line 4 has 1.0 for the user"]),
        ('{"reviewerID": true, "asin": "1", "overall": 3}', ["line 4 has true for the user"]),
        ('{"reviewerID": "a\\nb", "asin": "1", "overall": 3}', ["line 4 has an end of line"]),
        ('{"reviewerID": "a", "asin": "1", "overall": NaN}', ["line 4 has no JSON"]),
        ('{"reviewerID": "\\ud800", "asin": "1", "overall": 3}', ["line 4 has half a character for the user"]),
    ],
)
def test_bad_lines_are_refused_or_skipped(
    line: str, words: list[str], tmp_path: Path, refused: Refused, table: Table
) -> None:
    path = write(tmp_path / "r.json", [*AMAZON, line + "\n"])
    with refused(*words):
        Ratings.read(path, scale=(1, 5))
    assert table(Ratings.read(path, scale=(1, 5), bad_rows="skip")) == READ


def test_other_forms_are_refused(tmp_path: Path, refused: Refused) -> None:
    with refused("r.json is a JSON array"):
        Ratings.read(write(tmp_path / "r.json", ["[\n", AMAZON[0]]))
    with refused("r.json is empty"):
        Ratings.read(write(tmp_path / "r.json", []))
    write(tmp_path / "r.json", AMAZON)
    with refused("have names, and no positions"):
        Ratings.read(tmp_path / "r.json", columns={"user": 0})
    with refused("no role 'who'"):
        Ratings.read(tmp_path / "r.json", columns={"who": "x"})
    with refused("a rating and a count"):
        Ratings.read(tmp_path / "r.json", columns={"rating": "x", "count": "y"})
    with refused("encoding is for delimited text"):
        Ratings.read(tmp_path / "r.json", encoding="latin-1")


def test_a_list_of_items(tmp_path: Path, refused: Refused) -> None:
    items = [{"business_id": "b1", "name": 'Café, "Noir"', "categories": ["Bars", "Food"]}, {"business_id": "b2"}]
    found = Items.read(write(tmp_path / "business.json", items))
    assert (list(found.ids), found.titles, found.genres) == (["b1", "b2"], ('Café, "Noir"', "b2"), ("Bars|Food", ""))
    with refused("business.json is not a JSON object a line"):
        Items.read(write(tmp_path / "business.json", [*items, "{\n"]))


values = st.one_of(hostile_texts, hostile_values.filter(lambda one: isinstance(one, bool | int | float | None)))


@given(worlds=neighbours(values, users=("small", "large", "text"), times=("small", "large", "text", "digits")))
@settings(max_examples=30)
def test_nobodys_line_changes_what_is_read_of_others(worlds: Joined, folder: Path) -> None:
    def read(rows: list[Row]) -> Ratings:
        named = [dict(zip(NAMES, row, strict=True)) for row in rows]
        return Ratings.read(write(folder / "ratings.json", named), scale=SCALE)

    check(read, worlds, "json")


@pytest.mark.parametrize(
    "line",
    [
        '{"userId": 99, "user": 7, "itemId": 9, "rating": 4, "when": 5}\n',
        '{"user": 99, "item": 3, "rating": 4, "user": 98}\n',
        "[]\n",
        "\n\n",
    ],
)
def test_single_lines(line: str, folder: Path, table: Table) -> None:
    lines: list[Any] = [{"user": user, "item": 3, "rating": 4, "timestamp": user} for user in (1, 2)]
    before = table(Ratings.read(write(folder / "ratings.json", lines), scale=(1, 5)))
    after = Ratings.read(write(folder / "ratings.json", [lines[0], line, lines[1]]), scale=(1, 5), bad_rows="skip")
    assert {pair: value for pair, value in table(after).items() if pair[0] in ("1", "2")} == before
