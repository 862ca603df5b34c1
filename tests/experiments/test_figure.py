"""A figure: its rows, picture and verdict; what an interruption leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from experiments.figure import Figure, Row, Run, Verdict, make


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


def test_another_seed_does_not_take_up_what_was_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(_figure([], breaks_at=3), Run("made", tmp_path / "f"), "")
    then: list[int] = []
    make(_figure(then), Run("made", tmp_path / "f", seed=1), "")
    assert then == [1, 2, 3]
