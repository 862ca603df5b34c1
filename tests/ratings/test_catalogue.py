"""The catalogue is consistent, suggests names, and says where data live."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpmf.errors import InvalidArgument
from dpmf.ratings.catalogue import CATALOGUE, Dataset, find, folder_of

ALL = list(CATALOGUE.values())
DOWNLOADABLE = [dataset for dataset in ALL if dataset.archive is not None]


def named(dataset: Dataset) -> str:
    return dataset.name


def test_the_documented_data_sets_are_there() -> None:
    assert set(CATALOGUE) == {
        *(f"movielens-{size}" for size in ("100k", "1m", "10m", "20m", "25m", "32m")),
        *("netflix", "yahoo-music", "anime", "goodbooks", "jester", "synthetic"),
    }
    assert all(key == dataset.name for key, dataset in CATALOGUE.items())
    assert len({dataset.title for dataset in ALL}) == len(ALL)


@pytest.mark.parametrize("dataset", ALL, ids=named)
def test_scale_and_sizes_make_sense(dataset: Dataset) -> None:
    lowest, highest = dataset.scale
    assert lowest < highest
    assert dataset.users > 0
    assert dataset.items > 0
    assert dataset.ratings <= dataset.users * dataset.items
    assert (dataset.ratings == 0) == (dataset.name == "synthetic")


@pytest.mark.parametrize("dataset", ALL, ids=named)
def test_texts_are_single_lines(dataset: Dataset) -> None:
    for text in (dataset.title, dataset.licence, dataset.obtain):
        assert text
        assert text == " ".join(text.split())


@pytest.mark.parametrize("dataset", ALL, ids=named)
def test_options_use_only_what_the_readers_take(dataset: Dataset) -> None:
    assert set(dataset.ratings_options) <= {"format", "delimiter", "header", "columns", "missing"}
    assert set(dataset.items_options) <= {"format", "delimiter", "header", "columns", "encoding"}
    assert (dataset.items_file is None) == (not dataset.items_options)
    for options, keys in (
        (dataset.ratings_options, {"user", "item", "rating", "timestamp"}),
        (dataset.items_options, {"item", "title", "genres"}),
    ):
        columns = options.get("columns", {})
        assert isinstance(columns, dict)
        assert set(columns) <= keys
        kind = str if options.get("header", True) else int
        assert all(isinstance(column, kind) for column in columns.values())


@pytest.mark.parametrize("dataset", DOWNLOADABLE, ids=named)
def test_every_archive_has_a_web_address_a_source_and_a_well_formed_checksum(dataset: Dataset) -> None:
    archive = dataset.archive
    assert archive is not None
    assert re.fullmatch(r"https://\S+\.(zip|tar|tar\.gz)", archive.url)
    assert archive.source
    if archive.checksum is not None:
        assert re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", archive.checksum)
    assert dataset.ratings_file


def test_find_returns_the_entry() -> None:
    assert find("netflix") is CATALOGUE["netflix"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("movielens-1n", "movielens-1m"), ("Netflix", "netflix"), ("ml-1m", "movielens-1m")]
)
def test_find_suggests_the_close_name(wrong: str, meant: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        find(wrong)
    assert repr(wrong) in str(caught.value)
    assert f"did you mean {meant}" in str(caught.value)


def test_find_lists_all_names_when_none_is_close() -> None:
    with pytest.raises(InvalidArgument) as caught:
        find("xxxxxxxx")
    assert all(name in str(caught.value) for name in CATALOGUE)


def test_folder_of_prefers_dpmf_data_then_xdg_then_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "data"))
    assert folder_of("anime") == tmp_path / "data" / "anime"
    monkeypatch.setenv("DPMF_DATA", "~/sets")
    assert folder_of("anime") == tmp_path / "home" / "sets" / "anime"
    monkeypatch.delenv("DPMF_DATA")
    assert folder_of("anime") == tmp_path / "xdg" / "dpmf" / "anime"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert folder_of("anime") == tmp_path / "home" / ".local" / "share" / "dpmf" / "anime"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert folder_of("anime") == tmp_path / "home" / ".local" / "share" / "dpmf" / "anime"


def test_folder_of_refuses_unknown_names() -> None:
    with pytest.raises(InvalidArgument, match="unknown data set"):
        folder_of("../elsewhere")
