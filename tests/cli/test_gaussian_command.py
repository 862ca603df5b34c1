"""`dpmf train --method gaussian`: claims, certificates, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
GAUSSIAN = ("--method", "gaussian", "--items-public", "--factors", "4")
PAPER = (*GAUSSIAN, "--mode", "paper", "--epochs", "10")


def test_a_claim_is_reported_by_both_accounts(command: Command, data_folder: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "release", tmp_path / "model"
    options = (*PAPER, "--epsilon", "5", "--holdout", "0.1")
    report = json.loads(command("train", data_folder, *options, "--out", out, "--model", model, "--json").stdout)
    assert (report["method"], report["mode"], report["certified"]) == ("gaussian", "paper", False)
    assert (report["epsilon"], report["delta"], report["unit"]) == (5, 1e-5, "rating")
    claim = report["claim"]
    assert claim["epsilon_by_renyi"] == pytest.approx(5)
    assert 2.5 < claim["epsilon_by_accountant"] < 5
    assert claim["iterations"] == 10
    assert any("carry no guarantee at all" in one for one in report["assumptions"])
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["recomputed_epsilon"], verdict["ok"]) == (False, None, True)
    assert "nothing is proven" in " ".join(command("explain", out).stdout.split())
    shown = command("train", data_folder, *options, "--delta", "1e-7", "--set", "eps_i=0.3").stdout
    for words in ("paper claim, not certified", "1e-07", "Rényi formula", "10 iterations of eps_i 0.3"):
        assert words in shown
    assert command("similar", out, 1, "-k", 3, "--json").returncode == 0
    mine = tmp_path / "mine.csv"
    mine.write_text("1,5\n2,1\n3,4\n")
    found = json.loads(command("recommend", out, "--ratings", mine, "-k", 5, "--json").stdout)
    assert len(found["recommendations"]) == 5


def test_a_certified_run_is_certified(command: Command, data_folder: Path, tmp_path: Path) -> None:
    wishes, out = tmp_path / "wishes.csv", tmp_path / "release"
    wishes.write_text("person-00002,0\n")
    options = ("train", data_folder, *GAUSSIAN, "--epochs", "5", "--epsilon", "4", "--user-budgets", wishes)
    report = json.loads(command(*options, "--out", out, "--ledger", tmp_path / "l", "--cap", "5", "--json").stdout)
    assert (report["method"], report["mode"], report["certified"], report["unit"]) == (
        "gaussian",
        "certified",
        True,
        "user",
    )
    assert report["epsilon"] <= 4
    assert "claim" not in report
    assert (report["user_epsilons"]["least"], report["user_epsilons"]["most"]) == (0, 4)
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["ok"]) == (True, True)
    assert "a sum over everybody, released at most 5 times" in command("explain", out).stdout


def test_without_a_guarantee_it_resumes_to_the_same_bytes(command: Command, data_folder: Path, tmp_path: Path) -> None:
    for mode in ("certified", "paper"):
        options = ("train", data_folder, "--method", "gaussian", "--mode", mode, "--epsilon", "inf", "--epochs", "5")
        first = command(*options, "--out", tmp_path / "a", "--checkpoint", tmp_path / mode, "--json")
        assert json.loads(first.stdout)["mode"] == "none"
        command(*options, "--out", tmp_path / "b", "--checkpoint", tmp_path / mode, "--resume")
        tensors = [(tmp_path / name / "release.safetensors").read_bytes() for name in "ab"]
        assert tensors[0] == tensors[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "gaussian"), "gaussian needs --epsilon"),
        (("--method", "gaussian", "--epsilon", "1", "--set", "eps_i=0.3"), "eps_i means nothing with mode='certified'"),
        (("--method", "gaussian", "--epsilon", "1", "--set", "tolerance=1e-4"), "tolerance means nothing"),
        (("--method", "gaussian", "--epsilon", "inf", "--set", "clip=2"), "clip means nothing with an infinite"),
        (("--method", "gaussian", "--epsilon", "inf", "--chains", "2"), "--chains is for sgld"),
        (("--method", "gaussian", "--epsilon", "inf", "--memory", "1k"), "gaussian cannot be streamed here"),
        (("--method", "gaussian", "--epsilon", "inf", "--feedback", "implicit"), "gaussian learns from ratings only"),
        ((*PAPER, "--epsilon", "5", "--set", "centering=median"), "--set centering=median is not known"),
        ((*PAPER, "--epsilon", "5", "--delta", "2"), "--delta 2"),
        ((*PAPER, "--epsilon", "5", "--set", "learning_rate=1000"), "diverged in iteration"),
        ((*PAPER, "--epsilon", "5", "--set", "learning_rate=1", "--epochs", "10"), "diverged in iteration"),
        ((*PAPER, "--epsilon", "1e-300"), "choose one for which it is between"),
        ((*PAPER, "--epsilon", "1e300"), "choose one for which it is between"),
        ((*PAPER, "--epsilon", "5", "--neighbours", "add-remove"), "a rating that is replaced"),
        ((*PAPER, "--epsilon", "5", "--delta", "0.1", "--set", "delta_r=0.2"), "give one of them"),
        ((*PAPER, "--epsilon", "5", "--ledger", "l.json", "--cap", "10"), "a claim counts as unbounded"),
        ((*PAPER, "--epsilon", "5", "--user-budgets", "b.csv"), "is not about persons"),
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
