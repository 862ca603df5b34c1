"""Rows of a comparison: what was written is read, and what was cut off does not count."""

from __future__ import annotations

import csv
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dpmf.compare.results import Row, Table
from dpmf.errors import DamagedFile, InvalidArgument

from .measured import certified, claimed

FULL = replace(
    claimed(
        "sgld",
        0.1,
        2,
        unit="user",
        rmse=0.1 + 0.2,
        mae=1e-300,
        recall=0.5,
        ndcg=0.25,
        coverage=1.0,
        kld=0.5,
        kld_top_users=0.1,
        rmse_top_users=0.7,
        factors=16,
        epochs=3,
        threads=2,
        seconds=1.5,
        epoch_seconds=0.5,
        peak_memory=10**10,
        history=[[1, 0.5, 0.9], [2, None, None]],
        error_cdf=[[0.0, 0.1], [4.0, 1.0]],
        by_popularity=[[0.01, 3, None]],
        by_activity=[[0.01, 3, 0.5]],
        spectrum=[3.0, 0.1],
        ranking={"users": 9, "ndcg@100": 0.25, "ndcg@100_interval": [0.2, 0.3], "tail@20": None},
    ),
    seed=7,
)
FAILED = Row("als", "certified", 1.0, 0, 7, error='it, "diverged"\nin epoch 3')


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "runs.csv")


def test_what_was_written_is_read(table: Table) -> None:
    bare = Row("own-mean", "none", math.inf, 0, 7)
    for row in (FULL, bare):
        table.append(row)
    assert table.rows() == [FULL, bare]
    assert all(getattr(FULL, one.name) not in (None, [], {}) for one in fields(Row) if one.name != "error")


def test_tables_without_the_column_of_rankings_stay_as_they_are(table: Table) -> None:
    table.append(FULL)
    with table.path.open(newline="") as file:
        names, cells = csv.reader(file)
    place = names.index("ranking")
    with table.path.open("w", newline="") as file:
        for line in (names, cells):
            csv.writer(file, lineterminator="\n").writerow(line[:place] + line[place + 1 :])
    table.append(certified("als", 2.0, rmse=0.9))
    assert table.rows() == [replace(FULL, ranking={}), certified("als", 2.0, rmse=0.9)]


def test_an_error_of_two_lines_stays_one_row(table: Table) -> None:
    table.append(FAILED)
    table.append(FULL)
    failed, after = table.rows()
    assert failed.error == 'it, "diverged" in epoch 3'
    assert after == FULL


def test_of_two_rows_of_one_run_the_later_counts(table: Table) -> None:
    table.append(FAILED)
    table.append(certified("als", 1.0, rmse=0.9))
    assert [(row.rmse, row.error) for row in table.rows()] == [(0.9, "")]


@pytest.mark.parametrize("lost", [1, 2, 30, 300])
def test_a_row_that_was_cut_off_does_not_count_and_is_overwritten(table: Table, lost: int) -> None:
    table.append(FULL)
    whole = table.path.read_bytes()
    table.append(Row("als", "certified", 1.0, 0, 7, error="x" * 400))
    table.path.write_bytes(table.path.read_bytes()[:-lost])
    assert table.rows() == [FULL]
    table.append(certified("als", 2.0))
    assert table.path.read_bytes().startswith(whole)
    assert [row.asked for row in table.rows()] == [0.1, 2.0]


def test_a_file_without_a_whole_line_is_as_good_as_new(table: Table) -> None:
    for begin in (b"", b"method,mo"):
        table.path.write_bytes(begin)
        assert table.rows() == []
        table.append(FULL)
        assert table.rows() == [FULL]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("asked", "one"),
        ("asked", "nan"),
        ("asked", "-1"),
        ("mode", "proven"),
        ("certified", "yes"),
        ("repeat", "1.5"),
        ("guarantee", "[1]"),
        ("guarantee", '"x"'),
        ("guarantee", "5"),
        ("guarantee", "{}"),
        ("guarantee", '{"a":1}'),
        ("by_popularity", "[1,2]"),
        ("by_popularity", '[["a",1,"b"]]'),
        ("by_activity", "[[0.1]]"),
        ("history", '{"a":1}'),
        ("history", '["abc"]'),
        ("history", "[[null,2,1]]"),
        ("error_cdf", "[[1]]"),
        ("error_cdf", "[[0,NaN]]"),
        ("spectrum", '["a"]'),
        ("spectrum", "[true]"),
        ("spectrum", "[" * 100_000),
        ("epsilon", "0.01"),
        ("delta", "0.5"),
        ("unit", "rating"),
        ("neighbours", "add-remove"),
        ("certified", "True"),
        ("mode", "certified"),
        ("mode", "none"),
    ],
)
def test_a_row_that_makes_no_sense_or_contradicts_its_guarantee_is_refused(
    table: Table, column: str, cell: str
) -> None:
    table.append(FULL)
    with table.path.open(newline="") as file:
        names, cells = csv.reader(file)
    cells[names.index(column)] = cell
    with table.path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, cells])
    with pytest.raises(DamagedFile, match=r"line 2 of .* is damaged"):
        table.rows()


def test_a_row_of_another_width_or_a_giant_cell_is_refused(table: Table) -> None:
    table.append(FULL)
    whole = table.path.read_text()
    for rest in ("als,certified\n", f'"{"x" * (1 << 24)}xx"\n'):
        table.path.write_text(whole + rest)
        with pytest.raises(DamagedFile, match=r"line 3 of .* is damaged"):
            table.rows()


def test_reading_rows_changes_nothing_for_others(table: Table) -> None:
    before = csv.field_size_limit()
    table.append(FULL)
    table.rows()
    table.path.write_text(table.path.read_text() + "damaged\n")
    with pytest.raises(DamagedFile):
        table.rows()
    assert csv.field_size_limit() == before


def test_other_files_are_refused(table: Table) -> None:
    with pytest.raises(InvalidArgument, match="no results"):
        table.rows()
    table.path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(DamagedFile, match="not a table of results"):
        table.rows()
    table.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DamagedFile, match="cannot read"):
        table.rows()
