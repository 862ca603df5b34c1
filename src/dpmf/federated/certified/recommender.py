"""The recommender of the certified protocol: puts questions, and takes masks off sums.

What it makes of noisy sums, and what it asks next, is up to the public half of the method. A round that is opened is
charged, whatever becomes of it. One whose sum was lost before it left the third party can be asked for again: people
give the same answers.

>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
>>> Recommender(agreement)
Recommender(round 0 of 8)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Expected, Inquiry, Total
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.federated.wire.parties import THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.methods.certified.conversation import StageLost
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise


class Recommender:
    """The recommender's side.

    Args:
        agreement: what everybody agreed to.
    """

    def __init__(self, agreement: Agreement) -> None:
        self._agreement, self._keys = agreement, KeyPair()
        self.public = self._keys.public
        self.mechanism = Mechanism(
            agreement.events, Noise(), agreement.crowd.n_shares
        )  # keeps the account; draws nothing
        self._third_party: Channel | None = None
        self.round = 0  # the next, or the one that is open
        self._charged = -1  # the last round that was charged
        self._questions: tuple[Question, ...] = ()
        self._inquiry: Inquiry | None = None
        self._seeds: dict[int, bytes] = {}
        self._total: Total | None = None
        self.refusals = Refusals("the recommender")
        self._users = Directory(self._keys, self.refusals, [self.public], agreement.wire)

    def meet(self, third_party: bytes) -> None:
        """Get to know the third party."""
        self._third_party = Channel(self._keys, third_party, self._agreement.wire)
        self._users.reserve(third_party)

    def admit(self, user: int, public: bytes) -> bool:
        """Get to know a user, as `Directory` does."""
        return self._users.admit(user, public)

    def renew(self, user: int, public: bytes) -> bool:
        """Replace the key of a user, as `Directory` does."""
        return self._users.renew(user, public)

    def skip_to(self, number: int) -> None:
        """Leave rounds out that were lost, or carried out by another process; their releases are given up elsewhere."""
        if self._questions or number < self.round:
            raise InvalidArgument(f"round {number} cannot be next: rounds are asked for in order, and once")
        self.round = number

    def ask(self, users: Sequence[int], questions: Sequence[Question]) -> list[Outgoing]:
        """Open the next round: return what to send to the third party, and then to users."""
        return [self.open(users, questions), *(self.question(user) for user in self._seeds)]

    def open(self, users: Sequence[int], questions: Sequence[Question]) -> Outgoing:
        """Open the next round: return what to send to the third party; `question` is what to send to each user then."""
        if self._questions or self._third_party is None or self.round >= len(self._agreement.rounds):
            raise InvalidArgument("a round is open already, or all are over, or there is no third party yet")
        handles = np.array(sorted({int(user) for user in users}), np.uint32)
        if len(handles) != self._agreement.n_users:
            raise InvalidArgument(f"{len(handles)} people instead of {self._agreement.n_users} are asked")
        if tuple(question.what for question in questions) != self._agreement.rounds[self.round].releases:
            raise InvalidArgument(f"round {self.round} of the agreement asks for something else")
        told = self._agreement.script.spell(questions)
        for one in self._agreement.told(self.round):
            if not one.holds(np.asarray(told[one.name])):
                raise InvalidArgument(f"{one.name} is out of the range that was agreed: nobody would answer")
        inquiry = Inquiry(self.round, self._agreement.digest, b"", told)
        agreed = self._agreement.questions(self.round, told)
        if not all(is_same(one, other) for one, other in zip(questions, agreed, strict=True)):
            raise InvalidArgument(f"round {self.round} of the agreement asks for something else")
        for question in questions if self._charged < self.round else ():
            self.mechanism.forfeit(question.what)  # from here on it is charged
        self._charged = self.round
        self._questions, self._inquiry, self._total = tuple(questions), inquiry, None
        self._seeds = {int(user): new_seed() for user in handles}
        expected = Expected(self.round, self._agreement.digest, handles).encoded(self._agreement)
        return Outgoing(THIRD_PARTY, self._third_party.seal(expected))

    def question(self, user: int) -> Outgoing:
        """Return the question of the open round for a user who takes part in it: the same one, however often."""
        if self._inquiry is None or user not in self._seeds:
            raise InvalidArgument(f"user {user} takes part in no round that is open")
        content = self._inquiry.for_user(self._seeds[user]).encoded(self._agreement)
        return Outgoing(user, self._users.seal(user, content))

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Take the third party's total."""
        try:
            if sender != THIRD_PARTY or self._third_party is None:
                raise Refused("the sender is not the third party")
            total = Total.decoded(self._third_party.open(message), self._agreement)
            if not self._questions or total.round != self.round or self._total is not None:
                raise Refused("the total is of another round")
            if not {int(user) for user in total.users} <= self._seeds.keys():
                raise Refused("the total has users who were not asked")
            if 0 < len(total.users) < self._agreement.least:
                raise Refused("the total is of fewer people than was agreed")
            self._total = total
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    @property
    def has_total(self) -> bool:
        """Whether the third party's total of the open round is there, so that `take` can be called."""
        return self._total is not None

    def take(self, why: str = "too few people answered") -> tuple[Noisy, ...]:
        """End the round, and return the noisy sums of everybody's answers.

        If some dropped out, sums are scaled as if all had answered, unless a question says otherwise; so is the noise.

        Args:
            why: there is no sum, if there is none.

        Raises:
            StageLost: there is no sum.
        """
        total, questions, seeds = self._total, self._questions, self._seeds
        if not questions:
            raise InvalidArgument("there is no round to end: ask first")
        number, self.round = self.round, self.round + 1
        self._total, self._questions, self._inquiry, self._seeds = None, (), None, {}
        if total is None or not len(total.users):
            raise StageLost(f"round {number} was discarded: {why}; it stays charged", why)
        sums = self._unmasked(total, seeds)
        return tuple(
            self._noisy(question, part.reshape(question.shape), total.users.astype(np.int64))
            for question, part in zip(questions, _parted(sums, questions), strict=True)
        )

    def withdraw(self) -> None:
        """Take back the open round, to open it again, with other seeds: the third party has lost it."""
        self._total, self._questions, self._inquiry, self._seeds = None, (), None, {}

    def forfeit(self, what: str) -> None:
        """Give up a release that is not needed."""
        self.mechanism.forfeit(what)

    def _unmasked(self, total: Total, seeds: dict[int, bytes]) -> NDArray[np.int64]:
        ring = self._agreement.ring(total.round)
        elements = total.elements.copy()
        version = self._agreement.wire
        for user in total.users:
            elements -= mask_elements(seeds[int(user)], ring, len(elements), version=version)
        return ring.signed(elements)

    def _noisy(self, question: Question, sums: NDArray[np.int64], users: NDArray[np.int64]) -> Noisy:
        bound = question.sensitivity(self._agreement.budget.neighbours)
        scale = self._agreement.n_users / len(users) if question.scales_up else 1.0
        spread = math.sqrt(len(users) / self._agreement.crowd.n_shares)  # there is more noise than there has to be
        steps = self.mechanism.steps(question.what, bound)
        return Noisy(sums / steps * scale, self.mechanism.sd(question.what, bound) * spread * scale, steps, users)

    def __repr__(self) -> str:
        return f"Recommender(round {self.round} of {len(self._agreement.rounds)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the recommender cannot be copied or pickled: masks would be used twice")


def is_same(one: Any, other: Any) -> bool:
    """Return whether two questions, or two values in them, are the same through and through."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return type(one) is type(other) and all(is_same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _parted(sums: NDArray[np.int64], questions: Sequence[Question]) -> list[NDArray[np.int64]]:
    ends = np.cumsum([math.prod(question.shape) for question in questions])
    return np.split(sums, ends[:-1])
