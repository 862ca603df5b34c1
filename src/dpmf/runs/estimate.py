"""What a certified run would cost and could find, from public facts alone: no rating is read, and nothing is spent.

The plan of the run says what would be released, with how much noise. What that is good for was measured on public
ratings, and depends most on epsilon times the number of people. Only how much memory and time a run takes may follow
from the size of a file of ratings, for the holder of the data.

>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings import Items, Scale
>>> als, items, scale = ALS(budget=Budget(1.0)), Items.of(range(2000)), Scale(1, 5)
>>> found = estimate(als, items, scale, n_users=6000, n_ratings=0, n_threads=2)
>>> found.factors, [round(share, 2) for share in found.rmse_of_baseline], found.references[2]
(2, [0.88, 0.96], 'MovieLens 100K at epsilon 5')
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpmf.engine.resources import BESIDE_SUMS
from dpmf.errors import InvalidArgument
from dpmf.methods import Method
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.ease.defaults import MOST_HEAD
from dpmf.model.learnt import BEYOND
from dpmf.privacy import GaussianEvent, Guarantee
from dpmf.ratings import Items, Scale
from dpmf.runs.expected import Expected, expected_of

RATINGS_EACH = 100
"""Ratings of a person, where nothing says how many there are."""
_PROGRAM = 250e6  # bytes that Python and its libraries take
_PER_RATING = 40  # bytes in memory while ratings are read and laid out
_START, _PER_MILLION, _PER_MATRIX_ENTRY = 4.0, 2.5, 4e-7  # seconds, on two threads
_MATRICES = 6  # as large as that of all pairs
_UNSURE = 2.0  # times as long, or half as long, as estimated
_ITEMS_EACH = 25  # items of a person of whom popularity is made, in the example
_RATED = ("als", "joint")


@dataclass(frozen=True)
class Estimate:
    """What to expect of a run.

    Attributes:
        items, users, ratings: how many there are; users are None if nobody declared them, and ratings are estimated.
        releases: what would be released, with which noise: of each event its name, noise multiplier and numbers.
        factors, head: how many factors are measured, and items of which pairs are; None if that depends on how many
            people there are.
        factors_from_pairs: how many factors at most are made of pairs, where there are any.
        linked: between titles that belong together, how many pairs are measured for themselves; with these, more items
            than the head may get pairs.
        popular_from: about how many people, with 25 items each, an item takes for its popularity to be known.
        memory: bytes, at most about.
        seconds: at least and at most about.
        rmse_of_baseline: the least and the most that the error of ratings was, relative to that of the per-user mean,
            with about as much epsilon times people; None if nobody knows.
        references: where that was measured, the nearest.
        guarantee: of the release.
    """

    items: int
    users: int | None
    ratings: int
    releases: tuple[tuple[str, float, int], ...]
    factors: int | None
    head: int | None
    factors_from_pairs: int
    linked: int
    popular_from: float | None
    memory: float
    seconds: tuple[float, float]
    rmse_of_baseline: tuple[float, float] | None
    references: tuple[str, ...]
    guarantee: Guarantee

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        names = ("what", "noise_multiplier", "numbers")
        found = {name: value for name, value in asdict(self).items() if name != "guarantee"}
        terms = {name: getattr(self.guarantee, name) for name in ("epsilon", "delta", "unit", "neighbours")}
        found["releases"] = [dict(zip(names, one, strict=True)) for one in self.releases]
        return {"dry_run": True, **terms, **found}


def estimate(
    method: Method, catalogue: Items, scale: Scale, *, n_users: int | None, n_ratings: int, n_threads: int
) -> Estimate:
    """Return what to expect of a certified run.

    Args:
        method: configured.
        catalogue: of items, which is public.
        scale: of ratings.
        n_users: about how many people there are, if that is public.
        n_ratings: about how many ratings there are; 0 for `RATINGS_EACH` of each person.
        n_threads: of the run.
    """
    if not isinstance(method, CertifiedMethod) or method.kind != "certified":
        raise InvalidArgument("a dry run is about certified runs: choose a method that has them, and a finite epsilon")
    n_ratings = n_ratings or RATINGS_EACH * (n_users or 0)
    plan: Any = method.plan_of(catalogue, scale)
    budget, events = plan.guaranteed()
    ranking, rating = getattr(plan, "ranking", plan), getattr(plan, "ratings", plan)
    ranks, factors, head = hasattr(ranking, "head_for"), None, None
    if n_users is not None:
        head = ranking.head_for(n_users) if ranks else None
        factors = rating.n_factors(n_users) if callable(getattr(rating, "n_factors", None)) else plan.most_factors
    largest = head if head is not None else getattr(ranking, "most_head", 0)
    if getattr(ranking, "measures_links", False):
        largest = max(largest, min(len(catalogue), MOST_HEAD))
    expected = _expected(method, catalogue, budget.epsilon, n_users)
    return Estimate(
        items=len(catalogue),
        users=n_users,
        ratings=n_ratings,
        releases=tuple((one.what, getattr(one, "noise_multiplier", math.nan), one.coordinates) for one in events),
        factors=factors,
        head=head,
        factors_from_pairs=getattr(rating, "given", 0) if ranks and head != 0 else 0,
        linked=ranking.n_links if getattr(ranking, "measures_links", False) else 0,
        popular_from=_popular_from(events, "item popularity" if ranks or method.is_implicit else "item weights"),
        memory=_memory(plan, largest, n_ratings, n_users or 0, len(catalogue), n_threads),
        seconds=_seconds(n_ratings, largest, n_threads),
        rmse_of_baseline=None if expected is None else (expected.least, expected.most),
        references=() if expected is None else expected.references,
        guarantee=Guarantee.certified_by(budget, events, releases=method.releases),
    )


def _popular_from(events: Any, what: str) -> float | None:
    """Return about how many people it takes for a noisy sum of 1/√n, of n items each, to stand out."""
    event = next((one for one in events if one.what == what and isinstance(one, GaussianEvent)), None)
    return None if event is None else BEYOND * event.noise_multiplier * math.sqrt(_ITEMS_EACH)


def _memory(plan: Any, head: int, n_ratings: int, n_users: int, n_items: int, n_threads: int) -> float:
    sums = 8 * int(plan.sum_size)
    matrices = 4 * _MATRICES * head**2  # in single precision, while the matrix of pairs is estimated
    factors = 4 * (int(plan.most_factors) + 1) * (n_users + n_items)
    return _PROGRAM + _PER_RATING * n_ratings + (BESIDE_SUMS + n_threads) * sums + matrices + 2 * factors


def _seconds(n_ratings: int, head: int, n_threads: int) -> tuple[float, float]:
    of_ratings = _PER_MILLION * n_ratings / 1e6 * 2 / max(n_threads, 1)
    likely = _START + of_ratings + _PER_MATRIX_ENTRY * head**2
    return likely / _UNSURE, likely * _UNSURE


def _expected(method: CertifiedMethod, catalogue: Items, epsilon: float, n_users: int | None) -> Expected | None:
    if n_users is None or method.name not in _RATED:
        return None
    genres = getattr(method, "traits", False) and bool(catalogue.genre_table.numbers)
    return expected_of(epsilon * n_users, genres=genres)
