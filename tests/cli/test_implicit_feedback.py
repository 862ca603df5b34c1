"""Implicit feedback on the command line, from training to recommendations."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.model import Release

Answer = Callable[..., dict[str, Any]]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("epsilon", ["5", "inf"])
def test_implicit_feedback_from_training_to_recommendations(
    answer: Answer, command: Command, data_folder: Path, epsilon: str
) -> None:
    train = ["train", data_folder, "--method", "als", "--feedback", "implicit", "--epsilon", epsilon]
    train += ["--factors", 3, "--holdout", 0.2]
    report = answer(*train, "--out", "release")
    assert (report["feedback"], report["rmse"], report["by_popularity"]) == ("implicit", None, [])
    for name in ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10"):
        assert 0 < report[name] < 1
    assert report["certified"] == (epsilon == "5")
    verdict = answer("verify", "release")
    assert (verdict["ok"], verdict["certified"]) == (True, epsilon == "5")
    figures = answer("evaluate", "release", data_folder, "--holdout", 0.2)
    assert "rmse" not in figures
    assert figures["recall@10"] == pytest.approx(report["recall@10"], abs=0.05)
    assert figures["popularity_recall@10"] > 0
    Path("items.csv").write_text("item\n1\n2\n")
    Path("rated.csv").write_text("item,rating\n1,5\n2,anything\n")
    asked = ("recommend", "release", "-k", 3, "--json", "--ratings")
    # Not `answer`: of what stands out from the noise, a line on stderr may speak.
    found, same = (command(*asked, file).stdout for file in ("items.csv", "rated.csv"))
    assert found == same
    assert len(json.loads(found)["recommendations"]) == 3
    words = command("explain", "release").stdout
    assert "not on how they rated them" in words
    assert "0:1" not in words
    shown = command(*train).stdout
    assert "popularity alone" in shown
    assert "recall@10" in shown


def test_sgd_refuses_implicit_feedback_in_one_line(command: Command, data_folder: Path) -> None:
    done = command("train", data_folder, "--method", "sgd", "--feedback", "implicit")
    assert done.returncode != 0
    message = (
        "sgd learns from ratings only, take --method als or ease (with --epsilon inf if nothing has to be private)"
    )
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_counts_from_training_to_recommendations(answer: Answer, command: Command) -> None:
    draw = random.Random(3)
    rows = [(user, item, draw.choice([1, 2, 9])) for user in range(40) for item in draw.sample(range(20), 8)]
    Path("items.csv").write_text("item\n" + "".join(f"{item}\n" for item in range(20)))
    Path("plays.csv").write_text("user,track,plays\n" + "".join(f"{u},{i},{count}\n" for u, i, count in rows))
    Path("log.csv").write_text("user,track\n" + "".join(f"{u},{i}\n" * count for u, i, count in reversed(rows)))
    Path("rated.csv").write_text("user,track,rating\n" + "".join(f"{u},{i},{count}\n" for u, i, count in rows))
    Path("once.csv").write_text("user,track\n" + "".join(f"{u},{i}\n" for u, i, _ in rows))
    Path("mine.csv").write_text("item,count\n1,9\n2,1\n2,3\n")
    Path("have.csv").write_text("item,rating\n1,5\n2,anything\n")
    found, columns = {}, ["--columns", "item=track"]
    for data in ("plays.csv", "log.csv", "rated.csv"):
        train = ["train", data, *columns, "--feedback", "implicit", "--epsilon", "inf", "--items", "items.csv"]
        report = answer(*train, "--out", data.removesuffix(".csv"))
        assert report["method"] == "ease"
        lists = [answer("recommend", data.removesuffix(".csv"), "--ratings", file) for file in ("mine.csv", "have.csv")]
        assert (lists[0] != lists[1]) == (data != "rated.csv")  # where ratings are not looked at, nor counts
        found[data] = lists
    assert found["plays.csv"] == found["log.csv"] != found["rated.csv"]
    figures = [answer("evaluate", "plays", data, *columns) for data in ("rated.csv", "once.csv", "plays.csv")]
    assert figures[0] == figures[1] != figures[2]
    for bad, message in (("1,0", "the count 0 of '1' is not a number above 0"), ("1,x", "count 1 should be an item")):
        Path("bad.csv").write_text(f"item,count\n{bad}\n")
        done = command("recommend", "plays", "--ratings", "bad.csv")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert message in done.stderr


def test_counts_are_refused_where_ratings_are_learnt_from(command: Command, data_folder: Path) -> None:
    Path("plays.csv").write_text("user,item,plays\n1,1,4\n1,2,3\n2,1,5\n")
    message = "these are counts, not ratings: learn from them with --feedback implicit, and --method ease or als"
    for words in ("train plays.csv --method als --epsilon inf", "simulate plays.csv --epsilon 1 --items-public"):
        done = command(*words.split())
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert message in done.stderr
    command("train", data_folder, "--method", "sgd", "--factors", 1, "--epochs", 1, "--out", "release")
    done = command("evaluate", "release", "plays.csv")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "plays.csv has counts, not ratings" in done.stderr


@pytest.mark.parametrize("epsilon", ["5", "inf"])
def test_factors_go_by_counts_as_asked(answer: Answer, command: Command, epsilon: str) -> None:
    draw = random.Random(3)
    rows = [(user, item, draw.choice([1, 2, 30])) for user in range(60) for item in draw.sample(range(20), 8)]
    Path("items.csv").write_text("item\n" + "".join(f"{item}\n" for item in range(20)))
    Path("plays.csv").write_text("user,track,plays\n" + "".join(f"{u},{i},{count}\n" for u, i, count in rows))
    line = [
        "--columns",
        "item=track",
        "--items",
        "items.csv",
        "--method",
        "als",
        "--feedback",
        "implicit",
        "--factors",
        "3",
        "--epochs",
        "3",
    ]
    line += ["--epsilon", epsilon]
    seeded = [*line, "--set", "noise_seed=1"] if epsilon == "5" else line
    found = {}
    for how in ("log", "linear", "ignored"):
        answer("train", "plays.csv", *seeded, *([] if how == "log" else ["--set", f"counts={how}"]), "--out", how)
        facts = json.loads(Path(how, "release.json").read_text())
        stated = (3, None) if how == "ignored" else (5, {"linear": how == "linear", "most": 16.0})
        assert (facts["version"], facts.get("counts")) == stated
        release = Release.load(how)
        assert release.weighs_counts == (how != "ignored")
        found[how], turned = (release.fold_in({1: one, 2: other}).factors for one, other in ((30, 1), (1, 30)))
        assert np.array_equal(found[how], turned) == (how == "ignored")
        assert np.array_equal(found[how], release.fold_in({1: 16, 2: 1}).factors)  # more weighs no more
        assert answer("evaluate", how, "plays.csv", "--columns", "item=track")["recall@10"] > 0
    assert not np.array_equal(found["log"], found["linear"])
    if epsilon == "5":
        assert answer("train", "plays.csv", *seeded, "--memory", "1KB", "--out", "disk")["streamed"]
        assert Path("disk/release.safetensors").read_bytes() == Path("log/release.safetensors").read_bytes()
        answer("train", "plays.csv", *line, "--out", "certified")
        assert answer("verify", "certified")["ok"]
    Path("rated.csv").write_text("user,track,rating\n1,1,4\n1,2,3\n2,1,5\n")
    refusals = {
        "counts=linear": "--set counts=linear is for counts, and the data have none: name their column, such as",
        "most_count=9": "most_count=9 is for counts, and the data have none",
        "counts=root": "--set counts=root is not known: choose log, linear or ignored",
        "most_count=0.5": "most_count=0.5 should be from 1 to",
    }
    for setting, message in refusals.items():
        done = command("train", "rated.csv", *line, "--set", setting)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert message in done.stderr
