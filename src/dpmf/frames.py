"""Results as data frames: pandas, polars or Arrow, whichever is installed and asked for.

>>> class Pair(Columnar):
...     def to_columns(self):
...         return {"item": ["Heat", "Up"], "score": [4.5, 4.0]}
>>> Pair().to_pandas().shape, Pair().to_polars().shape, Pair().to_arrow().shape
((2, 2), (2, 2), (2, 2))
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmf.errors import MissingExtra

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Columnar:
    """What is a table by nature: whoever has columns can be had as a frame of any library."""

    @abstractmethod
    def to_columns(self) -> dict[str, Any]:
        """Return the columns, by name: arrays or lists of the same length."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas `DataFrame`."""
        return _library("pandas").DataFrame(self.to_columns())

    def to_polars(self) -> polars.DataFrame:
        """Return a polars `DataFrame`."""
        frame: polars.DataFrame = _library("polars").DataFrame(_plain(self.to_columns()))
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow `Table`."""
        return _library("pyarrow").table(_plain(self.to_columns()))


def _plain(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns of objects as lists, of which these libraries find the type."""
    return {
        name: column.tolist() if isinstance(column, np.ndarray) and column.dtype.hasobject else column
        for name, column in columns.items()
    }


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"{name} is not installed: pip install {name}, or ask for another kind of frame") from None
