"""Files of item features: a table with a column of item ids, or a matrix of numbers such as an embedding.

Features are declared public, and read like a list of items. A `.npy` file is a matrix whose rows are the items in the
order of their list; an `.npz` file has the ids of its rows, too, as `item`, and the matrix as `features`.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pages.csv"
>>> _ = path.write_text("item,pages\\n" + "".join(f"{item},{100 * item}\\n" for item in range(1, 8)))
>>> items = with_features(Items.of(range(1, 9)), path)
>>> items.descriptions[0].what, items.descriptions[0].columns.shape
('pages of pages.csv', (8, 2))
"""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import sha256_of
from dpmf.ratings.described import Description, description, matrix_description
from dpmf.ratings.ids import Ids, parse_ids
from dpmf.ratings.item_files import read_item_file, usual_place
from dpmf.ratings.items import Items
from dpmf.ratings.kinds import array_of, ids_of, is_missing

logger = logging.getLogger(__name__)
_NPZ = ("item", "features")


def with_features(items: Items, path: str | Path) -> Items:
    """Return a list of items with what a file says about them.

    Args:
        items: the public list.
        path: a CSV or Parquet file with a column of item ids by a usual name, of whose other columns all are features;
            or a `.npy` or `.npz` file.

    Raises:
        InvalidArgument: there is no such file, or it is not what it should be.
        InvalidRatings: its rows are not of these items, or it says nothing about them.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidArgument(f"no file {path}: name the features of items with item_features=…")
    found = _of_arrays(items, path) if path.suffix.lower() in (".npy", ".npz") else _of_table(items, path)
    if found is None:
        raise InvalidRatings(f"{path} says the same of all items, or nothing: leave item_features out")
    return items.described(found)


def _of_table(items: Items, path: Path) -> Description | None:
    """Return what a table says: columns of numbers alone are a matrix."""
    ids, columns = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _text(path)
    places = _places(items, ids, path)
    matrices = [column for column in columns.values() if isinstance(column, np.ndarray)]
    if matrices:  # vectors, and numbers beside them
        wrong = next((name for name, column in columns.items() if not isinstance(column, np.ndarray)), None)
        if wrong is not None:
            raise InvalidArgument(f"{path} has vectors of numbers, and texts in {wrong!r}: leave these out")
        return matrix_description(_called(path), sha256_of(path), _placed(np.hstack(matrices), places))
    taken = {name: [values[place] if place >= 0 else "" for place in places] for name, values in columns.items()}
    return description(path.name, sha256_of(path), taken)


def _of_arrays(items: Items, path: Path) -> Description | None:
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            ids, matrix = None, loaded
        else:
            with loaded:
                if missing := [name for name in _NPZ if name not in loaded]:
                    raise InvalidArgument(f"{path} has no array {missing[0]!r}: it needs item and features")
                ids, matrix = loaded["item"], loaded["features"]
    except MemoryError:
        raise InvalidArgument(f"cannot read {path}: it holds, or says that it holds, more than memory does") from None
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidArgument(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InvalidArgument(f"{path} should hold a matrix of numbers, a row for every item, not {_shape(matrix)}")
    if ids is None:
        if not items.declared or len(matrix) != len(items):
            listed = f"the list has {len(items):,} items" if items.declared else "there is no list of items"
            raise InvalidArgument(
                f"{path} has {len(matrix):,} rows, which should be the items in the order of their list, and {listed}: "
                "give an .npz file with the ids of its rows as `item`"
            )
        return matrix_description(_called(path), sha256_of(path), _checked(matrix, path))
    if ids.shape != matrix.shape[:1]:
        raise InvalidArgument(f"{path} has {ids.size:,} ids and {len(matrix):,} rows of features")
    known = Ids(ids_of(ids if ids.dtype.kind == "i" else np.array(ids.astype(str).tolist(), object)))
    places = _places(items, known, path)
    return matrix_description(_called(path), sha256_of(path), _placed(_checked(matrix, path), places))


def _text(path: Path) -> tuple[Ids, Mapping[str, Any]]:
    table = read_item_file(path, further="all")
    return Ids(parse_ids(table.ids)), table.further


def _parquet(path: Path) -> tuple[Ids, Mapping[str, Any]]:
    """Return the columns of a Parquet file: vectors and numbers as matrices, if there are vectors, else as texts."""
    from dpmf.ratings.formats.database import open_file

    with open_file(path, None) as connection:
        found = connection.execute("SELECT * FROM read_parquet($path)", {"path": str(path)}).fetchnumpy()
    place = usual_place("item", list(found))
    if place is None:
        raise InvalidArgument(f"{path} has no column of item ids by a usual name: it has {', '.join(found)}")
    columns = {name: _filled(column) for name, column in found.items()}
    ids = ids_of(array_of(columns.pop(list(found)[place])))
    known = Ids(ids)
    if (twice := known.first_repeated()) is not None:
        raise InvalidRatings(f"{path} has the item {twice!r} twice: remove one of them")
    if any(_is_vector(column) for column in columns.values()):
        return known, {name: _matrix(path, name, column) for name, column in columns.items()}
    return known, {name: [_cell(one) for one in column.tolist()] for name, column in columns.items()}


def _filled(column: Any) -> NDArray[Any]:
    """Return a column, with None where DuckDB masks it."""
    if not isinstance(column, np.ma.MaskedArray):
        return np.asarray(column)
    filled = np.asarray(column.data).astype(object)
    filled[np.ma.getmaskarray(column)] = None
    return filled


def _is_vector(column: NDArray[Any]) -> bool:
    return column.ndim == 2 or (column.dtype == object and any(isinstance(one, np.ndarray | list) for one in column))


def _matrix(path: Path, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
    try:
        if not _is_vector(column):
            return np.array([[np.nan if is_missing(one) else float(one)] for one in column])
        width = next(len(one) for one in column if isinstance(one, np.ndarray | list))
        unknown = [np.nan] * width
        matrix = np.array([one if isinstance(one, np.ndarray | list) else unknown for one in column], np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"column {name!r} of {path} should hold vectors of one length, or numbers") from None
    return _checked(matrix, path)


def _cell(value: Any) -> str:
    return "" if is_missing(value) else str(value)


def _checked(matrix: NDArray[Any], path: Path) -> NDArray[Any]:
    if np.isinf(matrix.astype(np.float64)).any():
        raise InvalidRatings(f"{path} holds infinite numbers: NaN is what stands for unknown")
    return matrix


def _places(items: Items, ids: Ids, path: Path) -> NDArray[np.int32]:
    """Return the row of every item of the list, -1 for those that have none."""
    places = ids.encode(items.ids.array)
    known = int(np.count_nonzero(places >= 0))
    if not known:
        raise InvalidRatings(
            f"none of the items in {path}, such as {ids[0]!r}, is in the list, which has {items.ids[0]!r}, …"
            if len(ids) and len(items)
            else f"{path} has no items"
        )
    if known < len(items):
        logger.warning("%s says nothing about %d of %d items", path, len(items) - known, len(items))
    return places


def _placed(matrix: NDArray[Any], places: NDArray[np.int32]) -> NDArray[np.float64]:
    placed = matrix.astype(np.float64)[places]
    placed[places < 0] = np.nan
    return placed


def _called(path: Path) -> str:
    return f"the matrix in {path.name}"


def _shape(matrix: NDArray[Any]) -> str:
    return f"an array of shape {matrix.shape} and type {matrix.dtype}"
