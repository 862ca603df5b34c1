"""Whether rounds in the clear, which the other figures use, agree with the protocol and all its messages."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from dpmf import Ratings
from dpmf.federated.published import Scenario, simulate
from experiments.figure import Figure, Row, Run, Verdict
from experiments.hua2015.data import draws_of, is_large
from experiments.hua2015.errors import figures_of, predictions
from experiments.hua2015.plots import style
from experiments.hua2015.rounds import Rounds
from experiments.hua2015.statements import of, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_KINDS = ("protocol", "in the clear")
_BUDGETS = (0.8, 10.0, math.inf)
_ROUNDS: dict[str, int] = {"s2": 100, "s3": 1000}
_NEAR = 0.03  # relative: runs with other initial factors and noise differ by as much


def measure(run: Run) -> list[Row]:
    """Return one row for each scenario, ε and way of running it."""
    whole = run.ratings()
    ratings, per_round = next(iter(draws_of(whole, run))), 1000 if is_large(whole) else 100
    scenarios = ("s3",) if is_large(whole) else ("s2", "s3")  # a round of all users would be too many messages

    def errors(scenario: Literal["s2", "s3"], epsilon: float, kind: str, rounds: int) -> dict[str, Any]:
        chosen = Scenario(scenario, rounds, epsilon, per_round=per_round, items_public=True, seed=run.seed)
        return _errors(ratings, chosen, kind, run.n_threads)

    return run.each(
        [
            {"scenario": scenario, "epsilon": epsilon, "kind": kind, "rounds": _ROUNDS[scenario]}
            for scenario, epsilon, kind in product(scenarios, _BUDGETS, _KINDS)
        ],
        errors,
    )


def _errors(ratings: Ratings, scenario: Scenario, kind: str, n_threads: int) -> dict[str, Any]:
    if kind == "protocol":
        model = simulate(ratings, scenario, n_threads=n_threads).model
        U, V = model.user_factors, model.release.item_factors
    else:
        rounds = Rounds(ratings, scenario)
        rounds.play(scenario.rounds)
        U, V = rounds.profiles(n_threads)
    return figures_of(predictions(U, V, ratings), ratings.values, (ratings.scale.lo, ratings.scale.hi))


def judge(rows: list[Row]) -> Verdict:
    """Judge by the largest difference of mean errors."""
    texts, worst = [], 0.0
    for scenario, epsilon in dict.fromkeys((row["scenario"], row["epsilon"]) for row in rows):
        both = [of(rows, scenario=scenario, epsilon=epsilon, kind=kind) for kind in _KINDS]
        if not all(both):
            return Verdict(None, f"{scenario.upper()} at ε = {epsilon:g} was not run in both ways.")
        sent, clear = (float(found[0]["mean_error"]) for found in both)
        worst = max(worst, abs(sent / clear - 1))
        texts.append(f"{scenario.upper()} at ε = {epsilon:g} {shown(sent)} and {shown(clear)}")
    told = "; ".join(texts)
    return Verdict(worst <= _NEAR, f"mean errors by the protocol and in the clear: {told}; up to {worst:.1%} apart.")


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw two bars for each scenario and ε."""
    axes = drawing.subplots()
    labels = list(dict.fromkeys((row["scenario"], row["epsilon"], row["rounds"]) for row in rows))
    for number, kind in enumerate(_KINDS):
        heights = [of(rows, scenario=one, epsilon=epsilon, kind=kind)[0]["mean_error"] for one, epsilon, _ in labels]
        axes.bar([place + 0.4 * number - 0.2 for place in range(len(labels))], heights, 0.38, label=kind)
    texts = [f"{one.upper()}, {rounds:,} rounds\nε = {epsilon:g}" for one, epsilon, rounds in labels]
    axes.set_xticks(range(len(labels)), texts)
    axes.set_yscale("log")
    style(axes, "", "mean |error|, training ratings")
    axes.tick_params(axis="x", labelsize="x-small")
    axes.legend(fontsize="small")


FIGURE = Figure(
    title="Errors of the protocol with all its messages, and of the same rounds in the clear",
    published="Nothing: this is whether the other figures are made of what they say.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-100k",),
)
