"""A figure and how it is reproduced: rows are measured one by one, saved as they come, then plotted and judged.

    result = make(FIGURES["figure1"], Run(data="…/ml-1m", out=Path("experiments/results/balu2016/figure1")))

writes three files: OUT.csv with the rows, OUT.png with the plot and the verdict under it, and OUT.json with the
verdict, the command and the versions. An interrupted run leaves its rows beside them and resumes from there. `remake`
plots and judges the rows of an earlier run again, without measuring anything.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import platform
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf import Ratings
from dpmf.engine.threads import available_cpus
from dpmf.errors import InvalidArgument
from dpmf.files import read_json, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Row = dict[str, Any]
_LETTERS_PER_INCH = 14  # of the verdict under a plot
_COLOURS = 200  # of a PNG, which halves its size


@dataclass(frozen=True)
class Verdict:
    """Whether a published finding holds here.

    Attributes:
        held: whether it holds; None if the rows are inconclusive.
        sentence: the measured figures, written from the rows.
    """

    held: bool | None
    sentence: str

    def __str__(self) -> str:
        start = {True: "Held here", False: "Did not hold here", None: "Cannot be told from this"}[self.held]
        return f"{start}: {self.sentence}"


@dataclass(frozen=True)
class Figure:
    """A published figure.

    Attributes:
        title: the quantities plotted.
        published: the finding of the paper, in our words.
        measure: returns the rows.
        draw: plots them on a matplotlib figure.
        judge: decides whether the published finding holds.
        data: the names of the data sets it is meant for, the usual one first.
    """

    title: str
    published: str
    measure: Callable[[Run], list[Row]]
    draw: Callable[[Drawing, list[Row]], None]
    judge: Callable[[list[Row]], Verdict]
    data: tuple[str, ...] = ("ml-1m",)


@dataclass(frozen=True)
class Run:
    """How to reproduce a figure.

    Attributes:
        data: a folder of ratings, a file or a catalogue name.
        out: path of the output files, without their suffixes.
        full: run at the published size, instead of one that takes minutes.
        seed: of splits, samples and initial factors; noise is never seeded.
        n_threads: the number of threads.
    """

    data: str
    out: Path
    full: bool = False
    seed: int = 0
    n_threads: int = field(default_factory=available_cpus)

    def ratings(self) -> Ratings:
        """Read the data."""
        return Ratings.read(self.data)

    def each(self, points: Sequence[Mapping[str, Any]], measure: Callable[..., Mapping[str, Any]]) -> list[Row]:
        """Return `{**point, **measure(**point)}` per point; points of an interrupted run are not measured again."""
        kept = self._kept()
        rows: list[Row] = []
        for number, point in enumerate(points, start=1):
            key = json.dumps(dict(point), sort_keys=True)
            if key not in kept:
                began = time.perf_counter()
                kept[key] = dict(measure(**point))
                with self._journal.open("a") as journal:
                    journal.write(json.dumps([self._what(), key, kept[key]]) + "\n")
                shown = ", ".join(_progress({**point, **kept[key]}))
                seconds = time.perf_counter() - began
                print(f"{number}/{len(points)} in {seconds:.1f} s: {shown}", file=sys.stderr, flush=True)
            rows.append({**point, **kept[key]})
        return rows

    def beside(self, figure: str) -> list[Row]:
        """Return the rows of another figure of the same paper, data, size and seed; none if there are none."""
        other = self.out.with_name(f"{figure}-{Path(self.data).name}")
        if not _beside(other, ".json").exists():
            return []
        facts = read_json(_beside(other, ".json"))
        same = (facts["full"], facts["seed"]) == (self.full, self.seed)
        return read_rows(_beside(other, ".csv")) if same else []

    @property
    def _journal(self) -> Path:
        return _beside(self.out, ".partial.jsonl")

    def _what(self) -> list[Any]:
        return [Path(self.data).name, self.full, self.seed]

    def _kept(self) -> dict[str, Row]:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        if not self._journal.exists():
            return {}
        lines = [json.loads(line) for line in self._journal.read_text().splitlines() if line.endswith("]")]
        return {key: row for what, key, row in lines if what == self._what()}

    def finish(self) -> None:
        """Delete the journal that an interrupted run would resume from."""
        self._journal.unlink(missing_ok=True)


def make(figure: Figure, run: Run, command: str) -> Verdict:
    """Measure, plot and judge a figure; write its three files."""
    began = time.perf_counter()
    rows = figure.measure(run)
    verdict = figure.judge(rows)
    facts = {
        "title": figure.title,
        "published": figure.published,
        "held": verdict.held,
        "found": verdict.sentence,
        "command": command,
        "data": Path(run.data).name,
        "full": run.full,
        "seed": run.seed,
        "seconds": round(time.perf_counter() - began, 1),
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("numpy", "numba", "dpmf")},
    }
    write_text(_beside(run.out, ".csv"), _table(rows))
    _write(figure, run, rows, verdict, facts)
    run.finish()
    return verdict


def remake(figure: Figure, run: Run) -> Verdict:
    """Plot and judge the rows of OUT.csv; the other facts about the run stay."""
    rows = read_rows(_beside(run.out, ".csv"))
    verdict = figure.judge(rows)
    facts = read_json(_beside(run.out, ".json"))
    facts |= {"title": figure.title, "published": figure.published, "held": verdict.held, "found": verdict.sentence}
    _write(figure, run, rows, verdict, facts)
    return verdict


def _write(figure: Figure, run: Run, rows: list[Row], verdict: Verdict, facts: dict[str, Any]) -> None:
    unfinished = _beside(run.out, ".partial.png")
    unfinished.write_bytes(_picture(figure, rows, verdict, Path(run.data).name))
    unfinished.replace(_beside(run.out, ".png"))
    write_text(_beside(run.out, ".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(out.name + ending)


def _progress(row: Row) -> Iterable[str]:
    for name, value in row.items():
        if not isinstance(value, list):
            yield f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"


def _table(rows: Iterable[Row]) -> str:
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{cell:.6g}" if isinstance(cell, float) else cell for name, cell in row.items()})
    return text.getvalue()


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table as `_table` writes it."""
    try:
        with path.open(newline="") as file:
            return [{name: _cell(text) for name, text in row.items()} for row in csv.DictReader(file)]
    except FileNotFoundError:
        raise InvalidArgument(f"{path} does not exist: make the figure first") from None


def _cell(text: str) -> Any:
    if text in ("True", "False", ""):
        return {"True": True, "False": False}.get(text)
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _picture(figure: Figure, rows: list[Row], verdict: Verdict, data: str) -> bytes:
    from matplotlib.figure import Figure as Drawing
    from PIL import Image

    drawing = Drawing(figsize=(7.5, 5), layout="constrained")
    figure.draw(drawing, rows)
    drawing.suptitle(f"{figure.title} ({data})", fontsize="medium")
    line = int(_LETTERS_PER_INCH * drawing.get_figwidth())
    drawing.supxlabel(textwrap.fill(str(verdict), line), fontsize="small", x=0.02, ha="left")
    content, small = io.BytesIO(), io.BytesIO()
    drawing.savefig(content, dpi=100, format="png")
    Image.open(content).convert("RGB").quantize(_COLOURS).save(small, "png", optimize=True)
    return small.getvalue()
