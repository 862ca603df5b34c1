"""Factor matrices laid out for the kernels: rows that fill whole cache lines and start on one.

>>> rows = factor_rows(3, 10)
>>> rows.shape, rows.ctypes.data % 64
((3, 16), 0)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.hashes import row_uniforms
from dpmf.kernels.rows import FLOATS_PER_LINE

_LINE_BYTES = 4 * FLOATS_PER_LINE


def padded(n_factors: int, multiple: int = FLOATS_PER_LINE) -> int:
    """Return the width of a row: the number of factors, rounded up to whole cache lines."""
    return -(-n_factors // multiple) * multiple


def factor_rows(n_rows: int, n_factors: int, multiple: int = FLOATS_PER_LINE) -> NDArray[np.float32]:
    """Return zeros, shape (n_rows, padded n_factors)."""
    width = padded(n_factors, multiple)
    raw = np.zeros(n_rows * width * 4 + _LINE_BYTES, np.uint8)
    offset = -raw.ctypes.data % _LINE_BYTES
    return raw[offset : offset + n_rows * width * 4].view(np.float32).reshape(n_rows, width)


def fill_randomly(
    key: np.uint64, row_keys: NDArray[np.uint64], n_factors: int, sd: float, rows: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Fill rows with numbers of zero mean and standard deviation `sd`, each row from its own key; return them."""
    row_uniforms(key, row_keys, n_factors, sd * 3**0.5, rows)
    return rows
