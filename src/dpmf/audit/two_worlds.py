"""Two worlds: whole runs with and without the worst person, and the best possible attack on what they release.

The attacker knows everybody else's ratings, and in sampled steps everybody else's coins. So what remains of a release
after subtracting the others is noise, or noise and the person's answer, and the likelihood ratio of the two is the best
test there is (Neyman and Pearson). For Gaussian noise it is a matched filter: the product with the person's answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.statistics import (
    READING,
    VERDICT,
    Array,
    Counts,
    best_epsilon,
    best_threshold,
    gdp_at,
    shift_of,
    usual_counts,
)
from dpmf.audit.subject import Pair, Subject
from dpmf.audit.transcript import Said, overhear
from dpmf.methods.certified.questions import Integers
from dpmf.privacy import GaussianEvent, PoissonGaussianEvent
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.events import NormNoiseEvent
from dpmf.privacy.gaussian import gaussian_epsilon
from dpmf.privacy.mechanism import PlannedEvent
from dpmf.privacy.noise import STEPS_PER_SD
from dpmf.privacy.norm_noise import STEPS_PER_SCALE

RUNS = 500


@dataclass(frozen=True, eq=False)
class Scores:
    """What the attack makes of runs in both worlds.

    Attributes:
        first, second: the score of every run, larger if the second world is likelier.
        shifts: the exact shift over the noise of every run, √Σ (length / sd)².
        is_gaussian: whether scores are normal, of standard deviation 1 and that shift apart.
    """

    first: Array
    second: Array
    shifts: Array
    is_gaussian: bool

    @property
    def shift(self) -> float:
        """The exact shift, on average over runs, which ask different questions."""
        return float(np.sqrt(np.square(self.shifts).mean()))


def loss(residue: Array, first: Integers, second: Integers, event: PlannedEvent) -> float:
    """Return how much likelier, by the logarithm, a residue is in the second world than in the first.

    Args:
        residue: what was released less the sum of all others, in steps.
        first, second: what the person adds in either world, if a coin does not leave them out.
        event: with its noise.
    """
    one, two = first.astype(np.float64), second.astype(np.float64)
    if isinstance(event, NormNoiseEvent):
        lengths = np.linalg.norm(residue - one, axis=1) - np.linalg.norm(residue - two, axis=1)
        return float(lengths.sum()) / STEPS_PER_SCALE
    rate = event.sampling_rate if isinstance(event, PoissonGaussianEvent) else 1.0
    return _mixed(residue, two, rate) - _mixed(residue, one, rate)


def _mixed(residue: Array, answer: Array, rate: float) -> float:
    """Return the logarithm of the density of noise, with an answer in it at this rate, over that of noise alone."""
    ratio = float((residue * answer).sum() - np.square(answer).sum() / 2) / STEPS_PER_SD**2
    if rate == 1:
        return ratio
    if ratio > 0:
        return ratio + math.log(rate + (1 - rate) * math.exp(-ratio))
    return math.log(1 - rate + rate * math.exp(ratio))


def score(subject: Subject, said: Sequence[Said], pair: Pair, world: int) -> tuple[float, float]:
    """Return the score of one run of the first world (0) or the second (1), and the squared exact shift over noise."""
    total = squared = 0.0
    asked = [one.asked for one in said]
    answers = [subject.answers(asked, person) for person in pair]
    for number, one in enumerate(said):
        event, (first, second) = subject.events[one.what], (side[number] for side in answers)
        took_part = one.asked.participants is None or bool(one.asked.participants[-1])
        others = one.sums - answers[world][number] if took_part and pair[world] is not None else one.sums
        total += loss(one.released - others, first, second, event)
        scale = STEPS_PER_SCALE if isinstance(event, NormNoiseEvent) else STEPS_PER_SD
        squared += float(np.square((second - first).astype(np.float64)).sum()) / scale**2
    return total, squared


def attack(subject: Subject, pair: Pair, runs: int, progress: Progress = silent) -> Scores:
    """Run each world a number of times, always with fresh noise, and score the runs."""
    worlds = [subject.world([one]) for one in pair]
    gaussian = all(isinstance(one, GaussianEvent) for one in subject.events.values())
    found: tuple[list[float], list[float]] = [], []
    shifts = []
    for number in range(runs):
        for place, (world, scores) in enumerate(zip(worlds, found, strict=True)):
            progress(2 * number + place, "two worlds")
            ratio, squared = score(subject, overhear(subject, world), pair, place)
            # With Gaussian noise the ratio is N(∓ squared/2, squared): in units of its deviation, from 0 on.
            scores.append((ratio + squared / 2) / math.sqrt(squared) if gaussian and squared else ratio)
            shifts.append(math.sqrt(squared))
    return Scores(np.array(found[0]), np.array(found[1]), np.array(shifts), gaussian)


def judge(scores: Scores, epsilon: float, delta: float, gdp: float | None) -> Finding:
    """Return what scores say about a guarantee.

    Args:
        scores: of both worlds.
        epsilon, delta: what is guaranteed.
        gdp: of the planned events, where all noise is Gaussian; None elsewhere.
    """
    runs = len(scores.first)
    at_most = gdp if gdp is not None else gdp_at(epsilon, delta)
    separated = scores.shift if scores.is_gaussian else at_most
    threshold = best_threshold(separated, runs, delta, READING)
    if not scores.is_gaussian:
        threshold = separated * threshold - separated**2 / 2  # on likelihood ratios
    counts = Counts(
        int(np.count_nonzero(scores.second > threshold)), runs, int(np.count_nonzero(scores.first > threshold)), runs
    )
    usual = usual_counts(at_most, best_threshold(at_most, runs, delta, READING), runs)
    shown, sure = counts.epsilon(delta, READING), counts.epsilon(delta, VERDICT)
    figures = {
        "runs_per_world": runs, "threshold": threshold, "hits": counts.hits, "alarms": counts.alarms,
        "epsilon_clopper_pearson": shown, "epsilon_for_verdict": sure, "epsilon": epsilon, "delta": delta,
        "best_possible": best_epsilon(runs, delta, READING), "usual_if_tight": usual.epsilon(delta, READING),
        "best_possible_for_verdict": best_epsilon(runs, delta, VERDICT),
        "exact_shift": scores.shift, "scores_first": scores.first.tolist(), "scores_second": scores.second.tolist(),
    }  # fmt: skip
    rows: list[tuple[object, ...]] = [
        ("guaranteed", f"ε = {epsilon:g}", f"at δ = {delta:g}"),
        ("shown by Clopper–Pearson", f"ε ≥ {shown:.3f}", f"{counts.hits} hits and {counts.alarms} alarms in {runs}"),
    ]
    violated = sure > epsilon
    if scores.is_gaussian and gdp is not None:
        shift, low, high = shift_of(scores.first, scores.second, READING)
        _, sure_shift, _ = shift_of(scores.first, scores.second, 2 * VERDICT)
        by_gaussian = gaussian_epsilon(counts.gdp(READING), delta)
        violated = violated or sure_shift > gdp or float(scores.shifts.max()) > gdp * (1 + 1e-9)
        figures |= {
            "mu": shift, "mu_low": low, "mu_high": high, "mu_planned": gdp, "epsilon_by_mu": by_gaussian,
            "epsilon_of_exact_shift": gaussian_epsilon(scores.shift, delta),
            "best_possible_by_mu": gaussian_epsilon(Counts(runs, runs, 0, runs).gdp(READING), delta),
        }  # fmt: skip
        rows += [
            ("shown by Gaussian privacy", f"ε ≥ {by_gaussian:.3f}", "same counts, if the noise is Gaussian"),
            ("μ, planned", f"{gdp:.4f}", "of all events together"),
            ("μ, exact", f"{scores.shift:.4f}", f"costs ε = {gaussian_epsilon(scores.shift, delta):.3f}"),
            ("μ, measured", f"{shift:.4f}", f"95 %: {low:.4f} to {high:.4f}"),
        ]
    rows += [
        ("could be shown at best", f"ε ≥ {figures['best_possible']:.3f}", f"by an attack right in all {runs} runs"),
        ("usual if the guarantee is tight", f"ε ≥ {figures['usual_if_tight']:.3f}", "expected of the best attack"),
    ]
    best = figures["best_possible"]
    sentence = f"the best attack shows ε ≥ {shown:.3f} of {epsilon:g}; {runs} runs a world can show {best:.2f} at best"
    if violated:
        sentence = f"the attack does better than ε = {epsilon:g} allows: ε ≥ {max(shown, sure):.3f} is shown"
        if scores.is_gaussian and gdp is not None:
            sentence += f", and μ = {figures['mu']:.4f} where {gdp:.4f} is planned"
    note = (
        "Bounds are wrong in 5 % of all audits at most; a violation is called at 0.1 %, where counts can show "
        f"ε ≥ {figures['best_possible_for_verdict']:.3f} at best."
    )
    return Finding("two_worlds", "Two worlds", not violated, sentence, ("", "", ""), rows, figures, (note,))


def examine(subject: Subject, pair: Pair, *, runs: int = RUNS, progress: Progress = silent) -> Finding:
    """Attack a subject, and judge what that shows."""
    scores = attack(subject, pair, runs, progress)
    events = list(subject.events.values())
    budget, _ = subject.public(subject.world([pair.second])).plan.guaranteed()
    return judge(scores, budget.epsilon, budget.delta, gdp_of(events) if scores.is_gaussian else None)
