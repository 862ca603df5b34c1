"""The published protocol with all its parties in one process: every message is encoded, sealed, delivered and opened.

>>> from dpmf.ratings.synthetic import make
>>> outcome = simulate(make(60, 30), Scenario("s3", rounds=5, epsilon=10.0, per_round=20, n_factors=4, come=0.5))
>>> outcome.rounds, outcome.model.guarantee.mode
(5, 'paper')
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshots
from dpmf.engine.journal import locked
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.federated.published.claim import Claim
from dpmf.federated.published.messages import Sizes
from dpmf.federated.published.outcome import Outcome, profiles_of, release_of, training_errors
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.recommender import Recommender
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.snapshot import restore, snapshot_of
from dpmf.federated.published.third_party import ThirdParty
from dpmf.federated.published.user import User
from dpmf.federated.simulate.population import BEFORE_ANSWERING, STAYS, Population
from dpmf.federated.simulate.traffic import Spent, Traffic
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY, Outgoing
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

Callback = Callable[[EpochRecord], bool | None]
_ERRORS_EVERY = 100  # rounds: measuring errors takes longer than a round


def simulate(
    ratings: Ratings,
    scenario: Scenario,
    *,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Outcome:
    """Simulate a scenario to its end.

    Args:
        ratings: of all users; each user's ratings are passed to that user only.
        scenario: what to simulate.
        n_threads: for measuring errors along the way.
        callbacks: called with a record every hundred rounds, and after the last.
        checkpoint: where to store snapshots; an interrupted run resumes from the newest, with new keys and fresh noise.
        on_round: called after each round with the number of rounds so far.
    """
    declared(ratings, scenario.items_public)
    run = Simulation(ratings, scenario, thread_count(n_threads), on_round)
    if checkpoint is None:
        run.run(tuple(callbacks), None)
    else:
        settings = {**asdict(scenario), "name": "simulate", "epsilon": str(scenario.epsilon)}  # it may be infinite
        del settings["rounds"]  # a resumed run may have more rounds
        identity = identity_of(settings, ratings, fingerprint_of(ratings))
        with locked(checkpoint.folder), Snapshots(checkpoint, identity) as snapshots:
            restore(run, snapshots.latest())
            run.run(tuple(callbacks), snapshots)
    return run.outcome()


class Simulation:
    """All parties of the published protocol in one process, and who is online."""

    def __init__(
        self, ratings: Ratings, scenario: Scenario, n_threads: int, on_round: Callable[[int], None] | None = None
    ) -> None:
        self.ratings, self.scenario, self.n_threads = ratings, scenario, n_threads
        self._on_round = on_round or (lambda _: None)
        self.terms = terms = scenario.terms(ratings)
        self.draws = Draws(scenario.noise_seed)
        self.recommender = Recommender(terms, shared_noise=scenario.shared_noise, draws=self.draws)
        self.third_party: ThirdParty | None = None
        if scenario.third_party:
            sizes = Sizes(terms.n_items, terms.n_factors)
            self.third_party = ThirdParty(
                sizes, terms.ring, self.recommender.public, shared_noise=scenario.shared_noise
            )
            self.recommender.meet(self.third_party.public)
        self.users: dict[int, User] = {}
        present = np.flatnonzero(np.diff(ratings.indptr) > 0)
        if not len(present):
            raise InvalidArgument("there are no ratings to learn from")
        come, leave = (scenario.come, scenario.leave) if scenario.shared_noise else (1.0, 0.0)
        self.population = Population(present, come, leave, scenario.seed)
        self._joined: set[int] = set()  # users who told the recommender what they rated since they came online
        self.traffic = Traffic()
        self.history: list[EpochRecord] = []
        self.done, self.seconds, self._shown = 0, 0.0, 0.0
        self.resumed, self.refused_before = False, 0

    def run(self, callbacks: tuple[Callback, ...], snapshots: Snapshots | None) -> None:
        """Play the remaining rounds."""
        began = time.perf_counter()
        if self.scenario.shared_noise and not self.done:
            self._set_up()
        while self.done < self.scenario.rounds:
            self._joined.difference_update(self.population.tick())
            self.play_round()
            self.done += 1
            self._on_round(self.done)
            stop = False
            if self.done % _ERRORS_EVERY == 0 or self.done == self.scenario.rounds:
                self.seconds += time.perf_counter() - began
                stop = self._report(callbacks)
                began = time.perf_counter()
            is_last = stop or self.done == self.scenario.rounds
            if snapshots is not None and (is_last or snapshots.is_due(self.done)):
                snapshots.save(self.done, *snapshot_of(self))
            if stop:
                break

    def play_round(self) -> None:
        """Play one round."""
        population, scenario = self.population, self.scenario
        chosen = population.choose(scenario.per_round if scenario.shared_noise else len(population.online))
        departures = dict(zip(chosen.tolist(), population.departures(len(chosen)).tolist(), strict=True))
        began, spent = time.perf_counter(), Spent()
        recommender = self.recommender
        for user in departures:
            if user not in self._joined:
                self._joined.add(user)
                wanted = self.user(user).join()
                spent.add(user, 0, len(wanted.message), 0.0)
                recommender.receive(user, wanted.message)
        for outgoing in recommender.open_round(list(departures)):
            if outgoing.to == THIRD_PARTY:
                self._to_third_party(RECOMMENDER, outgoing.message, spent)
            elif departures[outgoing.to] != BEFORE_ANSWERING:
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
        self._leave(departures)
        counts = self.ratings.indptr
        for user, (down, up, seconds) in spent.users.items():
            self.traffic.add_user(int(counts[user + 1] - counts[user]), down, up, seconds)
        clients = sum(seconds for _, _, seconds in spent.users.values())
        self.traffic.third_party_seconds.add(spent.third_party)
        self.traffic.recommender_seconds.add(time.perf_counter() - began - clients - spent.third_party)

    def _set_up(self) -> None:
        """Wait until enough users are online, and let them draw the fixed noise."""
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
        """Return a user, created on first use."""
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

    def _leave(self, departures: dict[int, int]) -> None:
        """Take the users offline who left during the round."""
        left = [user for user, departure in departures.items() if departure != STAYS]
        self.population.disconnect(left)
        self._joined.difference_update(left)

    def _report(self, callbacks: tuple[Callback, ...]) -> bool:
        """Measure the training error and call the callbacks; return whether one of them asks to stop."""
        errors = self.training_errors()
        passed = self.seconds - self._shown
        self._shown = self.seconds
        self.history.append(EpochRecord(self.done, passed, float(np.sqrt(np.mean(errors**2)))))
        stops = [callback(self.history[-1]) is True for callback in callbacks]  # all of them are called
        return any(stops)

    def training_errors(self) -> NDArray[np.float64]:
        """Return the errors of all training predictions, with current profiles and without clamping."""
        return training_errors(self.ratings, self._profiles(self._release(Guarantee.none())), self.recommender.V)

    def _release(self, guarantee: Guarantee) -> Release:
        return release_of(self.ratings, self.scenario, self.recommender.V, guarantee)

    def _profiles(self, release: Release) -> NDArray[np.float32]:
        return profiles_of(self.ratings, release, self.users, self.n_threads)

    def refused(self) -> int:
        """Return the number of refused messages, including those of earlier processes."""
        parties = [self.recommender.refusals, *(user.refusals for user in self.users.values())]
        if self.third_party is not None:
            parties.append(self.third_party.refusals)
        return self.refused_before + sum(one.by_reason.total() for one in parties)

    def outcome(self) -> Outcome:
        """Return the outcome."""
        of, seeded = self.ratings, self.scenario.noise_seed is not None
        claim = Claim(self.terms, self.done, seeded, self.resumed)
        guarantee = Guarantee.none() if np.isinf(self.scenario.epsilon) else claim.guarantee(public_facts(of.catalogue))
        release = self._release(guarantee)
        U, no_biases = self._profiles(release), np.zeros(of.n_users, np.float32)
        return Outcome(
            model=Model(release, of.user_ids, U, no_biases, of.indptr, of.items, tuple(self.history)),
            rounds=self.done,
            discarded=self.recommender.discarded,
            claim=claim,
            traffic=self.traffic,
            seconds=self.seconds,
            took_part=len(self.users),
            refused=self.refused(),
        )
