"""The third party of the certified protocol: adds up what it cannot read, and says whose answers are in the sum.

It closes a round when it is told to, by whatever keeps time. If fewer answered than the agreement asks for, the round
is discarded, and no sum of it is revealed to anybody: with so few people there may be too little noise in it. How many
that is, it knows from the agreement, and takes nobody's word for it.

>>> from dpmf.federated.wire.channels import KeyPair
>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
>>> ThirdParty(agreement, KeyPair().public)
ThirdParty(…)
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Expected, Total
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.parties import RECOMMENDER, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused


class ThirdParty:
    """The third party's side.

    Args:
        agreement: what everybody agreed to.
        recommender: the recommender's public key.
        after: the last round that an earlier process opened: whoever keeps the third party beyond one process has to
            store `round` before anybody answers, or a round could be opened twice.

    Attributes:
        round: the last that was opened; -1 for none.
    """

    def __init__(self, agreement: Agreement, recommender: bytes, after: int = -1) -> None:
        self._agreement, self._keys = agreement, KeyPair()
        self.public = self._keys.public
        self._recommender = Channel(self._keys, recommender, agreement.wire)
        self.round, self._is_open = after, False
        self._expected: set[int] = set()
        self._arrived: set[int] = set()
        self._sum: NDArray[Any] = np.zeros(0, np.uint64)
        self.refusals = Refusals("the third party")
        self._users = Directory(self._keys, self.refusals, [self.public, recommender], agreement.wire)

    def admit(self, user: int, public: bytes) -> bool:
        """Get to know a user, as `Directory` does."""
        return self._users.admit(user, public)

    def renew(self, user: int, public: bytes) -> bool:
        """Replace the key of a user, as `Directory` does; who has answered the open round has answered it."""
        return self._users.renew(user, public)

    @property
    def is_open(self) -> bool:
        """Whether a round is open."""
        return self._is_open

    @property
    def missing(self) -> frozenset[int]:
        """Who is expected in the open round, and has not answered."""
        return frozenset(self._expected - self._arrived)

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Take a message: the recommender opens rounds, and answers are added up."""
        try:
            if sender == RECOMMENDER:
                self._open(Expected.decoded(self._recommender.open(message), self._agreement))
            else:
                content = self._users.open(sender, message)
                self._add(sender, Answer.decoded(content, self._agreement))
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    def close(self) -> list[Outgoing]:
        """End the round: return the sum, or, if too few answered, that there is none. Either way it is forgotten."""
        if not self._is_open:
            return []
        users, elements = np.zeros(0, np.uint32), self._sum[:0]
        if len(self._arrived) >= self._agreement.least:
            users, elements = np.array(sorted(self._arrived), np.uint32), self._sum
        total = Total(self.round, users, elements).encoded(self._agreement)
        self._is_open, self._expected, self._arrived, self._sum = False, set(), set(), np.zeros(0, np.uint64)
        return [Outgoing(RECOMMENDER, self._recommender.seal(total))]

    def _open(self, expected: Expected) -> None:
        if self._is_open:
            raise Refused("a round is open already")
        if expected.round <= self.round:
            raise Refused("the round is not a new one")
        users = {int(user) for user in expected.users}
        if not all(user in self._users for user in users):
            raise Refused("the round has people who are not known")
        self.round, self._is_open, self._expected, self._arrived = expected.round, True, users, set()
        ring = self._agreement.ring(expected.round)
        self._sum = np.zeros(self._agreement.n_elements(expected.round), ring.dtype)

    def _add(self, sender: int, answer: Answer) -> None:
        if not self._is_open or answer.round != self.round:
            raise Refused("the answer is of another round")
        if sender not in self._expected:
            raise Refused("the sender is not expected in this round")
        if sender in self._arrived:
            raise Refused("the sender has answered already")
        self._arrived.add(sender)
        self._sum += answer.elements

    def __repr__(self) -> str:
        return "ThirdParty(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the third party cannot be copied or pickled: its keys stay where they are")
