"""What a dry run expects of errors: what was recorded, and by which set of ratings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpmf.methods import ALS
from dpmf.privacy import Budget
from dpmf.ratings import Items, Scale
from dpmf.runs.estimate import estimate
from dpmf.runs.expected import REFERENCES, expected_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NAMES = {"MovieLens 100K": "ml-100k", "Anime": "anime"}


def recorded(results: str) -> dict[tuple[str, float], float]:
    rows = [json.loads(line) for line in (RESULTS / f"{results}.jsonl").read_text().splitlines()]
    return {
        (row["name"], float(row["epsilon"])): row["figures"]["rmse"] / row["figures"]["baseline_rmse"]
        for row in rows
        if "baseline_rmse" in row["figures"]
    }


def test_references_are_what_was_recorded() -> None:
    with_traits, without = recorded("als"), recorded("als-without-traits")
    for one in REFERENCES:
        name = NAMES.get(one.name, f"synthetic-{one.people}")
        assert one.share == pytest.approx(without[name, one.epsilon], abs=0.002), one
        if one.with_genres is not None:
            assert one.with_genres == pytest.approx(with_traits[name, one.epsilon], abs=0.002), one


def test_more_people_and_genres_help() -> None:
    for genres in (False, True):
        few, some, many = (expected_of(mass, genres=genres) for mass in (60, 6_000, 600_000))
        assert few is not None
        assert some is not None
        assert many is not None
        assert few.most == 1.0
        assert many.least < some.least < few.least
        assert many.most < some.most < 1
    assert expected_of(1e9, genres=True) is None
    with_genres, without = (expected_of(20_000, genres=genres) for genres in (True, False))
    assert with_genres is not None
    assert without is not None
    assert with_genres.least < without.least


def test_genres_count_where_the_list_of_items_has_them() -> None:
    def expected(genres: list[str] | None, *, traits: bool) -> tuple[float, float] | None:
        items = Items.of(range(4), genres=genres)
        method = ALS(budget=Budget(20.0), traits=traits)
        return estimate(method, items, Scale(1, 5), n_users=1000, n_ratings=0, n_threads=1).rmse_of_baseline

    named = ["Drama", "Comedy", "Drama|Comedy", "(no genres listed)"]
    assert expected(named, traits=True) != expected(named, traits=False)
    assert (
        expected(None, traits=True)
        == expected(["(no genres listed)"] * 4, traits=True)
        == expected(named, traits=False)
    )
