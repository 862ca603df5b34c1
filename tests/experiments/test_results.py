"""The committed results: their rows give the verdicts recorded beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from experiments.__main__ import RESULTS, figures_of
from experiments.figure import read_rows

VERDICTS = sorted(RESULTS.rglob("*.json"))
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.mark.parametrize("path", VERDICTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_give_the_recorded_verdict(path: Path) -> None:
    facts = json.loads(path.read_text())
    figure = figures_of(path.parent.name)[path.stem.partition("-")[0]]
    verdict = figure.judge(read_rows(path.with_suffix(".csv")))
    assert (figure.title, figure.published, verdict.held) == (facts["title"], facts["published"], facts["held"])
    assert NUMBER.split(verdict.sentence) == NUMBER.split(facts["found"])
    # Rows are rounded to six digits, sentences to four decimals or so: the last digit may differ.
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (verdict.sentence, facts["found"])]
    assert numbers[0] == pytest.approx(numbers[1], abs=1.01e-4)


def test_there_are_results_of_every_paper() -> None:
    assert {path.parent.name for path in VERDICTS} == {"balu2016", "hua2015", "liu2015", "mugdho2023"}
