"""The certified protocol with all its parties in one process: every message is encoded, sealed, delivered and opened.

>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> outcome = simulate_certified(make(60, 30), CertifiedScenario(Budget(5.0), n_factors=2, n_epochs=2))
>>> outcome.rounds, outcome.discarded, outcome.model.guarantee.certified
(5, 0, True)
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.engine.threads import thread_count
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified.agreement import THIRD_PARTY_SEES, Agreement
from dpmf.federated.certified.recommender import Recommender, RoundLost
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.certified.user import User
from dpmf.federated.simulate.population import AFTER_ANSWERING, BEFORE_ANSWERING, Population
from dpmf.federated.simulate.traffic import Traffic
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.methods.als.central import FittedPeople
from dpmf.methods.als.certified import PrivateRounds
from dpmf.methods.als.plan import Stage, private_defaults
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.methods.certified.run import private_run
from dpmf.methods.certified.shares import personal_shares
from dpmf.methods.checks import declared, fraction, not_negative, public_facts, whole
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]
_USUALLY = 0.9  # of those who are online on average, so many nearly always are


@dataclass(frozen=True)
class CertifiedScenario:
    """Configuration of a simulation: public facts only.

    Attributes:
        budget: what all rounds together may cost one person.
        per_round: how many of those who are online take part in a round. None asks everybody, if people come at once
            (come is 1), and whoever has just left counts as dropped out; else nine tenths of as many as are online
            on average. Nothing is gained in privacy by being left out.
        dropouts: the part of them that may leave before they answer; with more, the round is discarded.
        colluders: the part of them that may tell the recommender, or the third party, what they did.
        come, leave: the probabilities of a person getting online and offline in a round.
        n_factors: None lets the number of people decide.
        n_epochs, regularization, per_item: as in private least squares.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: of the public start, and of who is online when.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    budget: Budget
    per_round: int | None = None
    dropouts: float = 0.05
    colluders: float = 0.05
    come: float = 1.0
    leave: float = 0.0
    n_factors: int | None = None
    n_epochs: int = private_defaults()["n_epochs"]
    regularization: float = private_defaults()["regularization"]
    per_item: bool = False
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget) or not self.budget.is_finite:
            raise InvalidArgument("the certified protocol needs a budget with a finite epsilon")
        if self.per_round is not None:
            whole("per_round", self.per_round)
        if self.n_factors is not None:
            whole("n_factors", self.n_factors, least=0, most=256)
        whole("n_epochs", self.n_epochs, most=10_000)
        for name in ("dropouts", "colluders", "leave"):
            fraction(name, getattr(self, name))
        not_negative("regularization", self.regularization)
        if not 0 < self.come <= 1:
            raise InvalidArgument(f"come={self.come:g} should be a probability above 0")

    @property
    def asks_everybody(self) -> bool:
        """Whether everybody is asked in every round, online or not."""
        return self.per_round is None and self.come == 1

    def agreement(self, ratings: Ratings) -> Agreement:
        """Return what everybody knows beforehand."""
        n_users = ratings.n_users
        if self.per_round is not None:
            n_users = min(self.per_round, n_users)
        elif not self.asks_everybody:
            n_users = max(int(_USUALLY * n_users * self.come / (self.come + self.leave)), 1)
        dropouts, colluders = (math.ceil(part * n_users) for part in (self.dropouts, self.colluders))
        self._check_dropouts(n_users, dropouts)
        if n_users <= dropouts + colluders:
            raise InvalidArgument(
                f"{n_users} people in a round are too few to tolerate {dropouts} drop-outs and {colluders} colluders: "
                "take more people, or tolerate fewer"
            )
        return Agreement(
            ratings.n_items, (ratings.scale.lo, ratings.scale.hi), self.budget, n_users, dropouts, colluders,
            self.n_factors, self.n_epochs, self.regularization, self.per_item,
        )  # fmt: skip

    def _check_dropouts(self, n_users: int, dropouts: int) -> None:
        """Refuse to begin what would be lost, and charged, in the first round."""
        missing = self.leave / 2  # of those who leave in a round, half do so before they answer
        if self.asks_everybody:
            missing += self.leave * (1 - missing)  # who is offline when asked does not answer either
        usual, spread = missing * n_users, math.sqrt(missing * (1 - missing) * n_users)
        if usual + 2 * spread > dropouts and self.leave > 0:
            raise InvalidArgument(
                f"about {usual:.0f} of {n_users} people leave a round before they answer, and with more than "
                f"{dropouts} it is discarded: tolerate more drop-outs, or let people stay longer"
            )


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
) -> CertifiedOutcome:
    """Run a scenario to its end.

    Args:
        ratings: of everybody; each user's go to that user's side alone.
        scenario: what to run.
        n_threads: for the errors that are measured on the way, which nobody could measure in earnest.
        callbacks: called with the record of each round of factors.
        checkpoint: where to keep what is released; a run that was stopped goes on without the stage it was stopped in.
        user_budgets: the epsilon of users who want a smaller one than that of the budget, at the budget's delta. Nobody
            else gets to know it: everybody scales their own answers.
        ledger: where to enter what the run will release, before anybody is asked.
    """
    declared(ratings, scenario.items_public)
    agreement, seeded = scenario.agreement(ratings), scenario.noise_seed is not None
    if seeded:
        logger.warning("%s", SEEDED)
    facts = public_facts(ratings.catalogue)
    guarantee = agreement.guarantee(facts, seeded=seeded, personal=bool(user_budgets))
    shares = personal_shares(ratings.user_ids, scenario.budget, agreement.events, user_budgets)
    run = CertifiedSimulation(ratings, scenario, agreement, thread_count(n_threads), shares)
    began, identity = time.perf_counter(), partial(_identity, ratings, scenario, shares)
    with private_run(checkpoint, identity, agreement.stages, seeded) as stages:
        stages.enter(ledger, ratings.name or "release", guarantee)
        history = stages.carry_out(run, tuple(callbacks))
        run.mechanism.finish()
    return run.outcome(guarantee, history, time.perf_counter() - began)


