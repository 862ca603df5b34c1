"""From trials to rows: one for each draw of the movies, trial and number of iterations.

The number of rounds is always the published one. `--full` adds values of ε, and three draws of Netflix's movies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from dpmf import Ratings
from experiments.figure import Row, Run
from experiments.hua2015.data import draws_of, name_of
from experiments.hua2015.errors import with_increases
from experiments.hua2015.runs import DIVIDED, WHOLE, Part, Trial, composed

AT = {"plain": (100,), "S1": (10, 40, 70, 100), "S2": (10, 40, 70, 100), "S3": (1000, 2500, 5000, 10_000)}
"""When errors are measured, in iterations or rounds; the last is as published."""

PUBLISHED = (0.05, 0.15, 0.8)
"""Values of ε that the paper makes statements about."""

_BEYOND = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_MORE = (0.1, 0.2, 0.4, 1.5, 3000.0, 10_000.0)


def trials_of(scenario: str, run: Run) -> list[Trial]:
    """Return the trials of a scenario: the theorem's noise, for ε far beyond the published, none, and divided noise."""
    budgets = sorted((*PUBLISHED, *_BEYOND, *(_MORE if run.full else ())))
    return [
        *(Trial(scenario, epsilon, WHOLE) for epsilon in budgets),
        Trial(scenario),
        *(Trial(scenario, epsilon, DIVIDED) for epsilon in budgets if epsilon <= max(PUBLISHED)),
    ]


def measure(run: Run, trials: Iterable[Trial], at: Sequence[int] | None = None, *, holdout: float = 0.0) -> list[Row]:
    """Return rows of plain factorization and of all trials, with increases over the former.

    Args:
        run: data, size and seed.
        trials: what to run.
        at: when errors are measured; `AT` by default.
        holdout: the fraction of ratings held out.
    """
    ratings = run.ratings()
    name, parts = name_of(ratings), _parts(run, ratings, holdout)
    del ratings

    def curve(draw: int, **trial: Any) -> dict[str, Any]:
        one = Trial(**trial)
        return {"curve": parts[draw].curve(one, at or AT[one.scenario])}

    points = [{"draw": draw, **asdict(trial)} for draw, trial in product(range(len(parts)), [Trial("plain"), *trials])]
    rows = []
    for row in run.each(points, curve):
        facts = {"data": name, **{column: value for column, value in row.items() if column != "curve"}}
        rows += [
            {**facts, "composed": composed(row["scenario"], row["epsilon"], moment["iterations"]), **moment}
            for moment in row["curve"]
        ]
    return with_increases(rows)


def _parts(run: Run, ratings: Ratings, holdout: float) -> list[Part]:
    parts = []
    for draw, one in enumerate(draws_of(ratings, run)):
        train, test = one.split(holdout, seed=run.seed) if holdout else (one, None)
        parts.append(Part.of(train, ratings, run.seed + draw, run.n_threads, test))
    return parts


def rows_of(run: Run, scenario: str, figures: Sequence[str]) -> list[Row]:
    """Return the rows of a scenario and of plain factorization, from another figure if it exists, else measured."""
    for figure in figures:
        found = [row for row in run.beside(figure) if row["scenario"] in ("plain", scenario)]
        if any(row["scenario"] == scenario for row in found):
            return found
    return measure(run, trials_of(scenario, run))
