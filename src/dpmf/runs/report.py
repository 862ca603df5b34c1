"""What is reported of a run, in JSON values that scripts may rely on.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> from dpmf.runs.training import train_and_test
>>> method = SGD(n_factors=4, n_epochs=2)
>>> report = report_of(train_and_test(method, make(60, 40), n_threads=1), method, seconds=1.0)
>>> report["method"], report["factors"], report["certified"]
('sgd', 4, False)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.methods import Method
from dpmf.methods.certified.personal import personal_epsilons
from dpmf.runs.peak_memory import peak_memory
from dpmf.runs.training import Run

_RANKING = ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10")
_ERRORS = ("rmse", "mae", "baseline_rmse", "biases_rmse", "kld", "kld_top_users", "rmse_top_users")


def report_of(
    run: Run,
    method: Method,
    *,
    seconds: float,
    out: Path | None = None,
    user_budgets: Mapping[Any, float] | None = None,
) -> dict[str, Any]:
    """Return what is reported of every run, and then what the method adds.

    Args:
        run: the run.
        method: whose it was.
        seconds: what it took with reading and saving.
        out: where the release is.
        user_budgets: those it was given.
    """
    guarantee, release, ranking = run.model.guarantee, run.model.release, {}
    if release.ranks or not release.predicts_ratings:
        ranking = {"feedback": release.feedback, **{name: run.accuracy.get(name) for name in _RANKING}}
    report = {
        "method": method.name,
        "mode": guarantee.mode,
        **ranking,
        **{name: run.accuracy.get(name) for name in _ERRORS},
        **run.new_users,
        **({} if run.tested_on is None else run.tested_on.to_json()),
        "by_popularity": [
            {"items_up_to": high, "ratings": count, "rmse": ours, "baseline_rmse": free}
            for high, count, (ours, free) in run.by_popularity
        ],
        "factors": release.n_used_factors,
        "learnt": release.learnt.to_json() if release.learnt.is_recorded else None,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "certified": guarantee.certified,
        **({} if guarantee.warning is None else {"warning": guarantee.warning}),
        "assumptions": list(guarantee.assumptions),
        "seconds": seconds,
        "epoch_seconds": run.epoch_seconds,
        "updates_per_second": run.updates_per_second,
        "streamed": run.streamed,
        "peak_memory": peak_memory(),
        "out": None if out is None else str(out),
        **method.report(run.model, user_budgets),
    }
    if run.convergence is not None:
        report["convergence"] = run.convergence.to_json()
    if guarantee.mode == "certified" and user_budgets and not run.spread:
        report["user_epsilons"] = _paid(run, method, user_budgets)
    return report


def _paid(run: Run, method: Method, wanted: Mapping[Any, float]) -> dict[str, float]:
    """Return the distribution of what users of a certified run pay."""
    budget, users = method.facts()["budget"], run.model.user_ids
    paid = personal_epsilons(users, budget, wanted)
    low, quarter, middle, high = np.quantile(paid, (0.0, 0.25, 0.5, 1.0)).tolist()
    return {
        "least": low,
        "quarter": quarter,
        "median": middle,
        "most": high,
        "below_budget": float(np.mean(paid < budget.epsilon)),
        "named": sum(users.position(user) is not None for user in wanted),
    }
