"""Implicit feedback on the command line, from training to recommendations."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    found = answer("recommend", "release", "--ratings", "items.csv", "-k", 3)
    assert found == answer("recommend", "release", "--ratings", "rated.csv", "-k", 3)
    assert len(found["recommendations"]) == 3
    words = command("explain", "release").stdout
    assert "not on how they rated them" in words
    assert "0:1" not in words
    shown = command(*train).stdout
    assert "popularity alone" in shown
    assert "recall@10" in shown


def test_sgd_refuses_implicit_feedback_in_one_line(command: Command, data_folder: Path) -> None:
    done = command("train", data_folder, "--method", "sgd", "--feedback", "implicit")
    assert done.returncode != 0
    assert "sgd learns from ratings only, take --method als" in done.stderr
    assert done.stderr.count("\n") == 1
