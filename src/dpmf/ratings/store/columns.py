"""Ratings on the disk in dpmf's own form: columns in the order in which pieces are read, with a checksum per piece.

A folder with `store.json`, `store.safetensors` (ids, titles, counts, checksums) and the columns `items.bin`,
`values.bin` and perhaps `times.bin`, user after user in the order of `Ids.hash_order`. It opens at once whatever its
size, and any piece of it can be read without the others.

>>> import tempfile
>>> from dpmf.ratings.store.pieces import MemorySource
>>> ratings = Ratings.of(["ann", "bob", "ann"], ["Heat", "Up", "Up"], [4, 3, 2], scale=(1, 5))
>>> RatingsOnDisk.write(MemorySource(ratings), Path(tempfile.mkdtemp())).load()
Ratings(3 ratings, 2 users, 2 items, scale 1:5)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DamagedFile, InvalidArgument, InvalidRatings
from dpmf.files import dump_json, is_sealed, load_tensors, read_json, save_tensors, sealed, sha256_of, write_text
from dpmf.ratings.described import Description
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.subset import select_users
from dpmf.ratings.table import Ratings, Scale

FORMAT_VERSION = 1
FACTS_FILE, TENSOR_FILE = "store.json", "store.safetensors"
COLUMNS: dict[str, np.dtype[Any]] = {
    "items": np.dtype(np.int32),
    "values": np.dtype(np.float32),
    "times": np.dtype(np.int64),
}
FILES = (FACTS_FILE, TENSOR_FILE, *(f"{column}.bin" for column in COLUMNS))
_RATINGS_PER_PIECE = 1 << 20
_AGAIN = "ingest the data again"


class Described(Protocol):
    """Ratings of which everything but themselves is known."""

    @property
    def user_ids(self) -> Ids:
        """All users."""

    @property
    def catalogue(self) -> Items:
        """All items."""

    @property
    def scale(self) -> Scale:
        """The rating scale."""

    @property
    def name(self) -> str:
        """What to call the data set."""

    @property
    def users_about(self) -> int | None:
        """About how many users there are, if that was declared."""


class Source(Described, Protocol):
    """Ratings that come in pieces: all ratings of some users at a time, users in the order of `Ids.hash_order`."""

    def pieces(self) -> Iterable[Ratings]:
        """Yield the pieces, from the first on."""


def with_positions(source: Source) -> Iterator[tuple[NDArray[np.int64], Ratings]]:
    """Yield the pieces of a source, each with the positions of its users among all users."""
    done = 0
    for piece in source.pieces():
        yield source.user_ids.hash_order[done : done + piece.n_users], piece
        done += piece.n_users


def is_store(path: str | Path) -> bool:
    """Tell whether a path is a folder that `RatingsOnDisk.write` wrote."""
    return (Path(path) / FACTS_FILE).is_file()


@dataclass(frozen=True, eq=False)
class RatingsOnDisk:
    """Ratings in a folder.

    Attributes:
        folder: where they are.
        user_ids, catalogue, scale, name, users_about: as in `Ratings`.
        counts: ratings per user, in the order of `user_ids.hash_order`.
        piece_starts: the first user of each piece in that order, and the end.
        checksums: CRC-32 of each piece's columns, one column after the other.
        has_times: whether every rating has a timestamp.
    """

    folder: Path
    user_ids: Ids
    catalogue: Items
    scale: Scale
    name: str
    counts: NDArray[np.int64]
    piece_starts: NDArray[np.int64]
    checksums: NDArray[np.uint32]
    has_times: bool
    users_about: int | None = None

    @classmethod
    def write(cls, source: Source, folder: Path) -> RatingsOnDisk:
        """Write ratings that come in pieces to an existing folder."""
        counts: list[NDArray[np.int64]] = []
        checksums: list[int] = []
        names: tuple[str, ...] = ()
        with ExitStack() as stack:
            files: dict[str, IO[bytes]] = {}
            for piece in (small for large in source.pieces() for small in _small_pieces(large)):
                columns = columns_of(piece)
                if not counts:
                    names = tuple(columns)
                    files = {name: stack.enter_context((folder / f"{name}.bin").open("wb")) for name in names}
                if tuple(columns) != names:
                    raise InvalidRatings("some ratings have timestamps and others have none: leave them out")
                for name in names:
                    files[name].write(columns[name].data)
                counts.append(np.diff(piece.indptr))
                checksums.append(checksum_of_piece(columns[name] for name in names))
        if not sum(int(part.sum()) for part in counts):
            raise InvalidRatings("there are no ratings to store")
        complete(folder, source, np.concatenate(counts), np.cumsum([0, *map(len, counts)]), checksums, "times" in names)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> RatingsOnDisk:
        """Open what `write` wrote; of the ratings themselves only the size is checked."""
        facts = read_json(folder / FACTS_FILE)
        if not isinstance(facts, dict) or facts.get("format") != "dpmf-store":
            raise DamagedFile(f"{folder / FACTS_FILE} does not describe a store of ratings: {_AGAIN}")
        if facts.get("version") != FORMAT_VERSION:
            raise DamagedFile(f"{folder} is a store of format {facts.get('version')}, not {FORMAT_VERSION}: {_AGAIN}")
        if not is_sealed(facts):
            raise DamagedFile(f"{folder / FACTS_FILE} is damaged: {_AGAIN}")
        try:
            names, has_times = list(facts["tensors"]), bool(facts["has_times"])
            tensors = load_tensors(folder / TENSOR_FILE, names)
            if sha256_of(folder / TENSOR_FILE) != facts["sha256"]:
                raise DamagedFile(f"{folder / TENSOR_FILE} is damaged: {_AGAIN}")
            declared, scale = facts["catalogue_declared"] is True, facts["scale"]
            titles, genres = (_texts_of_tensors(name, tensors) for name in ("titles", "genres"))
            catalogue = Items(_ids_of_tensors("items", tensors), titles, genres, declared=declared)
            opened = cls(
                folder=folder,
                user_ids=_ids_of_tensors("users", tensors),
                catalogue=catalogue.described(*_descriptions(facts.get("descriptions", ()), tensors)),
                # What the store does not call declared is not: a private run treats declared facts as public.
                scale=Scale(
                    scale["lo"], scale["hi"], declared=scale["declared"] is True, counts=scale.get("counts") is True
                ),
                name=str(facts["name"]),
                counts=tensors["counts"],
                piece_starts=tensors["piece_starts"],
                checksums=tensors["checksums"],
                has_times=has_times,
                users_about=None if facts.get("users_about") is None else int(facts["users_about"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, InvalidArgument) as error:
            raise DamagedFile(f"{folder / FACTS_FILE} is damaged ({error}): {_AGAIN}") from None
        opened._check()
        for name in opened._columns:
            path = folder / f"{name}.bin"
            if not path.is_file() or path.stat().st_size != len(opened) * COLUMNS[name].itemsize:
                raise DamagedFile(f"{path} is truncated or missing: {_AGAIN}")
        return opened

    def _check(self) -> None:
        """Refuse parts that are not consistent: kernels rely on it."""
        counts, starts, n_users = self.counts, self.piece_starts, len(self.user_ids)
        shapes = counts.shape == (n_users,) and starts.ndim == 1 and self.checksums.shape == (len(starts) - 1,)
        kinds = counts.dtype == starts.dtype == np.int64 and self.checksums.dtype == np.uint32
        if not (shapes and kinds and len(starts) and starts[0] == 0 and starts[-1] == n_users):
            raise DamagedFile(f"{self.folder / TENSOR_FILE} is damaged (counts or pieces of other sizes): {_AGAIN}")
        most = (1 << 62) // max(n_users, 1)  # so that no sum wraps around
        if (starts[1:] < starts[:-1]).any() or counts.min(initial=0) < 0 or counts.max(initial=0) > most:
            raise DamagedFile(f"{self.folder / TENSOR_FILE} is damaged (counts out of range): {_AGAIN}")

    def pieces(self) -> Iterator[Ratings]:
        """Yield all ratings, some users at a time, in the order of `user_ids.hash_order`."""
        return self._pieces(range(len(self.checksums)))

    def between(self, first: int, last: int) -> Iterator[Ratings]:
        """Yield the ratings of users first..last-1 in the order of `user_ids.hash_order`, some users at a time."""
        numbers = range(
            int(np.searchsorted(self.piece_starts, first, "right")) - 1,
            int(np.searchsorted(self.piece_starts, last, "left")),
        )
        for number, piece in zip(numbers, self._pieces(numbers), strict=True):
            start = int(self.piece_starts[number])
            chosen = np.arange(max(first - start, 0), min(last - start, piece.n_users))
            yield piece if len(chosen) == piece.n_users else select_users(piece, chosen)

    def _pieces(self, numbers: range) -> Iterator[Ratings]:
        """Yield consecutive pieces."""
        begin = int(self.counts[: self.piece_starts[numbers.start]].sum())
        with ExitStack() as stack:
            files = {
                name: stack.enter_context((self.folder / f"{name}.bin").open("rb", buffering=0))
                for name in self._columns
            }
            for name, file in files.items():
                file.seek(begin * COLUMNS[name].itemsize)
            for number in numbers:
                first, last = self.piece_starts[number : number + 2].tolist()
                indptr = np.concatenate([[0], np.cumsum(self.counts[first:last])])
                columns = {name: _read(file, int(indptr[-1]), COLUMNS[name]) for name, file in files.items()}
                if checksum_of_piece(columns.values()) != self.checksums[number]:
                    raise DamagedFile(f"ratings {begin + 1:,} and on in {self.folder} are damaged: {_AGAIN}")
                items, values = columns["items"], columns["values"]
                known = not len(items) or 0 <= items.min() <= items.max() < len(self.catalogue)
                if not known or not np.isfinite(values).all():
                    raise DamagedFile(f"ratings {begin + 1:,} and on in {self.folder} are out of range: {_AGAIN}")
                begin += int(indptr[-1])
                user_ids = Ids(self.user_ids.array[self.user_ids.hash_order[first:last]])
                yield self._ratings(indptr, columns, user_ids)

    def load(self) -> Ratings:
        """Return all ratings in memory."""
        order = self.user_ids.hash_order
        indptr = self.indptr
        columns = {name: np.empty(len(self), COLUMNS[name]) for name in self._columns}
        for (first, last), piece in zip(pairwise(self.piece_starts.tolist()), self.pieces(), strict=True):
            places = np.repeat(indptr[order[first:last]] - piece.indptr[:-1], np.diff(piece.indptr))
            places += np.arange(len(piece))
            for name, column in columns_of(piece).items():
                columns[name][places] = column
        return self._ratings(indptr, columns, self.user_ids)

    def _ratings(self, indptr: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], user_ids: Ids) -> Ratings:
        return Ratings(
            indptr=indptr,
            items=columns["items"],
            values=columns["values"],
            timestamps=columns.get("times"),
            user_ids=user_ids,
            catalogue=self.catalogue,
            scale=self.scale,
            name=self.name,
            users_about=self.users_about,
        )

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where each user's ratings begin if users stand in the order of `user_ids`, and the end."""
        counts = np.empty(len(self.user_ids), np.int64)
        counts[self.user_ids.hash_order] = self.counts
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def _columns(self) -> tuple[str, ...]:
        return ("items", "values", "times") if self.has_times else ("items", "values")

    def __len__(self) -> int:
        return int(self.counts.sum())


