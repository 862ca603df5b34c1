"""Everything that a comparison wants to know of one run.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> parts, row = RankedParts.of(make(80, 40), Split(0.2, seed=1)), Row("sgd", "none", math.inf, repeat=0, seed=1)
>>> row = measure(SGD(n_factors=4, n_epochs=2), parts, row, Arguments(n_threads=1))
>>> row.rmse > 0, row.epochs, len(row.spectrum), row.unit
(True, 2, 4, None)
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.new_users import rank_for_new_users
from dpmf.compare.results import Row
from dpmf.engine.threads import thread_count
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate, prediction_errors
from dpmf.evaluation.accuracy import by_activity, by_popularity
from dpmf.evaluation.leak import leak_figures
from dpmf.evaluation.metrics import error_cdf, mae, rmse
from dpmf.methods import Method
from dpmf.model import Model, Release
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.runs.parts import NewUserParts, Parts, Split
from dpmf.runs.peak_memory import forget_peak_memory, peak_memory
from dpmf.runs.training import Arguments, train

MOST_RANKED = 20_000
"""People for whom lists are made at most, chosen by the seed: a list takes all items, an error only one."""
_K = 10
_FEW = 50  # people that compile what everybody needs
_SMALL_HEAD = 20
_CDF_POINTS = 41


@dataclass(frozen=True, eq=False)
class RankedParts(Parts):
    """Ratings to learn from and ratings to test on, the same for all methods of a repeat.

    Attributes:
        train, test, baseline: as in `Parts`.
        ranked: the test ratings of those for whom lists are made.
    """

    ranked: Ratings = field(kw_only=True)

    @classmethod
    def of(cls, ratings: Ratings, split: Split) -> RankedParts:
        """Split ratings, and choose for whom lists are made."""
        parts = Parts.of(ratings, split)
        return cls(parts.train, parts.test, parts.baseline, ranked=_ranked(parts.test, split.seed))

    @classmethod
    def beside(cls, train: Ratings, test: Ratings, seed: int) -> RankedParts:
        """Put ratings of the same users and items beside those to train on, and choose for whom lists are made."""
        return cls(train, test, baseline_errors(train, test), ranked=_ranked(test, seed))


def _ranked(test: Ratings, seed: int) -> Ratings:
    """Return the test ratings of those for whom lists are made."""
    people = np.flatnonzero(np.diff(test.indptr))
    if len(people) <= MOST_RANKED:
        return test
    chosen = np.zeros(test.n_users, np.bool_)
    chosen[np.random.default_rng(seed).choice(people, MOST_RANKED, replace=False)] = True
    return test.select(chosen[test.users])


def measure(
    method: Method, parts: RankedParts | NewUserParts, row: Row, arguments: Arguments, *, alone: bool = True
) -> Row:
    """Train, and return the row with all figures.

    Args:
        method: configured.
        parts: what to learn from and to test on.
        row: which run it is.
        arguments: of the run.
        alone: whether nothing else runs beside it, so that time and memory mean something.
    """
    resettable = alone and forget_peak_memory()
    run = train(method, parts.train, arguments)
    peak = peak_memory() if resettable else None
    taken: dict[str, Any] = {}
    if alone:
        taken = {"seconds": run.seconds, "epoch_seconds": run.epoch_seconds, "peak_memory": peak}
    model, guarantee = run.model, run.model.guarantee
    return replace(
        row,
        **{name: getattr(guarantee, name) for name in ("epsilon", "delta", "unit", "neighbours", "certified")},
        guarantee=guarantee.to_json() if guarantee.mode != "none" else {},
        factors=model.release.n_factors,
        epochs=len(model.history),
        threads=thread_count(arguments.n_threads),
        history=[[one.epoch, one.seconds if alone else None, _number(one.train_rmse)] for one in model.history],
        spectrum=spectrum_of(model.release),
        **taken,
        **(
            {"ranking": rank_for_new_users(model.release, parts, arguments.n_threads)}
            if isinstance(parts, NewUserParts)
            else _accuracy(model, parts, arguments.n_threads)
        ),
    )


def warm_up(method: Method, train_part: Ratings, arguments: Arguments) -> None:
    """Run a method on a few people's ratings, so that what is compiled for it is not timed with it."""
    few = select_users(train_part, np.arange(min(_FEW, train_part.n_users)))
    short: dict[str, Any] = {"n_samples": 1} if getattr(method, "n_samples", None) is not None else {}
    if method.n_turns not in (0, 1):
        short["n_epochs"] = 1
    if getattr(method, "head", 0) is None:
        short["head"] = _SMALL_HEAD  # else so few people would be asked about popularity alone
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # that little is found in so few ratings is nobody's concern
    try:
        with contextlib.suppress(DpmfError):  # so few may be too few: then it is timed as it is
            train(replace(method, **short), few, replace(arguments, n_threads=1, callbacks=()))
    finally:
        logging.disable(before)


def spectrum_of(release: Release) -> list[float]:
    """Return the singular values of the item factors, falling."""
    factors = release.item_factors.astype(np.float64)
    squares = np.linalg.eigvalsh(factors.T @ factors)[::-1] if factors.shape[1] else np.zeros(0)
    return [float(one) for one in np.sqrt(np.maximum(squares, 0.0))]


def _accuracy(model: Model, parts: RankedParts, n_threads: int | None) -> dict[str, Any]:
    if not model.release.predicts_ratings:
        return ranking_figures(model, parts, n_threads)
    errors = prediction_errors(model, parts.test, n_threads=n_threads)
    if not np.isfinite(errors).all():
        raise InvalidArgument("it has diverged: predictions are not numbers any more")
    leak = leak_figures(model, parts.train, parts.test, n_threads=thread_count(n_threads))
    return {
        **error_figures(parts, errors),
        **{name: _number(value) for name, value in leak.items()},
        **ranking_figures(model, parts, n_threads),
    }


def error_figures(parts: RankedParts, errors: NDArray[np.float64]) -> dict[str, Any]:
    """Return the columns of a row that are made of errors on the test ratings."""
    scale = parts.test.scale
    sizes = np.linspace(0.0, scale.hi - scale.lo, _CDF_POINTS)
    return {
        "rmse": rmse(errors),
        "mae": mae(errors),
        "error_cdf": np.round(np.c_[sizes, error_cdf(errors, sizes)], 6).tolist(),
        "by_popularity": _groups(by_popularity(parts.train, parts.test, errors)),
        "by_activity": _groups(by_activity(parts.train, parts.test, errors)),
    }


def _groups(found: Sequence[tuple[float, int, list[float]]]) -> list[list[float | None]]:
    return [[high, count, _number(one)] for high, count, (one,) in found]


def ranking_figures(model: Model, parts: RankedParts, n_threads: int | None) -> dict[str, Any]:
    """Return the columns of a row that are made of lists."""
    found = evaluate(model, parts.ranked, k=_K, n_threads=n_threads)
    return {name: _number(found[f"{name}@{_K}"]) for name in ("recall", "ndcg", "coverage")}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
