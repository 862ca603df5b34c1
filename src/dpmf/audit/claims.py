"""Published methods as published: where what a paper claims is violated by what its method publishes.

Three kinds of evidence, the strongest first. *No noise*: numbers that are the same in every run of a world, and not the
same in both worlds, tell the worlds apart with certainty, and no finite ε allows that. *Loss*: where the density of
what is published can be computed in both worlds, its ratio at outputs that really occurred. *Attack*: a linear rule,
learnt from one half of the runs and tested on the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.persons import Person, joined
from dpmf.audit.statistics import READING, VERDICT, Array, Counts, best_epsilon, best_threshold
from dpmf.methods.base import Method
from dpmf.methods.gaussian import GaussianGD
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.model import Model, Release
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids

RUNS = 50
_PARTS = ("mean", "item biases", "item factors")
_RIDGE = 1e-3  # of the covariance, relative to its mean: there are more numbers than runs
_ENOUGH = 5  # runs that show what has no noise


@dataclass(frozen=True, eq=False)
class Claimed:
    """A claim, two worlds that it says look alike, and how the person in them differs.

    Attributes:
        method: in mode "paper".
        epsilon, delta, unit, neighbours: what is claimed.
        worlds: ratings.
        difference: in words.
    """

    method: Method
    epsilon: float
    delta: float
    unit: str
    neighbours: str
    worlds: tuple[Ratings, Ratings]
    difference: str

    @classmethod
    def of(cls, method: Method, crowd: Ratings) -> Claimed:
        """Return the claim of a method, about somebody who rated everything as differently as possible."""
        guarantee = method.fit(crowd, n_threads=1).release.guarantee
        assert guarantee.epsilon is not None
        unit, neighbours = str(guarantee.unit), str(guarantee.neighbours)
        worlds, difference = _worlds(crowd, unit, neighbours)
        return cls(method, guarantee.epsilon, guarantee.delta or 0.0, unit, neighbours, worlds, difference)

    def runs(
        self, n: int, method: Method | None = None, progress: Progress = silent
    ) -> tuple[list[Model], list[Model]]:
        """Train n times on each world."""
        trained: tuple[list[Model], list[Model]] = [], []
        for number in range(n):
            for place, (world, models) in enumerate(zip(self.worlds, trained, strict=True)):
                progress(2 * number + place, "runs of the published method")
                models.append((method or self.method).fit(world, n_threads=1))
        return trained


def _worlds(crowd: Ratings, unit: str, neighbours: str) -> tuple[tuple[Ratings, Ratings], str]:
    scale, n_items = crowd.scale, crowd.n_items
    values = np.where(np.arange(n_items) % 2, scale.hi, scale.lo)
    here = Person.of(np.arange(n_items), values)
    gone: Person | None
    if unit == "user":
        gone, difference = None, "a person who rated everything is there or not"
        if neighbours == "replace":
            gone, difference = replace(here, values=here.values[::-1].copy()), "a person has the opposite ratings"
    elif neighbours == "replace":
        other = here.values.copy()
        other[0] = scale.hi
        gone, difference = replace(here, values=other), "one rating is the highest instead of the lowest"
    else:
        gone, difference = Person.of(here.items[1:], here.values[1:]), "one rating is there or not"
    ids = np.empty(crowd.n_users + 1, object)
    ids[:] = [*map(str, crowd.user_ids), "audited person"]
    tables = [
        joined(crowd, [] if one is None else [one], Ids(ids if one is not None else ids[:-1])) for one in (gone, here)
    ]
    return (tables[0], tables[1]), difference


def published(release: Release) -> dict[str, Array]:
    """Return every number of a release, by what it is."""
    numbers = np.array([release.mean]), release.item_biases, release.item_factors.reshape(-1)
    return {name: np.asarray(one, np.float64) for name, one in zip(_PARTS, numbers, strict=True)}


def without_noise(claimed: Claimed, trained: Sequence[Sequence[Model]], part: str, title: str) -> Finding:
    """Return which published numbers have no noise and give a world away."""
    rows, certain = [], 0
    figures: dict[str, dict[str, int]] = {}
    for name in _PARTS:
        first, second = (np.stack([published(one.release)[name] for one in models]) for models in trained)
        constant = (first == first[0]).all(axis=0) & (second == second[0]).all(axis=0)
        telling = int(np.count_nonzero(constant & (first[0] != second[0])))
        certain += telling
        figures[name] = {"numbers": first.shape[1], "without_noise": int(constant.sum()), "giving_away": telling}
        rows.append((name, first.shape[1], int(constant.sum()), telling))
    runs = len(trained[0])
    if certain:
        sentence = (
            f"{certain} published numbers have no noise and differ between the worlds: ε is infinite, not "
            f"{claimed.epsilon:g}"
        )
    else:
        sentence = "no published number gives a world away by itself"
    columns = ("published", "numbers", "same in all runs of a world", "of these, different between worlds")
    note = f"Worlds: {claimed.difference}. {runs} runs of each."
    return Finding(part, title, not certain, sentence, columns, rows, {"runs": runs, **figures}, (note,))


def linear_attack(claimed: Claimed, trained: Sequence[Sequence[Model]]) -> Finding:
    """Return what a linear rule shows that was learnt from one half of the runs, tested on the other."""
    first, second = (
        np.stack([np.concatenate(list(published(one.release).values())) for one in models]) for models in trained
    )
    half, runs = len(first) // 2, len(first) - len(first) // 2
    gap = second[:half].mean(axis=0) - first[:half].mean(axis=0)
    centred = np.concatenate([one[:half] - one[:half].mean(axis=0) for one in (first, second)])
    direction = _whitened(centred, gap)
    low, high = first @ direction, second @ direction
    spread = math.sqrt((low[:half].var() + high[:half].var()) / 2) or 1.0
    apart = max(float(high[:half].mean() - low[:half].mean()) / spread, 0.0)
    threshold = low[:half].mean() + spread * best_threshold(min(apart, 8.0), runs, claimed.delta, READING)
    hits, alarms = (int(np.count_nonzero(one[half:] > threshold)) for one in (high, low))
    counts = Counts(hits, runs, alarms, runs)
    shown, sure = counts.epsilon(claimed.delta, READING), counts.epsilon(claimed.delta, VERDICT)
    best = best_epsilon(runs, claimed.delta, READING)
    figures = {
        "runs_per_world": len(first), "tested": runs, "hits": hits, "alarms": alarms, "epsilon_clopper_pearson": shown,
        "epsilon_for_verdict": sure, "epsilon": claimed.epsilon, "delta": claimed.delta, "best_possible": best,
        "scores_first": ((low[half:] - low[half:].mean()) / spread).tolist(),
        "scores_second": ((high[half:] - low[half:].mean()) / spread).tolist(),
    }  # fmt: skip
    rows = [
        ("claimed", f"ε = {claimed.epsilon:g}", f"at δ = {claimed.delta:g}, per {claimed.unit}, {claimed.neighbours}"),
        ("shown by Clopper–Pearson", f"ε ≥ {shown:.3f}", f"{hits} hits and {alarms} alarms in {runs}"),
        ("could be shown at best", f"ε ≥ {best:.3f}", f"by a rule right in all {runs} runs that test it"),
    ]
    sentence = (
        f"a linear rule shows ε ≥ {shown:.3f} of {claimed.epsilon:g}; {runs} runs a world can show {best:.2f} at best"
    )
    note = f"Worlds: {claimed.difference}."
    return Finding("two_worlds", "Two worlds", sure <= claimed.epsilon, sentence, ("", "", ""), rows, figures, (note,))


def _whitened(centred: Array, gap: Array) -> Array:
    """Return the direction of Fisher's discriminant, the covariance being that of few runs, and a ridge."""
    n = len(centred)
    ridge = _RIDGE * float(np.square(centred).sum()) / centred.size + 1e-300
    # (C'C/n + r)⁻¹ g by the identity of Woodbury: there may be many more numbers than runs.
    inner = centred @ centred.T / n + ridge * np.eye(n)
    return np.asarray((gap - centred.T @ np.linalg.solve(inner, centred @ gap) / n) / ridge)


