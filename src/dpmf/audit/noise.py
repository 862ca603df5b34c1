"""Noise: whether what is added has the size and the tails that the events state, over many fresh keys.

Every key is one from the operating system, used once. Projections on fixed directions, at right angles to each other,
turn what a key adds into a few independent numbers; one direction is that of the worst person, where privacy is lost if
it is lost anywhere. A single weak coordinate hardly shows in a projection, so the weakest is looked for by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.audit.answerers import has_parties, overhear_parties
from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.statistics import READING, VERDICT, Array, spread_of, too_small
from dpmf.audit.subject import Pair, Subject
from dpmf.audit.transcript import Said, overhear
from dpmf.privacy import PoissonGaussianEvent
from dpmf.privacy.events import NormNoiseEvent
from dpmf.privacy.noise import STEPS_PER_SD, Noise
from dpmf.privacy.norm_noise import STEPS_PER_SCALE
from dpmf.streams import generator

KEYS = 400
_DIRECTIONS = 8
_FAR = 3.0  # standard deviations, beyond which there should be a few
_COINS = 20_000
_PARTY_NUMBERS = 1500  # of noise in shares that are looked at, at least
_MOST_PARTY_RUNS = 12


@dataclass(frozen=True)
class Measured:
    """The noise of one event, in units of what is stated.

    Attributes:
        what: the event.
        spread, low, high: the standard deviation (of gamma-distributed lengths, their mean) with its interval.
        p_small: of noise as small as this or smaller, if it is as stated.
        p_weakest: of the weakest coordinate, with all coordinates taken into account.
        far: the share beyond three standard deviations, and p_far, of as few, likewise.
        largest: the largest number.
        repeated: how many keys drew what another had drawn.
    """

    what: str
    n: int
    spread: float
    low: float
    high: float
    p_small: float
    p_weakest: float = 1.0
    far: float = math.nan
    p_far: float = 1.0
    largest: float = math.nan
    repeated: int = 0

    def ok(self, n_tests: int) -> bool:
        """Whether there is no sign of too little noise; the probability of a false alarm is that of all tests."""
        return self.repeated == 0 and min(self.p_small, self.p_weakest, self.p_far) >= VERDICT / n_tests


def measure(
    subject: Subject, said: Sequence[Said], pair: Pair, keys: int, progress: Progress = silent
) -> list[Measured]:
    """Return the noise of every event that was released, over fresh keys."""
    first = {one.what: one for one in reversed(said)}
    shifts = dict(zip(first, subject.shift([one.asked for one in first.values()], pair), strict=True))
    events = tuple(subject.events.values())
    drawn: dict[str, list[Array]] = {what: [] for what in first}
    for number in range(keys):
        progress(number, "noise")
        mechanism = subject.mechanism(events, Noise())
        for what, one in first.items():
            bound = one.asked.question.sensitivity(subject.budget.neighbours)
            released = mechanism.release(what, one.sums, bound) * one.asked.steps
            drawn[what].append(released - one.sums)
    rng = generator(subject.seed, "audit directions")
    found = []
    for what, rows in drawn.items():
        stacked = np.stack(rows)
        if isinstance(subject.events[what], NormNoiseEvent):
            found.append(_of_lengths(what, stacked / STEPS_PER_SCALE))
        else:
            found.append(_of_normals(what, stacked.reshape(keys, -1) / STEPS_PER_SD, shifts[what].reshape(-1), rng))
    return found


def _of_normals(what: str, rows: Array, shift: NDArray[np.int64], rng: np.random.Generator) -> Measured:
    from scipy.stats import binom, chi2, norm

    size = rows.shape[1]
    directions = rng.normal(size=(size, min(_DIRECTIONS, size)))
    if shift.any():
        directions[:, 0] = shift / np.linalg.norm(shift.astype(np.float64))
    projected = rows @ np.linalg.qr(directions)[0]
    weakest = float(np.square(rows).sum(axis=0).min())
    outside, n = int(np.count_nonzero(np.abs(projected) > _FAR)), projected.size
    return Measured(
        what,
        n,
        *spread_of(projected, READING),
        too_small(projected),
        p_weakest=min(1.0, size * float(chi2.cdf(weakest, len(rows)))),
        far=outside / n,
        p_far=float(binom.cdf(outside, n, 2 * norm.sf(_FAR))),
        largest=float(np.abs(projected).max()),
        repeated=_repeats(rows),
    )


def _of_lengths(what: str, tables: Array) -> Measured:
    """Lengths of rows of K numbers are Gamma(K, b); their sum is Gamma too."""
    from scipy.stats import gamma

    lengths, shape = np.linalg.norm(tables, axis=2), tables.shape[2]
    total, expected = float(lengths.sum()), lengths.size * shape
    low, high = (total / float(gamma.ppf(level, expected)) for level in (1 - READING / 2, READING / 2))
    by_row = lengths.sum(axis=0)
    weakest = float(gamma.cdf(float(by_row.min()), len(lengths) * shape))
    return Measured(
        what, lengths.size, total / expected, low, high, float(gamma.cdf(total, expected)),
        p_weakest=min(1.0, by_row.size * weakest), repeated=_repeats(tables.reshape(len(tables), -1)),
    )  # fmt: skip


def _repeats(rows: Array) -> int:
    return len(rows) - len({row.tobytes() for row in rows}) if rows.shape[1] > 1 else 0


def measure_coins(subject: Subject) -> list[Measured]:
    """Return how often coins of sampled steps fall on "takes part": more often than stated would cost more."""
    from scipy.stats import binom

    from dpmf.audit.statistics import clopper_pearson

    found = []
    for what, event in subject.events.items():
        if isinstance(event, PoissonGaussianEvent):
            mechanism, rate = subject.mechanism(tuple(subject.events.values()), Noise()), event.sampling_rate
            coins = mechanism.participants(what, _COINS)
            heads = _COINS if coins is None else int(coins.sum())
            low, high = (one / rate for one in clopper_pearson(heads, _COINS, READING / 2))
            p_often = float(binom.sf(heads - 1, _COINS, rate))
            found.append(Measured(f"who takes part in {what}", _COINS, heads / _COINS / rate, low, high, p_often))
    return found


def measure_parties(subject: Subject, pair: Pair, progress: Progress = silent) -> Measured | None:
    """Return the noise that people's shares add up to, in units of what is to be expected; None without a protocol."""
    if not has_parties(subject):
        return None
    weightless, values = not subject.protects_values, list[Array]()
    for number in range(_MOST_PARTY_RUNS):
        progress(number, "noise of parties")
        for said in overhear_parties(subject, subject.world([pair.second]), weightless=weightless):
            values.append(said.noise.reshape(-1) / STEPS_PER_SD)
        if sum(one.size for one in values) >= _PARTY_NUMBERS:
            break
    everything = np.concatenate(values)
    return Measured(
        "all shares of the parties, added up", everything.size, *spread_of(everything, READING), too_small(everything)
    )


