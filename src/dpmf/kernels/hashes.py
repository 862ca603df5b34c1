"""Numbers that depend on a key and an id, or on a key and a pair of ids, and on nothing else.

>>> import numpy as np
>>> one = row_uniforms_reference(np.uint64(1), np.array([5], np.uint64), 3)
>>> both = row_uniforms_reference(np.uint64(1), np.array([4, 5], np.uint64), 3)
>>> bool((both[1] == one[0]).all())
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel, short_form
from dpmf.streams import mix

_TO_UNIT = 1.0 / (1 << 53)  # the top 53 bits of a hash, as a float in [0, 1)


@kernel
def mix_one(value: np.uint64) -> np.uint64:
    """SplitMix64's output function of one value; `dpmf.streams.mix` of an array."""
    mixed = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@kernel
def pair_uniforms(
    key: np.uint64,
    user_keys: NDArray[np.uint64],
    item_keys: NDArray[np.uint64],
    rated: CsrPattern,
    start: int,
    stop: int,
    out: NDArray[np.float64],  # out
) -> None:
    """Give every rating of users start..stop-1 a number in [0, 1) that depends on its user, its item and the key.

    The slow equivalent is `pair_uniforms_reference`.
    """
    indptr, items = rated
    for i in range(start, stop):
        of_user = mix_one(key ^ user_keys[i])
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = (mix_one(of_user ^ item_keys[items[p]]) >> np.uint64(11)) * _TO_UNIT


@short_form(pair_uniforms)
def pair_uniforms_reference(
    key: np.uint64,
    user_keys: NDArray[np.uint64],
    item_keys: NDArray[np.uint64],
    rated: CsrPattern,
    start: int,
    stop: int,
    out: NDArray[np.float64],  # out
) -> None:
    """Write what `pair_uniforms` writes."""
    own = slice(rated.indptr[start], rated.indptr[stop])
    of_user = np.repeat(mix(key ^ user_keys[start:stop]), np.diff(rated.indptr[start : stop + 1])).astype(np.uint64)
    out[own] = (mix(of_user ^ item_keys[rated.items[own]]) >> np.uint64(11)) * _TO_UNIT


@kernel
def row_uniforms(key: np.uint64, keys: NDArray[np.uint64], width: int, scale: float, out: NDArray[np.float32]) -> None:
    """Fill the first `width` columns of out: row r uniform in [-scale, scale), depending on keys[r] alone."""
    for r in range(len(keys)):
        state = mix_one(key ^ keys[r])
        for c in range(width):
            unit = (mix_one(state + np.uint64(c)) >> np.uint64(11)) * _TO_UNIT
            out[r, c] = np.float32(scale * (2.0 * unit - 1.0))


def row_uniforms_reference(
    key: np.uint64, keys: NDArray[np.uint64], width: int, scale: float = 1.0
) -> NDArray[np.float32]:
    """Return what `row_uniforms` writes."""
    states = np.add.outer(mix(key ^ keys), np.arange(width, dtype=np.uint64))
    unit = (mix(states) >> np.uint64(11)) * _TO_UNIT
    return (scale * (2.0 * unit - 1.0)).astype(np.float32)
