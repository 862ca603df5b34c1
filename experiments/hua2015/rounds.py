"""The rounds of the protocol without its messages: the same steps from the same people, in the clear.

Encoding, sealing, masking and opening the messages between a thousand users and two servers takes a thousand times as
long as the sums themselves. `dpmf.federated.published.simulation` does all of it; this module only computes the sums,
with noise of the same distribution, so that the published number of rounds is feasible. The same seed puts the same
users online in both. The only difference is that nothing is rounded to the grid of masked numbers. A test demands that
both agree.

Noise may be divided by the number of all ratings, instead of the number of users who answer for an item: that is not a
private mechanism and protects no one.

>>> from dpmf.ratings.synthetic import make
>>> rounds = Rounds(make(60, 30), Scenario("s3", rounds=5, epsilon=10.0, per_round=20, n_factors=4, come=0.5))
>>> rounds.play(5)
>>> rounds.done
5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf import Ratings
from dpmf.federated.published import Scenario
from dpmf.federated.simulate.population import BEFORE_ANSWERING, STAYS, Population
from dpmf.kernels.jit import kernel
from dpmf.methods.centre import NO_BIAS, on_scale
from dpmf.model import Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Guarantee

Floats = NDArray[np.float32]


@kernel
def answer(
    users: NDArray[np.int64],
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: Floats,
    rows: Floats,
    rate: float,
    penalty: float,
    radius: float,
    limit: float,
    U: Floats,  # out
    sums: Floats,  # out
    counts: NDArray[np.int64],  # out
) -> None:
    """Add the gradients of these users to the sums and counts of their items, and step their profiles."""
    width = rows.shape[1]
    gradient = np.empty(width, np.float32)
    step, pull = np.float32(rate), np.float32(2 * penalty)
    low, high = np.float32(-limit), np.float32(limit)
    for user in users:
        u = U[user]
        gradient[:] = 0
        for place in range(indptr[user], indptr[user + 1]):
            v, total = rows[items[place]], sums[items[place]]
            e = values[place]
            for k in range(width):
                e -= u[k] * v[k]
            twice = np.float32(-2) * e
            counts[items[place]] += 1
            for k in range(width):
                total[k] += min(max(twice * u[k], low), high)
                gradient[k] += twice * v[k]
        square, n = 0.0, np.float32(indptr[user + 1] - indptr[user])
        for k in range(width):
            u[k] -= step * (gradient[k] / n + pull * u[k])
            square += np.float64(u[k]) * np.float64(u[k])
        if not square < np.inf:
            u[:] = 0
        elif square > radius * radius:
            u *= np.float32(radius / np.sqrt(square))


class Rounds:
    """A run of S2 or S3.

    Args:
        ratings: of all users.
        scenario: what to run; its noise seed, if any, seeds all random numbers here.
        divided: whether noise is divided by the number of all ratings, which protects no one.
        U, V: profiles to start from, shapes (n_users, K) and (n_items, K); random directions, if not given.
    """

    def __init__(
        self,
        ratings: Ratings,
        scenario: Scenario,
        *,
        divided: bool = False,
        U: NDArray[np.floating] | None = None,
        V: NDArray[np.floating] | None = None,
    ) -> None:
        self.ratings, self.scenario, self._divided = ratings, scenario, divided
        self._terms = terms = scenario.terms(ratings)
        self._chance = np.random.Generator(np.random.SFC64(scenario.noise_seed))
        self.U = self._directions(ratings.n_users) if U is None else np.array(U, np.float32)
        self.V = self._directions(ratings.n_items).astype(np.float64) if V is None else np.array(V, np.float64)
        come, leave = (scenario.come, scenario.leave) if scenario.shared_noise else (1.0, 0.0)
        self._population = Population(np.flatnonzero(np.diff(ratings.indptr) > 0), come, leave, scenario.seed)
        self.asked = np.zeros(ratings.n_users, np.bool_)
        self.done = 0
        if scenario.shared_noise:
            self._set_up()
        shape = ratings.n_items, terms.n_factors
        self._fixed = self._laplace(np.ones(ratings.n_items)) if terms.amplitude else np.zeros(shape, np.float32)

    def play(self, rounds: int) -> None:
        """Play a number of rounds."""
        with np.errstate(over="ignore", invalid="ignore"):  # diverging runs report infinite errors
            for _ in range(rounds):
                self._play()

    def _play(self) -> None:
        self._population.tick()
        online = len(self._population.online)
        chosen = self._population.choose(self.scenario.per_round if self.scenario.shared_noise else online)
        moments = self._population.departures(len(chosen))
        self.asked[chosen] = True
        self._population.disconnect(chosen[moments != STAYS].tolist())
        self.done += 1
        of, terms = self.ratings, self._terms
        sums, counts = np.zeros(self.V.shape, np.float32), np.zeros(of.n_items, np.int64)
        present = chosen[moments != BEFORE_ANSWERING]
        answer(
            present,
            of.indptr,
            of.items,
            of.values,
            self.V.astype(np.float32),
            terms.rate,
            terms.user_penalty,
            terms.radius,
            terms.limit,
            self.U,
            sums,
            counts,
        )
        there = np.flatnonzero(counts)
        k = counts[there, None].astype(np.float64)
        step = sums[there] / k
        if terms.amplitude:
            answered = np.ones(len(there))
            if len(present) < len(chosen):  # the noise shares of users who left are missing
                answered = counts[there] / self._asked_for(chosen)[there]
            noise = self._fixed[there] + self._laplace(answered)
            step += noise / (len(of) if self._divided else k)
        self.V[there] -= terms.rate * (step + 2 * terms.item_penalty * self.V[there])

    def _set_up(self) -> None:
        """Wait until enough users are online to draw the fixed noise, as the simulation does."""
        wanted = min(self.scenario.per_round, max(self._population.usual // 2, 1))
        self._population.wait_for(wanted)
        self.asked[self._population.choose(wanted)] = True

    def _asked_for(self, users: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of these users rated each item."""
        of = self.ratings
        lengths = np.diff(of.indptr)[users]
        starts = np.repeat(of.indptr[users] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        places = starts + np.arange(lengths.sum())
        return np.bincount(of.items[places], minlength=of.n_items)

    def _laplace(self, answered: NDArray[np.floating]) -> Floats:
        """Return Laplace noise for rows, given the fraction of noise shares that arrived for each."""
        shape = len(answered), self._terms.n_factors
        spread = self._chance.standard_exponential(shape, np.float32)
        scale = (self._terms.amplitude * np.sqrt(2 * answered)).astype(np.float32)
        drawn: Floats = np.sqrt(spread) * self._chance.standard_normal(shape, np.float32) * scale[:, None]
        return drawn

    def _directions(self, count: int) -> Floats:
        rows = self._chance.standard_normal((count, self._terms.n_factors), np.float32)
        rows *= np.float32(self._terms.radius) / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def profiles(self, n_threads: int = 1) -> tuple[Floats, Floats]:
        """Return factors of users and items; users who were never asked are folded in."""
        of, V, U = self.ratings, self.V.astype(np.float32), self.U
        if self.asked.all() or not np.isfinite(V).all():
            return U, V
        kept = of.select(np.repeat(~self.asked, np.diff(of.indptr)))
        mean, biases = on_scale(0.0, np.zeros(of.n_items, np.float32), of.scale)
        release = Release(
            items=of.catalogue,
            scale=of.scale,
            mean=mean,
            item_factors=V,
            item_biases=biases,
            ridge=Ridge(NO_BIAS, self.scenario.regularization, 0.0),
            configuration={},
            guarantee=Guarantee.none(),
        )
        _, folded = fold_in_many(release, kept.indptr, kept.items, kept.values, n_threads)
        return np.where(self.asked[:, None], U, folded), V