def complete(
    folder: Path,
    source: Described,
    counts: NDArray[np.int64],
    piece_starts: NDArray[np.int64],
    checksums: Sequence[int],
    has_times: bool,
) -> None:
    """Write what describes columns that are in a folder already; arguments as the attributes of `RatingsOnDisk`."""
    tensors: dict[str, NDArray[Any]] = {
        **_ids_as_tensors("users", source.user_ids),
        **_ids_as_tensors("items", source.catalogue.ids),
        **_texts_as_tensors("titles", source.catalogue.titles),
        **_texts_as_tensors("genres", source.catalogue.genres),
        "counts": counts,
        "piece_starts": piece_starts,
        "checksums": np.array(checksums, np.uint32),
        **{f"description {place}": one.columns for place, one in enumerate(source.catalogue.descriptions)},
    }
    save_tensors(folder / TENSOR_FILE, tensors)
    facts = {
        "format": "dpmf-store",
        "version": FORMAT_VERSION,
        "name": source.name,
        "scale": asdict(source.scale),
        "catalogue_declared": source.catalogue.declared,
        "has_times": has_times,
        "tensors": sorted(tensors),
        "sha256": sha256_of(folder / TENSOR_FILE),
    }
    if source.users_about is not None:
        facts["users_about"] = source.users_about
    if source.catalogue.descriptions:
        facts["descriptions"] = [{"what": one.what, "digest": one.digest} for one in source.catalogue.descriptions]
    write_text(folder / FACTS_FILE, dump_json(sealed(facts)))


