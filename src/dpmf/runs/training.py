"""One run of a method: train, test, and what it took.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> run = train_and_test(SGD(n_factors=4, n_epochs=2), make(60, 40), holdout=0.2, n_threads=1)
>>> run.accuracy["rmse"] > 0 and len(run.model.history)
2
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.evaluation import evaluate, prediction_errors
from dpmf.evaluation.accuracy import by_popularity
from dpmf.evaluation.leak import leak_figures
from dpmf.evaluation.metrics import mae, rmse
from dpmf.evaluation.new_users import FIGURES, measure_ranker, release_ranker
from dpmf.evaluation.peers import popularity_ranker
from dpmf.methods import Method
from dpmf.methods.base import Callback
from dpmf.model import Model, Release
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.alignment import Aligned
from dpmf.runs.parts import AnyParts, NewUserParts, Parts, Split, StoredParts

if TYPE_CHECKING:
    from dpmf.engine.cluster import Ray
    from dpmf.methods.objective.profiles import Profiles
    from dpmf.methods.sgld.convergence import Convergence

_RANKING = ("recall@10", "ndcg@10")


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a run is given beside its method and its ratings.

    Attributes:
        n_threads, callbacks, checkpoint, user_budgets, ledger, executor: as in `Method.fit`.
        profiles: for a method that takes them.
        start: an earlier release, for a method that takes one.
        n_chains: how many more chains to run to see whether they agree, of a method that has chains.
    """

    n_threads: int | None = None
    callbacks: Iterable[Callback] = ()
    checkpoint: Checkpoint | None = None
    user_budgets: Mapping[Any, float] | None = None
    ledger: Ledger | None = None
    profiles: Profiles | None = None
    start: Release | None = None
    n_chains: int = 0
    executor: Ray | None = None

    def of_fit(self, method: Method) -> dict[str, Any]:
        """Return what `fit` takes."""
        names = ("n_threads", "callbacks", "checkpoint", "user_budgets", "ledger", "executor")
        further = {name: getattr(self, name) for name in ("profiles", "start") if name in method.takes}
        return {name: getattr(self, name) for name in names} | further


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model and figures about it, for the holder of the data.

    Attributes:
        model: the result.
        n_ratings, n_users: how many ratings it was trained on, and of how many users.
        seconds: wall time of the training, set-up included.
        accuracy: rmse, mae and baseline_rmse on the held-out ratings, kld, kld_top_users and rmse_top_users as in
            `dpmf.evaluation.leak` (not if streamed), and, where the method has a reference without factors,
            biases_rmse, its error with all the budget. For implicit feedback, and where there are no ratings to
            predict, recall@10 and ndcg@10, and the same with popularity_ before it, of popularity alone with all the
            budget. Empty if nothing was held out.
        streamed: whether the ratings stayed on disk.
        spread: whether the workers of a cluster held them.
        by_popularity: as `dpmf.evaluation.accuracy.by_popularity` returns it, of the model and of the baseline.
        convergence: what more chains say about those of the method, if they were asked for.
        new_users: if people were held out, how many and the figures of `dpmf.evaluation.new_users`, and the same of
            exact popularity with popularity_ before them, without intervals.
        tested_on: the test file, if there is one.
    """

    model: Model
    n_ratings: int
    n_users: int
    seconds: float
    accuracy: dict[str, float]
    streamed: bool = False
    spread: bool = False
    by_popularity: tuple[tuple[float, int, list[float]], ...] = ()
    convergence: Convergence | None = None
    new_users: dict[str, Any] = field(default_factory=dict)
    tested_on: Aligned | None = None

    @property
    def epoch_seconds(self) -> float:
        """Mean wall time of an epoch or round."""
        return sum(record.seconds for record in self.model.history) / max(len(self.model.history), 1)

    @property
    def updates_per_second(self) -> float:
        """Ratings visited per second while training."""
        return self.n_ratings / self.epoch_seconds if self.epoch_seconds else 0.0


def train_and_test(
    method: Method, ratings: Ratings, *, holdout: float = 0.0, how: str = "random", seed: int = 0, **arguments: Any
) -> Run:
    """Train on ratings in memory, with a part of them held out for the accuracy figures unless `holdout` is 0.

    Args:
        method: configured.
        ratings: to split.
        holdout, how, seed: see `Split`.
        arguments: those of `Arguments`.
    """
    return train_on(method, Parts.of(ratings, Split(holdout, how, seed)), Arguments(**arguments))


def train_on(method: Method, parts: AnyParts, arguments: Arguments) -> Run:
    """Train on one part of a split and test on the other; from disk, the result is the same as in memory."""
    run = train(method, parts.train, arguments)
    if arguments.n_chains:
        assert isinstance(parts.train, Ratings)
        budgets, n_threads = arguments.user_budgets, arguments.n_threads
        found = method.diagnose(parts.train, n_chains=arguments.n_chains, n_threads=n_threads, user_budgets=budgets)
        run = replace(run, convergence=found)
    if isinstance(parts, NewUserParts):
        return replace(run, new_users=_new_user_figures(run.model, parts, arguments.n_threads))
    if not len(parts.test):
        return run
    return replace(_tested(run, method, parts, arguments), tested_on=parts.aligned)


def train(method: Method, ratings: AnyRatings, arguments: Arguments) -> Run:
    """Train, and measure the time it takes; nothing is tested."""
    began = time.perf_counter()
    model = method.fit(ratings, **arguments.of_fit(method))
    seconds = time.perf_counter() - began
    used = round(len(ratings) * method.training_share)
    spread = arguments.executor is not None
    streamed = isinstance(ratings, StoredRatings) and not spread
    return Run(model, used, ratings.n_users, seconds, {}, streamed, spread)


def _new_user_figures(model: Model, parts: NewUserParts, n_threads: int | None) -> dict[str, Any]:
    figures = measure_ranker(release_ranker(model.release, n_threads), parts.people, parts.popularity)
    popular = measure_ranker(popularity_ranker(parts.popularity, n_threads), parts.people, parts.popularity)
    return {**parts.people.counts(), **figures, **{f"popularity_{name}": popular[name] for name in FIGURES}}


def _tested(run: Run, method: Method, parts: Parts | StoredParts, arguments: Arguments) -> Run:
    """Return the run with figures on what was held out: of ratings, of lists, or of both."""
    release, reference = run.model.release, _reference(method, parts, arguments)
    if release.predicts_ratings:
        run = _with_errors(run, reference, parts, arguments.n_threads)
    if release.ranks or not release.predicts_ratings:
        run = _with_ranking(run, reference, parts, arguments.n_threads)
    return run


def _with_ranking(run: Run, reference: Model | None, parts: Parts | StoredParts, n_threads: int | None) -> Run:
    accuracy = _ranking(run.model, parts.test, n_threads)
    if reference is not None:
        popular = _ranking(reference, parts.test, n_threads)
        accuracy |= {f"popularity_{name}": value for name, value in popular.items()}
    return replace(run, accuracy=run.accuracy | accuracy)


def _with_errors(run: Run, reference: Model | None, parts: Parts | StoredParts, n_threads: int | None) -> Run:
    test = parts.test
    errors = prediction_errors(run.model, test, n_threads=n_threads)
    accuracy = {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(parts.baseline)}
    groups = []
    if isinstance(parts, Parts):
        accuracy |= leak_figures(run.model, parts.train, test, n_threads=thread_count(n_threads))
        groups = by_popularity(parts.train, test, errors, parts.baseline)
    if reference is not None and reference.release.predicts_ratings:
        accuracy["biases_rmse"] = rmse(prediction_errors(reference, test, n_threads=n_threads))
    return replace(run, accuracy=accuracy, by_popularity=tuple(groups))


def _reference(method: Method, parts: Parts | StoredParts, arguments: Arguments) -> Model | None:
    """Return the model that a run is compared with: neither released nor entered in a ledger."""
    alone = method.without_factors()
    if alone is None:
        return None
    return alone.fit(parts.train, n_threads=arguments.n_threads, user_budgets=arguments.user_budgets)


def _ranking(model: Model, test: Ratings, n_threads: int | None) -> dict[str, float]:
    figures = evaluate(model, test, n_threads=n_threads)
    return {name: figures[name] for name in _RANKING}
