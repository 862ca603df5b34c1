"""A method that is in the registry and nowhere else can be trained, compared and drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Two methods in a module of their own, each registered by one line.
PROGRAM = """
import sys, types
from dataclasses import dataclass

import dpmf.methods
from dpmf.methods.als import ALS
from dpmf.methods.base import Section
from dpmf.methods.sgd import SGD

@dataclass(frozen=True)
class Proven(ALS):
    name = "proven"
    turn = "stage"

    def report(self, model, user_budgets=None):
        return {"stages": len(model.history)}

    def sections(self, report):
        yield Section("What it adds", ("", "stages"), [("run", report["stages"])], "That is all.", from_ratings=True)

@dataclass(frozen=True)
class Plain(SGD):
    name = "plain"

for kind in (Proven, Plain):
    dpmf.methods._CLASSES[kind.name] = kind.__name__
    sys.modules[f"dpmf.methods.{kind.name}"] = types.SimpleNamespace(**{kind.__name__: kind})

from dpmf.cli import main
main()
"""
QUICK = ("--epochs", "2", "--factors", "2", "--threads", "1")


def dpmf_with_more(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)


def test_it_can_be_trained_and_streamed(data_folder: Path) -> None:
    private = ("train", data_folder, "--method", "proven", "--epsilon", "5", "--holdout", "0.2", *QUICK)
    shown = dpmf_with_more(*private).stdout
    for words in ("2 stages with ", "What it adds", "That is all. These figures", "private item biases alone"):
        assert words in shown
    report = json.loads(dpmf_with_more(*private, "--memory", "1KB", "--json").stdout)
    assert (report["method"], report["streamed"], report["stages"]) == ("proven", True, 2)
    refused = dpmf_with_more("train", data_folder, "--method", "plain", "--epsilon", "1")
    assert "plain is not private, whatever the number" in refused.stderr


def test_it_can_be_compared(data_folder: Path) -> None:
    pytest.importorskip("matplotlib")
    settings = [f"--set={name}.n_epochs=2" for name in ("sgd", "plain", "proven")]
    sizes = ("--methods", "proven,plain", "--epsilons", "5", "--repeats", "1", "--threads", "1")
    report = json.loads(dpmf_with_more("compare", data_folder, *sizes, *settings, "--json").stdout)
    found = {(row["method"], row["mode"], row["error"]) for row in report["rows"]}
    assert {("proven", "certified", ""), ("plain", "none", ""), ("sgd", "none", "")} <= found
    done = dpmf_with_more("plot", "accuracy", Path(report["report"]).parent, "--out", "a.svg")
    assert done.returncode == 0, done.stderr
