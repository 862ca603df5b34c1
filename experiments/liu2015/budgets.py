"""Figure 7: error against the privacy budget, as published and certified."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dpmf import ALS, SGLD, Budget
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.data import DATA, K, Parts
from experiments.liu2015.plots import COLOURS, axes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def measure(run: Run) -> list[Row]:
    """Return one row for each budget, as published and certified."""
    parts = cache(partial(Parts.of, run))  # read when the first point needs them

    def error(kind: str, rho: float | None, epsilon: float) -> dict[str, Any]:
        data = parts()
        budget: dict[str, Any] = {"budget": Budget(epsilon), "items_public": True}
        if kind != "claim":
            method = (ALS if kind == "certified ALS" else SGLD)(**budget)
            return {"exact": None, "rmse": data.error(method), "baseline_rmse": data.baseline()}
        claim = SGLD(n_factors=K, mode="paper", cap=100, kappa=1.0, rho=rho, **budget)
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


def judge(rows: list[Row]) -> Verdict:
    """Judge whether the error at a claimed 250 is little above that of a large budget."""
    claims = {row["epsilon"]: row["rmse"] for row in rows if row["kind"] == "claim" and row["rho"] == 1.0}
    falls = all(claims[one] >= claims[next_] for one, next_ in zip(list(claims), list(claims)[1:], strict=False))
    best = min((row for row in rows if row["kind"] != "claim"), key=lambda row: row["rmse"])
    at_250, at_most = claims[250.0], claims[max(claims)]
    return Verdict(
        falls and at_250 - at_most <= 0.05,
        f"the error falls from {claims[min(claims)]:.4f} at a claimed {min(claims):g} to {at_250:.4f} at 250 and "
        f"{at_most:.4f} at {max(claims):g}; {best['kind']} has {best['rmse']:.4f} at {best['epsilon']:g}, proven.",
    )


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw claimed and certified budgets over the same axis."""
    axes = axes_of(drawing, "ε per user, add-remove (hollow: claimed or assumed; filled: proven)")
    for rho, marker, colour in ((1.0, "o", COLOURS[0]), (10.0, "^", COLOURS[1])):
        chosen = [row for row in rows if row["rho"] == rho]
        errors = [row["rmse"] for row in chosen]
        style = {"color": colour, "marker": marker, "markerfacecolor": "white"}
        axes.semilogx([row["epsilon"] for row in chosen], errors, "-", label=f"claim, ρ = {rho:g}", **style)
        axes.semilogx([row["exact"] for row in chosen], errors, ":", label=f"if draws were exact, ρ = {rho:g}", **style)
    for kind, marker, colour in (("certified ALS", "s", COLOURS[2]), ("certified SGLD", "D", COLOURS[3])):
        chosen = [row for row in rows if row["kind"] == kind]
        axes.semilogx(
            [row["epsilon"] for row in chosen], [row["rmse"] for row in chosen], marker=marker, color=colour, label=kind
        )
    axes.axhline(rows[0]["baseline_rmse"], color="0.5", linestyle="--", label="mean of your own ratings")
    axes.legend(frameon=False, fontsize="small")


FIGURE = Figure(
    title="Error by privacy budget: what is claimed, and what is proven",
    published="A modest loss of accuracy buys privacy: at a claimed 250 the error is little above that of large ε.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=DATA,
)
