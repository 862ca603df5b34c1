"""The messages of the published protocol: typed, compact, and refused unless they are exactly what they should be.

Neither the contents nor the sender of a message appears in its `repr`, or in the reason for which it is refused.

>>> elements = np.arange(4, dtype=np.uint32).reshape(2, 2)
>>> content = Answer(7, np.array([3, 5], np.uint32), elements).encoded(Ring(4))
>>> Answer.decoded(content, Sizes(n_items=6, n_factors=2), Ring(4)).elements.tolist()
[[0, 1], [2, 3]]
>>> Answer.decoded(content[:-1], Sizes(n_items=6, n_factors=2), Ring(4))
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the message has the wrong length
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.wire.codec import COUNT, Handles, Reader, encode_header, encode_list
from dpmf.federated.wire.masks import SEED_BYTES
from dpmf.federated.wire.refusals import Refused
from dpmf.federated.wire.ring import Elements, Ring
from dpmf.kernels.protocol import in_range

_TASK = struct.Struct("<BII")
_SHARED, _FIXED = 1, 2  # flags of a task
_U2, _U4, _U8 = np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8")
_F4 = np.dtype("<f4")
_LARGEST_FACTOR = 1e6  # a recommender that sends more has diverged
_MOST_USERS = 1 << 24


class Sizes(NamedTuple):
    """The shape of the item profiles, which lengths and indices are checked against."""

    n_items: int
    n_factors: int


def digest_of_items(items: NDArray[np.uint32]) -> int:
    """Return a 64-bit digest of a list of items."""
    return int.from_bytes(hashlib.blake2b(items.astype(_U4).tobytes(), digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False, repr=False)
class Wanted:
    """User to recommender, on joining: the items whose profiles the user needs. It reveals what was rated."""

    kind: ClassVar[int] = 1
    items: NDArray[np.uint32]

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, 0) + encode_list(self.items)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes) -> Wanted:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        items = reader.indices(sizes.n_items)
        reader.end()
        if not len(items):
            raise Refused("a list is empty")
        return cls(items)


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Recommender to user: what an answer is computed from, in the order of the items that the user asked for.

    Attributes:
        round: its number.
        counts: k, how many users answer for each item.
        rows: item profiles, shape (n, K), float32.
        variances: H of this round's noise, shape (n, K), as codes.
        seed: of the mask of the answer, and of the user's shares of the fixed noise.
        shared: whether the user gets shares of the fixed noise; False where users draw it themselves.
        corrected: positions, among the items, of those whose shares from the seed …
        corrections: … need these ring elements added, shape (len(corrected), K).
        fixed_variances: H of the fixed noise, shape (n, K), if the user is to draw a share of it now; else None.
    """

    kind: ClassVar[int] = 2
    round: int
    counts: NDArray[np.uint32]
    rows: NDArray[np.float32]
    variances: NDArray[np.uint16]
    seed: bytes
    shared: bool = False
    corrected: NDArray[np.uint32] | None = None
    corrections: Elements | None = None
    fixed_variances: NDArray[np.uint16] | None = None

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        flags = (_SHARED if self.shared else 0) | (_FIXED if self.fixed_variances is not None else 0)
        corrected = 0 if self.corrected is None else len(self.corrected)
        parts = [encode_header(self.kind, self.round), _TASK.pack(flags, len(self.counts), corrected)]
        for array, dtype in ((self.counts, _U4), (self.rows, _F4), (self.variances, _U2)):
            parts.append(np.ascontiguousarray(array, dtype).tobytes())
        parts.append(self.seed)
        if self.fixed_variances is not None:
            parts.append(np.ascontiguousarray(self.fixed_variances, _U2).tobytes())
        if self.corrected is not None and self.corrections is not None:
            parts += [np.ascontiguousarray(self.corrected, _U4).tobytes(), ring.packed(self.corrections)]
        return b"".join(parts)

    @classmethod
    def decoded(cls, content: bytes, n: int, n_factors: int, ring: Ring) -> Task:
        """Read a message for a user with n ratings, or refuse it."""
        reader = Reader(content, cls.kind)
        flags, found, corrected = reader.struct(_TASK)
        if found != n or corrected > n or flags > (_SHARED | _FIXED):
            raise Refused("the task is not for the items that were asked for")
        counts, rows = reader.array(_U4, n), reader.array(_F4, n, n_factors)
        variances, seed = reader.array(_U2, n, n_factors), bytes(reader.take(SEED_BYTES))
        fixed = reader.array(_U2, n, n_factors) if flags & _FIXED else None
        places = reader.array(_U4, corrected)
        corrections = ring.unpacked(reader.take(corrected * n_factors * ring.n_bytes)).reshape(corrected, n_factors)
        reader.end()
        if corrected and (not flags & _SHARED or int(places[-1]) >= n or not (places[1:] > places[:-1]).all()):
            raise Refused("the corrections do not match the shares of the task")
        if not in_range(counts, _MOST_USERS, rows, _LARGEST_FACTOR):
            raise Refused("a count or an item profile is out of range")
        return cls(reader.round, counts, rows, variances, seed, bool(flags & _SHARED), places, corrections, fixed)


