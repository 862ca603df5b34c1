"""Predictions that start from 0, in a release whose mean lies on the rating scale.

A model of raw ratings starts from 0, which most scales do not have. So the nearest point of the scale stands for it,
and every item's bias takes the difference away again.

>>> from dpmf.ratings import Scale
>>> on_scale(0.0, np.zeros(2, np.float32), Scale(1, 5))
(1.0, array([-1., -1.], dtype=float32))
>>> on_scale(3.5, np.zeros(2, np.float32), Scale(1, 5))
(3.5, array([0., 0.], dtype=float32))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.ratings import Scale

NO_BIAS = 1e12  # a penalty that leaves nothing of a person's own bias


def on_scale(start: float, biases: NDArray[np.float32], scale: Scale) -> tuple[float, NDArray[np.float32]]:
    """Return a mean on the scale, and biases of items, with which predictions are as from `start` with `biases`."""
    nearest = float(min(max(start, scale.lo), scale.hi))
    return nearest, biases + np.float32(start - nearest)
