"""The recommender of the certified protocol: puts questions, and takes masks off sums.

What it makes of noisy sums, and what it asks next, is `dpmf.methods.als.certified`. A round that is opened is charged,
whatever becomes of it, and never asked for again.

>>> from dpmf.privacy import Budget
>>> Recommender(Agreement(3, (1.0, 5.0), Budget(5.0), n_users=4, n_factors=0))
Recommender(round 0 of 8)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Expected, Inquiry, Total
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.federated.wire.parties import THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.methods.certified.questions import Counts, Fit, Noisy, Question, Residuals
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise


class RoundLost(DpmfError):
    """Too few people answered, or no total came: there is no sum, and the round stays charged."""


class Recommender:
    """The recommender's side.

    Args:
        agreement: what everybody agreed to.
    """

    def __init__(self, agreement: Agreement) -> None:
        self._agreement, self._keys = agreement, KeyPair()
        self.public = self._keys.public
        self.mechanism = Mechanism(agreement.events, Noise(), agreement.n_shares)  # keeps the account; draws nothing
        self._third_party: Channel | None = None
        self.round = 0  # the next, or the one that is open
        self._questions: tuple[Question, ...] = ()
        self._seeds: dict[int, bytes] = {}
        self._total: Total | None = None
        self.refusals = Refusals("the recommender")
        self._users = Directory(self._keys, self.refusals, [self.public])

    def meet(self, third_party: bytes) -> None:
        """Get to know the third party."""
        self._third_party = Channel(self._keys, third_party)
        self._users.reserve(third_party)

    def admit(self, user: int, public: bytes) -> None:
        """Get to know a user, as `Directory` does."""
        self._users.admit(user, public)

    def skip_to(self, number: int) -> None:
        """Leave rounds out that were lost, or carried out by another process; their releases are given up elsewhere."""
        if self._questions or number < self.round:
            raise InvalidArgument(f"round {number} cannot be next: rounds are asked for in order, and once")
        self.round = number

    def ask(self, users: Sequence[int], questions: Sequence[Question]) -> list[Outgoing]:
        """Open the next round: return what to send to the third party, and then to users."""
        if self._questions or self._third_party is None or self.round >= len(self._agreement.rounds):
            raise InvalidArgument("a round is open already, or all are over, or there is no third party yet")
        handles = np.array(sorted({int(user) for user in users}), np.uint32)
        if len(handles) != self._agreement.n_users:
            raise InvalidArgument(f"{len(handles)} people instead of {self._agreement.n_users} are asked")
        weights, fit = _told(questions)
        inquiry = Inquiry(self.round, self._agreement.digest, b"", weights, fit)
        agreed = self._agreement.questions(self.round, weights, fit)
        if [_numbers(one) for one in agreed] != [_numbers(one) for one in questions]:
            raise InvalidArgument(f"round {self.round} of the agreement asks for something else")
        for question in questions:
            self.mechanism.forfeit(question.what)  # from here on it is charged
        self._questions, self._total = tuple(questions), None
        self._seeds = {int(user): new_seed() for user in handles}
        expected = Expected(self.round, self._agreement.digest, handles).encoded()
        out = [Outgoing(THIRD_PARTY, self._third_party.seal(expected))]
        for user, seed in self._seeds.items():
            out.append(Outgoing(user, self._users.seal(user, inquiry.for_user(seed).encoded())))
        return out

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

    def take(self) -> tuple[Noisy, ...]:
        """End the round, and return the noisy sums of everybody's answers.

        If some dropped out, sums are scaled as if all had answered; so is the noise.

        Raises:
            RoundLost: there is no sum.
        """
        total, questions, seeds = self._total, self._questions, self._seeds
        if not questions:
            raise InvalidArgument("there is no round to end: ask first")
        number, self.round = self.round, self.round + 1
        self._total, self._questions, self._seeds = None, (), {}
        if total is None or not len(total.users):
            raise RoundLost(f"round {number} was discarded: too few people answered; it stays charged")
        sums = self._unmasked(total, seeds)
        return tuple(
            self._noisy(question, part.reshape(question.shape), len(total.users))
            for question, part in zip(questions, _parted(sums, questions), strict=True)
        )

    def forfeit(self, what: str) -> None:
        """Give up a release that is not needed."""
        self.mechanism.forfeit(what)

    def _unmasked(self, total: Total, seeds: dict[int, bytes]) -> NDArray[np.int64]:
        ring = self._agreement.ring(total.round)
        words = total.words.copy()
        for user in total.users:
            words -= mask_elements(seeds[int(user)], ring, len(words))
        return ring.signed(words)

    def _noisy(self, question: Question, sums: NDArray[np.int64], n_answers: int) -> Noisy:
        bound, scale = question.sensitivity(self._agreement.plan), self._agreement.n_users / n_answers
        spread = math.sqrt(n_answers / self._agreement.n_shares)  # there is more noise than there has to be
        values = sums / self.mechanism.steps(question.what, bound)
        return Noisy(values * scale, self.mechanism.sd(question.what, bound) * spread * scale)

    def __repr__(self) -> str:
        return f"Recommender(round {self.round} of {len(self._agreement.rounds)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the recommender cannot be copied or pickled: masks would be used twice")


def _told(questions: Sequence[Question]) -> tuple[NDArray[np.float64], Fit | None]:
    """Return the weights and the fit that the questions of a round have in common."""
    last = questions[-1]
    if isinstance(last, Counts):
        return last.weights, None
    if isinstance(last, Residuals):
        return last.weights, last.fit
    raise InvalidArgument(f"{last.what!r} cannot be asked for by itself")


def _numbers(question: Question) -> tuple[Any, ...]:
    """Return what of a question has to be as agreed, and which arrays it is made of."""
    agreed = tuple(getattr(question, name, None) for name in ("clip", "radius", "height"))
    same = tuple(id(getattr(question, name, None)) for name in ("weights", "fit"))
    return question.what, type(question), question.shape, agreed, same


def _parted(sums: NDArray[np.int64], questions: Sequence[Question]) -> list[NDArray[np.int64]]:
    ends = np.cumsum([math.prod(question.shape) for question in questions])
    return np.split(sums, ends[:-1])
