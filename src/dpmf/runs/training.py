"""One run of a method: split, train, test, and what it took.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> run = train_and_test(SGD(n_factors=4, n_epochs=2), make(60, 40), holdout=0.2, n_threads=1)
>>> run.accuracy["rmse"] > 0 and len(run.model.history)
2
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.threads import thread_count
from dpmf.evaluation import baseline_errors, evaluate, prediction_errors
from dpmf.evaluation.accuracy import by_popularity
from dpmf.evaluation.leak import leak_figures
from dpmf.evaluation.metrics import mae, rmse
from dpmf.methods import ALS, SGD, SGLD, Method, ObjectivePerturbation
from dpmf.methods.base import Callback
from dpmf.methods.objective.profiles import Profiles
from dpmf.methods.sgld.convergence import Convergence, diagnose
from dpmf.model import Model
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model and figures about it, for the holder of the data.

    Attributes:
        model: the result.
        n_ratings: how many ratings it was trained on.
        seconds: wall time of the training, set-up included.
        accuracy: rmse, mae and baseline_rmse on the held-out ratings, kld, kld_top_users and rmse_top_users as in
            `dpmf.evaluation.leak` (not if streamed), and of a private run biases_rmse, the error of private item
            biases alone with all the budget; for implicit feedback recall@10 and ndcg@10, and the same
            with popularity_ before it, of popularity alone with all the budget; empty if nothing was held out.
        by_popularity: as `dpmf.evaluation.accuracy.by_popularity` returns it, of the model and of the baseline.
        streamed: whether the ratings stayed on the disk.
        convergence: what further chains say about that of SGLD, if any were asked for.
    """

    model: Model
    n_ratings: int
    seconds: float
    accuracy: dict[str, float]
    streamed: bool = False
    by_popularity: tuple[tuple[float, int, list[float]], ...] = ()
    convergence: Convergence | None = None

    @property
    def epoch_seconds(self) -> float:
        """Mean wall time of an epoch or round."""
        return sum(record.seconds for record in self.model.history) / max(len(self.model.history), 1)

    @property
    def updates_per_second(self) -> float:
        """Ratings visited per second while training."""
        return self.n_ratings / self.epoch_seconds if self.epoch_seconds else 0.0


def train_and_test(
    method: Method,
    ratings: Ratings,
    *,
    holdout: float = 0.0,
    how: str = "random",
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    user_budgets: Mapping[Any, float] | None = None,
    ledger: Ledger | None = None,
    n_chains: int = 0,
    profiles: Profiles | None = None,
) -> Run:
    """Train on ratings, with a part of them held out for the accuracy figures unless `holdout` is 0.

    The arguments after `checkpoint` are for private methods, see `dpmf.methods.ALS.fit`; but `n_chains` is how many
    further chains of SGLD are run to see whether they agree, and `profiles` are for `ObjectivePerturbation`.
    """
    train, test = ratings.split(holdout, seed=seed, how=how) if holdout else (ratings, None)
    private: dict[str, Any] = {} if isinstance(method, SGD) else {"user_budgets": user_budgets, "ledger": ledger}
    if isinstance(method, ObjectivePerturbation):
        private["profiles"] = profiles
    began = time.perf_counter()
    model = method.fit(train, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint, **private)
    seconds = time.perf_counter() - began
    used = 1 - method.validation if isinstance(method, SGD) else 1
    convergence = None
    if n_chains and isinstance(method, SGLD):
        convergence = diagnose(method, train, n_chains=n_chains, n_threads=n_threads, user_budgets=user_budgets)
    run = Run(model, round(len(train) * used), seconds, {}, convergence=convergence)
    if test is None or not len(test):
        return run
    if isinstance(method, ALS) and method.is_implicit:
        alone = replace(method, n_factors=0, alpha=None).fit(train, n_threads=n_threads, user_budgets=user_budgets)
        found, popular = (_ranking(one, test, n_threads) for one in (model, alone))
        return replace(run, accuracy={**found, **{f"popularity_{name}": value for name, value in popular.items()}})
    errors, baseline = prediction_errors(model, test, n_threads=n_threads), baseline_errors(train, test)
    accuracy = {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(baseline)}
    accuracy |= leak_figures(model, train, test, n_threads=thread_count(n_threads))
    if isinstance(method, ALS) and model.guarantee.mode != "none":
        alone = replace(method, n_factors=0).fit(train, n_threads=n_threads, user_budgets=user_budgets)
        accuracy["biases_rmse"] = rmse(prediction_errors(alone, test, n_threads=n_threads))
    return replace(run, accuracy=accuracy, by_popularity=tuple(by_popularity(train, test, errors, baseline)))


def _ranking(model: Model, test: Ratings, n_threads: int | None) -> dict[str, float]:
    figures = evaluate(model, test, n_threads=n_threads)
    return {name: figures[name] for name in ("recall@10", "ndcg@10")}


def forget_peak_memory() -> bool:
    """Let `peak_memory` begin anew from what is in use now; tell whether that could be done."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # the GNU library keeps what was freed, which would count
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return True
    return False


def peak_memory() -> int | None:
    """Return the most memory this process has had resident, in bytes, or None where that is not known."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        # On Linux getrusage would also count what the process was before it became this program.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
