"""Figure 1: items by their number of ratings.

Netflix is always counted in full. `--data yahoo-music` is synthetic, in the shape of Yahoo's set, and its popularity is
a power law by construction: the plot shows the data of figure 3, and is no evidence.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmf.ratings.formats.database import open_database
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.plots import COLOURS, axes_of
from experiments.liu2015.synthetic import YAHOO, is_synthetic, synthetic_like

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SMALL = 100  # divisor of synthetic sets
_FEW = 100  # ratings of an item: the paper says that many movies have "100 ratings or less"
_STEPS = (1, 2, 5)  # in each power of ten, up to which an item is counted
_TOP = 500  # the paper's first tier
_MANY, _SMALL_NUMBER = 0.1, 0.1  # of all rated items: how the paper's words are read here


def measure(run: Run) -> list[Row]:
    """Return one row for each range of numbers of ratings."""
    if not is_synthetic(run.data):
        ratings = run.ratings()
        return rows_of(np.bincount(ratings.items), synthetic=False)
    with synthetic_like(run.data, 1 if run.full else _SMALL) as folder, open_database() as connection:
        found = connection.execute(
            "SELECT count(*) AS ratings FROM read_parquet($path) GROUP BY item",
            {"path": str(folder / "ratings.parquet")},
        ).fetchnumpy()
    return rows_of(np.asarray(found["ratings"], np.int64), synthetic=True)


def rows_of(counts: NDArray[np.int64], *, synthetic: bool) -> list[Row]:
    """Return the rows for the numbers of ratings of all items."""
    counts = np.sort(counts[counts > 0])[::-1]
    ends = [step * 10**power for power in range(len(str(counts[0]))) for step in _STEPS]
    ends = [0, *(end for end in ends if end < counts[0]), int(counts[0])]
    running = np.cumsum(counts)
    same = {
        "made_up": synthetic,
        "all_items": len(counts),
        "all_ratings": int(running[-1]),
        "items_with_half": int(np.searchsorted(running, running[-1] / 2)) + 1,
        "ratings_of_top": int(running[min(_TOP, len(counts)) - 1]),
    }
    rows = []
    for low, high in pairwise(ends):
        chosen = counts[(counts > low) & (counts <= high)]
        rows.append({"from": low + 1, "to": high, "items": len(chosen), "ratings": int(chosen.sum()), **same})
    return rows


def slope_of(rows: list[Row]) -> tuple[float, float]:
    """Return the exponent of a power law for items beyond few ratings, and the variance that it explains."""
    places, density = _density(_tail(rows))
    x, y = np.log(places), np.log(density)
    return float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1] ** 2)


def _tail(rows: list[Row]) -> list[Row]:
    """Return the ranges beyond few ratings; all of them if those are too few for a line."""
    tail = [row for row in rows if row["from"] > _FEW and row["items"]]
    return tail if len(tail) > 2 else rows


def _density(rows: list[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of ratings, the middles of ranges, and the items for each of the numbers in a range."""
    found = [(row["from"] * row["to"], row["items"] / (row["to"] - row["from"] + 1)) for row in rows if row["items"]]
    squares, density = np.array(found, np.float64).T
    return np.sqrt(squares), density


def judge(rows: list[Row]) -> Verdict:
    """Judge whether many items have few ratings, and few items most of the ratings."""
    one = rows[0]
    few = sum(row["items"] for row in rows if row["to"] <= _FEW) / one["all_items"]
    half, top = one["items_with_half"] / one["all_items"], one["ratings_of_top"] / one["all_ratings"]
    slope, explained = slope_of(rows)
    sentence = (
        f"{round(few * one['all_items']):,} of {one['all_items']:,} items have {_FEW} ratings or fewer "
        f"({100 * few:.1f} %; many would be {100 * _MANY:.0f}), {100 * half:.1f} % of the items have half of all "
        f"ratings, and the first {_TOP} have {100 * top:.1f} %; beyond {_FEW} ratings a power law with exponent "
        f"{slope:.2f} explains {100 * explained:.1f} % of how the numbers of items differ."
    )
    if one["made_up"]:
        return Verdict(None, f"these ratings are synthetic, drawn from a power law; {sentence}")
    return Verdict(few >= _MANY and half <= _SMALL_NUMBER, sentence)


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw how many items there are for a number of ratings, and the power law."""
    axes = axes_of(drawing, "ratings of an item", "items for each number of ratings")
    axes.loglog(*_density(rows), "o-", color=COLOURS[0], label="synthetic" if rows[0]["made_up"] else "counted")
    slope, _ = slope_of(rows)
    places, density = _density(_tail(rows))
    at = np.exp(np.log(density).mean() + slope * (np.log(places) - np.log(places).mean()))
    axes.loglog(places, at, "--", color=COLOURS[3], label=f"power law, exponent {slope:.2f}")
    axes.axvline(_FEW, color="0.5", linestyle=":", label=f"{_FEW} ratings")
    axes.legend(frameon=False)


FIGURE = Figure(
    title="Items by their number of ratings",
    published="Many items have 100 ratings or less, while most ratings are of a small number of items.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("netflix", YAHOO),
)