def examine(subject: Subject, pair: Pair, *, keys: int = KEYS, progress: Progress = silent) -> Finding:
    """Measure the noise of everything that a run releases."""
    said = overhear(subject, subject.world([pair.second]))
    found = [*measure(subject, said, pair, keys, progress), *measure_coins(subject)]
    shares = measure_parties(subject, pair, progress)
    found += [] if shares is None else [shares]
    n_tests = 3 * len(found)
    wrong = [one for one in found if not one.ok(n_tests)]
    if wrong:
        sentence = f"{wrong[0].what!r} is {wrong[0].spread:.3f} of what is stated (p = {_least_p(wrong[0]):.1g})"
        if wrong[0].repeated:
            sentence = f"noise on {wrong[0].what!r} was drawn twice"
    else:
        least = min(found, key=_least_p)
        sentence = f"all noise is as large as stated; the smallest p-value of {n_tests} tests is {_least_p(least):.2g}"
    return Finding(
        "noise",
        "Noise",
        not wrong,
        sentence,
        ("what", "numbers", "size / stated", "95 %", "beyond 3 sd", "largest", "p: too small", "p: weakest"),
        [
            (
                one.what, f"{one.n:,}", f"{one.spread:.4f}", f"{one.low:.4f}–{one.high:.4f}",
                "" if math.isnan(one.far) else f"{one.far:.4f}",
                "" if math.isnan(one.largest) else f"{one.largest:.2f}", f"{one.p_small:.3g}", f"{one.p_weakest:.3g}",
            )
            for one in found
        ],
        {"keys": keys, "tests": n_tests, "events": [vars(one) | {"ok": one.ok(n_tests)} for one in found]},
        ("Size is the standard deviation, the mean length of rows for noise of gamma-distributed length, or how often "
         "people take part in sampled steps, over what the event states; 0.0027 of normal numbers are beyond 3 sd.",),
    )  # fmt: skip


def _least_p(one: Measured) -> float:
    return min(one.p_small, one.p_weakest, one.p_far)
