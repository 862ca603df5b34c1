"""Mechanisms and answerers with a fault, which an audit has to find, and honest ones with noise that is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.audit.subject import Subject
from dpmf.methods import configure
from dpmf.methods.certified.answer import Asked, RatingsAnswerer
from dpmf.methods.certified.questions import Integers
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism, PlannedEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings.synthetic import make

SMALL = make(30, 12, mean_ratings=5, seed=1)
VALUE = Budget(1.0, 1e-6, "rating", "replace")
Faulty = Callable[[NDArray[np.int64]], NDArray[np.int64]]


def seeded(change: Faulty | None = None) -> Callable[[Sequence[PlannedEvent], Noise], Mechanism]:
    """Return what makes mechanisms of which each draws noise of its own, but the same in every run of a test."""
    seeds = count()

    class Seeded(Mechanism):
        def _drawn(self, event: PlannedEvent, shape: tuple[int, ...]) -> NDArray[np.int64]:
            drawn = super()._drawn(event, shape)
            return drawn if change is None else change(drawn)

    return lambda events, _: Seeded(events, Noise(noise_seed=next(seeds)))


def smaller(drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return noise that is a tenth too small."""
    return np.asarray(np.rint(0.9 * drawn), np.int64)


def without_first(drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return noise that leaves the first number alone."""
    drawn = drawn.copy()
    drawn.reshape(-1)[0] = 0
    return drawn


class LargerClip(RatingsAnswerer):
    """People whose answers are a tenth longer than their bound."""

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        return super().answer([one._replace(steps=1.1 * one.steps) for one in asked])


def subject_of(name: str, epsilon: float = 1.0, *, change: Faulty | None = None, **settings: Any) -> Subject:
    """Return a method on a few ratings, with noise that is the same in every run of a test."""
    more = {key: settings.pop(key) for key in ("answerer",) if key in settings}
    sizes = {"ease": {}, "objective": {}, "sketch": {"depth": 2, "width": 5}}.get(name, {})
    turns = {} if name in ("ease", "objective") else {"n_factors": 2, "n_epochs": 2}
    budget = VALUE if name == "objective" else Budget(epsilon)
    method = configure(name, {"budget": budget, **turns, **sizes, **settings})
    return Subject.of(method, SMALL, mechanism=seeded(change), **more)
