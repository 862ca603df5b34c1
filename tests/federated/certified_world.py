"""All parties of the certified protocol, and messages that can be lost, changed or repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Inquiry
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.certified.user import User
from dpmf.federated.wire.masks import new_seed
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.methods.certified.questions import Answers, Fit, Noisy, People, Question, add_answers
from dpmf.privacy import Budget

LEAST_P = 1e-9
N_ITEMS = 12
SEED = 5


def agreement_of(**settings: Any) -> Agreement:
    usual: dict[str, Any] = {"n_users": 8, "n_factors": 2, "n_rounds": 2, "dropouts": 2, "colluders": 1}
    n_items = settings.pop("n_items", N_ITEMS)
    return Agreement(n_items, (1.0, 5.0), settings.pop("budget", Budget(5.0)), **{**usual, **settings})


def some_ratings(number: int, n_items: int = N_ITEMS) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rng = np.random.default_rng(number)
    items = np.sort(rng.choice(n_items, rng.integers(1, n_items + 1), replace=False))
    return items, rng.integers(1, 6, len(items)).astype(np.float32)


class World:
    """All parties; every message can be lost, changed or repeated. `seen` has what the third party received."""

    def __init__(
        self, agreement: Agreement, ratings: Callable[[int], tuple[Any, Any]] = some_ratings, strangers: int = 0
    ) -> None:
        self.agreement, self.ratings = agreement, ratings
        self.recommender = Recommender(agreement)
        self.third_party = ThirdParty(agreement, self.recommender.public)
        self.recommender.meet(self.third_party.public)
        self.users: dict[int, User] = {}
        for number in range(agreement.n_users + strangers):
            user = User(
                *ratings(number), agreement, self.recommender.public, self.third_party.public,
                noise=noise_of(SEED, number),
            )  # fmt: skip
            self.users[number] = user
            self.recommender.admit(number, user.public)
            self.third_party.admit(number, user.public)
        self.seen: dict[int, bytes] = {}

    def play(
        self,
        questions: Iterable[Question] | None = None,
        *,
        silent: Iterable[int] = (),
        meddle: Callable[[World], None] | None = None,
    ) -> tuple[Noisy, ...]:
        """Play the next round, in which some never answer."""
        questions = self.questions() if questions is None else tuple(questions)
        for outgoing in self.recommender.ask(range(self.agreement.n_users), questions):
            if outgoing.to == THIRD_PARTY:
                self.third_party.receive(RECOMMENDER, outgoing.message)
            elif outgoing.to not in set(silent):
                for answer in self.users[outgoing.to].receive(outgoing.message):
                    assert answer.to == THIRD_PARTY
                    self.seen[outgoing.to] = answer.message
                    self.third_party.receive(outgoing.to, answer.message)
        if meddle is not None:
            meddle(self)
        for total in self.third_party.close():
            self.total = total.message
            self.recommender.receive(THIRD_PARTY, total.message)
        return self.recommender.take()

    def questions(self) -> tuple[Question, ...]:
        """Return what the next round may well ask."""
        return questions_of(self.agreement, self.recommender.round)

    def parts(self, number: int, question: Question) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a user's exact answer, and the share of noise that goes with it."""
        items, values = self.ratings(number)
        own = Answers(np.array([0, len(items)]), np.array(items, np.int32), np.array(values, np.float32))
        sums = np.zeros(question.shape, np.int64)
        add_answers(question, People(own, own, np.ones(1)), 0, 1, self.steps(question), sums)
        index = sum(question.what in one.releases for one in self.agreement.rounds[: self.recommender.round])
        return sums, noise_of(SEED, number).shares(question.shape, self.agreement.n_shares, question.what, index)

    def steps(self, question: Question) -> float:
        return self.recommender.mechanism.steps(question.what, question.sensitivity(self.agreement.plan))


def questions_of(agreement: Agreement, number: int) -> tuple[Question, ...]:
    rng = np.random.default_rng(number)
    width, fit = agreement.width(number), None
    if width is not None:
        c, V = rng.normal(size=agreement.n_items), rng.normal(size=(agreement.n_items, width))
        fit = Fit(3.0, c.astype(np.float32), V.astype(np.float32), 3.0, 0.3, 0.0)
    return agreement.questions(number, rng.uniform(0.1, 1.0, agreement.n_items), fit)


def inquiry_of(agreement: Agreement, number: int, **changed: Any) -> Inquiry:
    told: Any = questions_of(agreement, number)[-1]
    fit = getattr(told, "fit", None)
    numbers = {name: changed.pop(name) for name in ("c", "V", "ridge_b", "ridge_u", "length") if name in changed}
    if numbers and fit is not None:
        fit = replace(fit, **numbers)
    return replace(Inquiry(number, agreement.digest, new_seed(), told.weights, fit), **changed)
