"""The demonstration shows what it is meant to show."""

from __future__ import annotations

from pathlib import Path

from dpmf.compare.demo import run_demo
from dpmf.model import Release


def test_the_demonstration_recommends_space_to_somebody_who_loves_space(tmp_path: Path) -> None:
    shown = run_demo(tmp_path / "new" / "demo")
    # Noise is fresh in every run, and now and then keeps space out of the first five; not out of the upper half.
    release = Release.load(shown.release)
    genres = dict(zip(release.items.ids, release.items.genres, strict=True))
    ranked = release.fold_in(shown.ratings).recommend(k=len(genres))
    places = [place for place, one in enumerate(ranked) if "Space" in genres[one.item]]
    assert sum(places) / len(places) < len(ranked) / 2
    assert [one.score for one, _ in shown.recommendations] == sorted((one.score for one, _ in shown.recommendations))[
        ::-1
    ]
    assert all(one.rating is not None for one, _ in shown.recommendations)
    lists = [run.accuracy["ndcg@10"] for run in shown.runs.values()]
    assert lists[0] > shown.runs[1.0].accuracy["popularity_ndcg@10"]
    assert lists[-1] == max(lists)
    assert not {one.title for one, _ in shown.recommendations} & set(shown.ratings)
    errors = [run.accuracy["rmse"] for run in shown.runs.values()]
    assert errors == sorted(errors, reverse=True)  # the less privacy, the better the predictions
    assert errors[0] < shown.runs[1.0].accuracy["baseline_rmse"]
    assert release.guarantee.certified
    assert shown.picture is not None
    assert shown.picture.is_file()