def density_loss(claimed: Claimed, trained: Sequence[Sequence[Model]]) -> Finding:
    """Return the exact loss of perturbed objectives at outputs that occurred: how much likelier one world makes them.

    Item factors are a linear function of the noise, given users' factors, which anybody who knows the ratings can
    compute: they are fitted without noise. So noise and density follow from what is published, in either world.
    """
    method, scale = claimed.method, claimed.worlds[0].scale
    width = scale.hi - scale.lo
    facts = method.facts()
    sides = [
        _Side(world, models[0], facts["regularization"]) for world, models in zip(claimed.worlds, trained, strict=True)
    ]
    losses = []
    for place, models in enumerate(trained):
        for model in models:
            V = model.release.item_factors.astype(np.float64)
            logs = [side.log_density(V, 2 * width / claimed.epsilon) for side in sides]
            losses.append(logs[place] - logs[1 - place])
    most = max(losses)
    violated = most > claimed.epsilon * (1 + 1e-3)  # more than float32 item factors lose
    above = sum(one > claimed.epsilon for one in losses)
    sentence = (
        f"at {above} of {len(losses)} outputs one world is more than e^ε times as likely: up to e^{most:.2f}, and "
        f"ε = {claimed.epsilon:g} is claimed"
    )
    figures = {"losses": losses, "largest": most, "above": above, "epsilon": claimed.epsilon}
    rows = [("claimed, at any output", claimed.epsilon), ("largest found", most), ("median", float(np.median(losses)))]
    note = "The claim has no δ, so one such output, with all outputs near it, refutes it."
    return Finding(
        "loss", "Privacy loss at outputs that occurred", not violated, sentence, ("loss", "ε"), rows, figures, (note,)
    )