def _small_pieces(piece: Ratings) -> Iterator[Ratings]:
    """Yield a piece in parts of a size that is easy to hold; a user stays whole."""
    for first, last in pairwise(small_parts(piece.indptr)):
        yield piece if (first, last) == (0, piece.n_users) else select_users(piece, np.arange(first, last))


def small_parts(indptr: NDArray[np.int64]) -> list[int]:
    """Return the first user of each part of a piece, and the end, given where each user's ratings begin."""
    starts = [0]
    while starts[-1] < len(indptr) - 1:
        reach = int(np.searchsorted(indptr, indptr[starts[-1]] + _RATINGS_PER_PIECE, "right")) - 1
        starts.append(max(starts[-1] + 1, reach))
    return starts


def columns_of(piece: Ratings) -> dict[str, NDArray[Any]]:
    """Return the columns of a piece as they are stored."""
    columns: dict[str, NDArray[Any]] = {"items": piece.items, "values": piece.values}
    if piece.timestamps is not None:
        columns["times"] = piece.timestamps
    return {name: np.ascontiguousarray(column, COLUMNS[name]) for name, column in columns.items()}


def checksum_of_piece(columns: Iterable[NDArray[Any]]) -> int:
    """Return the CRC-32 of the columns of a piece, one after the other."""
    checksum = 0
    for column in columns:
        checksum = zlib.crc32(column.view(np.uint8).data, checksum)
    return checksum


