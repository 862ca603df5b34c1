"""Figures 1 to 6: error distributions of S1, S2 and S3, for several ε and numbers of iterations.

The paper's words "negligible" and "extremely close" are read as a distribution function that is nowhere more than 0.05
below that of plain factorization; S2 being "very close" to S1, as one that is nowhere more than 0.1 below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from experiments.figure import Figure, Row, Run, Verdict
from experiments.hua2015.errors import BOUNDS, distribution, shortfall
from experiments.hua2015.measurements import PUBLISHED, measure, trials_of
from experiments.hua2015.plots import DRAWN, budget_colour, budget_label, legend_below, style
from experiments.hua2015.runs import DIVIDED, NONE, WHOLE
from experiments.hua2015.statements import STATED, of, shown, statement, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_CLOSE = 0.05  # of a distribution function to that of plain factorization
_SIMILAR = 0.1  # of S2's to S1's
_ROUNDS = "composed: (T + 1) ε, if profiles never moved; proven: none"
_MEANING = {"S1": "ε: claimed for one rating's value", "S2": _ROUNDS, "S3": _ROUNDS}


def _measure(scenario: str) -> Callable[[Run], list[Row]]:
    def rows(run: Run) -> list[Row]:
        others = trials_of("S1", run) if scenario == "S2" else []
        return measure(run, [*trials_of(scenario, run), *others])

    return rows


def _judge(scenario: str) -> Callable[[list[Row]], Verdict]:
    def judge(rows: list[Row]) -> Verdict:
        other = _others(rows, scenario)

        def below(row: Row) -> float:
            return shortfall(row, other(row))

        most, whose = (_SIMILAR, "S1's") if scenario == "S2" else (_CLOSE, "that of plain factorization")
        start = f"a distribution function that is nowhere {most:g} below {whose} counts as close. "
        found = statement(rows, scenario, below, most, f"up to {{}} below{_increases(rows, scenario)}")
        said = verdict([found])
        return Verdict(said.held, start + said.sentence)

    return judge


def _increases(rows: list[Row], scenario: str) -> str:
    """Return the mean increases at the stated ε and iterations, one for each draw of movies, as text."""
    stated = STATED[rows[0]["data"], scenario]
    there = of(rows, scenario=scenario, noise=WHOLE, epsilon=stated.epsilon, iterations=stated.iterations)
    draws = "" if len(there) == 1 else " for as many draws of the movies"
    return f" (mean increase {', '.join(shown(row['increase']) for row in there)}{draws})"


def _others(rows: list[Row], scenario: str) -> Callable[[Row], Row]:
    """Return a function from a row to the row it is compared with: plain factorization, or for S2 that of S1."""
    plain = {row["draw"]: row for row in of(rows, scenario="plain")}
    if scenario != "S2":
        return lambda row: plain[row["draw"]]
    names = ("draw", "noise", "epsilon", "iterations")
    trusted = {tuple(row[name] for name in names): row for row in of(rows, scenario="S1")}
    return lambda row: trusted[tuple(row[name] for name in names)]


def _draw(scenario: str) -> Callable[[Drawing, list[Row]], None]:
    def draw(drawing: Drawing, rows: list[Row]) -> None:
        drawing.set_size_inches(10.5, 5.2)
        first = [row for row in rows if row["draw"] == rows[0]["draw"]]
        own, plain = of(first, scenario=scenario), of(first, scenario="plain")[0]
        last = max(row["iterations"] for row in own)
        stated = STATED[first[0]["data"], scenario]
        panels = drawing.subplots(1, 3, sharey=True)
        word = "rounds" if scenario == "S3" else "iterations"
        noisy = of(own, noise=WHOLE, iterations=last)
        panels[0].set_title(f"noise as claimed, {last:,} {word}", fontsize="small")
        for row in noisy:
            if row["epsilon"] in DRAWN:
                _line(panels[0], row, budget_label(row), color=budget_colour(row["epsilon"]))
        for row in of(own, noise=NONE, iterations=last):
            _line(panels[0], row, "no noise", color="0.5", linestyle=":")
        panels[1].set_title(f"noise as claimed, ε = {stated.epsilon:g}, and none", fontsize="small")
        moments = sorted({row["iterations"] for row in own})
        for number, iterations in enumerate(moments):
            colour = f"C{number}"
            for row in of(own, noise=WHOLE, epsilon=stated.epsilon, iterations=iterations):
                told = f" (composed {row['composed']:,.4g})" if scenario != "S1" else ""
                _line(panels[1], row, f"{iterations:,}{told}", color=colour)
            for row in of(own, noise=NONE, iterations=iterations):
                _line(panels[1], row, f"{iterations:,}, no noise", color=colour, linestyle=":")
        panels[2].set_title("divided by the ratings: no guarantee", fontsize="small")
        for row in of(own, noise=DIVIDED, iterations=last):
            if row["epsilon"] in PUBLISHED:
                label = f"ε = {row['epsilon']:g}, protects nobody"
                _line(panels[2], row, label, color=budget_colour(row["epsilon"]))
        for axes in panels:
            _line(axes, plain, "plain, 100 iterations", color="black", linestyle="--")
            style(axes, "|error|, training ratings", "")
            axes.set_xlim(0, BOUNDS[-1])
            axes.set_ylim(0, 1.02)
            legend_below(axes, 1 if axes is panels[2] else 2, None if axes is panels[2] else _MEANING[scenario])
        panels[0].set_ylabel("part of the errors that is not larger")

    return draw


def _line(axes: Any, row: Row, label: str, **options: Any) -> None:
    axes.plot((0.0, *BOUNDS), (0.0, *distribution(row)), label=label, **options)


def _figure(scenario: str, what: str, published: str) -> Figure:
    return Figure(
        title=f"Distribution of errors in {scenario}: {what}",
        published=published,
        measure=_measure(scenario),
        draw=_draw(scenario),
        judge=_judge(scenario),
        data=("netflix", "ml-100k"),
    )


TRUSTED = _figure(
    "S1",
    "the recommender is trusted",
    "Noise does not matter at ε ≥ 0.15 for Netflix after 70 iterations, nor at 0.05 for MovieLens after 40.",
)
UNTRUSTED = _figure(
    "S2",
    "the recommender is not trusted, and everybody stays",
    "Results are very close to those of S1 for both sets.",
)
CHANGING = _figure(
    "S3",
    "people come and go",
    "After 10,000 rounds, Netflix at ε = 0.8 is extremely close to the baseline, and MovieLens cannot be told from it "
    "at ε ≥ 0.05.",
)
