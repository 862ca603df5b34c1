"""The paper's statements, and the ε from which on they hold here.

>>> STATED["Netflix", "S3"].words
'below 0.1'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

from experiments.figure import Row, Verdict
from experiments.hua2015.runs import DIVIDED, NONE, WHOLE

NEAR = 0.02  # how "about" is read


class Stated(NamedTuple):
    """A statement about the mean increase of errors over plain factorization.

    Attributes:
        epsilon: the claimed ε.
        iterations: the number of iterations or rounds.
        most: the largest increase for which it holds.
        words: the statement as used in sentences.
    """

    epsilon: float
    iterations: int
    most: float
    words: str

    @property
    def value(self) -> float:
        """The stated increase."""
        return self.most - NEAR if self.words.startswith("about") else self.most


STATED: Mapping[tuple[str, str], Stated] = {
    ("Netflix", "S1"): Stated(0.15, 70, 0.03, "below 0.03"),
    ("MovieLens", "S1"): Stated(0.05, 40, NEAR, "about 0"),
    ("Netflix", "S2"): Stated(0.15, 100, 0.14 + NEAR, "about 0.14"),
    ("MovieLens", "S2"): Stated(0.15, 100, NEAR, "about 0"),
    ("Netflix", "S3"): Stated(0.8, 10_000, 0.1, "below 0.1"),
    ("MovieLens", "S3"): Stated(0.05, 10_000, NEAR, "about 0"),
}
"""By data and scenario. A smaller increase than stated holds as well."""

Held = tuple[bool | None, str]


def of(rows: Iterable[Row], **where: Any) -> list[Row]:
    """Return the rows in which these columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def mean(rows: Iterable[Row], value: Callable[[Row], float]) -> float | None:
    """Return the mean over draws; None without rows."""
    values = [value(row) for row in rows]
    return fmean(values) if values else None


def budgets_of(rows: Iterable[Row]) -> list[float]:
    """Return the values of ε, ascending."""
    return sorted({row["epsilon"] for row in rows})


def from_on(rows: list[Row], value: Callable[[Row], float], most: float) -> float | None:
    """Return the smallest ε from which on the mean of a value over draws is at most `most`; None if there is none."""
    least = None
    for epsilon in reversed(budgets_of(rows)):
        found = mean(of(rows, epsilon=epsilon), value)
        if found is None or not found <= most:
            break
        least = epsilon
    return least


def statement(rows: list[Row], scenario: str, value: Callable[[Row], float], most: float, told: str) -> Held:
    """Judge a statement: the value there, the ε from which on it holds, and the value with less noise or none.

    Args:
        rows: of all kinds of noise, for one data set.
        scenario: the scenario of the statement.
        value: of a row.
        most: the largest value for which the statement holds.
        told: text about the value, with braces in its place.
    """
    stated = STATED[rows[0]["data"], scenario]
    there = of(rows, scenario=scenario, iterations=stated.iterations)
    word = "rounds" if scenario == "S3" else "iterations"
    at = f"{scenario} at ε = {stated.epsilon:g} after {stated.iterations:,} {word}"
    noisy = of(there, noise=WHOLE)
    found = mean(of(noisy, epsilon=stated.epsilon), value)
    if found is None:
        return None, f"{at} was not run"
    text = f"{at}: {told.format(shown(found))}"
    held = found <= most
    if not held:
        reached = from_on(noisy, value, most)
        text += f", reached from ε = {reached:g} on" if reached else ", reached with no ε that was tried"
        if reached and scenario != "S1":
            text += f" (composed: {reached * (stated.iterations + 1):,.0f})"
    less = mean(of(there, noise=DIVIDED, epsilon=stated.epsilon), value)
    none = mean(of(there, noise=NONE), value)
    aside = [
        f"{shown(one)} {word}"
        for one, word in ((less, "if noise is divided by the number of ratings"), (none, "without noise"))
        if one is not None
    ]
    return held, text + (f"; {', '.join(aside)}" if aside else "")


def verdict(found: Iterable[Held], end: str = "") -> Verdict:
    """Return one verdict for several findings: it holds if all do, and does not if one does not."""
    found = list(found)
    kinds = [held for held, _ in found]
    held = False if False in kinds else None if None in kinds else True
    sentences = [text if not number else text[:1].upper() + text[1:] for number, (_, text) in enumerate(found)]
    return Verdict(held, ". ".join(sentences) + f".{end}")


def shown(value: float) -> str:
    """Format a number for a sentence."""
    return f"{value:.3f}" if abs(value) < 10 else f"{float(f'{value:.3g}'):,.10g}"
