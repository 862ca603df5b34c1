"""The block grid on disk: the same blocks as in memory, read one at a time.

A folder with `blocks.bin` (block after block: users, items, codes), `layout.safetensors` and `layout.json`. It is built
in two passes over ratings that come in pieces, with one strip in memory at a time; every block has a checksum.

>>> import tempfile
>>> from dpmf.ratings.store.pieces import pieces_of
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> blocks = BlockFile.build(lambda: pieces_of(ratings), ratings.user_ids, 40, Path(tempfile.mkdtemp()) / "blocks")
>>> len(blocks) == len(ratings)
True
"""

from __future__ import annotations

import math
import os
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.buffers import BufferPool
from dpmf.engine.grid import Block, checksum_of, distinct_values
from dpmf.engine.layout import Layout, type_for_codes
from dpmf.errors import DamagedFile, InvalidRatings
from dpmf.files import (
    dump_json,
    is_sealed,
    load_tensors,
    new_folder,
    read_json,
    save_tensors,
    sealed,
    sha256_of,
    write_text,
)
from dpmf.kernels.blocks import count_tiers, fill_strip, mean_on_grid, sum_on_grid
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.ids import Ids

FORMAT_VERSION = 1
MOST_STRIPS = 1 << 12  # far more than are of use
FILES = ("blocks.bin", "layout.safetensors", "layout.json")
_LAYOUT = ("user_order", "item_order", "strip_starts", "tier_starts")
_TENSORS = (*_LAYOUT, "table", "pointers", "checksums", "user_counts", "item_counts")
Pieces = Callable[[], Iterable[Ratings]]


