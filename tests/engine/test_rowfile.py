"""Rows in a file keep what is written to them, whatever is put away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpmf.engine import rowfile
from dpmf.engine.rowfile import MappedRows


@pytest.mark.parametrize(("first", "last"), [(0, 1000), (3, 4), (17, 900), (0, 0)])
def test_what_is_put_away_is_kept(tmp_path: Path, first: int, last: int) -> None:
    rows = MappedRows(tmp_path, (1000, 16))
    assert not rows.array.any()
    rows.array[:] = np.arange(16000, dtype=np.float32).reshape(1000, 16)
    rows.put_away(first, last)
    rows.array[500] += 1
    expected = np.arange(16000, dtype=np.float32).reshape(1000, 16)
    expected[500] += 1
    np.testing.assert_array_equal(rows.array, expected)


def test_the_file_has_no_name_and_rows_start_on_a_cache_line(tmp_path: Path) -> None:
    rows = MappedRows(tmp_path, (3, 16))
    assert list(tmp_path.iterdir()) == []
    assert rows.array.ctypes.data % 64 == 0


def test_no_rows_are_fine(tmp_path: Path) -> None:
    assert MappedRows(tmp_path, (0, 16)).array.shape == (0, 16)


@pytest.mark.parametrize("width", [1, 16, 3000])
def test_pieces_are_small_and_make_up_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(rowfile, "_PIECE_BYTES", 1 << 13)
    rows = MappedRows(tmp_path, (1000, width))
    done = 0
    for piece in rows.pieces():
        assert piece.nbytes <= max(1 << 13, 4 * width)
        piece[:] = np.arange(done, done + len(piece), dtype=np.float32)[:, None]
        done += len(piece)
    assert done == 1000
    np.testing.assert_array_equal(rows.array, np.repeat(np.arange(1000, dtype=np.float32)[:, None], width, axis=1))
    assert not list(MappedRows(tmp_path, (0, width)).pieces())


def test_memory_is_given_back(tmp_path: Path) -> None:
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("resident memory is not known here")

    def resident() -> int:
        return int(status.read_text().split()[1]) * 4096

    rows = MappedRows(tmp_path, (1 << 18, 64))  # 64 MiB
    before = resident()
    rows.array[:] = 1
    full = resident()
    rows.put_away(0, 1 << 18)
    assert full - before > 60 << 20
    assert resident() - before < 8 << 20
    most = max(resident() for piece in rows.pieces() if piece.all())
    assert most - before < 16 << 20
    assert float(rows.array[::4096].sum()) == 64 * 64
