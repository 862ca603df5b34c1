"""What passes between the parties of the certified protocol, as bytes, and refused unless it is what it should be.

Questions hold the whole catalogue and answers a number for every item, so what is fetched and sent says nothing of what
was rated. Masked words are uniform: nothing makes an answer smaller than the bytes of the agreement's ring.

>>> from dpmf.privacy import Budget
>>> agreement = Agreement(3, (1.0, 5.0), Budget(5.0), n_users=4, n_factors=0)
>>> content = Answer(0, np.arange(3, dtype=np.uint64)).encoded(agreement)
>>> len(content), Answer.decoded(content, agreement).words.tolist()
(21, [0, 1, 2])
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.certified.agreement import DIGEST_BYTES, Agreement
from dpmf.federated.wire.codec import Handles, Reader, encode_header, encode_list
from dpmf.federated.wire.masks import SEED_BYTES
from dpmf.federated.wire.refusals import Refused
from dpmf.methods.certified.questions import Fit
from dpmf.ratings import Scale

_PENALTIES = struct.Struct("<ddd")
_F4, _F8 = np.dtype("<f4"), np.dtype("<f8")
_LARGEST = 1e6  # of a weight, a bias or a factor: a recommender that sends more has gone astray


def _reader(content: bytes, kind: int, agreement: Agreement) -> Reader:
    reader = Reader(content, kind)
    if reader.round >= len(agreement.rounds):
        raise Refused("the round is not in the agreement")
    return reader


@dataclass(frozen=True, eq=False, repr=False)
class Inquiry:
    """Recommender to user: what the round asks for.

    Attributes:
        round: its number, from 0.
        digest: of the agreement.
        mask_seed: of the words that hide the answer.
        weights: of items, shape (n_items,).
        fit: what to fit one's bias and factors to; None where ratings are only counted.
    """

    kind: ClassVar[int] = 16
    round: int
    digest: bytes
    mask_seed: bytes
    weights: NDArray[np.float64]
    fit: Fit | None

    def for_user(self, mask_seed: bytes) -> Inquiry:
        """Return the same question with another seed."""
        return replace(self, mask_seed=mask_seed)

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        parts = [encode_header(self.kind, self.round), self.digest, self.mask_seed, self.weights.astype(_F8).tobytes()]
        if (fit := self.fit) is not None:
            penalties = _PENALTIES.pack(fit.ridge_b, fit.ridge_u, fit.length)
            parts += [penalties, fit.c.astype(_F4).tobytes(), fit.V.astype(_F4).tobytes()]
        return b"".join(parts)

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Inquiry:
        """Read a message, or refuse it."""
        reader, n_items = _reader(content, cls.kind, agreement), agreement.n_items
        digest, seed = bytes(reader.take(DIGEST_BYTES)), bytes(reader.take(SEED_BYTES))
        if digest != agreement.digest:
            raise Refused("the question is of another agreement")
        weights, width, fit = reader.array(_F8, n_items).copy(), agreement.width(reader.round), None
        if width is not None:
            ridge_b, ridge_u, length = reader.struct(_PENALTIES)
            c, V = reader.array(_F4, n_items).copy(), reader.array(_F4, n_items, width).copy()
            if not (0 < ridge_b <= _LARGEST and 0 < ridge_u <= _LARGEST and 0 <= length <= _LARGEST):
                raise Refused("a penalty is out of range")
            if not (np.abs(c).max() <= _LARGEST and np.abs(V).max(initial=0.0) <= _LARGEST):
                raise Refused("a bias or a factor is out of range")
            fit = Fit(Scale(*agreement.scale).middle, c, V, ridge_b, ridge_u, length)
        reader.end()
        if not (weights.min() >= 0 and weights.max() <= _LARGEST):
            raise Refused("a weight is out of range")
        return cls(reader.round, digest, seed, weights, fit)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """User to third party: one's own part of every sum of the round, with a share of noise, behind a mask."""

    kind: ClassVar[int] = 17
    round: int
    words: NDArray[Any]

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, self.round) + agreement.ring(self.round).packed(self.words)

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Answer:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        ring = agreement.ring(reader.round)
        words = ring.unpacked(reader.take(agreement.n_words(reader.round) * ring.n_bytes))
        reader.end()
        return cls(reader.round, words)


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """Recommender to third party: who takes part in the round."""

    kind: ClassVar[int] = 18
    round: int
    digest: bytes
    users: Handles

    def encoded(self) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, self.round) + self.digest + encode_list(self.users)

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Expected:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        digest, users = bytes(reader.take(DIGEST_BYTES)), reader.indices(1 << 32)
        reader.end()
        if digest != agreement.digest:
            raise Refused("the round is of another agreement")
        if len(users) != agreement.n_users:
            raise Refused("the round does not have as many people as the agreement says")
        return cls(reader.round, digest, users)


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Third party to recommender: the sum of the answers of these users, behind their masks; or nobody, and no sum."""

    kind: ClassVar[int] = 19
    round: int
    users: Handles
    words: NDArray[Any]

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        packed = agreement.ring(self.round).packed(self.words)
        return encode_header(self.kind, self.round) + encode_list(self.users) + packed

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Total:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        users, ring = reader.indices(1 << 32), agreement.ring(reader.round)
        n_words = agreement.n_words(reader.round) if len(users) else 0
        words = ring.unpacked(reader.take(n_words * ring.n_bytes))
        reader.end()
        return cls(reader.round, users, words)
