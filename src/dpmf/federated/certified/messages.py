"""What passes between the parties of the certified protocol, as bytes, and refused unless it is what it should be.

Questions hold the whole catalogue and answers a number for every item, so what is fetched and sent says nothing of what
was rated. Masked elements are uniform: nothing makes an answer smaller than the bytes of the agreement's ring.

>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
>>> content = Answer(0, np.arange(3, dtype=np.uint64)).encoded(agreement)
>>> len(content), Answer.decoded(content, agreement).elements.tolist()
(21, [0, 1, 2])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.certified.agreement import DIGEST_BYTES, Agreement
from dpmf.federated.wire.codec import Handles, Reader, encode_header, encode_list
from dpmf.federated.wire.masks import SEED_BYTES
from dpmf.federated.wire.refusals import Refused


def _reader(content: bytes, kind: int, agreement: Agreement) -> Reader:
    reader = Reader(content, kind, agreement.wire)
    if reader.round >= len(agreement.rounds):
        raise Refused("the round is not in the agreement")
    return reader


@dataclass(frozen=True, eq=False, repr=False)
class Inquiry:
    """Recommender to user: what the round asks for.

    Attributes:
        round: its number, from 0.
        digest: of the agreement.
        mask_seed: of the ring elements that hide the answer.
        told: arrays of numbers that were released before, as the agreement's script describes them.
    """

    kind: ClassVar[int] = 16
    round: int
    digest: bytes
    mask_seed: bytes
    told: Mapping[str, NDArray[Any]]

    def for_user(self, mask_seed: bytes) -> Inquiry:
        """Return the same question with another seed."""
        return replace(self, mask_seed=mask_seed)

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        parts = [encode_header(self.kind, self.round, agreement.wire), self.digest, self.mask_seed]
        parts += [self.told[one.name].astype(one.dtype).tobytes() for one in agreement.told(self.round)]
        return b"".join(parts)

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Inquiry:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        digest, seed = bytes(reader.take(DIGEST_BYTES)), bytes(reader.take(SEED_BYTES))
        if digest != agreement.digest:
            raise Refused("the question is of another agreement")
        told = {}
        for one in agreement.told(reader.round):
            told[one.name] = reader.array(np.dtype(one.dtype), *one.shape).copy()
            if not one.holds(told[one.name]):
                raise Refused(f"{one.name} is out of range")
        reader.end()
        return cls(reader.round, digest, seed, told)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """User to third party: one's own part of every sum of the round, with a share of noise, behind a mask."""

    kind: ClassVar[int] = 17
    round: int
    elements: NDArray[Any]

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, self.round, agreement.wire) + agreement.ring(self.round).packed(self.elements)

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Answer:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        ring = agreement.ring(reader.round)
        elements = ring.unpacked(reader.take(agreement.n_elements(reader.round) * ring.n_bytes))
        reader.end()
        return cls(reader.round, elements)


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """Recommender to third party: who takes part in the round."""

    kind: ClassVar[int] = 18
    round: int
    digest: bytes
    users: Handles

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        return encode_header(self.kind, self.round, agreement.wire) + self.digest + encode_list(self.users)

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
    elements: NDArray[Any]

    def encoded(self, agreement: Agreement) -> bytes:
        """Return the message as bytes."""
        packed = agreement.ring(self.round).packed(self.elements)
        return encode_header(self.kind, self.round, agreement.wire) + encode_list(self.users) + packed

    @classmethod
    def decoded(cls, content: bytes, agreement: Agreement) -> Total:
        """Read a message, or refuse it."""
        reader = _reader(content, cls.kind, agreement)
        users, ring = reader.indices(1 << 32), agreement.ring(reader.round)
        n_elements = agreement.n_elements(reader.round) if len(users) else 0
        elements = ring.unpacked(reader.take(n_elements * ring.n_bytes))
        reader.end()
        return cls(reader.round, users, elements)
