"""`dpmf plot` draws each kind, says what it drew, and refuses the rest in one line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf.cli.output import METRICS_NOTE
from dpmf.compare.results import Row, Table
from dpmf.methods import ALS
from dpmf.model import Model
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Ratings

pytest.importorskip("matplotlib")
Command = Callable[..., subprocess.CompletedProcess[str]]
BUDGETS = "user,epsilon\nperson-00001,0.5\n"


@pytest.fixture(scope="module")
def model_folder(small_ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("private") / "model"
    method = ALS(n_factors=2, n_epochs=2, budget=Budget(2.0))
    method.fit(small_ratings, n_threads=1, user_budgets={"person-00001": 0.5}).save(folder)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    table = Table(folder / "runs.csv")
    shown: dict[str, Any] = {
        "history": [[1, 0.1, 1.0], [2, 0.1, 0.9]],
        "error_cdf": [[0.0, 0.1], [1.0, 0.9]],
        "spectrum": [3.0, 1.0],
    }
    events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
    proven = Guarantee.certified_by(Budget(1.0), events, releases=["item factors"])
    claim = Guarantee.paper(
        epsilon=5.0,
        delta=0.0,
        unit="rating",
        neighbours="replace",
        claim="So it is said.",
        releases=["item factors"],
        assumptions=["Nobody looks."],
    )
    for repeat, rmse in enumerate((0.9, 1.0)):
        for method, asked, guarantee in (("als", 1.0, proven), ("gaussian", 5.0, claim)):
            figures = {
                name: getattr(guarantee, name) for name in ("epsilon", "delta", "unit", "neighbours", "certified")
            }
            row = Row(method, guarantee.mode, asked, repeat, 7, rmse=rmse, **figures, **shown)
            table.append(replace(row, guarantee=guarantee.to_json()))
    table.append(Row("own-mean", "none", math.inf, 0, 7, rmse=1.1, error_cdf=[[0.0, 0.0], [1.0, 0.5]]))
    return folder


def drawn(command: Command, *arguments: object) -> dict[str, Any]:
    done = command("plot", *arguments, "--out", "p.svg", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("p.svg").read_text().startswith("<?xml")
    content: dict[str, Any] = json.loads(done.stdout)
    assert content["out"] == "p.svg"
    return content


def test_accuracy_has_a_panel_per_unit_and_prints_its_numbers(command: Command, results: Path) -> None:
    content = drawn(command, "accuracy", results)
    assert [panel["unit"] for panel in content["panels"]] == ["user", "rating"]
    (line,) = content["panels"][0]["lines"]
    assert (line["means"], line["least"], line["most"], line["claim"]) == ([0.95], [0.9], [1.0], False)
    assert content["panels"][1]["lines"][0]["claim"] is True
    assert content["references"] == {"own-mean": 1.1}
    assert content["note"] == METRICS_NOTE


def test_courses_errors_and_spectra_of_results_are_drawn_by_unit(command: Command, results: Path) -> None:
    for kind in ("convergence", "errors", "spectrum"):
        panels = drawn(command, kind, results)["panels"]
        claims = [["claim" in line["label"] for line in panel["lines"] if "ε" in line["label"]] for panel in panels]
        assert [set(found) for found in claims] == [{False}, {True}]
    assert len(drawn(command, "errors", results, "--epsilon", 5)["panels"]) == 1


def test_courses_budgets_and_spectra_of_models_and_releases(command: Command, model_folder: Path) -> None:
    model = Model.load(model_folder)
    (panel,) = drawn(command, "convergence", model_folder)["panels"]
    assert panel["lines"][0]["rmse"] == pytest.approx([one.train_rmse for one in model.history], abs=1e-6)
    for folder in (model_folder, model_folder / "release"):
        content = drawn(command, "budget", folder)
        assert content["lines"][0]["rounds"][-1]["epsilon"] == model.guarantee.epsilon
        assert content["note"] is None
        assert drawn(command, "spectrum", folder)["note"] is None


def test_personal_budgets_are_drawn_and_called_sensitive(command: Command, model_folder: Path) -> None:
    Path("budgets.csv").write_text(BUDGETS)
    content = drawn(command, "personal", model_folder, "--user-budgets", "budgets.csv")
    assert (content["users"], content["epsilons"], content["shares"][0]) == (120, [0.5, 2.0], round(1 / 120, 6))
    done = command("plot", "personal", model_folder, "--user-budgets", "budgets.csv", "--out", "p.png")
    assert done.returncode == 0
    assert "sensitive" in done.stdout


def test_popularity_reads_data_as_other_commands_do(
    command: Command, data_folder: Path, small_ratings: Ratings
) -> None:
    assert drawn(command, "popularity", data_folder)["ratings"] == len(small_ratings)
    Path("ratings.csv").write_text("a;b;c\n1;1;3\n2;1;4\n")
    columns = ["--delimiter", ";", "--columns", "user=a,item=b,rating=c", "--scale", "1:5"]
    assert drawn(command, "popularity", "ratings.csv", *columns)["most"] == 2


def test_titles_sizes_and_notes_for_people(command: Command, results: Path) -> None:
    done = command("plot", "accuracy", results, "--out", "p.svg", "--title", "Costs $5_ & more", "--size", "5x4")
    assert (done.returncode, done.stderr) == (0, "")
    assert METRICS_NOTE in done.stdout
    assert "Costs $5_ &amp; more" in Path("p.svg").read_text()
    assert 'width="360pt" height="288pt"' in Path("p.svg").read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["accuracy", "RESULTS", "--out", "p.gif"], ".png, .svg or .pdf"),
        (["accuracy", "RESULTS", "--out", "no/p.png"], "there is no folder no"),
        (["accuracy", "RESULTS", "--out", "p.png", "--size", "0x4"], "width x height"),
        (["accuracy", "RESULTS", "--out", "p.png", "--metric", "recall"], "no private run with recall"),
        (["accuracy", "RESULTS"], "--out"),
        (["accuracy", "MODEL", "--out", "p.png"], "and this draws results"),
        (["accuracy", "nowhere", "--out", "p.png"], "nothing at nowhere"),
        (["accuracy", ".", "--out", "p.png"], "not a folder with runs.csv"),
        (["errors", "RESULTS", "--epsilon", "3", "--out", "p.png"], "no run has epsilon=3: there is 1, 5"),
        (["convergence", "RESULTS", "MODEL", "--out", "p.png"], "results are drawn alone"),
        (["budget", "PLAIN", "--out", "p.png"], "has no guarantee"),
        (["budget", "RESULTS", "--out", "p.png"], "and this draws releases"),
        (["personal", "MODEL", "--user-budgets", "none.csv", "--out", "p.png"], "cannot read --user-budgets"),
        (["cake", "RESULTS", "--out", "p.png"], "cake"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line_and_leaves_no_file(
    words: list[str], reason: str, command: Command, results: Path, model_folder: Path, release_folder: Path
) -> None:
    places = {"RESULTS": results, "MODEL": model_folder, "PLAIN": release_folder}
    done = command("plot", *(places.get(word, word) for word in words))
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert not list(Path().iterdir())


def test_without_matplotlib_one_line_says_what_to_install(
    command: Command, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = command("plot", "accuracy", results, "--out", "p.png")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pip install 'dpmf[plot]'" in done.stderr
    assert not Path("p.png").exists()
