"""Figures of Liu, Wang and Smola (2015) that are about posterior sampling: 4, 6 and 7.

Ratings are held out at random, 1 % of them; the paper has Netflix's probe set, which is harder. Without `--full`, sets
of more than 20 M ratings are cut down to every tenth user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmf import ALS, SGD, SGLD, Budget, Ratings
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import Method
from dpmf.ratings.pieces import of_users
from experiments.figure import Figure, Row, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_K = 16
_HOLDOUT = 0.01
_LARGE, _EVERY = 20_000_000, 10
_PLAIN = Budget(math.inf)
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00")  # told apart by colour-blind people too


@dataclass(frozen=True, eq=False)
class Parts:
    """Ratings to learn from, and ratings to test on."""

    train: Ratings
    test: Ratings
    n_threads: int

    @classmethod
    def of(cls, run: Run) -> Parts:
        """Read, cut down if need be, and split."""
        ratings = run.ratings()
        if len(ratings) > _LARGE and not run.full:
            ratings = of_users(ratings, np.arange(0, ratings.n_users, _EVERY))
        train, test = ratings.split(_HOLDOUT, seed=run.seed)
        return cls(train, test, run.n_threads)

    def error(self, method: Method) -> float:
        """Train, and return the error on the held-out ratings."""
        return rmse(prediction_errors(method.fit(self.train, n_threads=self.n_threads), self.test))

    def baseline(self) -> float:
        """Return the error of the mean of one's own ratings."""
        return rmse(baseline_errors(self.train, self.test))


def _tables(run: Run) -> list[Row]:
    parts = cache(partial(Parts.of, run))  # read when the first point needs them
    points = [{"size": size} for size in (100, 1000, 10_000, 65_536, 0)]
    return run.each(points, lambda size: {"rmse": parts().error(SGLD(n_factors=_K, budget=_PLAIN, table=size))})


def _judge_tables(rows: list[Row]) -> Verdict:
    fresh = next(row["rmse"] for row in rows if not row["size"])
    worst = max((row["rmse"] - fresh for row in rows if row["size"] >= 10_000), key=abs)
    small = next(row["rmse"] - fresh for row in rows if row["size"] == 100)
    return Verdict(
        abs(worst) <= 0.002,
        f"tables of 10,000 numbers and more are within {abs(worst):.4f} of fresh ones ({fresh:.4f}); one of 100 is "
        f"{abs(small):.4f} {'worse' if small > 0 else 'better'}.",
    )


def _draw_tables(drawing: Drawing, rows: list[Row]) -> None:
    ax = _axes(drawing, "numbers in the table")
    drawn = [row for row in rows if row["size"]]
    ax.semilogx([row["size"] for row in drawn], [row["rmse"] for row in drawn], "o-", color=_COLOURS[0], label="table")
    for row in rows:
        if not row["size"]:
            ax.axhline(row["rmse"], color="0.4", linestyle="--", label="fresh numbers")
    ax.legend(frameon=False)


_KINDS = ("descent", "one draw", "average of draws")


def _epochs(run: Run) -> list[Row]:
    parts = cache(partial(Parts.of, run))  # read when the first point needs them

    def error(epochs: int, kind: str) -> dict[str, float]:
        draws = SGLD(n_factors=_K, n_epochs=epochs, budget=_PLAIN)
        kinds: dict[str, Method] = {
            "descent": SGD(n_factors=_K, n_epochs=epochs),
            "one draw": replace(draws, n_samples=1),
            "average of draws": draws,
        }
        return {"rmse": parts().error(kinds[kind])}

    return run.each([{"epochs": epochs, "kind": kind} for epochs in (2, 5, 10, 20, 40) for kind in _KINDS], error)


def _course(rows: list[Row], kind: str) -> tuple[list[int], list[float]]:
    chosen = [row for row in rows if row["kind"] == kind]
    return [row["epochs"] for row in chosen], [row["rmse"] for row in chosen]


def _judge_epochs(rows: list[Row]) -> Verdict:
    (epochs, descent), (_, average) = _course(rows, "descent"), _course(rows, "average of draws")
    best = min(range(len(descent)), key=descent.__getitem__)
    overfits = descent[-1] > descent[best]
    return Verdict(
        overfits and average[-1] == min(average) and average[-1] <= descent[best],
        f"descent is best after {epochs[best]} epochs ({descent[best]:.4f}) and has {descent[-1]:.4f} after "
        f"{epochs[-1]}; averaged draws go from {average[0]:.4f} after {epochs[0]} to {average[-1]:.4f}.",
    )


