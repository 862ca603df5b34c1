"""Figures 16 to 18: time of an iteration against the number of factors n, with noise and without.

It is processor time on one thread, so that other load on the machine does not count.
"""

from __future__ import annotations

import math
import time
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.gaussian.defaults import PUBLISHED, SWEEPS
from experiments.figure import Figure, Row, Run, Verdict
from experiments.mugdho2023.descent import Trial, descend
from experiments.mugdho2023.measurements import Parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_KINDS = ("plain", "private")
_SMALL = (20, 50, 100, 200)
_TURNS, _ITERATIONS = 2, 3
_LINEAR = 0.97  # share of the variance of times that a straight line explains
_IDENTICAL = 1.25  # times as long as without noise


def measure(run: Run) -> list[Row]:
    """Return one row for each n: the fastest iteration of several turns, with noise and without."""
    parts = Parts.of(run)

    def quickest(n: int, eps_i: float) -> float:
        moments, spent = descend(parts.train, Trial(eps_i=eps_i, n_factors=n), n_threads=1), []
        began = time.process_time()
        for _ in islice(moments, _ITERATIONS):
            spent.append(time.process_time() - began)
            began = time.process_time()
        return 1000 * min(spent[1:])  # the first includes preparation

    def times(n: int) -> dict[str, float]:
        turns = [(quickest(n, math.inf), quickest(n, PUBLISHED["eps_i"])) for _ in range(_TURNS)]
        return {
            "plain_milliseconds": min(plain for plain, _ in turns),
            "private_milliseconds": min(private for _, private in turns),
            "ratio": median(private / plain for plain, private in turns),
        }

    return run.each([{"n": int(n)} for n in (SWEEPS["n_factors"] if run.full else _SMALL)], times)


def judge(rows: list[Row]) -> Verdict:
    """Judge whether times grow linearly with n, and whether noise adds next to nothing."""
    n = np.array([row["n"] for row in rows], np.float64)
    explained = min(_explained(n, np.array([row[f"{kind}_milliseconds"] for row in rows])) for kind in _KINDS)
    ratio = max(row["ratio"] for row in rows)
    first, last = (
        f"{row['plain_milliseconds']:.3g} and {row['private_milliseconds']:.3g} ms at n = {row['n']}"
        for row in (rows[0], rows[-1])
    )
    sentence = (
        f"an iteration takes one processor, without noise and with it, {first}, and {last}; a straight line explains "
        f"{100 * explained:.1f} % of how times differ, and noise makes an iteration up to {ratio:.2f} times as long."
    )
    return Verdict(explained >= _LINEAR and ratio <= _IDENTICAL, sentence)


def _explained(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the share of the variance that a straight line explains."""
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw two lines."""
    axes = drawing.subplots()
    for kind, line in (("plain", "-o"), ("private", "--s")):
        axes.plot([row["n"] for row in rows], [row[f"{kind}_milliseconds"] for row in rows], line, label=kind)
    axes.set_xlabel("n")
    axes.set_ylabel("milliseconds of one processor per iteration")
    axes.grid(alpha=0.3)
    axes.legend()


FIGURE = Figure(
    title="Time of an iteration against the number of factors n",
    published="Time grows linearly with n, and is nearly the same with noise and without.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix", "anime"),
)
