"""What `dpmf train` reports of a run, for programs and for people."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.cli.output import METRICS_NOTE, print_table, say

if TYPE_CHECKING:
    from dpmf.privacy import Budget
    from dpmf.runs.training import Run

_TURNS = {"als": "rounds", "gaussian": "iterations", "objective": "iterations"}  # what a method calls its epochs


def report_of(run: Run, method: str, seconds: float, out: Path | None) -> dict[str, Any]:
    """Return what scripts may rely on."""
    from dpmf.runs.training import peak_memory

    guarantee, ranking = run.model.guarantee, {}
    if run.model.release.is_implicit:
        names = ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10")
        ranking = {"feedback": "implicit", **{name: run.accuracy.get(name) for name in names}}
    return {
        "method": method,
        "mode": guarantee.mode,
        **ranking,
        "rmse": run.accuracy.get("rmse"),
        "mae": run.accuracy.get("mae"),
        "baseline_rmse": run.accuracy.get("baseline_rmse"),
        "biases_rmse": run.accuracy.get("biases_rmse"),
        "kld": run.accuracy.get("kld"),
        "kld_top_users": run.accuracy.get("kld_top_users"),
        "rmse_top_users": run.accuracy.get("rmse_top_users"),
        "by_popularity": [
            {"items_up_to": high, "ratings": count, "rmse": ours, "baseline_rmse": free}
            for high, count, (ours, free) in run.by_popularity
        ],
        "factors": run.model.release.n_factors,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "certified": guarantee.certified,
        "assumptions": list(guarantee.assumptions),
        "seconds": seconds,
        "epoch_seconds": run.epoch_seconds,
        "updates_per_second": run.updates_per_second,
        "streamed": run.streamed,
        "peak_memory": peak_memory(),
        "out": None if out is None else str(out),
    }


def paid(run: Run, budget: Budget, wanted: dict[str, float]) -> dict[str, float]:
    """Return the distribution of what users pay, for the holder of the data."""
    import numpy as np

    from dpmf.methods.certified.shares import personal_epsilons

    paid = personal_epsilons(run.model.user_ids, budget, wanted)
    low, quarter, middle, high = np.quantile(paid, (0.0, 0.25, 0.5, 1.0)).tolist()
    return {
        "least": low,
        "quarter": quarter,
        "median": middle,
        "most": high,
        "below_budget": float(np.mean(paid < budget.epsilon)),
        "named": sum(run.model.user_ids.position(user) is not None for user in wanted),
    }


def print_run(run: Run, report: dict[str, Any], model_folder: Path | None) -> None:
    """Print it for people."""
    sizes = f"{len(run.model.user_ids):,} users and {len(run.model.release.items):,} items"
    say(f"Trained on {run.n_ratings:,} ratings of {sizes}" + (", streamed from the disk" if run.streamed else ""))
    epochs, turns = len(run.model.history), _TURNS.get(report["method"], "epochs")
    say(
        f"{epochs} {turns if epochs != 1 else turns[:-1]} with {report['factors']} factors in "
        f"{epochs * run.epoch_seconds:.2f} s ({report['updates_per_second'] / 1e6:.1f} M updates/s), "
        f"{report['seconds']:.1f} s in all"
    )
    if run.accuracy:
        _print_accuracy(run, report["method"])
        say(METRICS_NOTE, "dim")
    say(f"Guarantee: {run.model.guarantee}", "bold" if run.model.guarantee.certified else "bold red")
    if "user_epsilons" in report and report["mode"] == "certified":
        paid = report["user_epsilons"]
        say(
            f"Users pay an epsilon of {paid['least']:g} at least, {paid['median']:g} in the middle and "
            f"{paid['most']:g} at most; {paid['below_budget']:.1%} pay less than the budget. Of those named in the "
            f"list, {paid['named']:,} are among the users. {METRICS_NOTE}"
        )
    if report["out"]:
        say(f"Release saved in {report['out']}")
    if model_folder is not None:
        say(f"Model saved in {model_folder}: sensitive, keep it inside", "yellow")


def _print_accuracy(run: Run, method: str) -> None:
    accuracy = run.accuracy
    if run.model.release.is_implicit:
        names = ("recall@10", "ndcg@10")
        popular = "popularity alone" if run.model.guarantee.mode == "none" else "private popularity alone"
        ranked = [(label, *(accuracy[prefix + name] for name in names))
                  for label, prefix in ((popular, "popularity_"), (method, ""))]  # fmt: skip
        print_table("Held-out items", ("", *names), ranked)
        return
    rows = [("mean of your own ratings", accuracy["baseline_rmse"], "")]
    if "biases_rmse" in accuracy:
        rows.append(("private item biases alone", accuracy["biases_rmse"], ""))
    rows.append((method, accuracy["rmse"], f"{accuracy['mae']:.4f}"))
    print_table("Held-out ratings", ("", "rmse", "mae"), rows)
    if math.isfinite(accuracy.get("kld", math.nan)):
        own_fit = method in ("als", "sgld") or run.model.guarantee.mode == "certified"
        whose = "It is of what everybody fits to their own ratings, not of the release, and" if own_fit else "It"
        say(
            f"Leak, as the divergence of errors on training ratings from these: {accuracy['kld']:.4f} nats, and "
            f"{accuracy['kld_top_users']:.4f} for the tenth of the users with the most ratings. {whose} promises "
            "nothing."
        )
    if run.by_popularity:
        buckets = [(f"{high:.0%}", count, ours, free) for high, count, (ours, free) in run.by_popularity]
        print_table("By popularity of the item", ("most popular", "ratings", "rmse", "own mean"), buckets)
