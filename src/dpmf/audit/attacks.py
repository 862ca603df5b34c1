"""Attacks that people fear: guessing the rating that is missing, and telling whether somebody took part.

The attacker has a release and all but one of a person's ratings, and nothing about anybody else. Everything they can
guess about people who took part they can also try on people who did not: what works on both alike is what the release
says about the world, and what works better on those who took part is what it gives away about them. Beside it stands
the same method without noise, where the attack has something to find, and popularity, which knows nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.statistics import separation
from dpmf.audit.subject import Subject
from dpmf.methods import configure
from dpmf.methods.base import Method
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.streams import generator

SPLITS = 2
_TARGETS = 40  # of either kind in a split
_LEAST_RATINGS = 4
_LIST = 10  # items that an attacker names
_TRIES = 5  # ratings of a person that are left out, one after the other
_AUDITED, _PLAIN, POPULARITY = "as audited", "without a guarantee", "popularity"


@dataclass(eq=False)
class Tally:
    """What an attacker got out of one kind of release.

    Attributes:
        hits: whether the missing item was among the ten named, of those who took part and of others.
        errors: of the missing rating's value, likewise.
        scores: how well a person's ratings foretell each other, likewise.
    """

    hits: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    errors: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    scores: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def to_json(self) -> dict[str, float | None]:
        """Return rates and errors; None where a release predicts no ratings."""
        area, error = separation(*self.scores)
        means = [float(np.mean(one)) if one else None for one in (*self.hits, *self.errors)]
        names = ("recall_took_part", "recall_others", "error_took_part", "error_others")
        return {**dict(zip(names, means, strict=True)), "membership_auc": area, "membership_auc_error": error}


def attack_person(release: Release, ratings: Ratings, user: int, took_part: int, tally: Tally, order: Any) -> None:
    """Leave out ratings of a person, one after the other, and guess each from the rest.

    Args:
        release: what the attacker has.
        ratings: with the person's.
        user: the person's position.
        took_part: 0 for those who did, 1 for the others.
        tally: what comes of it (out).
        order: in which a person's ratings are left out.
    """
    items, values = ratings.of_user(user)
    ids = ratings.catalogue.ids.array
    ranks, squares = [], []
    for left_out in order.permutation(len(items))[:_TRIES].tolist():
        known = {ids[item]: float(value) for item, value in zip(items, values, strict=True)}
        missing = ids[items[left_out]]
        del known[missing]
        person = release.fold_in(known)
        named = [one.item for one in person.recommend(k=ratings.n_items)]
        rank = named.index(missing) if missing in named else ratings.n_items
        ranks.append(rank / ratings.n_items)
        tally.hits[took_part].append(float(rank < _LIST))
        if release.predicts_ratings:
            error = float(person.predict([missing])[0]) - float(values[left_out])
            squares.append(error**2)
            tally.errors[took_part].append(abs(error))
    tally.scores[took_part].append(-float(np.mean(squares or ranks)))


def attack_popularity(counts: Any, ratings: Ratings, user: int, took_part: int, tally: Tally, order: Any) -> None:
    """Guess the most popular items that a person is not known to have."""
    items, _ = ratings.of_user(user)
    ranks = []
    for left_out in order.permutation(len(items))[:_TRIES].tolist():
        known = np.delete(items, left_out)
        liked = counts.astype(np.float64)
        liked[known] = -1.0
        rank = int(np.count_nonzero(liked > liked[items[left_out]]))
        ranks.append(rank / len(counts))
        tally.hits[took_part].append(float(rank < _LIST))
    tally.scores[took_part].append(-float(np.mean(ranks)))


def examine(
    subject: Subject, *, splits: int = SPLITS, fit: Callable[[Ratings], Release] | None = None,
    progress: Progress = silent,
) -> Finding:  # fmt: skip
    """Attack releases of people of whom half took part, beside releases without noise.

    Args:
        subject: what is audited.
        splits: how often people are divided into two halves, of which first one and then the other takes part.
        fit: trains the release that is attacked; by default a certified run.
        progress: is told of splits.
    """
    private, plain = _AUDITED, _PLAIN
    tallies = {private: Tally(), plain: Tally(), POPULARITY: Tally()}
    eligible = np.flatnonzero(np.diff(subject.crowd.indptr) >= _LEAST_RATINGS)
    for number in range(2 * splits):  # everybody takes part in one half of the runs and not in the other
        progress(number, "attacks")
        order = generator(subject.seed, f"audit split {number // 2}")
        shuffled = order.permutation(eligible)
        halves = shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]
        took_part, others = halves if number % 2 else halves[::-1]
        train = select_users(subject.crowd, np.sort(np.setdiff1d(np.arange(subject.crowd.n_users), others)))
        releases = {private: (fit or _certified(subject))(train), plain: _without_noise(subject, train)}
        counts = np.bincount(subject.crowd.items, minlength=train.n_items)  # of all, who took part or not
        for kind, group in enumerate((took_part[:_TARGETS], others[:_TARGETS])):
            for user in group.tolist():
                for name, release in releases.items():
                    attack_person(release, subject.crowd, user, kind, tallies[name], order)
                attack_popularity(counts, subject.crowd, user, kind, tallies[POPULARITY], order)
    return _finding({name: one.to_json() for name, one in tallies.items()}, splits)


def _finding(figures: dict[str, dict[str, float | None]], splits: int) -> Finding:
    rows = [
        (
            name, *(_shown(one[key]) for key in ("recall_took_part", "recall_others")),
            *(_shown(one[key]) for key in ("error_took_part", "error_others")),
            f"{one['membership_auc']:.3f} ± {2 * (one['membership_auc_error'] or 0.0):.3f}",
        )
        for name, one in figures.items()
    ]  # fmt: skip
    private, plain = figures[_AUDITED], figures[_PLAIN]
    sentence = (
        f"whether somebody took part is told right with probability {private['membership_auc']:.2f} from the release, "
        f"{plain['membership_auc']:.2f} from one without a guarantee, and 0.50 by tossing a coin"
    )
    columns = (
        "release", "missing item named, took part", "others", "error of its rating, took part", "others",
        "who took part (AUC ± 2 se)",
    )  # fmt: skip
    note = (
        f"The attacker names {_LIST} items for the one that is missing. What works on others as well is no leak. These "
        "attackers know nobody else's ratings: weak attacks that fail prove nothing."
    )
    return Finding("attacks", "What people fear", None, sentence, columns, rows, {**figures, "splits": splits}, (note,))


def _shown(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"


def _certified(subject: Subject) -> Callable[[Ratings], Release]:
    """Return what trains a release with the noise of the guarantee."""

    def fit(train: Ratings) -> Release:
        if isinstance(subject.method, ObjectivePerturbation):
            rng = generator(subject.seed, "audit public factors")
            profiles = Profiles.public(train.user_ids.array, rng.normal(0, 0.5, (train.n_users, 3)))
            return subject.method.fit(train, n_threads=1, profiles=profiles).release
        return subject.method.fit(train, n_threads=1).release

    return fit


def as_published(method: Method) -> Callable[[Ratings], Release]:
    """Return what trains a release as a paper has it."""
    return lambda train: method.fit(train, n_threads=1).release


def _without_noise(subject: Subject, train: Ratings) -> Release:
    """Return a release of the same method without a guarantee, with whatever it chooses then."""
    method = subject.method
    kept: Sequence[str] = ("feedback", "seed")
    given = {name: value for name, value in method.facts().items() if name in kept and value is not None}
    return configure(method.name, {**given, "budget": Budget(math.inf)}).fit(train, n_threads=1).release
