"""`dpmf train --method sketch`: sizes, claims, what is certified, and the leak of every method."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]
SKETCH = ("--method", "sketch", "--epochs", "5", "--factors", "4")


def test_its_size_and_its_leak_are_shown(command: Command, data_folder: Path, tmp_path: Path) -> None:
    options = ("train", data_folder, *SKETCH, "--epsilon", "inf", "--holdout", "0.1", "--set", "gain=4")
    report = json.loads(command(*options, "--out", tmp_path / "r", "--json").stdout)
    assert (report["method"], report["mode"], report["epsilon"]) == ("sketch", "none", None)
    assert 0.25 <= report["sketch"]["bytes"] / report["sketch"]["dense_bytes"] < 0.26
    assert report["kld"] >= 0
    assert report["kld_top_users"] >= 0
    shown = command(*options).stdout
    for words in ("The sketch has 4 rows of", "dense factors take", "It guarantees nothing", "not private"):
        assert words in shown
    assert json.loads((tmp_path / "r" / "release.json").read_text())["configuration"]["mode"] is None
    measured = json.loads(command("evaluate", tmp_path / "r", data_folder, "--least-ratings", "2", "--json").stdout)
    assert {"kld", "kld_top_users", "rmse_top_users"} <= measured.keys()


def test_a_claim_is_reported_as_a_claim(command: Command, data_folder: Path, tmp_path: Path) -> None:
    options = ("train", data_folder, *SKETCH, "--mode", "paper", "--epsilon", "4", "--items-public")
    ledger = ("--ledger", tmp_path / "ledger.json", "--cap", "inf")
    report = json.loads(command(*options, *ledger, "--out", tmp_path / "r", "--json").stdout)
    assert (report["mode"], report["epsilon"], report["unit"], report["certified"]) == ("paper", 4, "rating", False)
    assert any("infinite" in one for one in report["assumptions"])
    verdict = json.loads(command("verify", tmp_path / "r", "--json").stdout)
    assert (verdict["certified"], verdict["recomputed_epsilon"], verdict["ok"]) == (False, None, True)
    assert "Balu and Furon (2016)" in command("explain", tmp_path / "r").stdout
    assert "paper claim, not certified" in command(*options).stdout


def test_a_certified_run_is_certified(command: Command, data_folder: Path, tmp_path: Path) -> None:
    options = ("train", data_folder, *SKETCH, "--epsilon", "4", "--items-public")
    report = json.loads(command(*options, "--checkpoint", tmp_path / "c", "--out", tmp_path / "r", "--json").stdout)
    assert (report["mode"], report["certified"], report["unit"]) == ("certified", True, "user")
    assert report["epsilon"] <= 4
    assert json.loads(command("verify", tmp_path / "r", "--json").stdout)["ok"] is True
    assert "These figures are for the data holder" in " ".join(command(*options, "--holdout", "0.1").stdout.split())
    assert "the cells of a sketch of items: a sum over a random sample" in command("explain", tmp_path / "r").stdout


def test_what_makes_no_sense_is_refused(command: Command, data_folder: Path) -> None:
    for options, words in (
        (SKETCH, "needs --epsilon"),
        ((*SKETCH, "--epsilon", "inf", "--chains", "2"), "--chains is for sgld"),
        ((*SKETCH, "--epsilon", "inf", "--memory", "1k"), "sketch cannot be streamed here: a run without privacy"),
        ((*SKETCH, "--epsilon", "inf", "--set", "depth=99"), "depth=99"),
        ((*SKETCH, "--epsilon", "4", "--mode", "paper", "--neighbours", "replace"), "rating that is added"),
        ((*SKETCH, "--epsilon", "4", "--mode", "paper", "--delta", "1e-3"), "delta means nothing"),
        ((*SKETCH, "--epsilon", "4", "--set", "sampling_rate=x"), "sampling_rate='x'"),
        ((*SKETCH, "--epsilon", "inf", "--set", "width=50", "--set", "gain=7"), "leave one out"),
    ):
        done = command("train", data_folder, *options)
        assert done.returncode != 0
        assert words in done.stderr
