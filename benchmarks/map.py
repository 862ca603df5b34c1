"""How well the map of the page separates genres, and how long it takes.

    python benchmarks/map.py RELEASE [--nearest 8]
    python benchmarks/map.py --items 18000 --factors 64

For a release with genres: how often the nearest items on the map share a genre with an item, beside the first two
principal components of the same rows, and places at random. Else: the time for items with random factors around 20
centres.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf import Release
from dpmf.serve.embedding import _principal, embed
from dpmf.serve.map import rows_of


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("release", type=Path, nargs="?")
    parser.add_argument("--nearest", type=int, default=8)
    parser.add_argument("--items", type=int, default=18_000)
    parser.add_argument("--factors", type=int, default=64)
    arguments = parser.parse_args()
    if arguments.release is None:
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(20, arguments.factors))[rng.integers(0, 20, arguments.items)]
        rows = rows + 0.5 * rng.normal(size=rows.shape)
        print(json.dumps({"items": len(rows), "factors": arguments.factors, **_timed(rows)[1]}))
        return
    release = Release.load(arguments.release)
    mapped, rows = rows_of(release)
    genres = [set(text.split("|")) for text, shown in zip(release.items.genres, mapped, strict=True) if shown]
    places, seconds = _timed(rows)
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    others = {"components": _principal(units), "random": np.random.default_rng(0).normal(size=places.shape)}
    shared = {name: _shared(one, genres, arguments.nearest) for name, one in {"map": places, **others}.items()}
    print(json.dumps({"items": len(rows), "factors": rows.shape[1], **seconds, "share_a_genre": shared}))


def _timed(rows: NDArray[Any]) -> tuple[NDArray[np.float64], dict[str, float]]:
    begun, computed = time.perf_counter(), time.process_time()
    places = embed(rows)
    found = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - computed}
    return places, {name: round(value, 2) for name, value in found.items()}


def _shared(places: NDArray[np.float64], genres: list[set[str]], nearest: int) -> float:
    """Return how often one of the nearest items shares a genre with an item."""
    count = 0
    for item, place in enumerate(places):
        squares = np.square(places - place).sum(axis=1)
        squares[item] = np.inf
        count += sum(bool(genres[item] & genres[other]) for other in np.argsort(squares)[:nearest])
    return round(count / (nearest * len(places)), 3)


if __name__ == "__main__":
    main()
