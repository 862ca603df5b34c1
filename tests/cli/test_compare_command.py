"""`dpmf compare` on small data: what it prints, what it leaves, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf.compare.results import Table

Command = Callable[..., subprocess.CompletedProcess[str]]

QUICK = ("--set", "als.n_epochs=1", "--set", "sgd.n_epochs=1", "--seed", "3")


def test_a_comparison_leaves_rows_a_picture_and_a_report(command: Command, data_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "one"
    words = ("compare", data_folder, "--methods", "als,objective", "--epsilons", "1,5", "--repeats", 2, "--out", out)
    done = command(*words, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report["rows"]) == 2 * (5 + 2 + 4)
    assert {(row["method"], row["mode"], row["unit"]) for row in report["rows"]} == {
        ("own-mean", "none", None),
        ("biases", "none", None),
        ("exact-ease", "none", None),
        ("private-popular", "none", None),
        ("popular", "none", None),
        ("sgd", "none", None),
        ("als", "certified", "user"),
        ("objective", "paper", "rating"),
    }
    for place in ("report", "picture"):
        assert Path(report[place]).is_file()
    assert sorted(file.name for file in out.iterdir() if file.name != ".lock") == [
        "accuracy.png",
        "comparison.json",
        "report.html",
        "runs.csv",
    ]
    before = (out / "runs.csv").read_bytes()
    again = command(*words, *QUICK)
    assert (out / "runs.csv").read_bytes() == before
    assert "Certified per user, add-remove, δ = 1e-06" in again.stdout
    assert "A paper's claim, not certified, per rating, replace" in again.stdout
    assert max(map(len, map(str.rstrip, again.stdout.splitlines()))) <= 100
    assert "no guarantee covers them" in again.stdout
    assert "objective is run as the paper claims only" in again.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--methods", "svd"), "'svd' is not known"),
        (("--methods", ","), "names nothing"),
        (("--epsilons", "1,x"), "--epsilons '1,x' should be numbers"),
        (("--epsilons", "0"), "should be above 0"),
        (("--epsilons", "nan"), "should be above 0"),
        (("--modes", "proven"), "choose from certified,paper"),
        (("--methods", "als", "--modes", "paper"), "add certified to the modes"),
        (("--holdout", "2"), "not a fraction"),
        (("--repeats", "0"), "--repeats"),
        (("--threads", "0"), "--threads 0"),
        (("--jobs", "0"), "--jobs 0"),
        (("--set", "als.mode=paper"), "als.mode cannot be set here"),
        (("--set", "n_factors=3"), "METHOD.NAME=VALUE"),
        (("--set", "als.speed=3"), "no setting 'speed'"),
        (("--methods", "als", "--set", "sketch.depth=3"), "not compared"),
        (("--delta", "2"), "--delta 2"),
        (("--profiles-public",), "needs --profiles to be certified"),
        (("--profiles-epsilon", "1", "--modes", "paper", "--methods", "objective"), "for a certified run"),
        (("--profiles", "taken", "--methods", "als"), "for a certified run of --method objective"),
        (("--profiles", "taken", "--profiles-epsilon", "1"), "is not a folder with a release"),
        (("--profiles", ".", "--methods", "objective"), "say how much, with --profiles-epsilon"),
        (("--profiles", "nothing.csv"), "cannot read --profiles"),
        (("--out", "taken"), "choose another name"),
    ],
)
def test_bad_input_is_one_line(
    command: Command,
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    done = command("compare", data_folder, *words)
    assert done.returncode != 0
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]


def test_if_no_private_run_ends_the_command_has_failed(command: Command, data_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "one"
    line = "--methods sgld --modes certified --epsilons 1 --repeats 1 --delta 1e-11 --set sgd.n_epochs=1"
    done = command("compare", data_folder, *line.split(), "--out", out)
    assert done.returncode == 1
    assert "no private run has ended" in done.stderr
    assert "Did not end" in done.stdout
    assert "did not end" in (out / "report.html").read_text().lower()


def test_an_interrupted_comparison_resumes(
    program: Command, signalled: Command, data_folder: Path, tmp_path: Path
) -> None:
    words = ["compare", data_folder, "--methods", "als", "--epsilons", "1,2,3", "--repeats", 3, "--out", "one", *QUICK]
    done = signalled(*words, number=signal.SIGINT, kind="open", start="runs.csv", n=12)
    assert done.returncode == 130
    assert done.stderr.strip().splitlines()[-1].startswith("dpmf: interrupted")
    table = Table(tmp_path / "one" / "runs.csv")
    kept = table.rows()
    assert 5 < len(kept) < 33
    done = program(*words, "--json", check=True)
    assert len(json.loads(done.stdout)["rows"]) == 33
    assert [row.rmse for row in table.rows()[: len(kept)]] == [row.rmse for row in kept]
