"""A user of the certified protocol: ratings, bias and factors stay here, and what leaves is bounded, noisy and masked.

Nobody else has to be trusted with the bound, the noise or the budget: whatever the recommender asks, a user answers
every round of the agreement once at most, with the noise that the agreement requires for what was asked. With a ledger
of their own, the same holds of everything that they ever agree to: see `dpmf.federated.certified.account`.

Where a server was killed in a round, and asks again in a new session, the same answer is masked and sealed again: it is
computed once, its noise is drawn once, and one total of a round leaves the third party at most.

>>> from dpmf.federated.wire.channels import KeyPair
>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> agreement = Agreement(ALS(n_factors=0, budget=Budget(5.0)), Items.of([1, 2, 3]), Scale(1, 5), n_users=4)
>>> User(np.array([0, 2]), np.array([5.0, 1.0]), agreement, KeyPair().public, KeyPair().public)
User(…)
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified.account import Account
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Inquiry
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_elements
from dpmf.federated.wire.parties import THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.kernels.csr import Csr
from dpmf.methods.certified.questions import Fitted, People, Question
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise


@dataclass(frozen=True, eq=False, repr=False)
class Said:
    """The last answer of a user, for servers that lose it.

    Attributes:
        round: that it is of.
        asked: a digest of what was told with the question.
        elements: with noise, not masked.
    """

    round: int
    asked: bytes
    elements: NDArray[Any]


class User:
    """One person's side.

    Args:
        items: what was rated: places in the catalogue. What is not in it, or no rating, is left out; of an item that
            stands there twice the first rating counts.
        values: the ratings.
        agreement: what this person agreed to.
        recommender, third_party: their public keys.
        share: what part of the full weight this person wants to have, from 0 to 1.
        noise: where the person's noise comes from; the operating system unless given.
        after: the last round that was answered, by an earlier process: what a user is made of again has to remember it,
            and to store `round` before an answer is sent, or rounds could be answered twice. A ledger remembers it.
        place: of this person among all users, which an agreement with places needs.
        ledger: of this person, over all agreements. This one is entered before there is anything to send.
        run: what tells this run from others in the ledger; by default the agreement and both public keys.
        earlier: this person's side of the session before, with servers that have other keys now: its last answer is the
            one that is given if its round is asked for again, and no round before that is answered.

    Raises:
        BudgetExceeded: the ledger's cap does not allow for this agreement.
    """

    __slots__ = (
        "_account", "_agreement", "_before", "_mechanism", "_people", "_recommender", "_said", "_third_party",
        "public", "refusals", "round",
    )  # fmt: skip

    def __init__(
        self,
        items: NDArray[Any],
        values: NDArray[Any],
        agreement: Agreement,
        recommender: bytes,
        third_party: bytes,
        share: float = 1.0,
        noise: Noise | None = None,
        after: int = -1,
        place: int | None = None,
        ledger: Ledger | None = None,
        run: bytes | None = None,
        earlier: User | None = None,
    ) -> None:
        if share != 1 and agreement.budget.unit != "user":
            raise InvalidArgument(f"share={share:g} means nothing here: what is protected is a rating, not a person")
        places = agreement.script.places
        if places is not None and (place is None or not 0 <= place < places):
            raise InvalidArgument(f"place={place!r} should be a whole number from 0 to {places - 1}")
        own = _cleaned(np.asarray(items), np.asarray(values), agreement)
        noise = Noise() if noise is None else noise
        self._account = None
        if ledger is not None:
            parties = recommender, third_party
            self._account = Account(ledger, agreement, *parties, share, run, seeded=noise.seeded)
            after = max(after, self._account.last_round)
        if earlier is not None:
            after = max(after, earlier.round)
        self._said: Said | None = None if earlier is None else earlier._said
        self._before = self._said
        self._agreement = agreement
        self._people = People(own, own, np.array([share], np.float64), np.array([place or 0]))
        self._mechanism = Mechanism(agreement.events, noise, agreement.crowd.n_shares)
        keys = KeyPair()
        self.public = keys.public
        channels = (Channel(keys, other, agreement.wire) for other in (recommender, third_party))
        self._recommender, self._third_party = channels
        self.round: int = -1  # the last that was answered
        self._pass_over(after + 1)
        self.round = after
        self.refusals = Refusals("a user")

    def receive(self, message: bytes) -> list[Outgoing]:
        """Take a message from the recommender, and return what there is to send."""
        try:
            return self._answer(Inquiry.decoded(self._recommender.open(message), self._agreement))
        except Refused as refusal:
            self.refusals.note(refusal)
            return []

    def forget(self, number: int) -> None:
        """Forget the answer to a round that is closed: nobody has a reason to ask for it again."""
        if self._said is not None and self._said.round <= number:
            self._said = self._before = None

    def _answer(self, inquiry: Inquiry) -> list[Outgoing]:
        said, asked = self._before, _digest(inquiry)
        self._before = None
        if said is None or (said.round, said.asked) != (inquiry.round, asked):
            said = Said(inquiry.round, asked, self._computed(inquiry))
        self._said = said
        ring = self._agreement.ring(said.round)
        mask = mask_elements(inquiry.mask_seed, ring, len(said.elements), version=self._agreement.wire)
        content = Answer(said.round, said.elements + mask).encoded(self._agreement)
        return [Outgoing(THIRD_PARTY, self._third_party.seal(content))]

    def _computed(self, inquiry: Inquiry) -> NDArray[Any]:
        """Return the answer to a new round, with noise; what was drawn before is not drawn again."""
        if inquiry.round <= self.round:
            raise Refused("the round is not a new one")
        if self._account is not None:
            self._account.begin(inquiry.round)
        self._pass_over(inquiry.round)
        self.round = inquiry.round
        questions = self._agreement.questions(inquiry.round, inquiry.told)
        numbers = np.concatenate([self._noisy(question) for question in questions])
        return self._agreement.ring(inquiry.round).elements(numbers)

    def exact_answer(self, question: Question) -> NDArray[np.int64]:
        """Return the answer on the grid, without noise: it stays on this side."""
        bound = question.sensitivity(self._agreement.budget.neighbours)
        sums, fit, fitted = np.zeros(question.shape, np.int64), question.needs(), None
        people = question.prepared(self._people)
        if fit is not None:
            fitted = Fitted(np.zeros(1, np.float32), np.zeros((1, fit.n_factors), np.float32))
            fit.solve(people.solving, 0, 1, fitted)
        question.add(people, fitted, 0, 1, self._mechanism.steps(question.what, bound), sums)
        return sums

    def _noisy(self, question: Question) -> NDArray[np.int64]:
        """Answer a question on the grid, and add a piece of noise."""
        bound, sums = question.sensitivity(self._agreement.budget.neighbours), self.exact_answer(question)
        coins = self._mechanism.participants(question.what, 1)
        if coins is not None:  # nobody else learns it, so the answer is made and sent either way
            sums *= coins[0]
        try:
            return self._mechanism.noisy(question.what, sums, bound).reshape(-1)
        except BudgetExceeded:
            raise Refused("the answer would be more than was agreed to") from None

    def _pass_over(self, number: int) -> None:
        """Give up the answers of rounds that this person did not take part in: they do not come again."""
        for round_ in self._agreement.rounds[self.round + 1 : number]:
            for what in round_.releases:
                self._mechanism.forfeit(what)

    def __repr__(self) -> str:
        return "User(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("a user cannot be copied or pickled: ratings, noise and keys stay where they are")


def _digest(inquiry: Inquiry) -> bytes:
    digest = sha256()
    for name in sorted(inquiry.told):
        digest.update(np.ascontiguousarray(inquiry.told[name]).tobytes())
    return digest.digest()


def _cleaned(items: NDArray[Any], values: NDArray[Any], agreement: Agreement) -> Csr:
    """Return ratings of items of the catalogue, in ascending order and once each, on the scale."""
    if items.shape != values.shape or items.ndim != 1:
        raise InvalidArgument("a user needs as many items as ratings")
    valid = (items >= 0) & (items < agreement.n_items) & np.isfinite(values)
    kept, first = np.unique(items[valid].astype(np.int32), return_index=True)
    rated = np.clip(values[valid][first], agreement.scale.lo, agreement.scale.hi).astype(np.float32)
    return Csr(np.array([0, len(kept)], np.int64), kept, rated)