def _read(file: Any, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    column = np.empty(count, kind)
    if count:
        file.readinto(column.view(np.uint8).data)  # a short read is caught by the checksum
    return column


def _ids_as_tensors(name: str, ids: Ids) -> dict[str, NDArray[Any]]:
    return {name: ids.array} if ids.array.dtype.kind == "i" else _texts_as_tensors(name, ids.array.tolist())


def _descriptions(told: Sequence[Any], tensors: Mapping[str, NDArray[Any]]) -> list[Description]:
    """Return what is said about items beside their titles and genres."""
    found = []
    for place, one in enumerate(told):
        columns = tensors[f"description {place}"]
        if columns.ndim != 2 or columns.dtype != np.float32 or not np.isfinite(columns).all():
            raise ValueError(f"description {place} should be a finite float32 matrix")
        found.append(Description(str(one["what"]), str(one["digest"]), columns))
    return found


def _ids_of_tensors(name: str, tensors: dict[str, NDArray[Any]]) -> Ids:
    if name in tensors:
        return Ids(tensors[name])
    texts = np.empty(len(tensors[f"{name}_ends"]), object)
    texts[:] = _texts_of_tensors(name, tensors)
    return Ids(texts)


def _texts_as_tensors(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    content = np.frombuffer(b"".join(encoded), np.uint8)
    return {f"{name}_text": content, f"{name}_ends": np.cumsum([len(one) for one in encoded], dtype=np.int64)}


def _texts_of_tensors(name: str, tensors: dict[str, NDArray[Any]]) -> list[str]:
    content, ends = tensors[f"{name}_text"].tobytes(), tensors[f"{name}_ends"].tolist()
    return [content[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends[:-1]], ends, strict=True)]