def _identity(ratings: Ratings, scenario: CertifiedScenario, shares: NDArray[np.float64]) -> dict[str, Any]:
    settings = {"name": "simulate certified", **asdict(scenario)}
    del settings["budget"]  # stands by itself, so that a refusal names it
    return identity_of(
        settings, ratings, fingerprint_of(ratings), budget=str(scenario.budget),
        user_budgets=f"{checksum_of((shares,)):08x}",
    )  # fmt: skip


class CertifiedSimulation:
    """All parties, and who is online; a run of private least squares that asks them."""

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
        self.mechanism: Mechanism = self.recommender.mechanism
        keys = ratings.catalogue.ids.keys
        self.public = PrivateRounds(agreement.plan, ratings.scale, keys, self, scenario.seed)
        self.population = Population(np.arange(ratings.n_users), scenario.come, scenario.leave, scenario.seed)
        self.users: dict[int, User] = {}
        self.traffic, self.fitted = Traffic(), FittedPeople(ratings, n_threads)
        self.rounds = self.discarded = self._chosen = 0
        self._first: int | None = None  # the number of the first round that this process plays
        self._lost: set[int] = set()  # numbers of rounds of factors

    def measure(self, stage: Stage) -> None:
        """Carry out a stage; if one of its rounds is lost, what is left of it is given up."""
        first = self.agreement.first_round(stage)
        self._first = first if self._first is None else self._first
        self.recommender.skip_to(first)
        try:
            self.public.measure(stage)
        except RoundLost:
            if stage == self.agreement.stages[0]:
                raise BudgetExceeded(
                    "too few people answered in the first stage, without which nothing can be learnt: its budget is "
                    "spent; begin anew, which is charged anew, and tolerate more drop-outs"
                ) from None
            logger.warning("%s was lost, for too few people answered: it stays charged, and is left out", stage.name)
            for round_ in self.agreement.rounds[self.recommender.round :]:
                for what in round_.releases if round_.stage == self.agreement.stages.index(stage) else ():
                    self.mechanism.forfeit(what)
            self._lost |= {stage.round + 1} if stage.round is not None else set()

    def ask(self, *questions: Question) -> tuple[Noisy, ...]:
        """Play a round of the protocol."""
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
        except RoundLost:
            self.discarded += 1
            raise
        finally:
            self.traffic.recommender_seconds.add(time.perf_counter() - began - spent - third_party_seconds)

    def forfeit(self, what: str) -> None:
        """Give up a release that is not needed."""
        self.mechanism.forfeit(what)

    def user(self, number: int) -> User:
        """Return a user's side, made when it is first needed."""
        if number not in self.users:
            items, values = self.ratings.of_user(number)
            user = User(
                items, values, self.agreement, self.recommender.public, self.third_party.public,
                float(self._shares[number]), noise_of(self.scenario.noise_seed, number),
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

    def settle(self, stage: Stage) -> None:
        """Let everybody compute their own part from what is public after a stage."""
        final = stage.round == self.agreement.plan.n_rounds - 1
        self.fitted.solve(self.public.fit(biases_only=stage.round is None, final=final))

    def solve_users(self, *, final: bool = False) -> None:
        """Let everybody compute their own part from what is public."""
        self.fitted.solve(self.public.fit(final=final))

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return self.public.released()

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned."""
        self.public.take_up(tensors)

    def training_error(self) -> float:
        """Return the root mean squared error on all ratings: only who simulates can know it."""
        return self.fitted.error(self.public)

    def outcome(self, guarantee: Guarantee, history: Iterable[EpochRecord], seconds: float) -> CertifiedOutcome:
        """Return what came out."""
        of, public = self.ratings, self.public
        self.solve_users(final=True)
        facts = {name: value for name, value in asdict(self.scenario).items() if name not in ("budget", "noise_seed")}
        bias, factors = public.ridge
        release = Release(
            items=of.catalogue, scale=of.scale, mean=public.mean, item_factors=public.V, item_biases=public.c,
            ridge=Ridge(bias=bias, factors=factors), guarantee=guarantee,
            configuration={"method": "federated", "mode": "certified", **facts, "n_factors": public.V.shape[1]},
        )  # fmt: skip
        kept = tuple(record for record in history if record.epoch not in self._lost)
        model = Model(release, of.user_ids, self.fitted.U, self.fitted.b, of.indptr, of.items, kept)
        refusals = [
            self.recommender.refusals,
            self.third_party.refusals,
            *(one.refusals for one in self.users.values()),
        ]
        rounds = len(self.agreement.rounds) if self._first is None else self._first + self.rounds
        return CertifiedOutcome(
            model, self.agreement, rounds, self.discarded, THIRD_PARTY_SEES, self.traffic, seconds,
            len(self.users), sum(one.by_reason.total() for one in refusals),
        )  # fmt: skip


def noise_of(noise_seed: int | None, number: int) -> Noise:
    """Return the noise of a user: from the operating system, or for research from a seed and the user's number."""
    if noise_seed is None:
        return Noise()
    own = hashlib.blake2b(b"%d %d" % (noise_seed, number), digest_size=7).digest()
    return Noise(int.from_bytes(own, "little"))
