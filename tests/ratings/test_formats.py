"""The registry of formats: what each can do, and that a new one takes one line."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dpmf.ratings import Ratings, formats
from dpmf.ratings.formats import FORMAT_NAMES, Format, file_formats, format_named
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.location import Location, locate


def test_every_format_bears_its_name() -> None:
    assert sorted(one.name for one in file_formats()) == list(FORMAT_NAMES)
    assert format_named("store").name == "store"
    assert format_named("synthetic").name == "synthetic"


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_every_file_format_has_files_and_sizes(name: str) -> None:
    one = format_named(name)
    assert one.file_names
    assert one.sizes is not None


@pytest.mark.parametrize(("name", "streams"), [("csv", True), ("parquet", True), ("netflix", False), ("yahoo", False)])
def test_formats_say_whether_they_can_be_streamed(name: str, streams: bool) -> None:
    assert (format_named(name).stream is not None) is streams


def test_a_folder_that_holds_several_formats_is_read_in_the_order_of_the_registry(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_text("1:\n7,4,2005-09-06\n")
    assert locate(tmp_path).format.name == "netflix"
    (tmp_path / "u.data").write_text("1\t1\t3\t5\n")
    assert locate(tmp_path).paths == (tmp_path / "u.data",)
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,1,3\n")
    assert locate(tmp_path).paths == (tmp_path / "ratings.csv",)


def test_a_new_format_takes_a_module_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(location: Location) -> Ratings:
        matrix = np.loadtxt(location.path)
        users, items = np.nonzero(matrix)
        return location.assemble(Columns.of_raw(users, items, matrix[users, items], None))

    module = ModuleType("dpmf.ratings.formats.matrix")
    module.FORMAT = Format("matrix", lambda path: path.suffix == ".matrix", read)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(formats._FILE_FORMATS, "matrix", "matrix")
    (tmp_path / "ratings.matrix").write_text("5 0\n0 3\n1 0\n")
    ratings = Ratings.read(tmp_path / "ratings.matrix", scale=(1, 5))
    assert (ratings.n_users, ratings.n_items, ratings.name) == (3, 2, "ratings")
    assert ratings.values.tolist() == [5, 3, 1]
