"""A comparison in a folder: it knows what it compares, and lets nothing else be mixed in."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf.compare.comparison import FACTS, Comparison
from dpmf.compare.sweep import Sweep, points_of
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.methods.objective.profiles import Profiles
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

PLAN = Sweep(
    points_of(["als"], ["certified"], [5.0]),
    repeats=1,
    settings={"als": {"n_factors": 2, "n_epochs": 1}, "sgd": {"n_factors": 2, "n_epochs": 1}},
)


def run(folder: Path, plan: Sweep, ratings: Ratings) -> int:
    with Comparison.open(folder, plan, ratings, command="dpmf compare") as comparison:
        return len(comparison.run(n_threads=1))


def test_the_same_comparison_resumes_and_may_grow(small_ratings: Ratings, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "one"
    assert run(folder, PLAN, small_ratings) == 7
    began = json.loads((folder / FACTS).read_text())["began"]
    more = replace(PLAN, points=points_of(["als"], ["certified"], [5.0, 9.0]), repeats=2)
    assert run(folder, more, small_ratings) == 18
    assert json.loads((folder / FACTS).read_text())["began"] == began


def test_the_folder_is_for_its_owner_alone(small_ratings: Ratings, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    run(tmp_path / "one", PLAN, small_ratings)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "other seed"),
        ({"holdout": 0.2}, "other holdout"),
        ({"delta": 1e-5}, "other delta"),
        ({"neighbours": "replace"}, "other neighbours"),
        ({"settings": {"als": {"n_factors": 3}}}, "other settings of methods"),
        ({"items_public": True}, "other public items"),
        ({"how": "per-user"}, "other splits"),
    ],
)
def test_another_comparison_is_refused(
    small_ratings: Ratings, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    run(tmp_path / "one", PLAN, small_ratings)
    before = sorted((file.name, file.read_bytes()) for file in (tmp_path / "one").iterdir())
    with pytest.raises(InvalidArgument, match=words):
        run(tmp_path / "one", replace(PLAN, **change), small_ratings)
    assert sorted((file.name, file.read_bytes()) for file in (tmp_path / "one").iterdir()) == before


def test_other_profiles_are_refused(small_ratings: Ratings, tmp_path: Path) -> None:
    users = list(small_ratings.user_ids)

    def plan(value: float) -> Sweep:
        points = points_of(["objective"], ["certified"], [5.0], with_profiles=True)
        profiles = Profiles.public(users, [[value, 0.1]] * len(users))
        return Sweep(points, repeats=1, profiles=profiles, settings={"sgd": {"n_epochs": 1}})

    assert run(tmp_path / "one", plan(0.5), small_ratings) == 6
    assert run(tmp_path / "one", plan(0.5), small_ratings) == 6
    with pytest.raises(InvalidArgument, match="other profiles"):
        run(tmp_path / "one", plan(0.6), small_ratings)


def test_a_split_by_time_depends_on_times(tmp_path: Path) -> None:
    users, items, values = [1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3], [1, 5, 3, 2, 4, 3]
    plan = Sweep((), repeats=1, how="last", holdout=1, settings={"sgd": {"n_factors": 2, "n_epochs": 1}})
    run(tmp_path / "one", plan, Ratings.of(users, items, values, [1, 2, 3, 1, 2, 3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="other ratings"):
        run(tmp_path / "one", plan, Ratings.of(users, items, values, [3, 2, 1, 3, 2, 1], scale=(1, 5)))


def test_rows_of_nobody_knows_what_are_not_adopted(small_ratings: Ratings, tmp_path: Path) -> None:
    run(tmp_path / "one", PLAN, small_ratings)
    (tmp_path / "one" / FACTS).unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        run(tmp_path / "one", PLAN, small_ratings)


def test_a_folder_without_a_row_is_free(small_ratings: Ratings, tmp_path: Path) -> None:
    with Comparison.open(tmp_path / "one", PLAN, small_ratings, command=""):
        pass
    assert run(tmp_path / "one", replace(PLAN, holdout=0.3), small_ratings) == 7


def test_what_a_killed_run_left_is_cleared_and_pictures_may_stay(small_ratings: Ratings, tmp_path: Path) -> None:
    run(tmp_path / "one", PLAN, small_ratings)
    for name in (".report.html.k3j4_abc", ".comparison.json.abcdefgh", "errors.svg"):
        (tmp_path / "one" / name).write_text("")
    run(tmp_path / "one", PLAN, small_ratings)
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == [".lock", FACTS, "errors.svg", "runs.csv"]


def test_nothing_is_touched_in_a_folder_that_is_refused(small_ratings: Ratings, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir(mode=0o755)
    (pictures / "accuracy.png").write_text("mine")
    (pictures / "holiday.pdf").write_text("mine")
    with pytest.raises(InvalidArgument, match="holds other files"):
        run(pictures, PLAN, small_ratings)
    assert (pictures / "accuracy.png").read_text() == "mine"
    assert stat.S_IMODE(pictures.stat().st_mode) == 0o755
    run(tmp_path / "one", PLAN, small_ratings)
    (tmp_path / "one" / ".runs.csv.backup12").write_text("mine")
    with pytest.raises(InvalidArgument, match="other holdout"):
        run(tmp_path / "one", replace(PLAN, holdout=0.2), small_ratings)
    assert (tmp_path / "one" / ".runs.csv.backup12").read_text() == "mine"


def test_other_ratings_and_other_folders_are_refused(small_ratings: Ratings, tmp_path: Path) -> None:
    run(tmp_path / "one", PLAN, small_ratings)
    with pytest.raises(InvalidArgument, match="other ratings"):
        run(tmp_path / "one", PLAN, make(120, 60, mean_ratings=25, seed=1))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidArgument, match="holds other files"):
        run(tmp_path / "mine", PLAN, small_ratings)
    for content in (
        '{"format": "dpmf-comparison"}',
        '{"format": "dpmf-comparison", "identity": [], "began": ""}',
        '{"format": "dpmf-comparison", "identity": {}}',
        "[]",
    ):
        (tmp_path / "one" / FACTS).write_text(content)
        with pytest.raises(DamagedFile, match="not the record of a comparison"):
            run(tmp_path / "one", PLAN, small_ratings)


def test_two_processes_do_not_write_to_one_folder(small_ratings: Ratings, tmp_path: Path) -> None:
    with (
        Comparison.open(tmp_path / "one", PLAN, small_ratings, command=""),
        pytest.raises(InvalidArgument, match="another process"),
    ):
        run(tmp_path / "one", PLAN, small_ratings)
