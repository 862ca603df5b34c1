"""Rows as a comparison measures them, made by hand, with guarantees that fit."""

from __future__ import annotations

from typing import Any

from dpmf.compare.results import Row
from dpmf.privacy import Budget, GaussianEvent, Guarantee


def certified(
    method: str, epsilon: float, repeat: int = 0, *, noise: float = 100.0, seeded: bool = False, **figures: Any
) -> Row:
    """Return a certified row, or with seeded noise one that would be; epsilon is asked for, and costs a little less."""
    events = [GaussianEvent("item sums", noise_multiplier=noise / epsilon, coordinates=40)]
    found = Guarantee.certified_by(
        Budget(epsilon), events, releases=["item factors"], assumptions=["Scale is public."], seeded=seeded
    )
    return _row(method, "certified", epsilon, repeat, found, figures)


def claimed(
    method: str, epsilon: float, repeat: int = 0, *, unit: str = "rating", seeded: bool = False, **figures: Any
) -> Row:
    """Return a row with a paper's claim."""
    found = Guarantee.paper(
        epsilon=epsilon,
        delta=0.0,
        unit=unit,
        neighbours="replace",
        claim="It is private, somebody says.",
        releases=["item factors"],
        assumptions=["Nobody looks."],
        seeded=seeded,
    )
    return _row(method, "paper", epsilon, repeat, found, figures)


def _row(method: str, mode: str, asked: float, repeat: int, found: Guarantee, figures: dict[str, Any]) -> Row:
    return Row(
        method,
        mode,
        asked,
        repeat,
        repeat,
        epsilon=found.epsilon,
        delta=found.delta,
        unit=found.unit,
        neighbours=found.neighbours,
        certified=found.certified,
        guarantee=found.to_json(),
        **figures,
    )
