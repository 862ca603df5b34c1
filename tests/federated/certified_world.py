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
from dpmf.kernels.csr import Csr
from dpmf.methods import ALS, EASE, SGLD, GaussianGD, Joint, ObjectivePerturbation, Sketch
from dpmf.methods.certified.method import CertifiedMethod, Learner
from dpmf.methods.certified.questions import Fitted, Noisy, People, Question
from dpmf.methods.objective.certified import ProfiledObjective
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Release, Ridge
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Items, Scale
from dpmf.ratings.ids import Ids

LEAST_P = 1e-9
N_ITEMS = 12
SEED = 5
BUDGET = Budget(5.0)
METHODS: dict[str, CertifiedMethod] = {
    "als": ALS(n_factors=2, n_epochs=2, budget=BUDGET),
    "als-per-item": ALS(n_factors=2, n_epochs=2, moments="per-item", budget=BUDGET),
    "als-biases": ALS(n_factors=0, budget=BUDGET),
    "als-implicit": ALS(n_factors=2, n_epochs=2, feedback="implicit", budget=BUDGET),
    "ease": EASE(head=5, budget=BUDGET),
    "ease-implicit": EASE(head=N_ITEMS, feedback="implicit", budget=BUDGET),
    "ease-counts": EASE(head=5, feedback="implicit", budget=BUDGET),
    "ease-popularity": EASE(head=0, budget=BUDGET),
    "joint": Joint(n_factors=2, n_epochs=2, head=5, budget=BUDGET),
    "joint-given": Joint(head=5, budget=BUDGET),
    "gaussian": GaussianGD(n_factors=2, n_epochs=3, budget=BUDGET),
    "sgld": SGLD(n_factors=2, n_epochs=3, sampling_rate=0.5, budget=BUDGET),
    "sketch": Sketch(n_factors=2, n_epochs=3, sampling_rate=0.5, depth=2, width=9, budget=BUDGET),
}
USERS = Ids(np.arange(11))  # some of them may not take part
VALUE = Budget(5.0, 1e-6, "rating", "replace")
OBJECTIVE = ObjectivePerturbation(budget=VALUE, noise="gaussian")
PUBLIC_RELEASE = Release(
    items=Items.of(list(range(N_ITEMS))),
    scale=Scale(1, 5),
    mean=3.0,
    item_factors=np.random.default_rng(3).normal(size=(N_ITEMS, 2)).astype(np.float32),
    item_biases=np.zeros(N_ITEMS, np.float32),
    ridge=Ridge(1.0, 1.0),
    configuration={},
    guarantee=Guarantee.none(),
)
TABLE = Profiles.public(USERS.array, np.random.default_rng(2).normal(size=(len(USERS), 3)))
PAID = Profiles.from_release(PUBLIC_RELEASE, VALUE, public=True)
LEARNERS: dict[str, Learner] = {
    **METHODS,
    "objective": ProfiledObjective(OBJECTIVE, TABLE, USERS),
    "objective-release": ProfiledObjective(OBJECTIVE, PAID, USERS),
}


def agreement_of(
    method: Learner | str = "als",
    n_items: int = N_ITEMS,
    scale: Scale = Scale(1, 5),  # noqa: B008
    **people: int,
) -> Agreement:
    scale = Scale.of_counts() if method == "ease-counts" else scale
    method = LEARNERS[method] if isinstance(method, str) else method
    usual = {"n_users": 8, "dropouts": 2, "colluders": 1}
    return Agreement(method, Items.of(list(range(n_items))), scale, **{**usual, **people})


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
        keys = self.recommender.public, self.third_party.public
        for number in range(agreement.n_users + strangers):
            user = User(*ratings(number), agreement, *keys, noise=noise_of(SEED, number), place=number)
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
        own = Csr(np.array([0, len(items)]), np.array(items, np.int32), np.array(values, np.float32))
        sums, fit, fitted = np.zeros(question.shape, np.int64), question.needs(), None
        people = question.prepared(replace(People.of(own), positions=np.array([number])))
        if fit is not None:
            fitted = Fitted(np.zeros(1, np.float32), np.zeros((1, fit.n_factors), np.float32))
            fit.solve(people.solving, 0, 1, fitted)
        question.add(people, fitted, 0, 1, self.steps(question), sums)
        takes_part, noise = drawn_by(number, self.agreement, question, self.recommender.round)
        return sums * takes_part, noise

    def steps(self, question: Question) -> float:
        return self.recommender.mechanism.steps(question.what, question.sensitivity(self.agreement.budget.neighbours))


def drawn_by(number: int, agreement: Agreement, question: Question, round_: int) -> tuple[bool, NDArray[np.int64]]:
    """Return whether a user's coin lets them take part in a round, and their share of its noise."""
    own = Mechanism(agreement.events, noise_of(SEED, number), agreement.crowd.n_shares)
    for earlier in agreement.rounds[:round_]:
        if question.what in earlier.releases:
            own.forfeit(question.what)
    coins = own.participants(question.what, 1)
    bound = question.sensitivity(agreement.budget.neighbours)
    noise = own.noisy(question.what, np.zeros(question.shape, np.int64), bound)
    return coins is None or bool(coins[0]), noise


def told_of(agreement: Agreement, number: int) -> dict[str, NDArray[Any]]:
    """Return numbers that a round may well come with."""
    rng, found = np.random.default_rng(number), {}
    for one in agreement.told(number):
        if one.name == "length":
            found[one.name] = np.zeros(one.shape)
        elif one.least >= 0:
            found[one.name] = max(one.least, 0.1) + rng.uniform(0, 1, one.shape)
        else:
            found[one.name] = rng.normal(size=one.shape).astype(one.dtype)
    return found


def questions_of(agreement: Agreement, number: int) -> tuple[Question, ...]:
    return agreement.questions(number, told_of(agreement, number))


def inquiry_of(agreement: Agreement, number: int, **changed: NDArray[Any]) -> Inquiry:
    told = told_of(agreement, number)
    return replace(Inquiry(number, agreement.digest, new_seed(), told), told={**told, **changed})