@dataclass(frozen=True, eq=False)
class BlockFile:
    """Blocks on disk.

    Attributes:
        folder: the folder.
        layout, table, pointers, mean: as in `dpmf.engine.grid.BlockGrid`.
        checksums: the CRC-32 of every block, compared when it is first read.
        user_counts, item_counts: ratings per user and per item, by their positions in the ratings.
        descriptor: the open file of the blocks.
    """

    folder: Path
    layout: Layout
    table: NDArray[np.float32]
    pointers: NDArray[np.int64]
    mean: float
    checksums: NDArray[np.uint32]
    user_counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    descriptor: int
    _checked: set[int] = field(default_factory=set, init=False)
    _buffers: BufferPool = field(default_factory=BufferPool, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @classmethod
    def build(cls, pieces: Pieces, user_ids: Ids, n_items: int, folder: Path, *, size: int | None = None) -> BlockFile:
        """Write the blocks of ratings that come in pieces.

        Args:
            pieces: yields the ratings piece by piece; called twice. The users of all pieces together are `user_ids`
                in the order of their hash, and all pieces number items alike.
            user_ids: all users.
            n_items: the number of items in the catalogue.
            folder: the folder to write.
            size: T; chosen from the number of ratings unless given.
        """
        tally = Tally.of(pieces(), n_items)
        layout = tally.layout(user_ids, size)
        pointers, checksums = [0], list[int]()
        with new_folder(folder, may_replace=FILES, mode=0o700) as work:
            with (work / "blocks.bin").open("wb") as file:
                for content, counts in strips_of(layout, tally.table, pieces()):
                    file.write(b"".join(content))
                    checksums += map(zlib.crc32, content)
                    pointers += (pointers[-1] + np.cumsum(counts)).tolist()
            complete(work, layout, tally, user_ids, np.array(pointers, np.int64), checksums)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> BlockFile:
        """Open a folder that `build` wrote; only the layout is read."""
        facts = read_json(folder / "layout.json")
        if (
            not isinstance(facts, dict)
            or facts.get("format") != "dpmf-blocks"
            or facts.get("version") != FORMAT_VERSION
        ):
            raise DamagedFile(f"{folder} is not a block store of format {FORMAT_VERSION}: ingest the data again")
        if not is_sealed(facts):
            raise DamagedFile(f"{folder / 'layout.json'} is damaged: ingest the data again")
        tensors = load_tensors(folder / "layout.safetensors", _TENSORS)
        if sha256_of(folder / "layout.safetensors") != facts.get("sha256"):
            raise DamagedFile(f"{folder / 'layout.safetensors'} is damaged: ingest the data again")
        try:
            layout, mean = _checked(facts, tensors)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedFile(f"{folder} is damaged ({error}): ingest the data again") from None
        try:
            # Opened once: if the folder is replaced during a run, the run still reads the file it started with.
            descriptor = os.open(folder / "blocks.bin", os.O_RDONLY)
        except FileNotFoundError:
            raise DamagedFile(f"{folder / 'blocks.bin'} is missing: ingest the data again") from None
        opened = cls(folder, layout, mean=mean, descriptor=descriptor, **tensors)
        weakref.finalize(opened, os.close, descriptor)
        if os.fstat(descriptor).st_size != len(opened) * opened.bytes_per_rating:
            raise DamagedFile(f"{folder / 'blocks.bin'} is truncated: ingest the data again")
        return opened

    @property
    def size(self) -> int:
        """T, the number of strips and of tiers."""
        return self.layout.size

    @property
    def bytes_per_rating(self) -> int:
        """The size of a rating."""
        return bytes_of_rating(self.layout, self.table)

    def count(self, strip: int, tier: int) -> int:
        """Return the number of ratings in a block."""
        place = strip * self.size + tier
        return int(self.pointers[place + 1] - self.pointers[place])

    def block(self, strip: int, tier: int) -> Block:
        """Read one block from the disk."""
        place, count = strip * self.size + tier, self.count(strip, tier)
        content = self._buffers.acquire(count * self.bytes_per_rating)
        start = int(self.pointers[place]) * self.bytes_per_rating
        got = os.preadv(self.descriptor, [content.data], start) if count else 0
        with self._lock:
            unchecked = place not in self._checked
        if got != len(content) or (unchecked and zlib.crc32(content.data) != self.checksums[place]):
            raise DamagedFile(f"block ({strip}, {tier}) of {self.folder} is damaged: ingest the data again")
        with self._lock:
            self._checked.add(place)
        columns, offset = [], 0
        for kind in self._types:
            columns.append(content[offset : offset + count * kind.itemsize].view(kind))
            offset += count * kind.itemsize
        starts = self.layout.strip_starts, self.layout.tier_starts
        limits = starts[0][strip + 1] - starts[0][strip], starts[1][tier + 1] - starts[1][tier], len(self.table)
        if count and any(column.max() >= limit for column, limit in zip(columns, limits, strict=True)):
            # Kernels do not check indices, and a checksum is compared only once.
            raise DamagedFile(f"block ({strip}, {tier}) of {self.folder} was changed: ingest the data again")
        return Block(*columns)

    def release(self, block: Block) -> None:
        """Release a block, whose memory is then used for another."""
        self._buffers.release(block.users)

    def fingerprint(self) -> str:
        """Return a checksum of the ratings, by which a resumed run recognises its data."""
        parts = (self.layout.user_order, self.layout.item_order, self.table, self.pointers, self.checksums)
        return f"{checksum_of(parts):08x}"

    @property
    def _types(self) -> tuple[np.dtype[Any], ...]:
        return _types_of(self.layout, self.table)

    def __len__(self) -> int:
        return int(self.pointers[-1])


def _checked(facts: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> tuple[Layout, float]:
    """Return the layout, which is taken out of the tensors, and the mean; raise ValueError or such if any is wrong."""
    size, mean = facts["size"], float(facts["mean"])
    if type(size) is not int or not 1 <= size <= MOST_STRIPS or not math.isfinite(mean):
        raise ValueError("its size or its mean is out of range")
    layout = Layout(size, **{name: tensors.pop(name) for name in _LAYOUT})
    layout.check()
    expected = {
        "table": (np.float32, tensors["table"].shape[:1]),
        "pointers": (np.int64, (size * size + 1,)),
        "checksums": (np.uint32, (size * size,)),
        "user_counts": (np.int64, layout.user_order.shape),
        "item_counts": (np.int64, layout.item_order.shape),
    }
    for name, (kind, shape) in expected.items():
        if tensors[name].dtype != kind or tensors[name].shape != shape:
            raise ValueError(f"{name} is {tensors[name].dtype} of shape {tensors[name].shape}")
    pointers = tensors["pointers"]
    if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any() or not np.isfinite(tensors["table"]).all():
        raise ValueError("blocks should follow each other, and ratings should be finite")
    for name in ("user_counts", "item_counts"):
        # With this limit on each, the sum cannot wrap around to the right one.
        if tensors[name].min(initial=0) < 0 or tensors[name].max(initial=0) > pointers[-1]:
            raise ValueError(f"{name} are out of range")
        if tensors[name].sum() != pointers[-1]:
            raise ValueError(f"{name} do not add up to the number of ratings")
    return layout, mean


def complete(
    folder: Path, layout: Layout, tally: Tally, user_ids: Ids, pointers: NDArray[np.int64], checksums: Sequence[int]
) -> None:
    """Write what describes the blocks that are in a folder already: see `BlockFile`."""
    counts = np.empty(len(user_ids), np.int64)
    counts[user_ids.hash_order] = tally.user_counts
    tensors: dict[str, NDArray[Any]] = {
        "user_order": layout.user_order,
        "item_order": layout.item_order,
        "strip_starts": layout.strip_starts,
        "tier_starts": layout.tier_starts,
        "table": tally.table,
        "pointers": pointers,
        "checksums": np.array(checksums, np.uint32),
        "user_counts": counts,
        "item_counts": tally.item_counts,
    }
    save_tensors(folder / "layout.safetensors", tensors)
    facts = {"format": "dpmf-blocks", "version": FORMAT_VERSION, "size": layout.size, "mean": tally.mean}
    facts["sha256"] = sha256_of(folder / "layout.safetensors")
    write_text(folder / "layout.json", dump_json(sealed(facts)))


@dataclass(frozen=True, eq=False)
class Tally:
    """What blocks are laid out by, found in a pass over the ratings.

    Attributes:
        user_counts: ratings per user, in the order of the pieces.
        item_counts: ratings per item.
        table: the distinct rating values, ascending.
        total: the sum of all ratings, in steps of a grid on the scale.
        scale: of the ratings.
    """

    user_counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    table: NDArray[np.float32]
    total: int
    scale: Scale

    @property
    def mean(self) -> float:
        """The mean rating."""
        return mean_on_grid(self.total, int(self.item_counts.sum()), self.scale.lo, self.scale.hi)

    def layout(self, user_ids: Ids, size: int | None) -> Layout:
        """Return the layout of the blocks; refuse no ratings.

        Args:
            user_ids: all users, whose counts are in the order of their hash.
            size: T; chosen from the number of ratings unless given.
        """
        if not self.item_counts.any():
            raise InvalidRatings("there are no ratings to lay out in blocks")
        counts = np.empty(len(user_ids), np.int64)
        counts[user_ids.hash_order] = self.user_counts
        return Layout.plan(counts, self.item_counts, user_ids.hash_order, size=size)

    def __add__(self, later: Tally) -> Tally:
        """Return the tally of these and later pieces together."""
        return Tally(
            np.concatenate([self.user_counts, later.user_counts]),
            self.item_counts + later.item_counts,
            np.union1d(self.table, later.table),
            self.total + later.total,
            self.scale,
        )

    @classmethod
    def of(cls, pieces: Iterable[Ratings], n_items: int) -> Tally:
        """Return the tally of ratings that come in pieces."""
        users: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        items, table, total, scale = np.zeros(n_items, np.int64), np.zeros(0, np.float32), 0, Scale(0, 1)
        for piece in pieces:
            users.append(np.diff(piece.indptr))
            items += np.bincount(piece.items, minlength=n_items)
            table = np.union1d(table, distinct_values(piece.values)) if len(piece) else table
            scale = piece.scale
            total += int(sum_on_grid(piece.values, scale.lo, scale.hi))
        return cls(np.concatenate(users), items, table, total, scale)


def bytes_of_rating(layout: Layout, table: NDArray[np.float32]) -> int:
    """Return the size of a rating in blocks of this layout, with this table of values."""
    return sum(kind.itemsize for kind in _types_of(layout, table))


def _types_of(layout: Layout, table: NDArray[np.float32]) -> tuple[np.dtype[Any], ...]:
    return layout.user_type, layout.item_type, type_for_codes(len(table))


def strips_of(
    layout: Layout, table: NDArray[np.float32], pieces: Iterable[Ratings], first: int = 0, last: int | None = None
) -> Iterator[tuple[list[bytes], list[int]]]:
    """Yield the contents of the blocks of each strip, as they are stored, and how many ratings each has.

    Args:
        layout, table: of all blocks.
        pieces: the ratings of the users of strips first..last-1, in order.
        first, last: all strips unless given.
    """
    for blocks in _Partitioner(layout, table).strips(pieces, first, layout.size if last is None else last):
        yield [b"".join(column.tobytes() for column in block) for block in blocks], [len(one.codes) for one in blocks]


class _Partitioner:
    """Partitions pieces into blocks, strip after strip."""

    def __init__(self, layout: Layout, table: NDArray[np.float32]) -> None:
        self._layout = layout
        self._table = table
        self._tiers = layout.item_tiers
        self._item_places = layout.places_in_tier.astype(layout.item_type)
        self._types = _types_of(layout, table)
        self._parts: list[list[Block]] = [[] for _ in range(layout.size)]

    def strips(self, pieces: Iterable[Ratings], strip: int, end: int) -> Iterator[list[Block]]:
        """Yield the blocks of strips strip..end-1, in order, given the ratings of their users."""
        starts = self._layout.strip_starts
        done = int(starts[strip])
        for piece in pieces:
            first = 0
            while first < piece.n_users:
                while starts[strip + 1] <= done + first:
                    yield self._take_blocks()
                    strip += 1
                last = min(piece.n_users, int(starts[strip + 1]) - done)
                self._add(piece, first, last, offset=done + first - int(starts[strip]))
                first = last
            done += piece.n_users
        for _ in range(strip, end):
            yield self._take_blocks()

    def _add(self, piece: Ratings, first: int, last: int, offset: int) -> None:
        """Add users first..last-1 of a piece, which begin `offset` users into the strip."""
        chosen = np.arange(first, last)
        counts = count_tiers(piece.indptr, piece.items, chosen, self._tiers, self._layout.size)
        starts = np.concatenate([[0], np.cumsum(counts)])
        block = Block(*(np.empty(starts[-1], kind) for kind in self._types))
        by_user, codes = (piece.indptr, piece.items, piece.values), (self._tiers, self._item_places, self._table)
        fill_strip(*by_user, chosen, *codes, starts[:-1].copy(), *block)
        block.users[:] += block.users.dtype.type(offset)
        for tier, part in enumerate(self._parts):
            within = slice(starts[tier], starts[tier + 1])
            part.append(Block(*(column[within] for column in block)))

    def _take_blocks(self) -> list[Block]:
        empty = Block(*(np.empty(0, kind) for kind in self._types))
        blocks = [Block(*map(np.concatenate, zip(empty, *part, strict=True))) for part in self._parts]
        self._parts = [[] for _ in range(self._layout.size)]
        return blocks
