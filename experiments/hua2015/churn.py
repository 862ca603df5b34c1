"""Figures 9 and 10: mean increase of errors in S3 against the probabilities of coming and of leaving.

The paper does not say at which ε; here it is that of its statement on S3. Since noise hides everything else there, runs
without noise are added, and with `--full` also runs with noise divided by the number of ratings.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from experiments.figure import Figure, Row, Run, Verdict
from experiments.hua2015.data import name_of
from experiments.hua2015.measurements import AT
from experiments.hua2015.measurements import measure as measured
from experiments.hua2015.plots import style
from experiments.hua2015.runs import DIVIDED, NONE, WHOLE, Trial, composed
from experiments.hua2015.statements import STATED, Held, mean, of, shown, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_FULL, _SMALL = (0.005, 0.01, 0.015, 0.02), (0.005, 0.01, 0.02)
_USUAL = Trial("S3")
_SLACK, _PART = 0.01, 0.01  # absolute and relative: smaller changes of an increase are negligible
_KINDS = (WHOLE, NONE, DIVIDED)
_WORDS = {WHOLE: "with the noise claimed", NONE: "without noise", DIVIDED: "with noise divided by the ratings"}


def measure(run: Run) -> list[Row]:
    """Return one row for each kind of noise and pair of probabilities."""
    epsilon = STATED[name_of(run.ratings()), "S3"].epsilon
    varied = _FULL if run.full else _SMALL
    pairs = dict.fromkeys([*((come, _USUAL.leave) for come in varied), *((_USUAL.come, leave) for leave in varied)])
    rows = measured(
        run,
        [
            Trial("S3", math.inf if noise == NONE else epsilon, noise, come, leave)
            for noise in (_KINDS if run.full else _KINDS[:2])
            for come, leave in pairs
        ],
        AT["S3"][-1:],
    )
    return [{name: value for name, value in row.items() if not name.startswith("within")} for row in rows]


def judge(rows: list[Row]) -> Verdict:
    """Judge whether the increase falls as more people come, and depends less on leaving, for each kind of noise."""
    kinds = [noise for noise in _KINDS if noise != DIVIDED or of(rows, noise=DIVIDED)]
    return verdict(_judge_one(rows, noise) for noise in kinds)


def _judge_one(rows: list[Row], noise: str) -> Held:
    own = of(rows, scenario="S3", noise=noise)
    if not own:
        return None, f"{_WORDS[noise]} it was not run"
    coming, leaving = (list(_curve(own, varied).values()) for varied in ("come", "leave"))
    slack = max(_SLACK, _PART * abs(coming[0]))
    fell = coming[-1] < coming[0] - slack and all(after <= before + slack for before, after in pairwise(coming))
    wide, narrow = (max(values) - min(values) for values in (coming, leaving))
    text = (
        f"{_WORDS[noise]} from {shown(coming[0])} to {shown(coming[-1])} as the probability of coming grows from "
        f"{_FULL[0]:g} to {_FULL[-1]:g}, from {shown(leaving[0])} to {shown(leaving[-1])} as that of leaving does"
    )
    if max(wide, narrow) <= slack:
        return None, f"{text}, which is next to nothing"
    return fell and narrow < wide, text


def _curve(rows: list[Row], varied: str) -> dict[float, float]:
    """Return increases by one of the probabilities, ascending, with the other at its usual value."""
    other = "leave" if varied == "come" else "come"
    own = of(rows, **{other: getattr(_USUAL, other)})
    found = {
        value: mean(of(own, **{varied: value}), lambda row: float(row["increase"]))
        for value in sorted({row[varied] for row in own})
    }
    return {value: increase for value, increase in found.items() if increase is not None}


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a row of panels for each kind of noise, and a column for each probability."""
    own = of(rows, scenario="S3")
    kinds = [noise for noise in _KINDS if of(own, noise=noise)]
    rounds = own[0]["iterations"]
    drawing.set_size_inches(8.5, 1.2 + 2.1 * len(kinds))
    panels = drawing.subplots(len(kinds), 2, sharey="row", sharex="col", squeeze=False)
    for line, noise in zip(panels, kinds, strict=True):
        chosen = of(own, noise=noise)
        epsilon = chosen[0]["epsilon"]
        together = f"{rounds:,} rounds composed: {composed('S3', epsilon, rounds):,.6g}, if profiles never moved"
        titles = {
            WHOLE: f"noise as claimed, ε = {epsilon:g}; {together} (proven: none)",
            NONE: "no noise",
            DIVIDED: f"noise divided by the ratings, ε = {epsilon:g}: no guarantee",
        }
        for axes, varied in zip(line, ("come", "leave"), strict=True):
            curve = _curve(chosen, varied)
            axes.plot(list(curve), list(curve.values()), "-o", color=f"C{_KINDS.index(noise)}")
            style(axes, "", "")
            axes.margins(y=0.3)
        line[0].set_title(titles[noise], fontsize="small", loc="left")
    for axes, name in zip(panels[-1], ("coming", "leaving"), strict=True):
        axes.set_xlabel(f"probability of {name} in a round", fontsize="small")
    drawing.supylabel(f"mean increase of |error| after {rounds:,} rounds", fontsize="small")


FIGURE = Figure(
    title="Mean increase of errors in S3, against the probabilities of coming and of leaving",
    published="The more likely people come, the smaller the increase; how likely they leave matters less.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("netflix", "ml-100k"),
)
