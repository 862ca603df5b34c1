"""The ranking method on the command line, from training to recommendations."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf.ratings import Ratings

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]

RANKING = ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10")


@pytest.mark.parametrize("epsilon", ["30", "inf"])
def test_from_training_to_recommendations(
    answer: Answer, command: Command, data_folder: Path, epsilon: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train = ["train", data_folder, "--method", "ease", "--epsilon", epsilon, "--holdout", 0.2]
    report = answer(*train, "--out", "release", "--model", "model")
    assert (report["feedback"], report["rmse"], report["by_popularity"]) == ("explicit", None, [])
    assert all(0 < report[name] < 1 for name in RANKING)
    assert report["certified"] == (epsilon == "30")
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["certified"]) == (True, epsilon == "30")
    figures = answer("evaluate", "release", data_folder, "--holdout", 0.2)
    assert "rmse" not in figures
    assert figures["recall@10"] == pytest.approx(report["recall@10"], abs=0.01)  # the same split, and the same weights
    Path("mine.csv").write_text("item,rating\n1,5\n2,1\n")
    found = command("recommend", "release", "--ratings", "mine.csv", "-k", 3, "--json").stdout  # stderr may have a note
    assert len(json.loads(found)["recommendations"]) == 3
    words = command("explain", "release").stdout
    assert "predicts no ratings" in words
    shown = command(*train).stdout
    for said in ("Ranks by pairs of", "popularity alone", "recall@10"):
        assert said in shown


def test_new_users_and_streamed_ratings(answer: Answer, data_folder: Path) -> None:
    train = ["train", data_folder, "--method", "ease", "--epsilon", 30, "--set", "noise_seed=1"]
    figures = {"recall@20", "ndcg@100", "popularity_ndcg@100"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpmf.methods.certified.run.logger.disabled", True)  # seeded noise is warned of
        assert figures <= answer(*train, "--holdout-users", 0.2).keys()
        memory, disk = (answer(*train, "--holdout", 0.2, *more) for more in ((), ("--memory", "1KB")))
    assert (memory["streamed"], disk["streamed"]) == (False, True)
    assert [memory[name] for name in RANKING] == [disk[name] for name in RANKING]


def test_popularity_alone_is_said(command: Command, data_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    done = command("train", data_folder, "--method", "ease", "--epsilon", 0.1)
    assert done.returncode == 0
    assert [message.count("popularity alone") for message in caplog.messages] == [1]
    assert "Ranks by popularity" in done.stdout


def test_settings_of_factorizations_are_refused_in_one_line(command: Command, data_folder: Path) -> None:
    done = command("train", data_folder, "--method", "ease", "--epsilon", 1, "--factors", 8)
    assert done.returncode != 0
    assert "--factors 8 means nothing for ease" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_declared_number_of_users_reaches_the_run_also_from_disk(
    answer: Answer, tmp_path: Path, small_ratings: Ratings
) -> None:
    folder, names = tmp_path / "mine", small_ratings.user_ids.array[small_ratings.users]
    folder.mkdir()
    items = small_ratings.catalogue.ids.array
    rows = zip(names, items[small_ratings.items], small_ratings.values, strict=True)
    (folder / "ratings.csv").write_text("user,item,rating\n" + "".join(f"{u},{i},{v:g}\n" for u, i, v in rows))
    (folder / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in items))
    (folder / "dataset.json").write_text(json.dumps({"scale": [1, 5], "users_about": 150}))
    answer("data", "ingest", folder, tmp_path / "store")
    for number, words in enumerate(((folder,), (folder, "--memory", "1KB"), (tmp_path / "store",))):
        out = tmp_path / f"release-{number}"
        report = answer("train", *words, "--method", "ease", "--epsilon", 30, "--out", out)
        assert any("number of users is public" in one for one in report["assumptions"])
        assert json.loads((out / "release.json").read_text())["configuration"]["n_users"] == 150