class _Side:
    """What makes item factors in one world: sums over raters, and the matrices of the normal equations."""

    def __init__(self, ratings: Ratings, model: Model, regularization: float) -> None:
        U = model.user_factors.astype(np.float64)
        K = U.shape[1]
        self.right, self.matrices = np.zeros((ratings.n_items, K)), np.zeros((ratings.n_items, K, K))
        raters = U[ratings.users]
        np.add.at(self.right, ratings.items, raters * ratings.values[:, None])
        np.add.at(self.matrices, ratings.items, raters[:, :, None] * raters[:, None, :])
        self.matrices += len(ratings) * regularization * np.eye(K)

    def log_density(self, V: Array, scale: float) -> float:
        """Return the logarithm of the density of item factors, up to a constant that both worlds share."""
        noise = 2 * (self.right - np.einsum("jkl,jl->jk", self.matrices, V))
        return float(np.linalg.slogdet(self.matrices)[1].sum() - np.linalg.norm(noise, axis=1).sum() / scale)


def examine(method: Method, crowd: Ratings, *, runs: int = RUNS, progress: Progress = silent) -> list[Finding]:
    """Look for violations of what a paper claims of its method."""
    claimed = Claimed.of(method, crowd)
    if isinstance(method, GaussianGD):
        once = claimed.runs(_ENOUGH, replace(method, n_epochs=1))
        first = [without_noise(claimed, once, "one_iteration", "Numbers without noise, after one iteration")]
    else:
        first = []
    trained = claimed.runs(runs, progress=progress)
    found = [
        *first,
        without_noise(claimed, trained, "no_noise", "Numbers without noise"),
        linear_attack(claimed, trained),
    ]
    if isinstance(method, ObjectivePerturbation) and method.facts()["solver"] == "exact":
        found.append(density_loss(claimed, trained))
    return found
