"""What passes between the parties, as bytes: typed, compact, and refused unless it is exactly what it should be.

Numbers are little-endian. Every message begins with the version of the format, its kind and the number of the round.
Lists of items and of users ascend, so that nothing can stand in them twice. Neither contents nor senders appear in a
message's `repr` or in what is said when one is refused.

>>> words = np.arange(4, dtype=np.uint32).reshape(2, 2)
>>> content = Answer(7, np.array([3, 5], np.uint32), words).encoded(Ring(4))
>>> Answer.decoded(content, Sizes(n_items=6, n_factors=2), Ring(4)).words.tolist()
[[0, 1], [2, 3]]
>>> Answer.decoded(content[:-1], Sizes(n_items=6, n_factors=2), Ring(4))
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the message has the wrong length
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.wire.masks import SEED_BYTES
from dpmf.federated.wire.refusals import Refused
from dpmf.federated.wire.ring import Ring
from dpmf.kernels.protocol import in_range

VERSION = 1
_HEADER = struct.Struct("<BBI")
_COUNT = struct.Struct("<I")
_TASK = struct.Struct("<BII")
_DEALT, _FIXED = 1, 2  # flags of a task
_U4 = np.dtype("<u4")
_U8 = np.dtype("<u8")
_F4 = np.dtype("<f4")
_U2 = np.dtype("<u2")
_LARGEST = 1e6  # of an item factor: a recommender that sends more has gone astray
MOST_USERS = 1 << 24

Words = NDArray[Any]
Handles = NDArray[np.uint32]


class Sizes(NamedTuple):
    """What lengths and values are checked against."""

    n_items: int
    n_factors: int


def kind_of(content: bytes) -> tuple[int, int]:
    """Return kind and round of a message."""
    if len(content) < _HEADER.size:
        raise Refused("the message is too short")
    version, kind, number = _HEADER.unpack_from(content)
    if version != VERSION:
        raise Refused("the message has another version of the format")
    return kind, number


def digest_of_items(items: NDArray[np.uint32]) -> int:
    """Return 64 bits that tell lists of items apart."""
    return int.from_bytes(hashlib.blake2b(items.astype(_U4).tobytes(), digest_size=8).digest(), "little")


class Reader:
    """Takes a message apart from the front."""

    def __init__(self, content: bytes, kind: int) -> None:
        found, self.round = kind_of(content)
        if found != kind:
            raise Refused("the message is of another kind")
        self._content, self._at = memoryview(content), _HEADER.size

    def take(self, n_bytes: int) -> memoryview:
        """Take so many bytes."""
        part = self._content[self._at : self._at + n_bytes]
        if len(part) < n_bytes:
            raise Refused("the message has the wrong length")
        self._at += n_bytes
        return part

    def struct(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Take numbers."""
        return layout.unpack(self.take(layout.size))

    def array(self, dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
        """Take an array."""
        count = 1
        for length in shape:
            count *= length  # in Python's numbers, which do not overflow
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).reshape(shape)

    def places(self, below: int) -> NDArray[np.uint32]:
        """Take a list that ascends, all of it below a number."""
        (count,) = self.struct(_COUNT)
        if count > below:
            raise Refused("a list is longer than it can be")
        found = self.array(_U4, count)
        if count and (int(found[-1]) >= below or not (found[1:] > found[:-1]).all()):
            raise Refused("a list does not ascend, or names what there is not")
        return found

    def end(self) -> None:
        """Refuse what is left over."""
        if self._at != len(self._content):
            raise Refused("the message has the wrong length")


def head(kind: int, number: int) -> bytes:
    """Return how a message begins."""
    return _HEADER.pack(VERSION, kind, number)


def listed(places: NDArray[np.uint32]) -> bytes:
    """Return a list that ascends, as `Reader.places` takes it."""
    return _COUNT.pack(len(places)) + np.ascontiguousarray(places, _U4).tobytes()


