"""Rows of float32 in an unnamed file, mapped into memory only while they are used.

>>> import tempfile
>>> rows = MappedRows(Path(tempfile.mkdtemp()), (1000, 16))
>>> rows.array[:] = 1
>>> rows.put_away(0, 1000)
>>> float(rows.array.sum())
16000.0
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.files import reserve, scratch_file

_PIECE_BYTES = 1 << 22


class MappedRows:
    """Rows of float32 in a file, initially zero.

    Attributes:
        folder: a folder on the same disk.
        array: the rows. Pages of the file are read when they are touched.
    """

    def __init__(self, folder: Path, shape: tuple[int, int]) -> None:
        self.folder = folder
        self._row_bytes = 4 * shape[1]
        size = max(shape[0] * self._row_bytes, 1)
        with scratch_file(folder) as file:
            reserve(file, size)
            self._map = mmap.mmap(file.fileno(), size)
        self.array: NDArray[np.float32] = np.frombuffer(self._map, np.float32, shape[0] * shape[1]).reshape(shape)

    def put_away(self, first: int, last: int) -> None:
        """Return the memory of rows first..last-1 to the system; their content stays in the file."""
        # Whole pages only, and none shared with other rows, which another thread may be working on.
        page = mmap.PAGESIZE
        begin = -(-first * self._row_bytes // page) * page
        end = last * self._row_bytes // page * page
        if end > begin and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def pieces(self) -> Iterator[NDArray[np.float32]]:
        """Yield all rows, a few megabytes at a time, for reading or writing; each part is put away afterwards."""
        count = max(_PIECE_BYTES // self._row_bytes, 1)
        for first in range(0, len(self.array), count):
            last = min(first + count, len(self.array))
            yield self.array[first:last]
            self.put_away(first, last)
