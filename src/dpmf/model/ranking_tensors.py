"""The ranking part of a release in its file: factors in 12 bits, values of pairs in 16.

A matrix of factors becomes whole numbers from -2047 to 2047, each multiplied by a power of two for its row and one for
its column. Two of them take three bytes. Scores change by about a thousandth or less, and the file has three quarters
of the size that 16 bits would give. Encoding what was decoded gives the same bytes again, so a release does not change
by being saved twice.

>>> matrix = np.array([[0.5, -300.0, 0.001], [0.0, 12.0, 7.0]], np.float32)
>>> codes, exponents = pack(matrix)
>>> codes.shape, exponents.tolist()
((2, 6), [-11, -11, 0, 9, 3])
>>> unpack(codes, exponents, 3).round(4).tolist()
[[0.5, -300.0, 0.0], [0.0, 12.0, 7.0]]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.model.ranking import Ranking
from dpmf.model.release_json import number_of_json

TENSORS = (
    "ranking_items",
    "ranking_left",
    "ranking_left_exponents",
    "ranking_right",
    "ranking_right_exponents",
    "ranking_indptr",
    "ranking_pairs",
    "ranking_values",
    "ranking_popularity",
)
_FACTS = ("threshold", "lowest_weight", "n_items", "n_factors", "n_pairs", "value_exponent")
_BITS = 11  # of a code, without its sign
_HALF = 15  # values of pairs are scaled to be below 2 to this power: most of them are then normal 16-bit floats
_MOST = 300  # in the magnitude of an exponent: float32 has none beyond 150


def pack(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.int16]]:
    """Return codes of a matrix, shape (n, ⌈K/2⌉·3), and exponents, of rows and then of columns, shape (n + K,)."""
    scaled = matrix.astype(np.float64)
    columns = _exponents(scaled, axis=0)
    scaled = np.ldexp(scaled, -columns)
    rows = _exponents(scaled, axis=1) - _BITS
    top = (1 << _BITS) - 1
    codes = np.clip(np.rint(np.ldexp(scaled, -rows[:, None])), -top, top).astype(np.int16) + np.int16(1 << _BITS)
    if codes.shape[1] % 2:
        codes = np.hstack([codes, np.full((len(codes), 1), 1 << _BITS, np.int16)])
    first, second = codes[:, 0::2], codes[:, 1::2]
    parts = first & 255, first >> 8 | (second & 15) << 4, second >> 4
    packed = np.stack(parts, axis=2).astype(np.uint8).reshape(len(codes), codes.shape[1] // 2 * 3)
    return packed, np.concatenate([rows, columns]).astype(np.int16)


def unpack(packed: NDArray[np.uint8], exponents: NDArray[np.int16], n_factors: int) -> NDArray[np.float32]:
    """Return the matrix whose codes and exponents these are, or raise ValueError."""
    width = -(-n_factors // 2) * 3
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != width:
        raise ValueError(f"ranking factors should be rows of {width} bytes, and have shape {packed.shape}")
    if exponents.dtype != np.int16 or exponents.shape != (len(packed) + n_factors,):
        raise ValueError(f"exponents of ranking factors should be 16-bit integers, {len(packed) + n_factors} of them")
    if len(exponents) and np.abs(exponents.astype(np.int32)).max() > _MOST:
        raise ValueError("exponents of ranking factors are out of range")
    triples = packed.reshape(len(packed), width // 3, 3).astype(np.int16)
    codes = np.empty((len(packed), width // 3 * 2), np.int16)
    codes[:, 0::2] = triples[:, :, 0] | (triples[:, :, 1] & 15) << 8
    codes[:, 1::2] = triples[:, :, 1] >> 4 | triples[:, :, 2] << 4
    rows, columns = np.split(exponents.astype(np.int32), [len(packed)])
    with np.errstate(over="ignore"):  # an infinity is refused with all that is not finite
        codes = codes[:, :n_factors] - np.int16(1 << _BITS)
        return np.asarray(np.ldexp(codes.astype(np.float32), rows[:, None] + columns))


def _exponents(matrix: NDArray[np.float64], axis: int) -> NDArray[np.int32]:
    """Return the powers of two just above the greatest magnitudes along an axis; 0 for zeros."""
    return np.asarray(np.frexp(np.abs(matrix).max(axis=axis, initial=0.0))[1], np.int32)


def ranking_tensors(ranking: Ranking) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return what of a ranking goes into release.safetensors, and what into release.json."""
    left, left_exponents = pack(ranking.left)
    right, right_exponents = pack(ranking.right)
    exponent = int(_exponents(ranking.values[None].astype(np.float64), axis=1)[0]) - _HALF
    top = float(np.nextafter(np.float16(2**_HALF), np.float16(0)))  # rounding must not reach the next power of two
    values = np.clip(np.ldexp(ranking.values.astype(np.float64), -exponent), -top, top).astype(np.float16)
    arrays = (ranking.items, left, left_exponents, right, right_exponents, ranking.indptr, ranking.pairs, values)
    facts = {
        "threshold": ranking.threshold,
        "lowest_weight": ranking.lowest_weight,
        "n_items": len(ranking.items),
        "n_factors": ranking.left.shape[1],
        "n_pairs": len(ranking.pairs),
        "value_exponent": exponent,
    }
    return dict(zip(TENSORS, (*arrays, ranking.popularity), strict=True)), facts


def ranking_of_tensors(tensors: Mapping[str, NDArray[Any]], facts: Any) -> Ranking:
    """Return the ranking in a release, or raise ValueError or TypeError; `Ranking.check` has to follow."""
    if not isinstance(facts, dict) or set(facts) != set(_FACTS):
        raise ValueError(f"the ranking should have the fields {', '.join(_FACTS)}")
    if any(type(facts[name]) is not int for name in _FACTS[2:]) or min(facts[name] for name in _FACTS[2:5]) < 0:
        raise TypeError("sizes and exponents of the ranking should be whole numbers")
    n_head, n_factors, n_pairs, exponent = (facts[name] for name in _FACTS[2:])
    head, left, left_exponents, right, right_exponents, indptr, pairs, values, popularity = (
        tensors[name] for name in TENSORS
    )
    if not head.shape == left.shape[:1] == right.shape[:1] == (n_head,) or pairs.shape != (n_pairs,):
        raise ValueError(f"{n_head} ranked items and {n_pairs} pairs, but tensors of other sizes")
    if values.dtype != np.float16 or abs(exponent) > _MOST:
        raise ValueError("values of pairs should be 16-bit floats with an exponent in range")
    with np.errstate(over="ignore"):
        wide = np.ldexp(values.astype(np.float64), exponent).astype(np.float32)
    return Ranking(
        items=head,
        left=unpack(left, left_exponents, n_factors),
        right=unpack(right, right_exponents, n_factors),
        indptr=indptr,
        pairs=pairs,
        values=wide,
        popularity=popularity,
        threshold=number_of_json(facts["threshold"]),
        lowest_weight=number_of_json(facts["lowest_weight"]),
    )


def rounded(ranking: Ranking) -> Ranking:
    """Return a ranking as it will be read back from its file, so that what is measured is what is released."""
    tensors, facts = ranking_tensors(ranking)
    back = ranking_of_tensors(tensors, facts)
    return replace(ranking, left=back.left, right=back.right, values=back.values)
