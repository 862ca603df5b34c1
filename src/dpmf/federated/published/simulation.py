"""The published protocol with all its parties in one process: every message is encoded, sealed, delivered and opened.

>>> from dpmf.ratings.synthetic import make
>>> outcome = simulate(make(60, 30), Scenario("s3", rounds=5, epsilon=10.0, per_round=20, n_factors=4, come=0.5))
>>> outcome.rounds, outcome.model.guarantee.mode
(5, 'paper')
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshots
from dpmf.engine.journal import locked
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.federated.published.claim import Claim
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.recommender import Recommender
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.snapshot import kept, take_up
from dpmf.federated.published.third_party import ThirdParty
from dpmf.federated.published.user import User
from dpmf.federated.simulate.population import BEFORE_ANSWERING, STAYS, Population
from dpmf.federated.simulate.traffic import Spent, Traffic
from dpmf.federated.wire.messages import Sizes
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY, Outgoing
from dpmf.methods.centre import NO_BIAS, on_scale
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

Callback = Callable[[EpochRecord], bool | None]
_ERRORS_EVERY = 100  # rounds: errors take longer than a round


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a simulation gives.

    Attributes:
        model: items as the recommender has them, and everybody's profile as it is on their side.
        rounds: how many were carried out …
        discarded: … and how many of them were discarded.
        claim: what the paper claims.
        traffic: bytes and seconds.
        seconds: of all rounds.
        took_part: how many users took part at least once.
        refused: how many messages were refused.
    """

    model: Model
    rounds: int
    discarded: int
    claim: Claim
    traffic: Traffic
    seconds: float
    took_part: int
    refused: int


