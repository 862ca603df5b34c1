"""A figure: its rows, plot and verdict, and what an interruption leaves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from experiments.__main__ import main
from experiments.figure import Figure, Row, Run, Verdict, make, remake

from dpmf.errors import InvalidArgument


def _draw(drawing: Any, rows: list[Row]) -> None:
    drawing.subplots().plot([row["x"] for row in rows], [row["y"] for row in rows])


def _figure(measured: list[int], *, breaks_at: int | None = None) -> Figure:
    def square(x: int) -> Row:
        if x == breaks_at:
            raise KeyboardInterrupt
        measured.append(x)
        return {"y": x * x / 3}

    return Figure(
        title="Squares",
        published="They grow.",
        measure=lambda run: run.each([{"x": x} for x in (1, 2, 3)], square),
        draw=_draw,
        judge=lambda rows: Verdict(rows[-1]["y"] > rows[0]["y"], f"from {rows[0]['y']:.2f} to {rows[-1]['y']:.2f}"),
    )


def test_a_figure_leaves_rows_a_picture_and_a_verdict(tmp_path: Path) -> None:
    out = tmp_path / "paper" / "figure1-made"
    verdict = make(_figure([]), Run("made", out), "the command")
    assert str(verdict) == "Held here: from 0.33 to 3.00"
    assert out.with_name("figure1-made.csv").read_text() == "x,y\n1,0.333333\n2,1.33333\n3,3\n"
    assert out.with_name("figure1-made.png").read_bytes()[:4] == b"\x89PNG"
    facts = json.loads(out.with_name("figure1-made.json").read_text())
    assert (facts["held"], facts["command"], facts["published"]) == (True, "the command", "They grow.")
    assert len(list(out.parent.iterdir())) == 3


def test_what_was_measured_before_an_interruption_is_not_measured_again(tmp_path: Path) -> None:
    first: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        make(_figure(first, breaks_at=3), Run("made", tmp_path / "f"), "")
    then: list[int] = []
    make(_figure(then), Run("made", tmp_path / "f"), "")
    assert (first, then) == ([1, 2], [3])


def test_another_seed_does_not_resume_the_journal(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(_figure([], breaks_at=3), Run("made", tmp_path / "f"), "")
    then: list[int] = []
    make(_figure(then), Run("made", tmp_path / "f", seed=1), "")
    assert then == [1, 2, 3]


def test_rows_are_drawn_and_judged_again_without_measuring(tmp_path: Path) -> None:
    run, measured = Run("made", tmp_path / "f"), list[int]()
    make(_figure(measured), run, "the command")
    (tmp_path / "f.csv").write_text("x,y\n1,5\n3,2.5\n")
    (tmp_path / "f.png").unlink()
    verdict = remake(_figure(measured), run)
    assert str(verdict) == "Did not hold here: from 5.00 to 2.50"
    assert measured == [1, 2, 3]
    assert (tmp_path / "f.png").exists()
    facts = json.loads((tmp_path / "f.json").read_text())
    assert (facts["held"], facts["command"]) == (False, "the command")


def test_redrawing_needs_an_earlier_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="make the figure first"):
        remake(_figure([]), Run("made", tmp_path / "f"))


def test_rows_of_another_figure_are_found_if_data_size_and_seed_are_the_same(tmp_path: Path) -> None:
    def several(run: Run) -> list[Row]:
        return [{"name": "a b", "yes": True, "no": None, "big": math.inf, "many": 7, "part": 0.25}]

    figure = Figure("", "", several, lambda drawing, rows: None, lambda rows: Verdict(None, "nothing"))
    make(figure, Run("…/made", tmp_path / "steps-made"), "")
    assert Run("…/made", tmp_path / "figure1-made").beside("steps") == several(Run("", tmp_path))
    assert Run("…/made", tmp_path / "figure1-made", seed=1).beside("steps") == []
    assert Run("…/made", tmp_path / "figure1-made", full=True).beside("steps") == []
    assert Run("…/other", tmp_path / "figure1-other").beside("steps") == []


def test_the_list_has_every_figure_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mugdho2023"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "mugdho2023"
    assert [line.split("  ")[1].strip() for line in shown[1:]] == [
        "figure1 … figure3",
        "figure4 … figure6",
        "figure7 … figure15",
        "figure16 … figure18",
        "steps",
    ]
