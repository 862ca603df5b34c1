"""`dpmf audit`: verdict, exit code, JSON, report, and one clear line for what it cannot do."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]

QUICK = ("--parts", "sensitivity", "--seed", "1")


def test_a_method_is_audited_in_words(command: Command) -> None:
    result = command("audit", "ease", "--epsilon", "1", *QUICK)
    assert result.returncode == 0, result.stderr
    assert "epsilon 1: synthetic ratings, head=40 for the audit" in result.stdout
    assert "Exact sensitivity: passed" in result.stdout
    assert "item pairs" in result.stdout
    assert "Verdict: no violation found" in result.stdout


def test_json_is_one_object_and_a_report_one_page(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    result = command(
        "audit", "ease", "--epsilon", "1", "--parts", "two_worlds", "--runs", "10", "--json", "--report", page
    )
    found = json.loads(result.stdout)
    # Noise is fresh here, and an audit errs once in a thousand times.
    assert result.returncode == (0 if found["ok"] else 1), result.stderr
    assert (found["verdict"] == "no violation found", found["epsilon"]) == (found["ok"], 1.0)
    assert found["parts"]["two_worlds"]["runs_per_world"] == 10
    assert page.read_text().startswith("<!doctype html>")


def test_a_violated_claim_ends_with_exit_code_one(command: Command) -> None:
    result = command(
        "audit", "sketch", "--mode", "paper", "--epsilon", "2", "--parts", "two_worlds", "--runs", "10", "--json"
    )
    assert result.returncode == 1
    assert json.loads(result.stdout)["verdict"] == "claim violated"
    assert result.stderr.startswith("dpmf: claim violated: ")


def test_a_release_is_audited_with_its_own_budget(command: Command, data_folder: Path, tmp_path: Path) -> None:
    trained = command("train", data_folder, "--method", "ease", "--epsilon", "3", "--out", tmp_path / "release")
    assert trained.returncode == 0, trained.stderr
    result = command("audit", tmp_path / "release", *QUICK, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["method"], found["epsilon"]) == ("ease", 3.0)
    assert found["parts"]["release"]["ok"]
    refused = command("audit", tmp_path / "release", "--epsilon", "3")
    assert refused.returncode == 1
    assert "--epsilon cannot be given with a release" in refused.stderr


def test_given_ratings_are_audited(command: Command, data_folder: Path) -> None:
    result = command("audit", "ease", "--epsilon", "1", "--data", data_folder, "--set", "head=5", *QUICK, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["configuration"]["head"] == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("als",), "als needs --epsilon"),
        (("als", "--epsilon", "inf"), "als needs --epsilon"),
        (("als", "--epsilon", "-1"), "--epsilon -1"),
        (("sgd", "--epsilon", "1"), "sgd guarantees nothing"),
        (("als", "--mode", "paper", "--epsilon", "1"), "no paper makes a claim about als"),
        (("nowhere", "--epsilon", "1"), "'nowhere' is neither a method nor a release"),
        (("als", "--epsilon", "1", "--parts", "luck"), "part 'luck' is not known"),
        (("ease", "--epsilon", "1", "--factors", "3"), "--factors 3 means nothing for ease"),
        (("sgld", "--epsilon", "1", "--feedback", "implicit"), "sgld learns from ratings only"),
        (("als", "--epsilon", "1", "--set", "speed=9"), "als has no setting 'speed'"),
        (("als", "--epsilon", "1", "--data", "nowhere.csv"), "nowhere.csv"),
        (("als", "--epsilon", "1", "--scale", "1:5"), "--scale says how to read --data"),
        (("als", "--epsilon", "1", "--no-header"), "--header says how to read --data"),
        (("als", "--epsilon", "1", "--report", "nowhere/audit.html"), "--report nowhere/audit.html cannot be written"),
    ],
)
def test_bad_input_gets_one_clear_line(command: Command, arguments: tuple[str, ...], words: str) -> None:
    result = command("audit", *arguments)
    assert result.returncode != 0
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_no_report_is_left_where_nothing_could_be_audited(command: Command, tmp_path: Path) -> None:
    command("audit", "als", "--report", tmp_path / "audit.html")
    assert not list(tmp_path.iterdir())
