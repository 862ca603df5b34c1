"""Rows of a comparison: what was written is read, and what was cut off does not count."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pytest

from dpmf.compare.results import Row, Table
from dpmf.errors import DamagedFile, InvalidArgument

FULL = Row(
    "sgld", "paper", 0.1, 2, 7, epsilon=0.1, delta=0.0, unit="user", neighbours="add-remove", certified=False,
    rmse=0.1 + 0.2, mae=1e-300, recall=0.5, ndcg=0.25, coverage=1.0, kld=0.0, kld_top_users=0.1, rmse_top_users=0.7,
    factors=16, epochs=3, seconds=1.5, epoch_seconds=0.5, peak_memory=10**10,
    guarantee={"assumptions": ['a "b", c\nd']},
    history=[[1, 0.5, 0.9]], error_cdf=[[0.0, 0.1], [4.0, 1.0]], by_popularity=[[0.01, 3, None]],
    by_activity=[[0.01, 3, 0.5]], spectrum=[3.0, 0.1],
)  # fmt: skip
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


def test_an_error_of_two_lines_stays_one_row(table: Table) -> None:
    table.append(FAILED)
    table.append(FULL)
    failed, after = table.rows()
    assert failed.error == 'it, "diverged" in epoch 3'
    assert after == FULL


def test_of_two_rows_of_one_run_the_later_counts(table: Table) -> None:
    table.append(FAILED)
    table.append(Row("als", "certified", 1.0, 0, 7, rmse=0.9))
    assert [(row.rmse, row.error) for row in table.rows()] == [(0.9, "")]


@pytest.mark.parametrize("lost", [1, 2, 30, 300])
def test_a_row_that_was_cut_off_does_not_count_and_is_overwritten(table: Table, lost: int) -> None:
    table.append(FULL)
    whole = table.path.read_bytes()
    table.append(Row("als", "certified", 1.0, 0, 7, guarantee={"assumptions": ["x" * 400]}))
    table.path.write_bytes(table.path.read_bytes()[:-lost])
    assert table.rows() == [FULL]
    table.append(Row("als", "certified", 2.0, 0, 7))
    assert table.path.read_bytes().startswith(whole)
    assert [row.asked for row in table.rows()] == [0.1, 2.0]


def test_cells_that_make_no_sense_make_no_row(table: Table) -> None:
    table.append(FULL)
    table.append(Row("als", "certified", 1.0, 0, 7))
    table.path.write_text(table.path.read_text().replace("als,certified,1.0,0", "als,certified,one,0"))
    assert table.rows() == [FULL]


def test_other_files_are_refused(table: Table) -> None:
    with pytest.raises(InvalidArgument, match="no results"):
        table.rows()
    table.path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(DamagedFile, match="not a table of results"):
        table.rows()
    table.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DamagedFile, match="cannot read"):
        table.rows()
    table.path.write_bytes(b"")
    with pytest.raises(DamagedFile, match="not a table of results"):
        table.rows()
