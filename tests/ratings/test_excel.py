"""Workbooks of Excel: the same as the text of their cells, in both of its formats, whoever else is in them."""

from __future__ import annotations

import datetime
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import MissingExtra
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk
from ratings.neighbours import NAMES, NOON, SCALE, Joined, Row, check, crowd_of, neighbours

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

pytest.importorskip("xlrd")
pytest.importorskip("openpyxl")
xlwt, xlsxwriter = pytest.importorskip("xlwt"), pytest.importorskip("xlsxwriter")
RATED = [("userId", "movieId", "rating", "date"), ("ann", 7, 4.5, NOON), ("bob", "007", 3, NOON), ("ann", 9, 5, NOON)]
READ = {("ann", "7"): 4.5, ("bob", "007"): 3, ("ann", "9"): 5}


def write(path: Path, rows: list[Any], *, more: tuple[str, ...] = ()) -> Path:
    """Write rows as a workbook, as its name says, with further sheets."""
    if path.suffix == ".xlsx":
        with xlsxwriter.Workbook(path, {"strings_to_numbers": False}) as new:
            sheet, style = new.add_worksheet("first"), new.add_format({"num_format": "yyyy-mm-dd hh:mm"})
            for name in more:
                new.add_worksheet(name).write(0, 0, name)
            new.add_worksheet("empty")
            for place, row in enumerate(rows):
                for column, cell in enumerate(row):
                    given = {str: sheet.write_string, datetime.datetime: sheet.write_datetime}
                    style_of = [style] if isinstance(cell, datetime.datetime) else []
                    given.get(type(cell), sheet.write)(place, column, cell, *style_of)
        return path
    old = xlwt.Workbook()
    sheet, style = old.add_sheet("first"), xlwt.easyxf(num_format_str="YYYY-MM-DD HH:MM")
    for name in more:
        old.add_sheet(name).write(0, 0, name)
    old.add_sheet("empty")
    for place, row in enumerate(rows):
        for column, cell in enumerate(row):
            if cell not in ("", None):
                sheet.write(place, column, cell, *([style] if isinstance(cell, datetime.datetime) else []))
    old.save(str(path))
    return path


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("name", ["ratings.xls", "ratings.xlsx"])
def test_a_table_is_read_wherever_it_is(name: str, tmp_path: Path, table: Table) -> None:
    write(tmp_path / name, RATED)
    with zipfile.ZipFile(tmp_path.parent / f"{name}.zip", "w") as archive:
        archive.write(tmp_path / name, f"data/{name}")
    for source in (tmp_path / name, tmp_path, tmp_path.parent / f"{name}.zip"):
        ratings = Ratings.read(source, scale=(1, 5))
        assert table(ratings) == READ
        assert ratings.timestamps is not None
        assert set(ratings.timestamps.tolist()) == {int(NOON.replace(tzinfo=datetime.UTC).timestamp())}
    for folder in ("scratch", "store"):
        (tmp_path / folder).mkdir()
    location = locate(tmp_path / name, ReadOptions(scale=Scale(1, 5)))
    with location.stream(memory=1, scratch=tmp_path / "scratch") as streamed:
        assert table(RatingsOnDisk.write(streamed, tmp_path / "store").load()) == READ


@pytest.mark.parametrize("name", ["jester-data-1.xls", "jester-data-1.xlsx"])
def test_a_person_a_row(name: str, tmp_path: Path, table: Table) -> None:
    path = write(tmp_path / name, [(2, -7.82, 99, 9.5, 99), (), (1, 99, 0.5, 99, 99)])
    ratings = Ratings.read(path, layout="wide", header=False, leading=1, missing=99, scale=(-10, 10))
    values = {pair: round(value, 2) for pair, value in table(ratings).items()}
    assert values == {("1", "1"): -7.82, ("1", "3"): 9.5, ("3", "2"): 0.5}
    assert list(ratings.catalogue.ids) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["movies.xls", "movies.xlsx"])
def test_a_list_of_items(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, [("movieId", "title", "genres"), (7, 'Café "Noir",\na tale', "Drama"), ("007", "Up", "")])
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.write(tmp_path / name, f"ml/{name}")
    for path in (tmp_path / name, tmp_path / "ml.zip" / name):
        items = Items.read(path)
        assert list(items.ids) == ["7", "007"]
        assert items.titles == ('Café "Noir", a tale', "Up")


@pytest.mark.parametrize("ending", [".xls", ".xlsx"])
def test_what_is_not_one_table_is_refused(ending: str, tmp_path: Path, refused: Refused) -> None:
    with refused("several sheets (first, second)", "one sheet"):
        Ratings.read(write(tmp_path / f"a{ending}", RATED, more=("second",)))
    with refused("nothing in it"):
        Ratings.read(write(tmp_path / f"b{ending}", []))
    with refused(f"b{ending}", "nothing in it"):
        Items.read(tmp_path / f"b{ending}")
    with refused("encoding is for delimited text", "excel"):
        Ratings.read(tmp_path / f"a{ending}", encoding="latin-1")
    with refused("delimiter is for delimited text", "leave it out"):
        Ratings.read(tmp_path / f"a{ending}", delimiter=";")
    whole = write(tmp_path / f"c{ending}", RATED).read_bytes()
    for content in (b"", b"user,item,rating\n1,1,1\n", whole[: len(whole) // 2], whole[:8] + bytes(600)):
        (tmp_path / f"d{ending}").write_bytes(content)
        with refused(f"d{ending}", "save it as CSV"):
            Ratings.read(tmp_path / f"d{ending}")


def test_messages_name_the_workbook_and_its_row(tmp_path: Path, refused: Refused) -> None:
    path = write(tmp_path / "r.xlsx", [*RATED, ("carl", 7, "many", NOON)])
    assert len(Ratings.read(path, scale=(1, 5), bad_rows="skip")) == 3
    with refused("the rating in row 5 is"):
        Ratings.read(path, scale=(1, 5))
    write(path, [("user", "a", "b"), ("ann", 3, 5), ("bob", "many", 1)])
    with refused(f"{path} line 3 has a rating that is not a number"):
        Ratings.read(path, scale=(1, 5), layout="wide")


def test_without_the_extra_there_is_one_line(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "r.xlsx", RATED)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with refused("r.xlsx is a workbook", "dpmf[excel]", "save it as CSV"):
        Ratings.read(path)
    with pytest.raises(MissingExtra):
        Items.read(path)


cells = st.one_of(
    st.sampled_from(["", "7", "007", " 7", "7.0", "x", '"', "a,b", "a\nb", "é", "item", "NULL", "2020-01-01", "#N/A"]),
    st.sampled_from([0, -0.0, 12.5, 1e300, 2.0**53, 2.0**60, True, NOON, 1e-9, 99]),
)


@given(worlds=neighbours(cells, users=("small", "text"), times=("small", "fractions", "dates")))
@settings(max_examples=15)
def test_nobodys_cells_change_what_is_read_of_others(worlds: Joined, folder: Path) -> None:
    def read(rows: list[Row]) -> Ratings:
        return Ratings.read(write(folder / "ratings.xlsx", [NAMES, *rows]), scale=SCALE)

    check(read, worlds, "excel")


@pytest.mark.parametrize("row", [(99, 3, 4, 5, "more"), (99, 3, 4), ("99", "3", "4", NOON), (99, "item", 4, 5)])
def test_single_rows(row: Row, folder: Path) -> None:
    def read(rows: list[Row]) -> Ratings:
        return Ratings.read(write(folder / "ratings.xls", [NAMES, *rows]), scale=SCALE)

    check(read, Joined(crowd_of("small", "small"), row, 3), "xls")
