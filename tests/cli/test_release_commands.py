"""`dpmf evaluate`, `recommend`, `similar` and `explain`: what can be done with a release."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.store import StoredRatings
from dpmf.evaluation import evaluate
from dpmf.model import Ranking, Release
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


def test_evaluate_measures_what_the_library_measures(
    answer: Answer, data_folder: Path, release_folder: Path, small_ratings: Ratings
) -> None:
    report = answer("evaluate", release_folder, data_folder, "--holdout", 0.2, "--seed", 3)
    known, test = small_ratings.split(0.2, seed=3)
    expected = evaluate(Release.load(release_folder), test, known=known)
    assert {"rmse", "mae", "recall@10", "ndcg@10"} <= set(report)
    assert {name: report[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert report["baseline_rmse"] > report["rmse"]


def test_evaluate_uses_the_scale_of_the_release_to_the_last_digit(answer: Answer, tmp_path: Path) -> None:
    rows = [f"{user},{item},{1234567 + (user * item) % 7}" for user in range(12) for item in range(8)]
    (tmp_path / "wide.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    answer("train", "wide.csv", "--method", "sgd", "--epochs", 1, "--out", "r")
    assert answer("evaluate", "r", "wide.csv", "--holdout", 0.3)["rmse"] < 7


def test_recommend_is_a_fold_in(answer: Answer, release_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("item,rating\nThe Silent Orbit,5\n2,1.5\n")
    report = answer("recommend", release_folder, "--ratings", "mine.csv", "-k", 4)
    expected = Release.load(release_folder).fold_in({"The Silent Orbit": 5, 2: 1.5}).recommend(4)
    assert report == {"recommendations": [one.to_json() for one in expected], "ordered_by": "factors"}
    assert len(expected) == 4


def test_recommend_obeys_choices_and_reports_unknown_items(
    command: Command, release_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text("\ufeffThe Silent Orbit,5\nNever Made,2\n", encoding="utf-8")
    words = ["--only", 1, "--only", 2, "--only", 3, "--exclude", 2, "--include-rated", "--json"]
    done = command("recommend", release_folder, "--ratings", "mine.csv", *words)
    assert {one["item"] for one in json.loads(done.stdout)["recommendations"]} == {1, 3}
    assert done.stderr == "dpmf: 1 rated items are not in the catalogue and were left out\n"
    nothing = command("recommend", release_folder, "--ratings", "mine.csv", "--only", 1)
    assert (nothing.returncode, nothing.stdout) == (0, "nothing is left to recommend\n")


def test_recommend_filters_by_items_in_files_and_by_genres(
    command: Command, answer: Answer, release_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text("The Silent Orbit,5\n")
    (tmp_path / "some.txt").write_text("\ufeff2\n 3 \n\nThe Silent Vault\n", encoding="utf-8")
    asked = ("recommend", release_folder, "--ratings", "mine.csv", "-k", 20)
    library = Release.load(release_folder).fold_in({"The Silent Orbit": 5})

    def expected(**choice: Any) -> dict[str, Any]:
        found = [one.to_json() for one in library.recommend(20, **choice)]
        return {"recommendations": found, "ordered_by": "factors"}

    some = ["2", "3", "The Silent Vault"]
    assert answer(*asked, "--only", "@some.txt", "--only", 5) == expected(only=[*some, "5"])
    assert answer(*asked, "--exclude", "@some.txt") == expected(exclude=some)
    words = ["--only-genre", "Space", "--only-genre", "Heist", "--exclude-genre", "Comedy", "--most-per-genre", 3]
    choice = {"only_genres": ["Space", "Heist"], "exclude_genres": ["Comedy"], "most_per_genre": 3}
    assert answer(*asked, *words) == expected(**choice)
    assert 0 < len(expected(**choice)["recommendations"]) < 20
    nothing = ["--only-genre", "Space", "--exclude-genre", "Space"]
    assert answer(*asked, *nothing)["recommendations"] == []
    assert command(*asked, *nothing).stdout == "nothing is left to recommend\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "Silent Orb"], "item 'Silent Orb' is not in the catalogue: did you mean 'The Silent Orbit'?"),
        (["--exclude", "@none.txt"], "cannot read --exclude @none.txt, a text file of one item per line"),
        (["--only-genre", "space"], "no item has the genre 'space': did you mean 'Space'?"),
        (["--most-per-genre", 0], "most_per_genre=0: allow at least 1 item of a genre"),
    ],
)
def test_filters_that_cannot_be_applied_end_with_one_line(
    command: Command, release_folder: Path, tmp_path: Path, words: list[object], message: str
) -> None:
    (tmp_path / "mine.csv").write_text("The Silent Orbit,5\n")
    done = command("recommend", release_folder, "--ratings", "mine.csv", *words)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_release_that_only_ranks(
    answer: Answer, command: Command, data_folder: Path, release_folder: Path, ranking_of: Callable[..., Ranking]
) -> None:
    loaded = Release.load(release_folder)
    n_items = len(loaded.items)
    factors, biases = np.zeros((n_items, 0), np.float32), np.zeros(n_items, np.float32)
    ranked = replace(loaded, item_factors=factors, item_biases=biases, ranking=ranking_of(n_items))
    ranked.save("ranked")
    Path("mine.csv").write_text("The Silent Orbit,5\n2,4\n")
    expected = ranked.fold_in({"The Silent Orbit": 5, "2": 4}).recommend(4)
    asked = ("recommend", "ranked", "--ratings", "mine.csv", "-k", 4)
    assert answer(*asked) == {"recommendations": [one.to_json() for one in expected], "ordered_by": "pairs"}
    assert "rating" not in command(*asked).stdout
    figures = answer("evaluate", "ranked", data_folder, "--holdout", 0.2)
    assert set(figures) == {
        *("recall@10", "ndcg@10", "hit_rate@10", "coverage@10", "popularity_recall@10", "popularity_ndcg@10"),
    }
    assert answer("verify", "ranked")["ok"]
    assert "It predicts no ratings." in command("explain", "ranked").stdout
    replace(loaded, ranking=ranking_of(n_items)).save("both")
    assert "rating" in command("recommend", "both", "--ratings", "mine.csv").stdout
    assert {"rmse", "baseline_rmse", "popularity_recall@10"} <= set(answer("evaluate", "both", data_folder))


def test_similar_finds_by_id_and_by_title(answer: Answer, release_folder: Path) -> None:
    by_id = answer("similar", release_folder, 1, "-k", 3)
    assert by_id == answer("similar", release_folder, "The Silent Orbit", "-k", 3)
    expected = Release.load(release_folder).similar_items(1, 3)
    assert by_id == {"recommendations": [one.to_json() for one in expected]}


def test_tables_hold_titles_and_scores(command: Command, release_folder: Path) -> None:
    done = command("similar", release_folder, 1, "-k", 2)
    best = Release.load(release_folder).similar_items(1, 1)[0]
    assert best.title in done.stdout
    assert f"{best.score:.4f}" in done.stdout


def test_explain_says_that_nothing_is_guaranteed(command: Command, answer: Answer, release_folder: Path) -> None:
    done = command("explain", release_folder)
    assert "not private" in done.stdout
    assert "do not publish it" in done.stdout
    report = answer("explain", release_folder)
    assert (report["epsilon"], report["delta"], report["mode"], report["certified"]) == (None, None, "none", False)
    assert (report["items"], report["factors"]) == (60, 4)


def test_a_release_that_learnt_nobodys_taste_says_so(command: Command, tmp_path: Path) -> None:
    ratings = make(200, 300, mean_ratings=20)
    StoredRatings.build(MemorySource(ratings), tmp_path / "few")
    for method in ("als", "ease", "joint"):
        line = ("train", "few", "--method", method, "--epsilon", 1, "--set", "noise_seed=1")
        done = command(*line, "--out", method)
        assert "Beyond noise: no factors, no pairs of items" in done.stdout
        assert "Warning: the release knows nothing beyond" in done.stdout
        report = json.loads(command(*line, "--json").stdout)
        assert report["learnt"]["factors"] == report["learnt"]["pairs"] == 0
        assert report["learnt"]["lack"].startswith("nothing beyond")
        alike = command("similar", method, 3)
        assert (alike.returncode, alike.stdout, alike.stderr.count("\n")) == (1, "", 1)
        assert "nothing beyond noise is known about items like '3'" in alike.stderr


def test_a_list_that_is_the_same_for_everybody_says_so(command: Command, release_folder: Path, tmp_path: Path) -> None:
    loaded, n_items = Release.load(release_folder), 60
    popular = replace(loaded, ranking=Ranking.by_popularity(np.arange(n_items)))
    alike = replace(loaded, item_biases=np.zeros(n_items, np.float32), item_factors=np.zeros((n_items, 1), np.float32))
    popular.save("popular")
    alike.save("alike")
    Path("mine.csv").write_text("item,rating\n2,5\n")
    done = command("recommend", "popular", "--ratings", "mine.csv", "--json")
    assert json.loads(done.stdout)["ordered_by"] == "popularity"
    assert done.stderr == "dpmf: nothing personal: the list is by popularity, as it is for everybody\n"
    nothing = command("recommend", "alike", "--ratings", "mine.csv")
    assert (nothing.returncode, nothing.stdout, nothing.stderr.count("\n")) == (1, "", 1)
    assert "alike cannot recommend anything" in nothing.stderr
