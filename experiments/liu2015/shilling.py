"""A shilling attack: the paper claims that privacy makes recommendations robust, and does not measure it.

Fake accounts, one for every hundred users, push an item (see `accounts`). Certified ALS at several ε is compared with
methods that are not private, with the number of factors of the paper's figures on accuracy. One item is pushed at a
time. Measured are the effects on honest users: the error on their held-out ratings, the prediction for users who have
not rated the item, and the share of these users who find it among their ten recommendations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmf import ALS, SGD, Budget
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import Method
from dpmf.model import Model
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.accounts import KINDS, N_TARGETS, n_accounts, of_people, targets_of, with_accounts
from experiments.liu2015.data import PLAIN, K, Parts
from experiments.liu2015.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_EPSILONS = (20.0, 5.0, 1.0)
_DRAWS = 3  # of the noise, for methods that have noise;
_MANY_RATINGS = 5_000_000  # beyond this one draw is enough: accounts outweigh the noise, and runs are long
_NOBODY = "none"
_FEW = 10  # recommendations
_HALF = 0.5  # of the shift of plain ALS: more is not robust


def measure(run: Run) -> list[Row]:
    """Return one row for each method, draw, kind of accounts and item."""
    parts = Parts.of(run)
    train, count, targets = parts.train, n_accounts(parts.train), targets_of(parts.train, run.seed)
    noise = 1 if len(train) > _MANY_RATINGS else _DRAWS

    def trained(method: str, epsilon: float | None, draw: int, accounts: str, target: int | None) -> dict[str, Any]:
        ratings = train
        if target is not None:
            place = int(targets[target])
            ratings = with_accounts(train, target=place, n_accounts=count, kind=accounts, seed=run.seed)
        model = of_people(_method(method, epsilon).fit(ratings, n_threads=run.n_threads), train)
        wanted = range(N_TARGETS) if target is None else [target]
        return {
            "rmse": rmse(prediction_errors(model, parts.test, n_threads=run.n_threads)),
            "baseline_rmse": parts.baseline(),
            "accounts_made_up": count,
            "seen": _seen(model, [int(targets[one]) for one in wanted], run.n_threads),
        }

    attacks = [(_NOBODY, None), *((kind, target) for kind in KINDS for target in range(N_TARGETS))]
    points = [
        {"method": method, "epsilon": epsilon, "draw": draw, "accounts": accounts, "target": target}
        for method, epsilon, draws in (
            ("SGD", None, 1),
            ("plain ALS", None, 1),
            *(("certified ALS", epsilon, noise) for epsilon in _EPSILONS),
        )
        for draw in range(draws)
        for accounts, target in attacks
    ]
    return [row for found in run.each(points, trained) for row in _rows(found)]


def _method(name: str, epsilon: float | None) -> Method:
    if name == "SGD":
        return SGD(n_factors=K)
    if epsilon is None:
        return ALS(n_factors=K, budget=PLAIN)
    return ALS(budget=Budget(epsilon), items_public=True)


def _seen(model: Model, targets: list[int], n_threads: int) -> list[dict[str, Any]]:
    """Return the prediction and the rank of each item for users who have not rated it."""
    release, n_users = model.release, len(model.user_ids)
    users = np.repeat(np.arange(n_users), np.diff(model.seen_indptr))
    recommended = model.recommend_batch(k=_FEW, n_threads=n_threads).positions
    found = []
    for target in targets:
        others = np.ones(n_users, np.bool_)
        others[users[model.seen_items == target]] = False
        predicted = release.mean + release.item_biases[target] + model.user_biases[others]
        predicted = predicted + model.user_factors[others] @ release.item_factors[target]
        found.append(
            {
                "item": str(release.items.ids.array[target]),
                "item_ratings": n_users - int(others.sum()),
                "predicted": float(np.clip(predicted, release.scale.lo, release.scale.hi).mean()),
                "in_top": float((recommended[others] == target).any(axis=1).mean()),
            }
        )
    return found


def _rows(found: Row) -> list[Row]:
    """Return one row for each item that a run measured."""
    targets = range(N_TARGETS) if found["target"] is None else [found["target"]]
    rest = {name: value for name, value in found.items() if name not in ("seen", "target")}
    return [{**rest, "target": target, **seen} for target, seen in zip(targets, found["seen"], strict=True)]


class Effect(NamedTuple):
    """The effect of fake accounts, averaged over items and draws of the noise.

    Attributes:
        shift: the increase of the predicted rating of the pushed item.
        error: the standard error of the shift.
        in_top, in_top_before: the fraction of users who are recommended the item, with the accounts and without.
        rmse: the increase of the error of honest users.
    """

    shift: float
    error: float
    in_top: float
    in_top_before: float
    rmse: float


def effect(rows: list[Row], method: str, epsilon: float | None, accounts: str) -> Effect:
    """Return the effect of accounts of a kind on a method."""
    own = [row for row in rows if (row["method"], row["epsilon"]) == (method, epsilon)]
    before = [row for row in own if row["accounts"] == _NOBODY]
    after = [row for row in own if row["accounts"] == accounts]
    shifts = []
    for target in dict.fromkeys(row["target"] for row in after):
        usual = np.mean([row["predicted"] for row in before if row["target"] == target])
        shifts.append([row["predicted"] - usual for row in after if row["target"] == target])
    means = np.mean(shifts, axis=1)
    return Effect(
        float(means.mean()),
        float(means.std(ddof=1) / math.sqrt(len(means))) if len(means) > 1 else 0.0,
        float(np.mean([row["in_top"] for row in after])),
        float(np.mean([row["in_top"] for row in before])),
        float(np.mean([row["rmse"] for row in after]) - np.mean([row["rmse"] for row in before])),
    )


def _kinds(rows: list[Row]) -> list[tuple[str, float | None]]:
    return list(dict.fromkeys((row["method"], row["epsilon"]) for row in rows))


def _name(method: str, epsilon: float | None) -> str:
    return method if epsilon is None else f"ε = {epsilon:g}"


def judge(rows: list[Row]) -> Verdict:
    """Judge whether private models shift at most half as far as plain ALS, for every kind of account."""
    kinds, told, held = _kinds(rows), [], True
    for accounts in KINDS:
        found = {kind: effect(rows, *kind, accounts) for kind in kinds}
        plain = found["plain ALS", None]
        private = {kind: one for kind, one in found.items() if kind[1] is not None}
        held &= all(one.shift <= _HALF * plain.shift for one in private.values())
        moved = ", ".join(f"{one.shift:+.2f} ({_name(*kind)})" for kind, one in found.items())
        seen = ", ".join(f"{100 * one.in_top_before:.1f} → {100 * one.in_top:.1f}" for one in found.values())
        told.append(f"{accounts} accounts move the item by {moved}, and into the top ten of {seen} % of people")
    count = next(row["accounts_made_up"] for row in rows)
    least = min(epsilon for _, epsilon in kinds if epsilon is not None)
    worst = max(abs(effect(rows, *kind, accounts).rmse) for kind in kinds for accounts in KINDS)
    return Verdict(
        held,
        f"{'; '.join(told)}. The error of people changes by {worst:.4f} at most, private or not. What is proven is for "
        f"one account: {count} together have {count} ε, at ε = {least:g} a factor of e^{count * least:g}, which is no "
        "guarantee.",
    )


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw the shift of the item, and the share of users who find it in their top ten."""
    drawing.set_size_inches(9.5, 5.2)
    left, right = drawing.subplots(1, 2)
    kinds = _kinds(rows)
    places = np.arange(len(kinds))
    for number, (accounts, colour, hatch) in enumerate(zip(KINDS, COLOURS, ("", "///"), strict=False)):
        found = [effect(rows, *kind, accounts) for kind in kinds]
        style: dict[str, Any] = {"width": 0.38, "color": colour, "hatch": hatch, "edgecolor": "white"}
        x = places + 0.4 * (number - 0.5)
        left.bar(x, [one.shift for one in found], yerr=[one.error for one in found], label=accounts, **style)
        right.bar(x, [100 * one.in_top for one in found], label=accounts, **style)
    before = [100 * effect(rows, *kind, KINDS[0]).in_top_before for kind in kinds]
    right.plot(places, before, "kD", markersize=5, label="without them")
    left.set(ylabel="shift of the predicted rating of the pushed item")
    right.set(ylabel=f"people who find it in their top {_FEW}, %")
    for axes in (left, right):
        axes.set_xticks(places, [_name(*kind) for kind in kinds], fontsize="small")
        axes.grid(alpha=0.3, axis="y")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.legend(frameon=False, fontsize="small", title="fake accounts", title_fontsize="small")


FIGURE = Figure(
    title="An item pushed by fake accounts, one for every hundred people; ε per user, certified ALS",
    published="Differential privacy confers robustness: it limits what any account can do to recommendations.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix"),
)
