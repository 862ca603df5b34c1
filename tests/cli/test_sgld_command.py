"""`dpmf train --method sgld`: claims, chains, and what is refused."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.engine.store import StoredRatings
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

Command = Callable[..., subprocess.CompletedProcess[str]]
PAPER = ("--method", "sgld", "--mode", "paper", "--items-public", "--epochs", "10", "--factors", "4")


def test_a_claim_is_reported_as_a_claim(command: Command, data_folder: Path, tmp_path: Path) -> None:
    wishes = tmp_path / "wishes.csv"
    wishes.write_text("user,epsilon\nperson-00001,10\nperson-00002,0\n")
    out = tmp_path / "release"
    options = (*PAPER, "--epsilon", "200", "--holdout", "0.1", "--user-budgets", wishes)
    report = json.loads(command("train", data_folder, *options, "--out", out, "--json").stdout)
    assert (report["method"], report["mode"], report["epsilon"], report["certified"]) == ("sgld", "paper", 200, False)
    assert any("converged" in one for one in report["assumptions"])
    paid = report["user_epsilons"]
    assert paid["add-remove"]["least"] == 0
    assert paid["add-remove"]["median"] == paid["claimed"]["median"] / 2
    assert paid["rating"]["claimed"] == 2
    assert "convergence" not in report
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["recomputed_epsilon"], verdict["ok"]) == (False, None, True)
    assert "It rests on" in command("explain", out).stdout
    shown = command("train", data_folder, *options).stdout
    for words in ("paper claim, not certified", "What users pay", "guarantees nothing", "no guarantee covers them"):
        assert words in shown


def test_a_certified_run_is_certified(command: Command, data_folder: Path, tmp_path: Path) -> None:
    wishes, out = tmp_path / "wishes.csv", tmp_path / "release"
    wishes.write_text("person-00002,0\n")
    line = "--method sgld --items-public --epochs 5 --factors 2 --epsilon 4 --holdout 0.1"
    options = line.split()
    done = command("train", data_folder, *options, "--user-budgets", wishes, "--out", out, "--json")
    report = json.loads(done.stdout)
    assert (report["method"], report["mode"], report["certified"]) == ("sgld", "certified", True)
    assert report["epsilon"] <= 4
    assert (report["user_epsilons"]["least"], report["user_epsilons"]["most"]) == (0, 4)
    assert json.loads(command("verify", out, "--json").stdout)["ok"] is True
    shown = command("explain", out).stdout
    assert "a sum over a random sample (each with probability 0.2), released at most 5 times" in shown
    shown = command("train", data_folder, *options, "--user-budgets", wishes).stdout
    assert "certified" in shown
    assert "Epsilon that users spend: 0 at least" in shown
    assert "What users pay" not in shown


def test_further_chains_are_compared_and_drawn(command: Command, data_folder: Path, tmp_path: Path) -> None:
    options = ("train", data_folder, *PAPER, "--epsilon", "200", "--chains", "2", "--trace", tmp_path / "trace.png")
    shown = command(*options).stdout
    assert "Not converged: do not rely on this" in shown
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(command(*options, "--json").stdout)["convergence"]
    assert (found["chains"], found["converged"]) == (2, False)


def test_without_a_guarantee_it_streams_and_resumes(command: Command, data_folder: Path, tmp_path: Path) -> None:
    options = ("train", data_folder, "--method", "sgld", "--epsilon", "inf", "--epochs", "3", "--json")
    streamed = command(*options, "--memory", "1k", "--out", tmp_path / "a", "--checkpoint", tmp_path / "run")
    assert json.loads(streamed.stdout)["streamed"] is True
    assert json.loads(command(*options, "--out", tmp_path / "b").stdout)["mode"] == "none"
    again = command(*options, "--memory", "1k", "--out", tmp_path / "c", "--checkpoint", tmp_path / "run", "--resume")
    assert again.returncode == 0
    tensors = [(tmp_path / name / "release.safetensors").read_bytes() for name in "abc"]
    assert tensors[0] == tensors[1] == tensors[2]


@pytest.mark.parametrize("mode", ["paper", "certified"])
def test_private_runs_stream_to_the_same_bytes_and_charge_a_ledger_once(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    store, wishes, ledger, scratch = (tmp_path / name for name in ("store", "wishes.csv", "ledger", "scratch"))
    StoredRatings.build(MemorySource(make(1000, 100, mean_ratings=40)), store)
    wishes.write_text("person-00002,0\n")
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    fields = "--epsilon 4 --epochs 3 --factors 3 --set cap=10 --set noise_seed=7 --holdout 0.1"
    private = ("--mode", mode, *fields.split(), "--user-budgets", wishes)
    options = ("train", store, "--method", "sgld", *private, "--json")
    kept = ("--memory", "1MB", "--ledger", ledger, "--checkpoint", tmp_path / "run")
    streamed = command(*options, *kept, "--cap", "inf", "--out", tmp_path / "a")
    inside = json.loads(command(*options, "--out", tmp_path / "b").stdout)
    report = json.loads(streamed.stdout)
    assert (report["streamed"], report["mode"], inside["streamed"]) == (True, inside["mode"], False)
    for name in ("user_epsilons", "rmse", "mae", "baseline_rmse", "assumptions", "epsilon"):
        assert report[name] == inside[name]
    again = command(*options, *kept, "--resume", "--out", tmp_path / "c")
    assert again.returncode == 0
    assert len({(tmp_path / name / "release.safetensors").read_bytes() for name in "abc"}) == 1
    assert len(json.loads(command("ledger", ledger, "--json").stdout)["entries"]) == 1
    assert not any(scratch.iterdir())


@pytest.mark.parametrize(("mode", "epsilon"), [("paper", "5"), ("certified", "5"), ("certified", "inf")])
def test_what_a_private_run_must_not_take_for_granted_is_refused_when_streamed(
    command: Command, tmp_path: Path, mode: str, epsilon: str
) -> None:
    found = Ratings.of([1, 1, 2], ["a", "b", "a"], [2, 5, 3])
    StoredRatings.build(MemorySource(found), tmp_path / "found")
    StoredRatings.build(MemorySource(replace(found, scale=Scale(1, 5))), tmp_path / "seen")
    (tmp_path / "wishes.csv").write_text("1,0\n")
    private: tuple[object, ...] = ("--method", "sgld", "--mode", mode, "--epsilon", epsilon, "--memory", "1")
    refusals = {"found": "scale that is declared", "seen": "public catalogue"}
    if epsilon == "inf":  # nothing has to be declared then, and nobody has a budget
        private, refusals = (
            (*private, "--user-budgets", tmp_path / "wishes.csv"),
            {"seen": "user_budgets means nothing"},
        )
    for name, words in refusals.items():
        done = command("train", tmp_path / name, *private, "--out", tmp_path / "out")
        assert done.returncode != 0
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "sgld"), "sgld needs --epsilon"),
        (("--method", "sgld", "--epsilon", "1", "--set", "rho=2"), "rho means nothing with mode='certified'"),
        (("--method", "sgld", "--epsilon", "1", "--chains", "2"), "rests on no convergence"),
        (("--method", "sgld", "--epsilon", "1", "--set", "sampling_rate=1"), "sampling_rate=1"),
        (("--method", "sgld", "--epsilon", "inf", "--feedback", "implicit"), "sgld learns from ratings only"),
        (("--method", "sgld", "--epsilon", "inf", "--chains", "1"), "give at least 2"),
        (("--method", "sgld", "--epsilon", "inf", "--trace", "x.png"), "say how many"),
        (("--method", "sgld", "--epsilon", "inf", "--chains", "2", "--memory", "1k"), "leave --memory out"),
        (("--method", "sgld", "--epsilon", "inf", "--set", "cap=3"), "means nothing with an infinite epsilon"),
        (("--method", "sgd", "--chains", "2"), "--chains is for sgld"),
        (("--epsilon", "inf", "--memory", "1k"), "joint cannot be streamed here: a run without privacy"),
        (("--method", "sgld", "--mode", "paper", "--epsilon", "5", "--set", "rho=many"), "rho='many'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    command: Command, data_folder: Path, options: tuple[str, ...], words: str
) -> None:
    done = command("train", data_folder, *options)
    assert done.returncode != 0
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
