"""A demonstration on built-in data: train privately and not, test, release, and one person's recommendations.

>>> import tempfile
>>> demo = run_demo(Path(tempfile.mkdtemp()), n_users=80, n_threads=1)
>>> len(demo.recommendations)
5
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dpmf.compare.plots import demo_picture
from dpmf.errors import MissingExtra
from dpmf.methods import Joint
from dpmf.methods.base import Callback
from dpmf.model import Recommendation, Release
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make
from dpmf.runs.training import Run, train_and_test

EPSILONS = (1.0, 2.0, 5.0, math.inf)
_PUBLISHED = 5.0
_N_USERS = 20_000
_N_FACTORS = 8  # of all runs alike; more would only fit the few hundred ratings of an item too closely without noise

# Somebody who loves space and dislikes romance: what they rated, and how.
_PERSON = {
    "The Electric Pulsar": 5,
    "The Paper Pulsar": 5,
    "The Crimson Nebula": 5,
    "The Last Airlock": 4,
    "The Last Letter": 1,
    "The Silent Promise": 1,
}


@dataclass(frozen=True, eq=False)
class Demo:
    """What there is to show.

    Attributes:
        runs: by epsilon; infinity is not private.
        ratings: what somebody rated, and how.
        recommendations: what the release says to that, with genres.
        release: where the private release is, the one of 5.
        picture: where the picture is, if there is one.
    """

    runs: dict[float, Run]
    ratings: dict[str, int]
    recommendations: list[tuple[Recommendation, str]]
    release: Path
    picture: Path | None


def run_demo(
    folder: Path, *, n_users: int = _N_USERS, n_threads: int | None = None, callbacks: Iterable[Callback] = ()
) -> Demo:
    """Train on synthetic ratings, save release and picture in the folder, and recommend to one person."""
    ratings = make(n_users)
    methods = {epsilon: Joint(budget=Budget(epsilon), n_factors=_N_FACTORS) for epsilon in EPSILONS}
    runs = {
        epsilon: train_and_test(method, ratings, holdout=0.1, n_threads=n_threads, callbacks=callbacks)
        for epsilon, method in methods.items()
    }
    run = runs[_PUBLISHED]
    folder.mkdir(parents=True, exist_ok=True)
    run.model.release.save(folder / "release")
    release = Release.load(folder / "release")
    person = release.fold_in(_PERSON)
    genres = dict(zip(release.items.ids, release.items.genres, strict=True))
    recommendations = [(one, genres[one.item]) for one in person.recommend(k=5)]
    picture: Path | None = folder / "demo.png"
    try:
        demo_picture(run.model, person, [one.title for one, _ in recommendations], _panels(runs), folder / "demo.png")
    except MissingExtra:
        picture = None
    return Demo(runs, dict(_PERSON), recommendations, folder / "release", picture)


def _panels(runs: dict[float, Run]) -> dict[str, tuple[dict[float, float], str, float]]:
    """Return what the picture shows against epsilon: title → figures, and a reference with its figure."""
    accuracy = runs[_PUBLISHED].accuracy
    shown = {
        "Error of ratings (rmse, lower is better)": ("rmse", "per-user mean", "baseline_rmse"),
        "Personal lists (ndcg@10, higher is better)": ("ndcg@10", "most popular, private", "popularity_ndcg@10"),
    }
    return {
        title: ({epsilon: run.accuracy[figure] for epsilon, run in runs.items()}, name, accuracy[reference])
        for title, (figure, name, reference) in shown.items()
    }