def simulate(
    ratings: Ratings,
    scenario: Scenario,
    *,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Outcome:
    """Run a scenario to its end.

    Args:
        ratings: of everybody; each user's go to that user's side alone.
        scenario: what to run.
        n_threads: for the errors that are measured on the way.
        callbacks: called with a record every hundred rounds, and after the last.
        checkpoint: where to keep snapshots; a run that was stopped goes on from the newest, with other keys and noise.
        on_round: called with the number of rounds so far after each of them.
    """
    declared(ratings, scenario.items_public)
    run = Simulation(ratings, scenario, thread_count(n_threads), on_round)
    if checkpoint is None:
        run.carry_out(tuple(callbacks), None)
    else:
        settings = {**asdict(scenario), "name": "simulate", "epsilon": str(scenario.epsilon)}  # it may be infinite
        del settings["rounds"]  # a run may be gone on with for longer
        identity = identity_of(settings, ratings, fingerprint_of(ratings))
        with locked(checkpoint.folder), Snapshots(checkpoint, identity) as snapshots:
            take_up(run, snapshots.latest())
            run.carry_out(tuple(callbacks), snapshots)
    return run.outcome()


class Simulation:
    """All parties, and who is online."""

    def __init__(
        self, ratings: Ratings, scenario: Scenario, n_threads: int, on_round: Callable[[int], None] | None = None
    ) -> None:
        self.ratings, self.scenario, self.n_threads = ratings, scenario, n_threads
        self._on_round = on_round or (lambda _: None)
        self.terms = terms = scenario.terms(ratings)
        self.draws = Draws(scenario.noise_seed)
        self.recommender = Recommender(terms, dealt=scenario.dealt, draws=self.draws)
        self.third_party: ThirdParty | None = None
        if scenario.third_party:
            sizes = Sizes(terms.n_items, terms.n_factors)
            self.third_party = ThirdParty(sizes, terms.ring, self.recommender.public, dealt=scenario.dealt)
            self.recommender.meet(self.third_party.public)
        self.users: dict[int, User] = {}
        present = np.flatnonzero(np.diff(ratings.indptr) > 0)
        if not len(present):
            raise InvalidArgument("there are no ratings to learn from")
        come, leave = (scenario.come, scenario.leave) if scenario.dealt else (1.0, 0.0)
        self.population = Population(present, come, leave, scenario.seed)
        self._joined: set[int] = set()  # who has said what they rated since they came
        self.traffic = Traffic()
        self.history: list[EpochRecord] = []
        self.done, self.seconds, self._shown = 0, 0.0, 0.0
        self.resumed, self.refused_before = False, 0

    def carry_out(self, callbacks: tuple[Callback, ...], snapshots: Snapshots | None) -> None:
        """Carry out what is left."""
        began = time.perf_counter()
        if self.scenario.dealt and not self.done:
            self._set_up()
        while self.done < self.scenario.rounds:
            self._joined.difference_update(self.population.tick())
            self.play()
            self.done += 1
            self._on_round(self.done)
            stop = False
            if self.done % _ERRORS_EVERY == 0 or self.done == self.scenario.rounds:
                self.seconds += time.perf_counter() - began
                stop = self._report(callbacks)
                began = time.perf_counter()
            is_last = stop or self.done == self.scenario.rounds
            if snapshots is not None and (is_last or snapshots.is_due(self.done)):
                snapshots.save(self.done, *kept(self))
            if stop:
                break

    def play(self) -> None:
        """Play one round."""
        chosen = self.population.choose(self.scenario.per_round if self.scenario.dealt else len(self.population.online))
        moments = dict(zip(chosen.tolist(), self.population.moments(len(chosen)).tolist(), strict=True))
        began, spent = time.perf_counter(), Spent()
        recommender = self.recommender
        for user in moments:
            if user not in self._joined:
                self._joined.add(user)
                wanted = self.user(user).join()
                spent.add(user, 0, len(wanted.message), 0.0)
                recommender.receive(user, wanted.message)
        for outgoing in recommender.deal(list(moments)):
            if outgoing.to == THIRD_PARTY:
                self._to_third_party(RECOMMENDER, outgoing.message, spent)
            elif moments[outgoing.to] != BEFORE_ANSWERING:
                for answer in self._deliver(outgoing, spent):
                    if answer.to == THIRD_PARTY:
                        self._to_third_party(outgoing.to, answer.message, spent)
                    else:
                        recommender.receive(outgoing.to, answer.message)
        if self.third_party is None:
            recommender.close()
        else:
            self._close(spent)
        recommender.give_up()
        self._leave(moments)
        counts = self.ratings.indptr
        for user, (down, up, seconds) in spent.users.items():
            self.traffic.add_user(int(counts[user + 1] - counts[user]), down, up, seconds)
        clients = sum(seconds for _, _, seconds in spent.users.values())
        self.traffic.third_party_seconds.add(spent.third_party)
        self.traffic.recommender_seconds.add(time.perf_counter() - began - clients - spent.third_party)

    def _set_up(self) -> None:
        """Wait until enough people are online, and let them draw the fixed noise."""
        wanted = min(self.scenario.per_round, max(self.population.usual // 2, 1))
        self.population.wait_for(wanted)
        chosen, spent = self.population.choose(wanted).tolist(), Spent()
        for user in chosen:
            self.user(user)
        for outgoing in self.recommender.set_up(chosen):
            if outgoing.to == THIRD_PARTY:
                self._to_third_party(RECOMMENDER, outgoing.message, spent)
            else:
                for answer in self._deliver(outgoing, spent):
                    self._to_third_party(outgoing.to, answer.message, spent)
        self._close(spent)

    def user(self, number: int) -> User:
        """Return a user's side, made when it is first needed."""
        if number not in self.users:
            items, values = self.ratings.of_user(number)
            third_party = None if self.third_party is None else self.third_party.public
            user = User(items, values, self.terms, self.recommender.public, third_party, self.draws)
            self.recommender.admit(number, user.public)
            if self.third_party is not None:
                self.third_party.admit(number, user.public)
            self.users[number] = user
        return self.users[number]

    def _deliver(self, outgoing: Outgoing, spent: Spent) -> list[Outgoing]:
        began = time.perf_counter()
        answers = self.users[outgoing.to].receive(outgoing.message)
        sent = sum(len(one.message) for one in answers)
        spent.add(outgoing.to, len(outgoing.message), sent, time.perf_counter() - began)
        return answers

    def _to_third_party(self, sender: int, message: bytes, spent: Spent) -> None:
        assert self.third_party is not None
        began = time.perf_counter()
        self.third_party.receive(sender, message)
        spent.third_party += time.perf_counter() - began

    def _close(self, spent: Spent) -> None:
        assert self.third_party is not None
        began = time.perf_counter()
        totals = self.third_party.close()
        spent.third_party += time.perf_counter() - began
        for total in totals:
            self.traffic.from_third_party.add(len(total.message))
            self.recommender.receive(THIRD_PARTY, total.message)

    def _leave(self, moments: dict[int, int]) -> None:
        """Let those who left in the middle of the round be offline after it."""
        left = [user for user, moment in moments.items() if moment != STAYS]
        self.population.send_off(left)
        self._joined.difference_update(left)

    def _report(self, callbacks: tuple[Callback, ...]) -> bool:
        """Measure the training error, and tell whoever wants to know; return whether somebody wants to stop."""
        errors = self.training_errors()
        passed = self.seconds - self._shown
        self._shown = self.seconds
        self.history.append(EpochRecord(self.done, passed, float(np.sqrt(np.mean(errors**2)))))
        stops = [callback(self.history[-1]) is True for callback in callbacks]  # every one is called
        return any(stops)

    def training_errors(self) -> NDArray[np.float64]:
        """Return the errors of all predictions, profiles being as they are and predictions as they come."""
        U, V = self._profiles(self._release(Guarantee.none())), self.recommender.V
        errors = np.empty(len(self.ratings))
        users = self.ratings.users
        for first in range(0, len(errors), 1 << 20):
            part = slice(first, first + (1 << 20))
            predicted = np.einsum("nk,nk->n", U[users[part]], V[self.ratings.items[part]])
            errors[part] = self.ratings.values[part] - predicted
        return errors

    def _profiles(self, release: Release) -> NDArray[np.float32]:
        """Return everybody's profile; who never took part fits one to the items as they are."""
        of = self.ratings
        missing = np.ones(of.n_users, np.bool_)
        missing[list(self.users)] = False
        U = np.zeros((of.n_users, self.terms.n_factors), np.float32)
        if missing.any():
            kept = of.select(np.repeat(missing, np.diff(of.indptr)))
            _, U = fold_in_many(release, kept.indptr, kept.items, kept.values, self.n_threads)
        for number, user in self.users.items():
            U[number] = user.profile
        return U

    def _release(self, guarantee: Guarantee) -> Release:
        of = self.ratings
        mean, biases = on_scale(0.0, np.zeros(of.n_items, np.float32), of.scale)
        facts = {name: value for name, value in asdict(self.scenario).items() if name not in ("noise_seed", "epsilon")}
        return Release(
            items=of.catalogue, scale=of.scale, mean=mean, item_factors=self.recommender.V.astype(np.float32),
            item_biases=biases, ridge=Ridge(NO_BIAS, self.scenario.regularization, 0.0),
            configuration={"method": "federated", "mode": "paper", **facts}, guarantee=guarantee,
        )  # fmt: skip

    def refused(self) -> int:
        """Return how many messages were refused, in earlier processes too."""
        parties = [self.recommender.refusals, *(user.refusals for user in self.users.values())]
        if self.third_party is not None:
            parties.append(self.third_party.refusals)
        return self.refused_before + sum(one.by_reason.total() for one in parties)

    def outcome(self) -> Outcome:
        """Return what came out."""
        of, seeded = self.ratings, self.scenario.noise_seed is not None
        claim = Claim(self.terms, self.done, seeded, self.resumed)
        guarantee = Guarantee.none() if np.isinf(self.scenario.epsilon) else claim.guarantee(public_facts(of.catalogue))
        release = self._release(guarantee)
        model = Model(
            release, of.user_ids, self._profiles(release), np.zeros(of.n_users, np.float32), of.indptr, of.items,
            tuple(self.history),
        )  # fmt: skip
        return Outcome(
            model, self.done, self.recommender.discarded, claim, self.traffic, self.seconds, len(self.users),
            self.refused(),
        )  # fmt: skip
