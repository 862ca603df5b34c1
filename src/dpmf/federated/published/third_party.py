"""The third party: sums answers it cannot read, and reports whose answers are in the sum.

It is honest but curious. All it sees of an answer are ring elements that a mask makes uniform, and which items they are
for. It closes a round when it is told to, by whatever keeps the time; with too few answers it reveals nothing.

>>> from dpmf.federated.wire.channels import KeyPair
>>> third_party = ThirdParty(Sizes(n_items=3, n_factors=2), Ring(4), KeyPair().public)
>>> third_party
ThirdParty(…)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.published.messages import Answer, Roster, Sizes, Total, digest_of_items
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.federated.wire.parties import RECOMMENDER, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.federated.wire.ring import Ring
from dpmf.kernels.protocol import add_rows

SETUP_ROUND = 0
_NOTHING = np.zeros(0, np.uint32)


class ThirdParty:
    """The third party's side.

    Args:
        sizes: of the catalogue and of profiles.
        ring: in which answers are masked.
        recommender: the recommender's public key.
        shared_noise: whether the fixed noise is set up in round 0 and distributed in shares, so that it contains a
            secret of the third party's own.
    """

    def __init__(self, sizes: Sizes, ring: Ring, recommender: bytes, *, shared_noise: bool = False) -> None:
        self._sizes, self._ring, self._keys = sizes, ring, KeyPair()
        self.public = self._keys.public
        self._recommender = Channel(self._keys, recommender)
        self._round = -1  # the last round opened
        self._roster: Roster | None = None
        self._expected: dict[int, int] = {}  # digests of the items that each user will answer for
        self._arrived: set[int] = set()
        self._sums = np.zeros((sizes.n_items, sizes.n_factors), ring.dtype)
        self._touched = np.zeros(sizes.n_items, np.bool_)
        self._secret: NDArray[Any] | None = None
        if shared_noise:
            self._secret = mask_elements(new_seed(), ring, *sizes)
        self.refusals = Refusals("the third party")
        self._users = Directory(self._keys, self.refusals, [self.public, recommender])

    def admit(self, user: int, public: bytes) -> None:
        """Register a user, or refuse to."""
        self._users.admit(user, public)

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Handle a message: a roster opens a round, and answers are added to the sum."""
        try:
            if sender == RECOMMENDER:
                self._open(Roster.decoded(self._recommender.open(message)))
            else:
                content = self._users.open(sender, message)
                self._add(sender, Answer.decoded(content, self._sizes, self._ring))
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    def close(self) -> list[Outgoing]:
        """End the round: return the sum, or, if too few answered, a total without one."""
        if self._roster is None:
            return []
        roster, self._roster = self._roster, None
        users = items = _NOTHING
        elements = np.zeros((0, self._sizes.n_factors), self._ring.dtype)
        if len(self._arrived) >= roster.least:
            users = np.array(sorted(self._arrived), np.uint32)
            items = np.flatnonzero(self._touched).astype(np.uint32)
            elements = self._sums[items]
            if self._secret is not None:
                own = self._secret[items]
                elements = elements + own if roster.round == SETUP_ROUND else elements - own
        total = Total(roster.round, users, items, elements)
        self._forget()
        return [Outgoing(RECOMMENDER, self._recommender.seal(total.encoded(self._ring)))]

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the state that a resumed simulation needs: the secret, if there is one."""
        return {} if self._secret is None else {"secret": self._secret}

    def restore(self, tensors: Mapping[str, NDArray[Any]], number: int) -> None:
        """Resume after this round, from a `snapshot`."""
        if self._secret is not None:
            self._secret = np.array(tensors["secret"])
        self._round = number

    def _open(self, roster: Roster) -> None:
        if roster.round <= self._round:
            raise Refused("the round is not a new one")
        if self._roster is not None:
            raise Refused("a round is open already")
        self._forget()
        self._round, self._roster = roster.round, roster
        self._expected = dict(zip(roster.users.tolist(), roster.digests.tolist(), strict=True))

    def _add(self, sender: int, answer: Answer) -> None:
        if self._roster is None or answer.round != self._roster.round:
            raise Refused("the answer is of another round")
        if sender not in self._expected:
            raise Refused("the sender is not on the roster")
        if sender in self._arrived:
            raise Refused("the sender has answered already")
        if digest_of_items(answer.items) != self._expected[sender]:
            raise Refused("the answer is not for the items that were asked for")
        self._arrived.add(sender)
        self._touched[answer.items] = True
        add_rows(self._sums, answer.items, answer.elements)

    def _forget(self) -> None:
        self._arrived = set()
        self._sums[self._touched] = 0
        self._touched[:] = False

    def __repr__(self) -> str:
        return "ThirdParty(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the third party cannot be copied or pickled: its secrets stay where they are")
