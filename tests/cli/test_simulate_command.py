"""`dpmf simulate`: all scenarios in both modes, what is reported, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
PAPER = ("--mode", "paper", "--items-public", "--factors", "4")
S3 = ("--scenario", "s3", "--rounds", "15", "--per-round", "20", "--online-probability", "0.5")
RELIED_ON = {"rmse", "mean_error", "rounds", "seconds", "bytes_down", "bytes_up", "guarantee"}


@pytest.mark.parametrize(
    "options",
    [
        ("--scenario", "s1", "--rounds", "5"),
        ("--scenario", "s2", "--rounds", "5"),
        S3,
        ("--scenario", "s2", "--rounds", "3", "--without-third-party"),
    ],
    ids=["s1", "s2", "s3", "alone"],
)
def test_claims_of_all_scenarios(command: Command, data_folder: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    out = tmp_path / "release"
    asked = (data_folder, *PAPER, "--epsilon", "5", *options, "--holdout", "0.1")
    report = json.loads(command("simulate", *asked, "--out", out, "--json").stdout)
    assert set(report) >= RELIED_ON
    assert (report["mode"], report["certified"], report["epsilon"], report["unit"]) == ("paper", False, 5, "rating")
    assert report["method"] == "objective"
    assert report["rounds"] == int(options[options.index("--rounds") + 1])
    assert 0 < report["rmse"] < 4
    assert report["guarantee"]["assumptions"]
    is_protocol = "s1" not in options
    assert (report["bytes_down"] > 0) == (report["bytes_up"] > 0) == is_protocol
    if is_protocol:
        assert report["composed_epsilon"] == 5 * (report["rounds"] + ("--without-third-party" not in options))
        assert report["proven_epsilon"] is None
        assert report["published"] == {"client_seconds": 5.7e-7, "third_party_seconds": 0.4}
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["ok"]) == (False, True)
    shown = command("simulate", *asked).stdout
    assert "rounds of objective with" in shown
    assert "paper claim, not certified" in shown
    assert ("no finite epsilon is proven" in shown) == is_protocol


@pytest.mark.parametrize(
    "options", [("--scenario", "s2"), ("--scenario", "s3", "--online-probability", "1", "--per-round", "60")]
)
def test_certified_against_both(command: Command, data_folder: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    out = tmp_path / "release"
    asked = (data_folder, "--items-public", "--epsilon", "8", "--rounds", "2", "--factors", "2", *options)
    ledger = ("--ledger", tmp_path / "ledger", "--cap", "9")
    report = json.loads(command("simulate", *asked, "--holdout", "0.1", "--out", out, *ledger, "--json").stdout)
    again = command("simulate", *asked, *ledger)
    assert again.returncode == 1
    assert "more than the cap" in again.stderr
    assert set(report) >= RELIED_ON
    assert (report["mode"], report["certified"], report["unit"], report["delta"]) == ("certified", True, "user", 1e-6)
    assert report["method"] == "joint"  # as in training
    assert "Against the third party" in report["against_third_party"]
    assert "certified" in report["against_recommender"]
    verdict = json.loads(command("verify", out, "--json").stdout)
    assert (verdict["certified"], verdict["ok"]) == (True, True)
    shown = command("simulate", *asked).stdout
    assert "That is against the recommender. Against the third party" in shown


def test_objective_protects_the_value_of_one_rating(
    command: Command, answer: Callable[..., dict[str, Any]], data_folder: Path, tmp_path: Path, profiles: Path
) -> None:
    out, base = tmp_path / "release", tmp_path / "als"
    asked = ("simulate", data_folder, "--items-public", "--epsilon", "4", "--scenario", "s2", "--method", "objective")
    ledger = ("--ledger", tmp_path / "ledger", "--cap", "5")
    report = answer(*asked, "--profiles", profiles, "--holdout", "0.1", "--out", out, *ledger)
    assert (report["certified"], report["unit"], report["neighbours"]) == (True, "rating", "replace")
    assert (report["rounds"], report["refused"], report["factors"]) == (1, 0, 3)
    assert 3.99 < report["epsilon"] <= 4
    assert 0 < report["rmse"] < 4
    assert any("does not hide which items were rated" in one for one in report["guarantee"]["assumptions"])
    assert (answer("verify", out)["certified"], answer("verify", out)["ok"]) == (True, True)
    assert "more than the cap" in command(*asked, "--profiles", profiles, *ledger).stderr
    als = ("--items-public", "--factors", "1", "--epochs", "1", "--epsilon", "4", "--neighbours", "replace")
    assert command("train", data_folder, *als, "--out", base).returncode == 0
    run = (*asked, "--profiles", base, "--profiles-epsilon", "2", "--checkpoint", tmp_path / "run")
    paid = answer(*run)
    assert (paid["certified"], paid["unit"], paid["rounds"]) == (True, "rating", 2)
    assert paid["factors"] in (2, 3)  # the noise of the base may leave it without its only factor
    assert paid["epsilon"] > 4
    assert answer(*run, "--resume")["mean_error"] == paid["mean_error"]  # it was at its end
    assert "per rating, replace, certified" in command(*asked, "--profiles", profiles).stdout
    for options, says in (
        ((), "objective needs --profiles"),
        (("--profiles", base), "--profiles-epsilon"),
        (("--profiles", profiles, "--factors", "2"), "n_factors means nothing"),
        (("--profiles", profiles, "--method", "gaussian"), "--profiles is for a certified run of --method objective"),
        (("--profiles", profiles, "--mode", "paper"), "means nothing for paper s2"),
    ):
        refused = command(*asked, *options)
        assert refused.returncode != 0
        assert says in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_an_interrupted_run_resumes(command: Command, data_folder: Path, tmp_path: Path) -> None:
    asked = (data_folder, *PAPER, "--epsilon", "5", *S3, "--checkpoint", tmp_path / "run")
    assert command("simulate", *asked).returncode == 0
    again = command("simulate", *asked)
    assert again.returncode == 1
    assert "holds a checkpoint" in again.stderr
    longer = json.loads(command("simulate", *asked, "--rounds", "20", "--resume", "--json").stdout)
    assert longer["rounds"] == 20
    at_its_end = json.loads(command("simulate", *asked, "--rounds", "20", "--resume", "--json").stdout)
    for name in ("rounds", "bytes_down", "bytes_up", "took_part", "refused", "mean_error"):
        assert at_its_end[name] == longer[name]
    shorter = command("simulate", *asked, "--rounds", "9", "--resume")
    assert "has 20 rounds already" in shorter.stderr
    other = command("simulate", *asked, "--rounds", "20", "--resume", "--seed", "4")
    assert "{'seed': 0} there, {'seed': 4} here" in other.stderr


def test_a_certified_run_that_is_at_its_end_says_so(command: Command, data_folder: Path, tmp_path: Path) -> None:
    asked = (data_folder, "--items-public", "--epsilon", "8", "--rounds", "2", "--factors", "2", "--scenario", "s2")
    first = json.loads(command("simulate", *asked, "--checkpoint", tmp_path / "run", "--json").stdout)
    assert first["bytes_per_number"] == [5]
    again = json.loads(command("simulate", *asked, "--checkpoint", tmp_path / "run", "--resume", "--json").stdout)
    assert (again["rounds"], again["bytes_down"], again["took_part"]) == (first["rounds"], None, None)
    assert again["mean_error"] == first["mean_error"]
    shown = command("simulate", *asked, "--checkpoint", tmp_path / "run", "--resume").stdout
    assert "at its end already" in shown


def test_a_part_of_the_catalogue_is_enough(command: Command, data_folder: Path) -> None:
    report = command("simulate", data_folder, *PAPER, "--epsilon", "inf", *S3, "--random-items", "9").stdout
    assert "9 items" in report
    assert "not private" in report


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "needs --epsilon"),
        (("--epsilon", "1", "--scenario", "s1"), "--profiles"),
        (("--epsilon", "inf"), "certifies nothing"),
        (("--epsilon", "1", "--scenario", "s2", "--per-round", "9"), "--per-round means nothing"),
        (("--epsilon", "1", "--scenario", "s2", "--online-probability", "1"), "--online-probability means nothing"),
        (("--epsilon", "1", "--without-third-party"), "--without-third-party means nothing"),
        (("--epsilon", "1", "--mode", "paper", "--delta", "1e-5"), "--delta means nothing"),
        (("--epsilon", "1", "--mode", "paper", "--dropouts", "0.1"), "--dropouts means nothing"),
        (("--epsilon", "1", "--mode", "paper", "--rounds", "0", "--items-public"), "--rounds 0"),
        (("--epsilon", "1", "--mode", "paper", "--factors", "0", "--items-public"), "--factors 0"),
        (("--epsilon", "-1", "--mode", "paper", "--items-public"), "epsilon"),
        (("--epsilon", "1e-9", "--mode", "paper", "--items-public"), "larger epsilon"),
        (
            ("--epsilon", "1", "--mode", "paper", "--online-probability", "2", "--items-public"),
            "--online-probability 2",
        ),
        (("--epsilon", "1", "--random-items", "1000", "--items-public"), "cannot be drawn"),
        (("--epsilon", "1", "--holdout", "1.5"), "--holdout"),
        (("--epsilon", "1", "--per-round", "110"), "hardly ever online"),
        (("--epsilon", "1", "--online-probability", "0.5", "--offline-probability", "0.3"), "tolerate more drop-outs"),
        (("--epsilon", "1", "--dropouts", "0.6", "--colluders", "0.6"), "too few to tolerate"),
        (("--epsilon", "1", "--mode", "paper", "--online-probability", "0.000001"), "hardly ever online"),
        (("--epsilon", "1", "--resume"), "--resume needs --checkpoint"),
        (("--epsilon", "1", "--mode", "paper", "--ledger", "ledger"), "--ledger means nothing"),
        (("--epsilon", "1", "--cap", "2"), "--cap is of a ledger"),
        (("--epsilon", "1", "--scenario", "s4"), "s4"),
    ],
)
def test_bad_options_get_one_line(
    command: Command, data_folder: Path, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    out = tmp_path / "release"
    result = command("simulate", data_folder, *options, "--out", out)
    assert result.returncode != 0
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()
