"""The whole story on the built-in data: train, test, release, and one person's recommendations.

>>> import tempfile
>>> demo = run_demo(Path(tempfile.mkdtemp()), n_users=80, n_threads=1)
>>> len(demo.recommendations)
5
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dpmf.compare.plots import demo_picture
from dpmf.compare.running import Run, train_and_test
from dpmf.errors import MissingExtra
from dpmf.methods import SGD
from dpmf.methods.sgd import Callback
from dpmf.model import Recommendation, Release
from dpmf.ratings.synthetic import make

# Somebody who loves space and dislikes romance: what they rated, and how.
_PERSON = {
    "The Silent Orbit": 5,
    "The Silent Comet": 5,
    "The Golden Nebula": 4,
    "The Silent Letter": 1,
    "The Golden Waltz": 2,
    "The Silent Picnic": 3,
}


@dataclass(frozen=True, eq=False)
class Demo:
    """What there is to show."""

    run: Run
    ratings: dict[str, int]
    recommendations: list[tuple[Recommendation, str]]
    release: Path
    picture: Path | None


def run_demo(
    folder: Path, *, n_users: int = 3000, n_threads: int | None = None, callbacks: Iterable[Callback] = ()
) -> Demo:
    """Train on synthetic ratings, save release and picture in the folder, and recommend to one person."""
    run = train_and_test(SGD(n_factors=16), make(n_users), holdout=0.1, n_threads=n_threads, callbacks=callbacks)
    folder.mkdir(parents=True, exist_ok=True)
    run.model.release.save(folder / "release")
    release = Release.load(folder / "release")
    person = release.fold_in(_PERSON)
    genres = dict(zip(release.items.ids, release.items.genres, strict=True))
    recommendations = [(one, genres[one.item]) for one in person.recommend(k=5)]
    picture: Path | None = folder / "demo.png"
    try:
        demo_picture(run.model, person, folder / "demo.png")
    except MissingExtra:
        picture = None
    return Demo(run, dict(_PERSON), recommendations, folder / "release", picture)