@dataclass(frozen=True, eq=False, repr=False)
class SetUp:
    """Recommender to user, once: draw a share of the fixed noise of every item.

    Attributes:
        round: 0.
        n_users: k, how many users do.
        variances: H, shape (n_items, K), as codes.
        seed: of the mask of the answer.
    """

    kind: ClassVar[int] = 3
    round: int
    n_users: int
    variances: NDArray[np.uint16]
    seed: bytes

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        variances = np.ascontiguousarray(self.variances, _U2).tobytes()
        return encode_header(self.kind, self.round) + COUNT.pack(self.n_users) + self.seed + variances

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes) -> SetUp:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        (n_users,), seed = reader.struct(COUNT), bytes(reader.take(SEED_BYTES))
        variances = reader.array(_U2, *sizes)
        reader.end()
        if not 1 <= n_users <= _MOST_USERS:
            raise Refused("a count is out of range")
        return cls(reader.round, n_users, variances, seed)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """User to third party: noisy gradients behind a mask. The items they are for are not hidden.

    Without a third party it goes to the recommender, unmasked.
    """

    kind: ClassVar[int] = 4
    round: int
    items: NDArray[np.uint32]
    elements: Elements

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, self.round) + encode_list(self.items) + ring.packed(self.elements)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes, ring: Ring) -> Answer:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        items = reader.indices(sizes.n_items)
        elements = ring.unpacked(reader.take(len(items) * sizes.n_factors * ring.n_bytes))
        reader.end()
        if not len(items):
            raise Refused("a list is empty")
        return cls(reader.round, items, elements.reshape(len(items), sizes.n_factors))


@dataclass(frozen=True, eq=False, repr=False)
class Roster:
    """Recommender to third party: who will answer.

    Attributes:
        round: its number.
        users: all of them.
        digests: of the items that each user will answer for (`digest_of_items`): the masks fit no others.
        least: how many users have to answer for the round to count.
    """

    kind: ClassVar[int] = 5
    round: int
    users: Handles
    digests: NDArray[np.uint64]
    least: int

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        digests = np.ascontiguousarray(self.digests, _U8).tobytes()
        return encode_header(self.kind, self.round) + COUNT.pack(self.least) + encode_list(self.users) + digests

    @classmethod
    def decoded(cls, content: bytes) -> Roster:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        (least,), users = reader.struct(COUNT), reader.indices(1 << 32)
        digests = reader.array(_U8, len(users))
        reader.end()
        if not 1 <= least <= len(users):
            raise Refused("a count is out of range")
        return cls(reader.round, users, digests, least)


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Third party to recommender: the sum of these users' answers, still behind their masks.

    A total without users says that the round is discarded.
    """

    kind: ClassVar[int] = 6
    round: int
    users: Handles
    items: NDArray[np.uint32]
    elements: Elements

    def encoded(self, ring: Ring) -> bytes:
        """Return the message as bytes."""
        lists = encode_list(self.users) + encode_list(self.items)
        return encode_header(self.kind, self.round) + lists + ring.packed(self.elements)

    @classmethod
    def decoded(cls, content: bytes, sizes: Sizes, ring: Ring) -> Total:
        """Read a message, or refuse it."""
        reader = Reader(content, cls.kind)
        users, items = reader.indices(1 << 32), reader.indices(sizes.n_items)
        elements = ring.unpacked(reader.take(len(items) * sizes.n_factors * ring.n_bytes))
        reader.end()
        return cls(reader.round, users, items, elements.reshape(len(items), sizes.n_factors))
