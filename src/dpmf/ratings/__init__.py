"""Ratings: reading, ids, scale, splits, the catalogue of data sets, synthetic data.

Names are imported when they are first used: the catalogue of data sets needs no compiler.

>>> from dpmf.ratings import Scale
>>> Scale(1, 5).middle
3.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmf.ratings.items import Items
    from dpmf.ratings.table import Ratings, Scale

_HOMES = {"Items": "dpmf.ratings.items", "Ratings": "dpmf.ratings.table", "Scale": "dpmf.ratings.table"}

__all__ = ["Items", "Ratings", "Scale"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpmf.ratings' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
