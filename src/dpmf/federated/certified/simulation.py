"""The certified protocol with all its parties in one process: every message is encoded, sealed, delivered and opened.

>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> outcome = simulate_certified(make(60, 30), CertifiedScenario(Budget(5.0), n_factors=2, n_epochs=2))
>>> outcome.rounds, outcome.discarded, outcome.model.guarantee.certified
(5, 0, True)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.resources import Resources
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.certified.scenario import CertifiedScenario
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.certified.user import User
from dpmf.federated.simulate.population import AFTER_ANSWERING, BEFORE_ANSWERING, Population
from dpmf.federated.simulate.traffic import Traffic
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.methods.base import Callback, RunOptions
from dpmf.methods.certified.answer import Asked, RatingsAnswerer
from dpmf.methods.certified.conversation import StageLost
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.planned import with_plan
from dpmf.methods.certified.questions import Fit, Noisy, Question
from dpmf.methods.certified.run import Terms, certify
from dpmf.methods.foldin import folded
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Model
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings


@dataclass(frozen=True, eq=False)
class CertifiedOutcome:
    """What a simulation gives.

    Attributes:
        model: items as the recommender publishes them, and everybody's own part as it is on their side.
        agreement: what everybody agreed to.
        rounds: how many there were, in earlier processes too …
        discarded: … and how many of them were discarded, in this one.
        against_third_party: what is promised against the third party; the model's guarantee is against the recommender.
        traffic: bytes and seconds.
        seconds: of all rounds.
        took_part: how many people took part at least once.
        refused: how many messages were refused.
    """

    model: Model
    agreement: Agreement
    rounds: int
    discarded: int
    against_third_party: str
    traffic: Traffic
    seconds: float
    took_part: int
    refused: int


def simulate_certified(
    ratings: Ratings,
    scenario: CertifiedScenario,
    *,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    user_budgets: Mapping[Any, float] | None = None,
    ledger: Ledger | None = None,
    profiles: Profiles | None = None,
) -> CertifiedOutcome:
    """Run a scenario to its end.

    Args:
        ratings: of everybody; each user's go to that user's side alone.
        scenario: what to run.
        n_threads: for the errors that are measured on the way, which nobody could measure in earnest.
        callbacks: called with the record of each round of factors.
        checkpoint: where to store what is released; a run that was stopped resumes without that stage.
        user_budgets: the epsilon of users who want a smaller one than that of the budget, at the budget's delta. Nobody
            else gets to know it: everybody scales their own answers.
        ledger: where to enter what the run will release, before anybody is asked.
        profiles: factors of users, which `ObjectivePerturbation` needs and nothing else takes.
    """
    threads = thread_count(n_threads)
    method = scenario.learner_of(ratings, profiles, threads)
    method.check_declared(ratings)
    if user_budgets is not None and method.unit_for("certified") != "user":
        raise InvalidArgument("user_budgets mean nothing here: what is protected is a rating, not a person")
    agreement, catalogue = scenario.agreement(ratings, method), ratings.catalogue
    crowd, scale = agreement.crowd, agreement.scale
    public, rests_on = method.public_half(catalogue, scale, crowd), method.assumptions(catalogue, crowd)
    given = {} if profiles is None else {"profiles": profiles.digest}
    settings = {"name": "simulate certified", **scenario.facts(), **given}
    terms = Terms(settings, rests_on, scenario.noise_seed, personal=method.personal)
    parties: list[Parties] = []

    def partner(shares: NDArray[np.float64], noise: Noise, resources: Resources) -> Parties:
        parties.append(Parties(ratings, scenario, agreement, threads, shares))
        return parties[0]

    began, options = time.perf_counter(), RunOptions(threads, tuple(callbacks), checkpoint, user_budgets, ledger)
    found = certify(public, ratings, terms, options, guarantee=agreement.guarantee, partner=partner)
    seconds = time.perf_counter() - began
    facts = {name: value for name, value in scenario.facts().items() if name != "noise_seed"}
    configuration = {"method": "federated", "mode": "certified", **facts}
    release = method.release_of(public, catalogue, scale, configuration, found.guarantee)
    model = folded(with_plan(release, method, found, crowd), ratings, found.history, found.resources)
    return parties[0].outcome(model, seconds)


class Parties:
    """All parties, and who is online: the partner of a certified run who asks people, each on a side of their own."""

    def __init__(
        self,
        ratings: Ratings,
        scenario: CertifiedScenario,
        agreement: Agreement,
        n_threads: int,
        shares: NDArray[np.float64],
    ) -> None:
        self.ratings, self.scenario, self.agreement, self._shares = ratings, scenario, agreement, shares
        self.recommender = Recommender(agreement)
        self.third_party = ThirdParty(agreement, self.recommender.public)
        self.recommender.meet(self.third_party.public)
        self.population = Population(np.arange(ratings.n_users), scenario.come, scenario.leave, scenario.seed)
        self.users: dict[int, User] = {}
        self.traffic = Traffic()
        self._errors = RatingsAnswerer(ratings, np.ones(ratings.n_users), n_threads)
        self._asked: Sequence[Question] = ()
        self.rounds = self.discarded = self._chosen = 0
        self._first: int | None = None  # the number of the first round that this process plays

    def begin(self, stage: Stage) -> None:
        """Leave out the rounds of earlier stages that were not played."""
        first = self.agreement.first_round(stage)
        self._first = first if self._first is None else self._first
        self.recommender.skip_to(first)

    def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Play a round of the protocol."""
        self._asked = questions
        while self._chosen < self.recommender.round:
            self._choose()  # the chance of rounds that another process carried out
        moments, spent, began = self._choose(), 0.0, time.perf_counter()
        for number in moments:
            self.user(number)
        third_party_seconds = 0.0
        for outgoing in self.recommender.ask(list(moments), questions):
            if outgoing.to == THIRD_PARTY:
                self.third_party.receive(RECOMMENDER, outgoing.message)
                continue
            if moments[outgoing.to] <= BEFORE_ANSWERING:
                continue
            start = time.perf_counter()
            answers = self.users[outgoing.to].receive(outgoing.message)
            middle = time.perf_counter()
            for answer in answers:
                self.third_party.receive(outgoing.to, answer.message)
            third_party_seconds += time.perf_counter() - middle
            spent += middle - start
            n_ratings = int(self.ratings.indptr[outgoing.to + 1] - self.ratings.indptr[outgoing.to])
            up = sum(len(answer.message) for answer in answers)
            self.traffic.add_user(n_ratings, len(outgoing.message), up, middle - start)
        start = time.perf_counter()
        totals = self.third_party.close()
        third_party_seconds += time.perf_counter() - start
        for total in totals:
            self.traffic.from_third_party.add(len(total.message))
            self.recommender.receive(THIRD_PARTY, total.message)
        self.rounds += 1
        self.traffic.third_party_seconds.add(third_party_seconds)
        try:
            return self.recommender.take()
        except StageLost:
            self.discarded += 1
            raise
        finally:
            self.traffic.recommender_seconds.add(time.perf_counter() - began - spent - third_party_seconds)

    def forfeit(self, what: str) -> None:
        """Give up the next release of an event: it stays charged."""
        self.recommender.forfeit(what)

    def finish(self) -> None:
        """Refuse to end before everything in the plan was asked for or given up."""
        self.recommender.mechanism.finish()

    def error(self, fit: Fit | None) -> float:
        """Return the root mean squared error on all ratings: only who simulates can know it."""
        if fit is None:
            self._errors.answer([Asked(question, steps=1.0) for question in self._asked])
        return self._errors.error(fit)

    def user(self, number: int) -> User:
        """Return a user's side, made when it is first needed."""
        if number not in self.users:
            items, values = self.ratings.of_user(number)
            user = User(
                items, values, self.agreement, self.recommender.public, self.third_party.public,
                float(self._shares[number]), noise_of(self.scenario.noise_seed, number), place=number,
            )  # fmt: skip
            self.recommender.admit(number, user.public)
            self.third_party.admit(number, user.public)
            self.users[number] = user
        return self.users[number]

    def _choose(self) -> dict[int, int]:
        """Return who is asked in the next round, and when they leave it."""
        self._chosen += 1
        population, wanted = self.population, self.agreement.n_users
        population.tick()
        if self.scenario.asks_everybody:
            chosen, here = np.arange(wanted), population.online.copy()
        else:
            population.wait_for(wanted)
            chosen, here = population.choose(wanted), np.ones(wanted, np.bool_)
        leaving = np.where(here, population.departures(wanted), BEFORE_ANSWERING)
        moments = dict(zip(chosen.tolist(), leaving.tolist(), strict=True))
        population.disconnect([user for user, moment in moments.items() if moment <= AFTER_ANSWERING])
        return moments

    def outcome(self, model: Model, seconds: float) -> CertifiedOutcome:
        """Return what came out."""
        refusals = [self.recommender.refusals, self.third_party.refusals]
        refusals += [user.refusals for user in self.users.values()]
        rounds = len(self.agreement.rounds) if self._first is None else self._first + self.rounds
        return CertifiedOutcome(
            model=model,
            agreement=self.agreement,
            rounds=rounds,
            discarded=self.discarded,
            against_third_party=self.agreement.against_third_party,
            traffic=self.traffic,
            seconds=seconds,
            took_part=len(self.users),
            refused=sum(one.by_reason.total() for one in refusals),
        )


def noise_of(noise_seed: int | None, number: int) -> Noise:
    """Return the noise of a user: from the operating system, or for research from a seed and the user's number."""
    if noise_seed is None:
        return Noise()
    own = hashlib.blake2b(b"%d %d" % (noise_seed, number), digest_size=7).digest()
    return Noise(int.from_bytes(own, "little"))
