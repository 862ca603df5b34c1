"""MATLAB files: the columns as Ciao has them, and types that do not depend on values."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix

from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

CIAO = np.array([[1, 7, 3, 5, 4, 100], [1, 9, 3, 2, 0, 300], [2, 7, 1, 4, 5, 200]], float)
READ = {(1, 7): 5, (1, 9): 2, (2, 7): 4}


@pytest.mark.parametrize(
    ("name", "matrix", "times"),
    [
        ("rating", CIAO[:, :5], None),
        ("rating_with_timestamp", CIAO, [100, 300, 200]),
        ("anything", CIAO[:, [0, 1, 3]], None),
        ("rating", CIAO[:, :5].astype(np.int32), None),
    ],
)
def test_a_matrix_of_ratings_is_read(
    name: str, matrix: Any, times: list[int] | None, tmp_path: Path, table: Table
) -> None:
    savemat(tmp_path / "rating.mat", {name: matrix})
    for source in (tmp_path / "rating.mat", tmp_path):
        ratings = Ratings.read(source, scale=(1, 5))
        assert table(ratings) == READ
        assert (None if ratings.timestamps is None else ratings.timestamps.tolist()) == times


def test_columns_can_be_named(tmp_path: Path, table: Table, refused: Refused) -> None:
    savemat(tmp_path / "r.mat", {"rating": CIAO[:, :4], "trust": CIAO[:, :2]})
    with refused("4 columns", "columns={'user': …}"):
        Ratings.read(tmp_path / "r.mat")
    assert table(Ratings.read(tmp_path / "r.mat", columns={"user": 0, "item": 1, "rating": 3})) == READ


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"a": CIAO, "b": CIAO}, ["no matrix that is called rating", "a, b"]),
        ({"rating": csc_matrix(CIAO)}, ["no matrix"]),
        ({"rating": "texts"}, ["no matrix"]),
        ({"rating": CIAO[:, :3] + 0.5}, ["1.5", "no whole number"]),
        ({"rating": np.zeros((0, 3))}, ["no ratings"]),
    ],
)
def test_what_is_no_matrix_of_ratings_is_refused(
    held: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    savemat(tmp_path / "rating.mat", held)
    with refused(*words):
        Ratings.read(tmp_path / "rating.mat")


def test_a_file_of_something_else_is_refused(tmp_path: Path, refused: Refused) -> None:
    for content in (b"", b"x" * 50, b"user,item,rating\n" * 50, b"MATLAB 7.3" + b" " * 114 + b"\0\2IM" + b"\x89HDF"):
        (tmp_path / "rating.mat").write_bytes(content)
        with refused("rating.mat"):
            Ratings.read(tmp_path / "rating.mat")


def as_matlab_writes(matrix: list[list[int]], stored: str, code: int) -> bytes:
    """Return a file with a matrix of doubles, stored in a smaller type as MATLAB does where values allow."""
    cells = np.array(matrix, stored).T.tobytes()

    def element(kind: int, content: bytes) -> bytes:
        return struct.pack("<II", kind, len(content)) + content + b"\0" * (-len(content) % 8)

    shape = struct.pack("<ii", len(matrix), len(matrix[0]))
    array = element(6, struct.pack("<II", 6, 0)) + element(5, shape) + element(1, b"rating") + element(code, cells)
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49) + element(14, array)


@pytest.mark.parametrize("newcomer", [[9, 9, 1], [300, 70000, 1], [-1, 2**40, 5]])
def test_nobodys_values_change_the_type_of_others(newcomer: list[int], tmp_path: Path, table: Table) -> None:
    """On the disk it is the smallest type that holds everybody's values."""
    rows = [[200, 250, 5], [200, 7, 2]]
    worlds = []
    for matrix, stored, code in ((rows, "u1", 2), ([*rows, newcomer], "f8", 9)):
        (tmp_path / "rating.mat").write_bytes(as_matlab_writes(matrix, stored, code))
        ratings = Ratings.read(tmp_path / "rating.mat", scale=(1, 5))
        assert ratings.user_ids.array.dtype == np.int64
        worlds.append({pair: value for pair, value in table(ratings).items() if pair[0] == 200})
    assert worlds[0] == worlds[1] == {(200, 250): 5, (200, 7): 2}
