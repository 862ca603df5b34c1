"""Readers of the Netflix Prize and Yahoo Music layouts: ratings in groups below a header line.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "combined_data_1.txt"
>>> _ = path.write_text("1:\\n7,4,2005-09-06\\n8,3,2005-09-07\\n")
>>> columns = read_grouped([path], "netflix")
>>> list(columns.user_ids), columns.values.tolist()
([7, 8], [4.0, 3.0])
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.kernels.text import count_grouped, parse_grouped
from dpmf.ratings.formats.columns import Columns

_MARKS = {"netflix": ":", "yahoo": "|"}


def grouped_format(first_line: str) -> str | None:
    """Name the layout whose header line this is, or None."""
    for name, mark in _MARKS.items():
        head, sign, rest = first_line.strip().partition(mark)
        if sign and head.isdigit() and (not rest or (name == "yahoo" and rest.isdigit())):
            return name
    return None


def read_grouped(paths: Sequence[Path], format: str) -> Columns:  # noqa: A002  (the word users know)
    """Read files of one layout as one set of ratings; Netflix groups are items, Yahoo groups are users."""
    mark = ord(_MARKS[format])
    parts = []
    for path in paths:
        text = _bytes(path)
        count, above = count_grouped(text, mark)
        groups, members = np.empty(count, np.int64), np.empty(count, np.int64)
        values, dates = np.empty(count, np.float32), np.empty(count, np.int64)
        line = above or parse_grouped(text, mark, groups, members, values, dates)
        if line:
            raise InvalidRatings(f"{path} line {line} is neither a header nor a rating of the {format} layout")
        parts.append((groups, members, values, dates))
    groups, members, values, dates = (np.concatenate(column) for column in zip(*parts, strict=True))
    users, items = (members, groups) if format == "netflix" else (groups, members)
    columns = Columns.of_raw(users, items, values, dates if dates.all() else None)
    return replace(columns, partly_timed=bool(dates.any() and not dates.all()))


def _bytes(path: Path) -> NDArray[np.uint8]:
    """Return the content of a file, unpacked if need be, without a byte order mark."""
    text: NDArray[np.uint8]
    if path.suffix.lower() == ".gz":
        try:
            text = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
        except (OSError, EOFError) as error:
            raise InvalidRatings(f"cannot read {path}: {error}") from None
    else:
        text = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    return text[3:] if text[:3].tobytes() == codecs.BOM_UTF8 else text
