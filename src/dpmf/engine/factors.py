"""Factor matrices laid out for the kernels: rows that fill whole cache lines and start on one.

>>> rows = factor_rows(3, 10)
>>> rows.shape, rows.ctypes.data % 64
((3, 16), 0)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.hashing import row_uniforms
from dpmf.kernels.rows import FLOATS_PER_LINE

_LINE_BYTES = 4 * FLOATS_PER_LINE


def factor_rows(n_rows: int, n_factors: int, multiple: int = FLOATS_PER_LINE) -> NDArray[np.float32]:
    """Return zeros, shape (n_rows, n_factors rounded up to a multiple, which is whole cache lines)."""
    width = -(-n_factors // multiple) * multiple
    raw = np.zeros(n_rows * width * 4 + _LINE_BYTES, np.uint8)
    offset = -raw.ctypes.data % _LINE_BYTES
    return raw[offset : offset + n_rows * width * 4].view(np.float32).reshape(n_rows, width)


def random_factors(
    key: np.uint64, row_keys: NDArray[np.uint64], n_factors: int, sd: float, multiple: int = FLOATS_PER_LINE
) -> NDArray[np.float32]:
    """Return padded rows of zero mean and standard deviation `sd`, each made from its own key alone."""
    rows = factor_rows(len(row_keys), n_factors, multiple)
    row_uniforms(key, row_keys, n_factors, sd * 3**0.5, rows)
    return rows
