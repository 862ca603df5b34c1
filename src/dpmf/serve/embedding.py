"""A neighbour embedding: points in many dimensions laid out in two, such that neighbours stay neighbours.

It is t-SNE (van der Maaten and Hinton 2008) with two changes for a catalogue: neighbours are by direction, as similar
items are, and only the nearest few attract each other. Repulsion between all pairs is interpolated on a grid (Linderman
et al. 2019), so 18,000 points take seconds. Nothing is drawn at random: it starts from the first two principal
components, and the same rows give the same layout.

>>> group = np.arange(120) // 30
>>> places = embed(np.eye(4)[group] + 0.1 * np.sin(np.arange(480)).reshape(120, 4))
>>> apart = np.linalg.norm(places[:, None] - places, axis=2)
>>> bool((group[np.argsort(apart)[:, :20]] == group[:, None]).all())
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST = 100  # points; fewer are shown well enough by their principal components
_NEIGHBOURS = 18
_PERPLEXITY = 8.0
_ROUNDS = 240
_EXAGGERATED = 80  # rounds in which neighbours attract each other more, so that groups find together
_EXAGGERATION = 12.0
_LASTING = 2.0  # afterwards: above 1, groups stay apart
_CELL, _MOST_CELLS = 1.0, 160  # of the grid: its width, beside the 1 at which repulsion halves, and their number
_AT_ONCE = 1 << 24  # products


def embed(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return a place in the plane for each row, shape (n, 2), centred. Fewer than 100 rows or 3 columns are projected.

    Args:
        rows: shape (n, K). What is embedded are their directions; a row of zeros has none, and ends up somewhere.
    """
    n = len(rows)
    rows = np.asarray(rows, np.float64)
    if n < _LEAST or rows.shape[1] <= 2:
        return _principal(rows)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1.0)
    places = _principal(units)
    if not places.any():
        return places
    sources, targets, weights = _attractions(units)
    places *= 1e-2 / places.std(axis=0).max()
    velocity, gains = np.zeros_like(places), np.ones_like(places)
    rate = max(n / _EXAGGERATION / 4, 10.0)
    for number in range(_ROUNDS):
        together = _EXAGGERATION if number < _EXAGGERATED else _LASTING
        dx, dy = (along[sources] - along[targets] for along in places.T.copy())
        pull = together * weights / (1.0 + dx * dx + dy * dy)
        attraction = np.stack([np.bincount(sources, pull * along, n) for along in (dx, dy)], axis=1)
        push, total = _repel(places)
        gradient = 4 * (attraction - push / total)
        same = np.sign(gradient) == np.sign(velocity)
        gains = np.maximum(np.where(same, 0.8 * gains, gains + 0.2), 0.01)
        velocity = (0.5 if number < _EXAGGERATED else 0.8) * velocity - 4 * rate * gains * gradient
        places = places + velocity
        places -= places.mean(axis=0)
    return _principal(places)  # the long way lies along the first axis


def _principal(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first two principal components, each with the sign that makes its greatest entry positive."""
    if rows.size == 0:
        return np.zeros((len(rows), 2))
    centred = rows - rows.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :2]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    found = centred @ axes
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def _attractions(units: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return pairs of neighbours, both ways, with weights that add up to 1."""
    n = len(units)
    units = units.astype(np.float32)
    k = min(_NEIGHBOURS, n - 1)
    nearest, squares = np.empty((n, k), np.intp), np.empty((n, k))
    for first in range(0, n, step := max(1, _AT_ONCE // n)):
        near = units[first : first + step] @ units.T
        near[np.arange(len(near)), np.arange(first, first + len(near))] = -np.inf
        found = np.argpartition(-near, k - 1, axis=1)[:, :k]
        nearest[first : first + step] = found
        squares[first : first + step] = 2 - 2.0 * np.take_along_axis(near, found, axis=1)
    weights = _shares(np.maximum(squares, 0.0), min(_PERPLEXITY, k / 2))
    here, there = np.repeat(np.arange(n), k), nearest.ravel()
    both = np.concatenate([here * n + there, there * n + here])
    pairs, which = np.unique(both, return_inverse=True)
    joint = np.bincount(which, np.tile(weights.ravel(), 2))
    return pairs // n, pairs % n, joint / joint.sum()


def _shares(squares: NDArray[np.float64], perplexity: float) -> NDArray[np.float64]:
    """Return Gaussian weights of neighbours, a row each, of a width that makes their entropy log(perplexity)."""
    squares = squares - squares.min(axis=1, keepdims=True)
    low, high = np.full(len(squares), -20.0), np.full(len(squares), 60.0)  # log₂ of the precision
    for _ in range(40):
        middle = (low + high) / 2
        shares = np.exp(-squares * np.exp2(middle)[:, None])
        shares /= shares.sum(axis=1, keepdims=True)
        entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return np.asarray(shares, np.float64)


def _repel(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return Σ_j (y_i − y_j) q_ij² for each i, and Σ_{i ≠ j} q_ij, with q_ij = 1 / (1 + |y_i − y_j|²).

    Both are convolutions over the plane. Each point is spread over the four corners of its cell in a grid, where
    Fourier transforms compute them, and reads its value off the same corners.
    """
    from scipy.fft import irfft2, next_fast_len, rfft2

    least = places.min(axis=0)
    extent = float((places.max(axis=0) - least).max())
    cells = int(np.clip(np.ceil(extent / (_CELL / 2)), 24, _MOST_CELLS))
    width = extent / cells or 1.0
    at = (places - least) / width
    corner = np.minimum(at.astype(np.intp), cells - 1)
    share = at - corner
    size = cells + 1
    corners = [
        ((corner[:, 0] + a) * size + corner[:, 1] + b, np.abs(1 - a - share[:, 0]) * np.abs(1 - b - share[:, 1]))
        for a in (0, 1) for b in (0, 1)
    ]  # fmt: skip
    padded = next_fast_len(2 * size - 1, real=True)
    offsets = np.arange(padded)
    offsets = np.where(offsets < size, offsets, offsets - padded) * width
    kernel = 1.0 / (1.0 + np.square(offsets)[:, None] + np.square(offsets))
    once, twice = rfft2(kernel), rfft2(np.square(kernel))

    def summed(charges: NDArray[np.float64]) -> Any:
        grid = sum(np.bincount(where, charges * part, size * size) for where, part in corners)
        return rfft2(np.reshape(grid, (size, size)), (padded, padded))

    def read(spectrum: Any) -> NDArray[np.float64]:
        field = irfft2(spectrum, (padded, padded))[:size, :size].ravel()
        return np.asarray(sum(field[where] * part for where, part in corners), np.float64)

    count, x, y = (summed(charges) for charges in (np.ones(len(places)), places[:, 0], places[:, 1]))
    weights = read(count * twice)
    push = places * weights[:, None] - np.stack([read(x * twice), read(y * twice)], axis=1)
    return push, max(float(read(count * once).sum()) - _with_itself(share, width), 1e-12)


def _with_itself(share: NDArray[np.float64], width: float) -> float:
    """Return what of Σ q_ij on the grid is points with themselves: a bit less than 1 each, as they are spread out."""
    same, next_to = np.square(share) + np.square(1 - share), 2 * share * (1 - share)
    found = same.prod(axis=1) + next_to.prod(axis=1) / (1 + 2 * width**2)
    found += (same[:, 0] * next_to[:, 1] + same[:, 1] * next_to[:, 0]) / (1 + width**2)
    return float(found.sum())
