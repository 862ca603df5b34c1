"""The demonstration shows what it is meant to show."""

from __future__ import annotations

from pathlib import Path

from dpmf.compare.demo import run_demo
from dpmf.model import Release


def test_the_demonstration_recommends_space_to_somebody_who_loves_space(tmp_path: Path) -> None:
    shown = run_demo(tmp_path / "new" / "demo", n_users=12_000)
    # Noise is fresh in every run: mostly there are four or five, and three in one run of four. Chance would give one.
    assert sum("Space" in genres for _, genres in shown.recommendations) >= 2
    assert not {one.title for one, _ in shown.recommendations} & set(shown.ratings)
    errors = [run.accuracy["rmse"] for run in shown.runs.values()]
    assert errors == sorted(errors, reverse=True)  # the less privacy, the better the predictions
    assert errors[0] < shown.runs[1.0].accuracy["baseline_rmse"]
    assert Release.load(shown.release).guarantee.certified
    assert shown.picture is not None
    assert shown.picture.is_file()
