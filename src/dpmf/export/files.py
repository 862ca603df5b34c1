"""Exports on disk: a folder each, with the items, what it is, and the guarantee of the release it was made from.

Item numbers in indexes and arrays are rows of `items.csv`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DpmfError, InvalidArgument, MissingExtra, NotVerified
from dpmf.export.vectors import Vectors, vectors_of
from dpmf.files import dump_json, new_folder, write_text
from dpmf.methods.verification import verify_release
from dpmf.model import Release
from dpmf.ratings.formats.database import open_database

ABOUT, ITEMS = "about.json", "items.csv"
FORMATS = ("numpy", "parquet", "faiss", "usearch", "onnx")
_FILES = {
    "numpy": (
        *("vectors.npy", "ranking_items.npy", "ranking_left.npy", "ranking_right.npy"),
        *("ranking_pairs.npz", "ranking_popularity.npy"),
    ),
    "parquet": ("vectors.parquet",),
    "faiss": ("index.faiss",),
    "usearch": ("index.usearch",),
    "onnx": ("recommend.onnx",),
}
_EXPECTED = "an expected rating is the inner product + mean + the person's bias"
_CONNECTIVITY, _EXPANSION = 32, 1024  # of usearch: with how far it looks around, it finds more than 99 of 100


class Exported(NamedTuple):
    """What was written.

    Attributes:
        about: what about.json says.
        files: names and sizes in bytes.
    """

    about: dict[str, Any]
    files: dict[str, int]


def export(release: Release, to: str, folder: str | Path, part: str | None = None) -> Exported:
    """Write a release in another form to a folder, which is complete or not there.

    Args:
        release: what to export; one whose epsilon does not follow from its events is refused.
        to: "numpy" (all arrays), "parquet" (a row per item, with its vector), "faiss" or "usearch" (an index of the
            vectors), "onnx" (a graph from a person's ratings to scores of all items).
        folder: where; an older export of the same form is replaced.
        part: of what there are vectors, "ratings" or "ranking": the rating model if there is one. An ONNX graph and
            NumPy arrays have all parts.
    """
    if to not in FORMATS:
        raise InvalidArgument(f"to={to!r} is not known: choose from {', '.join(FORMATS)}")
    if part is not None and to in ("numpy", "onnx"):
        raise InvalidArgument(f"part={part!r} means nothing for to={to!r}, which has all parts: leave it out")
    if not (verdict := verify_release(release)).ok:
        raise NotVerified(f"this release cannot be exported: {verdict.reason}; do not trust it")
    about = {"format": "dpmf-export", "version": 1, "to": to, "feedback": release.feedback}
    about |= {"scale": [release.scale.lo, release.scale.hi], "mean": release.mean}
    positions = np.arange(len(release.items), dtype=np.int32)
    with new_folder(Path(folder), may_replace=(ABOUT, ITEMS, *_FILES[to])) as work:
        if to == "onnx":
            from dpmf.export.graph import write_graph

            about |= write_graph(release, work / _FILES[to][0])
        elif to == "numpy":
            about |= _write_arrays(release, work)
        else:
            vectors = vectors_of(release, part)
            about |= _about(release, vectors)
            if to == "usearch":
                about["search"] = {"expansion_search": _EXPANSION}  # which the file of an index does not keep
            try:
                _WRITERS[to](release, vectors, work / _FILES[to][0])
            except RuntimeError as error:  # of the libraries of indexes, when a disk is full, say
                raise DpmfError(f"{to} could not write its file: {error}") from None
            positions = vectors.positions
        write_text(work / ITEMS, _items_csv(release, positions))
        about["guarantee"] = release.guarantee.to_json()
        write_text(work / ABOUT, dump_json(about))
        sizes = {file.name: file.stat().st_size for file in sorted(work.iterdir())}
    return Exported(about, sizes)


def _about(release: Release, vectors: Vectors) -> dict[str, Any]:
    """Return what somebody has to know who searches vectors."""
    known: dict[str, Any] = {
        "part": vectors.part,
        "items": len(vectors.items),
        "dimensions": vectors.items.shape[1],
        "metric": "inner product",
    }
    if vectors.part == "ratings":
        meant = "a score is the inner product" if release.is_implicit else _EXPECTED
        known["query"] = f"a person's factors, then 1; {meant}"
        if release.behind is not None:
            last = np.count_nonzero(release.behind)
            known["left_out"] = [f"that {last:,} items, of whose ratings no more than noise is known, are listed last"]
        known["ridge"] = {name: getattr(release.ridge, name) for name in ("bias", "factors", "exponent")}
    else:
        known["query"] = "the sum of weight times left factor over what a person has"
        known["agreement"] = round(vectors.agreement, 4)
        known["left_out"] = _left_out(release)
    return known


def _left_out(release: Release) -> list[str]:
    """Return what of a ranking vectors do not have."""
    ranking = release.ranking
    assert ranking is not None
    others = len(release.items) - len(ranking.items)
    return [
        f"contributions of {len(ranking.pairs):,} single pairs of items",
        f"{others:,} items outside the head, which follow by popularity",
    ]


def _write_arrays(release: Release, folder: Path) -> dict[str, Any]:
    """Write all arrays of a release; vectors are those of the rating model."""
    about: dict[str, Any] = {"parts": [part for part in ("ratings", "ranking") if _has(release, part)]}
    if release.predicts:
        vectors = vectors_of(release, "ratings")
        about |= _about(release, vectors)
        np.save(folder / "vectors.npy", vectors.items)
    ranking = release.ranking
    if ranking is None:
        return about
    from scipy.sparse import csr_array, save_npz

    head = len(ranking.items)
    for name in ("items", "left", "right", "popularity"):
        np.save(folder / f"ranking_{name}.npy", getattr(ranking, name))
    save_npz(folder / "ranking_pairs.npz", csr_array((ranking.values, ranking.pairs, ranking.indptr), (head, head)))
    rule = {
        "threshold": ranking.threshold,
        "lowest_weight": ranking.lowest_weight,
        "weighs_counts": release.weighs_counts,
    }
    return {**about, "items": len(release.items), "ranking": rule}


def _has(release: Release, part: str) -> bool:
    return release.predicts if part == "ratings" else release.ranks


def _items_csv(release: Release, positions: NDArray[Any]) -> str:
    """Return the items that rows of vectors stand for, in their order."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "item", "title", "genres"])
    items = release.items
    writer.writerows(
        [row, items.ids[int(place)], items.titles[place], items.genres[place]] for row, place in enumerate(positions)
    )
    return text.getvalue()


def _write_parquet(release: Release, vectors: Vectors, path: Path) -> None:
    """Write a row per item: row, item, title, genres, vector."""
    items, n, width = release.items, *vectors.items.shape
    places = vectors.positions
    rows: Mapping[str, Any] = {
        "row": np.arange(n),
        "item": items.ids.array[places],
        "title": np.array(items.titles, object)[places],
        "genres": np.array(items.genres, object)[places],
    }
    flat = {
        "row": np.repeat(np.arange(n), width),
        "place": np.tile(np.arange(width), n),
        "value": vectors.items.ravel(),
    }
    target = str(path).replace("'", "''")
    with open_database(None) as connection:
        connection.register("rows", dict(rows))
        connection.register("flat", flat)
        listed = f"SELECT row, list(value ORDER BY place)::FLOAT[{width}] AS vector FROM flat GROUP BY row"
        joined = f"SELECT rows.*, vector FROM rows JOIN ({listed}) USING (row) ORDER BY row"
        connection.execute(f"COPY ({joined}) TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")


def _write_faiss(release: Release, vectors: Vectors, path: Path) -> None:
    """Write an index of exact inner products: a catalogue is small enough to be searched whole."""
    try:
        import faiss
    except ImportError:
        raise _missing("faiss", "faiss-cpu") from None
    index = faiss.IndexFlatIP(vectors.items.shape[1])
    index.add(vectors.items)
    faiss.write_index(index, str(path))


def _write_usearch(release: Release, vectors: Vectors, path: Path) -> None:
    """Write a graph of neighbours by inner product."""
    try:
        from usearch.index import Index
    except ImportError:
        raise _missing("usearch", "usearch") from None
    width = vectors.items.shape[1]
    index = Index(ndim=width, metric="ip", dtype="f32", connectivity=_CONNECTIVITY, expansion_add=_EXPANSION // 2)
    index.add(np.arange(len(vectors.items), dtype=np.uint64), vectors.items, threads=1)
    index.save(str(path))


def _missing(library: str, package: str) -> MissingExtra:
    return MissingExtra(f"{library} is not installed: pip install 'dpmf[export]', or {package} alone")


_WRITERS: Mapping[str, Callable[[Release, Vectors, Path], None]] = {
    "parquet": _write_parquet,
    "faiss": _write_faiss,
    "usearch": _write_usearch,
}
