"""Workbooks of Excel, `.xls` and `.xlsx`, as rows of text.

Every cell becomes a text by itself, and a number the shortest one: 7 and 7.0 are `7`. So no cell changes how another is
read: see docs/proofs/reading.md.

>>> text_of(7.0), text_of(-7.82), text_of("007"), text_of("two\\nlines"), text_of(None)
('7', '-7.82', '007', 'two lines', '')
"""

from __future__ import annotations

import contextlib
import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidRatings, MissingExtra

_SUFFIXES = (".xls", ".xlsx")
_WHOLE = 2.0**53  # from here on, numbers in a workbook may have been rounded


def is_workbook(path: Path) -> bool:
    """Tell whether a file is a workbook, by its name."""
    return path.suffix.lower() in _SUFFIXES


def rows_of(path: Path, content: bytes | None = None) -> Iterator[list[str]]:
    """Yield the rows of the only sheet that is not empty, from the first row on, all as long as the longest or empty.

    Args:
        path: of the workbook.
        content: what is in it, if it is not a file of its own.
    """
    sheets = _old_sheets if path.suffix.lower() == ".xls" else _new_sheets
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles
            filled = [(name, rows) for name, rows in sheets(path.read_bytes() if content is None else content) if rows]
    except ImportError:
        raise MissingExtra(f"{path} is a workbook of Excel: pip install 'dpmf[excel]', or save it as CSV") from None
    except OSError as error:
        raise InvalidRatings(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # whatever the libraries come upon in a damaged one, or one with a password
        why = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidRatings(f"{path} is not a workbook that can be read ({why}): save it as CSV") from None
    if len(filled) != 1:
        held = f"several sheets ({', '.join(name for name, _ in filled)})" if filled else "nothing in it"
        raise InvalidRatings(f"{path} has {held}: it should have one sheet, which holds the table")
    rows = filled[0][1]
    width = max(map(len, rows))
    return ([*row, *[""] * (width - len(row))] if row else [] for row in rows)


def csv_of(rows: Iterable[list[str]], file: Any) -> None:
    """Write rows as CSV, and an empty line for an empty row."""
    csv.writer(file, lineterminator="\n").writerows(row if any(row) else [] for row in rows)


def text_of(cell: object) -> str:
    """Return what a cell says."""
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _WHOLE:
        return str(int(cell))
    return " ".join(str(cell).splitlines())


def _old_sheets(content: bytes) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name of each sheet of an `.xls`, and its rows."""
    import xlrd

    book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO(), on_demand=True)
    dates, codes = xlrd.XL_CELL_DATE, {xlrd.XL_CELL_ERROR: xlrd.error_text_from_code.get, xlrd.XL_CELL_BOOLEAN: bool}

    def value_of(kind: int, value: Any) -> object:
        if kind == dates:
            return xlrd.xldate_as_datetime(value, book.datemode)
        return codes[kind](value) if kind in codes else value

    for name in book.sheet_names():
        sheet = book.sheet_by_name(name)
        rows = (zip(sheet.row_types(place), sheet.row_values(place), strict=True) for place in range(sheet.nrows))
        yield name, _filled([text_of(value_of(kind, value)) for kind, value in row] for row in rows)
        book.unload_sheet(name)


def _new_sheets(content: bytes) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name of each sheet of an `.xlsx`, and its rows."""
    import openpyxl

    with contextlib.closing(openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)) as book:
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # some programs write wrong ones, and cells beyond would be left out
            yield sheet.title, _filled([text_of(cell) for cell in row] for row in sheet.iter_rows(values_only=True))


def _filled(rows: Iterable[list[str]]) -> list[list[str]]:
    """Return rows without empty cells at their ends, and without empty rows at the end; those between count."""
    found, last = [], 0
    for row in rows:
        while row and not row[-1]:
            row.pop()
        found.append(row)
        last = len(found) if row else last
    return found[:last]
