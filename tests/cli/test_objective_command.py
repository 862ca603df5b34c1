"""`dpmf train --method objective`: claims, certificates with profiles, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
OBJECTIVE = ("--method", "objective", "--items-public")
PAPER = (*OBJECTIVE, "--mode", "paper", "--epochs", "5", "--factors", "4")


@pytest.mark.parametrize("solver", ["exact", "steps"])
def test_a_claim_is_a_claim(command: Command, data_folder: Path, tmp_path: Path, solver: str) -> None:
    out = tmp_path / "release"
    options = (*PAPER, "--epsilon", "5", "--set", f"solver={solver}", "--holdout", "0.1")
    report = json.loads(command("train", data_folder, *options, "--out", out, "--json").stdout)
    assert (report["method"], report["mode"], report["certified"]) == ("objective", "paper", False)
    assert (report["epsilon"], report["delta"], report["unit"], report["neighbours"]) == (5, 0, "rating", "replace")
    assert any("the proof does not apply" in one for one in report["assumptions"])
    assert any("stopped before the minimiser" in one for one in report["assumptions"]) == (solver == "steps")
    assert "parts" not in report
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["recomputed_epsilon"], verdict["ok"]) == (False, None, True)
    shown = command("train", data_folder, *options).stdout
    assert "paper claim, not certified" in shown
    assert f"{5 if solver == 'exact' else 10} iterations" in shown
    mine = tmp_path / "mine.csv"
    mine.write_text("1,5\n2,1\n3,4\n")
    found = json.loads(command("recommend", out, "--ratings", mine, "-k", 5, "--json").stdout)
    assert len(found["recommendations"]) == 5


def test_public_profiles_make_it_certified(command: Command, data_folder: Path, tmp_path: Path, profiles: Path) -> None:
    out, ledger = tmp_path / "release", tmp_path / "ledger"
    options = ("train", data_folder, *OBJECTIVE, "--epsilon", "2", "--profiles", profiles)
    report = json.loads(command(*options, "--out", out, "--ledger", ledger, "--cap", "3", "--json").stdout)
    assert (report["mode"], report["certified"], report["unit"], report["neighbours"]) == (
        "certified",
        True,
        "rating",
        "replace",
    )
    assert report["factors"] == 3
    assert report["parts"] == {"items": 2, "profiles": 0}
    assert any("asserts to be public" in one for one in report["assumptions"])
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["ok"]) == (True, True)
    shown = " ".join(command("explain", out).stdout.split())
    assert "Each single rating, but not all ratings of a person together" in shown
    assert "does not hide which items were rated" in shown
    again = command(*options, "--ledger", ledger)
    assert again.returncode != 0
    assert "more than the cap" in again.stderr


def test_gaussian_noise_is_certified_too(command: Command, data_folder: Path, tmp_path: Path, profiles: Path) -> None:
    options = ("train", data_folder, *OBJECTIVE, "--epsilon", "2", "--profiles", profiles, "--set", "noise=gaussian")
    report = json.loads(command(*options, "--memory", "1KB", "--out", tmp_path / "release", "--json").stdout)
    assert (report["certified"], report["unit"], report["streamed"]) == (True, "rating", True)
    assert 1.99 < report["epsilon"] <= 2
    assert json.loads(command("verify", tmp_path / "release", "--json").stdout)["ok"]
    paper = command("train", data_folder, *PAPER, "--epsilon", "2", "--set", "noise=gaussian")
    assert "noise means nothing with mode='paper'" in paper.stderr
    other = command(*options[:-1], "noise=laplace")
    assert "--set noise=laplace is not known: choose norm or gaussian" in other.stderr


def test_profiles_from_a_release_are_paid_for(command: Command, data_folder: Path, tmp_path: Path) -> None:
    release, added = tmp_path / "als", tmp_path / "added"
    als = ("train", data_folder, "--items-public", "--factors", "2", "--epochs", "1", "--epsilon", "4")
    command(*als, "--neighbours", "replace", "--out", release)
    command(*als, "--out", added)
    options = ("train", data_folder, *OBJECTIVE, "--epsilon", "2", "--profiles-epsilon", "1", "--profiles")
    report = json.loads(command(*options, release, "--holdout", "0.1", "--json").stdout)
    assert report["certified"]
    assert 4 < report["parts"]["profiles"] < 5
    assert report["epsilon"] == pytest.approx(2 + report["parts"]["profiles"], abs=1e-3)
    assert "profiles of users" in command(*options, release).stdout
    refused = command(*options, added)
    assert refused.returncode != 0
    assert "certified with --neighbours replace" in refused.stderr
    public = json.loads(command(*options, added, "--profiles-public", "--json").stdout)
    assert public["parts"]["profiles"] == pytest.approx(1, abs=1e-3)
    assert any("other people's ratings" in one for one in public["assumptions"])


def test_without_a_guarantee_it_resumes_to_the_same_bytes(command: Command, data_folder: Path, tmp_path: Path) -> None:
    for mode in ("certified", "paper"):
        options = ("train", data_folder, "--method", "objective", "--mode", mode, "--epsilon", "inf", "--epochs", "5")
        first = command(*options, "--out", tmp_path / "a", "--checkpoint", tmp_path / mode, "--json")
        assert json.loads(first.stdout)["mode"] == "none"
        command(*options, "--out", tmp_path / "b", "--checkpoint", tmp_path / mode, "--resume")
        tensors = [(tmp_path / name / "release.safetensors").read_bytes() for name in "ab"]
        assert tensors[0] == tensors[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "objective"), "objective needs --epsilon"),
        ((*OBJECTIVE, "--epsilon", "1"), "objective needs --profiles to be certified"),
        ((*OBJECTIVE, "--epsilon", "1", "--profiles", "missing.csv"), "cannot read --profiles"),
        ((*OBJECTIVE, "--epsilon", "1", "--profiles", "."), "say how much, with --profiles-epsilon"),
        ((*OBJECTIVE, "--epsilon", "1", "--profiles", ".", "--profiles-epsilon", "1"), "release.json"),
        ((*OBJECTIVE, "--epsilon", "1", "--profiles", "a.csv", "--profiles-public"), "is not a folder with a release"),
        ((*OBJECTIVE, "--epsilon", "inf", "--profiles", "a.csv"), "--profiles is for a certified run"),
        ((*PAPER, "--epsilon", "1", "--profiles-epsilon", "1"), "--profiles-epsilon is for a certified run"),
        (("--method", "als", "--epsilon", "1", "--profiles-public"), "--profiles-public is for a certified run"),
        ((*PAPER, "--epsilon", "1", "--delta", "1e-7"), "delta means nothing for the claim"),
        ((*PAPER, "--epsilon", "1", "--neighbours", "add-remove"), "a rating that is replaced"),
        ((*PAPER, "--epsilon", "1", "--set", "solver=newton"), "--set solver=newton is not known"),
        ((*PAPER, "--epsilon", "1", "--ledger", "l.json", "--cap", "10"), "a claim counts as unbounded"),
        ((*PAPER, "--epsilon", "1", "--user-budgets", "b.csv"), "is not about persons"),
        ((*PAPER, "--epsilon", "1", "--memory", "1k"), "objective cannot be streamed here: a claim"),
        (
            ("--method", "objective", "--epsilon", "inf", "--set", "solver=exact"),
            "solver means nothing with an infinite",
        ),
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "should begin with a line user,x1"),
        ("user,x1\n", "have a line for every user"),
        ("person-00001,1\nperson-00002,2\n", "should begin with a line user,x1"),
        ("user,x1,x2\nperson-00001,1\n", "line 2 of"),
        ("user,x1\nperson-00001,abc\n", "line 2 of"),
        ("user,x1\nperson-00001,nan\n", "not finite"),
        ("user,x1\nperson-00001,1\nperson-00001,2\n", "two rows for one user"),
        ("user,x1\nnobody,1\n", "none of the people"),
    ],
)
def test_a_table_of_profiles_that_is_none_is_refused_in_one_line(
    command: Command, data_folder: Path, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "profiles.csv"
    path.write_text(text)
    done = command("train", data_folder, *OBJECTIVE, "--epsilon", "1", "--profiles", path)
    assert done.returncode != 0
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_factors_and_epochs_of_a_certified_run_are_not_to_be_chosen(
    command: Command, data_folder: Path, profiles: Path
) -> None:
    for option, field in (("--factors", "n_factors"), ("--epochs", "n_epochs")):
        done = command("train", data_folder, *OBJECTIVE, "--epsilon", "1", "--profiles", profiles, option, "3")
        assert done.returncode != 0
        assert f"{field} means nothing with mode='certified'" in done.stderr


def test_a_certified_run_resumes_to_the_same_bytes(command: Command, data_folder: Path, profiles: Path) -> None:
    options = ("train", data_folder, *OBJECTIVE, "--epsilon", "1", "--profiles", profiles, "--checkpoint", "run")
    assert command(*options, "--out", "first").returncode == 0
    assert command(*options, "--out", "again", "--resume").returncode == 0
    tensors = [Path(name, "release.safetensors").read_bytes() for name in ("first", "again")]
    assert tensors[0] == tensors[1]