@dataclass(frozen=True, eq=False, repr=False)
class Wanted:
    """User to recommender, on coming: these are the items whose profiles I need. It tells what was rated."""

    kind: ClassVar[int] = 1
    items: NDArray[np.uint32]

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        return head(self.kind, 0) + listed(self.items)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes) -> Wanted:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        items = reader.places(sizes.n_items)
        reader.end()
        if not len(items):
            raise Refused("a list is empty")
        return cls(items)


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Recommender to user: what is needed for an answer, in the order of the items that the user wanted.

    Attributes:
        round: its number.
        counts: k, how many users answer for each item.
        rows: item profiles, shape (n, K), float32.
        spread: H of the noise of this round, shape (n, K), as codes.
        seed: of the words that hide the answer, and of the pieces of the fixed noise that this user adds.
        dealt: whether such pieces are dealt at all; not where users draw them themselves.
        corrected: places, among the items, of those to whose pieces from the seed …
        corrections: … these words are to be added, shape (len(corrected), K).
        fixed_spread: H of the fixed noise, shape (n, K), if the user is to draw a piece of it now; else None.
    """

    kind: ClassVar[int] = 2
    round: int
    counts: NDArray[np.uint32]
    rows: NDArray[np.float32]
    spread: NDArray[np.uint16]
    seed: bytes
    dealt: bool = False
    corrected: NDArray[np.uint32] | None = None
    corrections: Words | None = None
    fixed_spread: NDArray[np.uint16] | None = None

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        flags = (_DEALT if self.dealt else 0) | (_FIXED if self.fixed_spread is not None else 0)
        corrected = 0 if self.corrected is None else len(self.corrected)
        parts = [
            head(self.kind, self.round), _TASK.pack(flags, len(self.counts), corrected),
            np.ascontiguousarray(self.counts, _U4).tobytes(), np.ascontiguousarray(self.rows, _F4).tobytes(),
            np.ascontiguousarray(self.spread, _U2).tobytes(), self.seed,
        ]  # fmt: skip
        if self.fixed_spread is not None:
            parts.append(np.ascontiguousarray(self.fixed_spread, _U2).tobytes())
        if self.corrected is not None and self.corrections is not None:
            parts += [np.ascontiguousarray(self.corrected, _U4).tobytes(), ring.packed(self.corrections)]
        return b"".join(parts)

    @classmethod
    def decoded(cls, content: bytes, n: int, n_factors: int, ring: Ring) -> Task:
        """Read a message for a user with n ratings, or refuse it."""
        reader = Reader(content, cls.kind)
        flags, found, corrected = reader.struct(_TASK)
        if found != n or corrected > n or flags > (_DEALT | _FIXED):
            raise Refused("the task is not for what was wanted")
        counts, rows = reader.array(_U4, n), reader.array(_F4, n, n_factors)
        spread, seed = reader.array(_U2, n, n_factors), bytes(reader.take(SEED_BYTES))
        fixed = reader.array(_U2, n, n_factors) if flags & _FIXED else None
        places = reader.array(_U4, corrected)
        corrections = ring.unpacked(reader.take(corrected * n_factors * ring.n_bytes)).reshape(corrected, n_factors)
        reader.end()
        if corrected and (not flags & _DEALT or int(places[-1]) >= n or not (places[1:] > places[:-1]).all()):
            raise Refused("the corrections are not for pieces that were dealt")
        if not in_range(counts, MOST_USERS, rows, _LARGEST):
            raise Refused("a count or an item profile is out of range")
        return cls(reader.round, counts, rows, spread, seed, bool(flags & _DEALT), places, corrections, fixed)


@dataclass(frozen=True, eq=False, repr=False)
class SetUp:
    """Recommender to user, once: draw a piece of the fixed noise of every item.

    Attributes:
        round: 0.
        n_users: k, how many do.
        spread: H, shape (n_items, K), as codes.
        seed: of the words that hide the answer.
    """

    kind: ClassVar[int] = 3
    round: int
    n_users: int
    spread: NDArray[np.uint16]
    seed: bytes

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        spread = np.ascontiguousarray(self.spread, _U2).tobytes()
        return head(self.kind, self.round) + _COUNT.pack(self.n_users) + self.seed + spread

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes) -> SetUp:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        (n_users,), seed = reader.struct(_COUNT), bytes(reader.take(SEED_BYTES))
        spread = reader.array(_U2, *sizes)
        reader.end()
        if not 1 <= n_users <= MOST_USERS:
            raise Refused("a count is out of range")
        return cls(reader.round, n_users, spread, seed)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """User to third party: gradients with noise, behind a mask. Which items they are for is not hidden.

    Where there is no third party, it goes to the recommender, and there is no mask.
    """

    kind: ClassVar[int] = 4
    round: int
    items: NDArray[np.uint32]
    words: Words

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        return head(self.kind, self.round) + listed(self.items) + ring.packed(self.words)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes, ring: Ring) -> Answer:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        items = reader.places(sizes.n_items)
        words = ring.unpacked(reader.take(len(items) * sizes.n_factors * ring.n_bytes))
        reader.end()
        if not len(items):
            raise Refused("a list is empty")
        return cls(reader.round, items, words.reshape(len(items), sizes.n_factors))


@dataclass(frozen=True, eq=False, repr=False)
class Roster:
    """Recommender to third party: who will answer.

    Attributes:
        round: its number.
        users: all of them.
        digests: of the items that each will answer for, as `digest_of_items` makes them: masks fit no others.
        least: how many have to answer, or the round is to be discarded.
    """

    kind: ClassVar[int] = 5
    round: int
    users: Handles
    digests: NDArray[np.uint64]
    least: int

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        digests = np.ascontiguousarray(self.digests, _U8).tobytes()
        return head(self.kind, self.round) + _COUNT.pack(self.least) + listed(self.users) + digests

    @classmethod
    def decoded(cls, content: bytes) -> Roster:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        (least,), users = reader.struct(_COUNT), reader.places(1 << 32)
        digests = reader.array(_U8, len(users))
        reader.end()
        if not 1 <= least <= len(users):
            raise Refused("a count is out of range")
        return cls(reader.round, users, digests, least)


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Third party to recommender: the sum of the answers of these users, still behind their masks.

    Without users it says that the round is discarded.
    """

    kind: ClassVar[int] = 6
    round: int
    users: Handles
    items: NDArray[np.uint32]
    words: Words

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        return head(self.kind, self.round) + listed(self.users) + listed(self.items) + ring.packed(self.words)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes, ring: Ring) -> Total:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        users, items = reader.places(1 << 32), reader.places(sizes.n_items)
        words = ring.unpacked(reader.take(len(items) * sizes.n_factors * ring.n_bytes))
        reader.end()
        return cls(reader.round, users, items, words.reshape(len(items), sizes.n_factors))