def _draw_epochs(drawing: Drawing, rows: list[Row]) -> None:
    ax = _axes(drawing, "epochs")
    for kind, marker, colour in zip(_KINDS, "so^", _COLOURS, strict=False):
        ax.semilogx(*_course(rows, kind), f"{marker}-", color=colour, label=kind)
    ax.legend(frameon=False)


def _budgets(run: Run) -> list[Row]:
    parts = cache(partial(Parts.of, run))  # read when the first point needs them

    def error(kind: str, rho: float | None, epsilon: float) -> dict[str, Any]:
        data = parts()
        budget: dict[str, Any] = {"budget": Budget(epsilon), "items_public": True}
        if kind != "claim":
            method = (ALS if kind == "certified ALS" else SGLD)(**budget)
            return {"exact": None, "rmse": data.error(method), "baseline_rmse": data.baseline()}
        claim = SGLD(n_factors=_K, mode="paper", cap=100, kappa=1.0, rho=rho, **budget)
        exact = claim.bound(data.train.scale).tight("add-remove")
        return {"exact": exact, "rmse": data.error(claim), "baseline_rmse": data.baseline()}

    claims = [
        {"kind": "claim", "rho": rho, "epsilon": epsilon}
        for rho in (1.0, 10.0)
        for epsilon in (25.0, 100.0, 250.0, 1000.0, 10_000.0)
    ]
    proven = [
        {"kind": kind, "rho": None, "epsilon": epsilon}
        for kind in ("certified ALS", "certified SGLD")
        for epsilon in (1.0, 5.0, 20.0)
    ]
    return run.each([*proven, *claims], error)


def _judge_budgets(rows: list[Row]) -> Verdict:
    claims = {row["epsilon"]: row["rmse"] for row in rows if row["kind"] == "claim" and row["rho"] == 1.0}
    falls = all(claims[one] >= claims[next_] for one, next_ in zip(list(claims), list(claims)[1:], strict=False))
    best = min((row for row in rows if row["kind"] != "claim"), key=lambda row: row["rmse"])
    at_250, at_most = claims[250.0], claims[max(claims)]
    return Verdict(
        falls and at_250 - at_most <= 0.05,
        f"the error falls from {claims[min(claims)]:.4f} at a claimed {min(claims):g} to {at_250:.4f} at 250 and "
        f"{at_most:.4f} at {max(claims):g}; {best['kind']} has {best['rmse']:.4f} at {best['epsilon']:g}, proven.",
    )


def _draw_budgets(drawing: Drawing, rows: list[Row]) -> None:
    ax = _axes(drawing, "ε per user, add-remove (hollow: claimed or assumed; filled: proven)")
    for rho, marker, colour in ((1.0, "o", _COLOURS[0]), (10.0, "^", _COLOURS[1])):
        chosen = [row for row in rows if row["rho"] == rho]
        errors = [row["rmse"] for row in chosen]
        style = {"color": colour, "marker": marker, "markerfacecolor": "white"}
        ax.semilogx([row["epsilon"] for row in chosen], errors, "-", label=f"claim, ρ = {rho:g}", **style)
        ax.semilogx([row["exact"] for row in chosen], errors, ":", label=f"if draws were exact, ρ = {rho:g}", **style)
    for kind, marker, colour in (("certified ALS", "s", _COLOURS[2]), ("certified SGLD", "D", _COLOURS[3])):
        chosen = [row for row in rows if row["kind"] == kind]
        ax.semilogx(
            [row["epsilon"] for row in chosen], [row["rmse"] for row in chosen], marker=marker, color=colour, label=kind
        )
    ax.axhline(rows[0]["baseline_rmse"], color="0.5", linestyle="--", label="mean of your own ratings")
    ax.legend(frameon=False, fontsize="small")


def _axes(drawing: Drawing, x: str) -> Any:
    ax = drawing.subplots()
    ax.set(xlabel=x, ylabel="rmse on held-out ratings")
    ax.grid(alpha=0.3)
    return ax


_DATA = ("netflix", "ml-1m")
FIGURES = {
    "figure4": Figure(
        title="Error by size of the table of normal numbers",
        published="A table of 10,000 numbers or more does as well as a generator of normal numbers.",
        measure=_tables, draw=_draw_tables, judge=_judge_tables, data=_DATA,
    ),
    "figure6": Figure(
        title="Error by epochs, of descent and of sampling",
        published="Descent is best after a few epochs and then overfits; sampling burns in and goes on improving.",
        measure=_epochs, draw=_draw_epochs, judge=_judge_epochs, data=_DATA,
    ),
    "figure7": Figure(
        title="Error by privacy budget: what is claimed, and what is proven",
        published="A modest loss of accuracy buys privacy: at a claimed 250 the error is little above that of large ε.",
        measure=_budgets, draw=_draw_budgets, judge=_judge_budgets, data=_DATA,
    ),
}  # fmt: skip
