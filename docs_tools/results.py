"""Put recorded figures into the pages, so that a figure that stands on several pages comes from one place.

    python -m docs_tools.results            # rewrite the pages
    python -m docs_tools.results --check    # only say which pages are out of date

Figures are rows of docs/results/*.jsonl, which benchmarks write with `--record`. A row is addressed by its set, its
name and its epsilon, if it has one: `als/ml-1m/1`. A page shows one figure between two comments, with a format as
Python has it:

    rmse <!-- als/ml-1m/1:rmse:.3f -->0.938<!-- end -->

(a comment must not begin a line: in Markdown that ends the paragraph) and a table of docs/results/tables.toml between
`<!-- begin: results NAME -->` and `<!-- end: results NAME -->`. A table has columns, each a heading and a template such
as `{1:rmse:.4f}` (epsilon, figure, format), and rows, each a label and a set with a name. Figures whose rows have a
note are marked, and the notes stand below the table."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
_FIGURE = re.compile(r"<!-- (?P<key>[\w./-]+):(?P<figure>[\w@.-]+):(?P<format>[^\s]+) -->.*?<!-- end -->", re.DOTALL)
_BLOCK = re.compile(r"<!-- begin: results (?P<name>[\w-]+) -->\n.*?<!-- end: results (?P=name) -->", re.DOTALL)
_FIELD = re.compile(r"\{(?P<epsilon>[^:{}]*):(?P<figure>[^:{}]+):(?P<format>[^{}]+)\}")
_MARKS = "¹²³⁴⁵⁶⁷⁸⁹"
_BASELINES = ("baseline_", "popularity_")  # figures that no note is about

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table of recorded figures.

    Attributes:
        first: the heading of the first column.
        columns: headings and templates.
        rows: labels, sets with names, and what figures in templates stand for in this row, if not for themselves.
    """

    first: str
    columns: list[tuple[str, str]]
    rows: list[tuple[str, str, dict[str, str]]]

    def markdown(self, rows: Rows) -> str:
        """Return the table, and below it the notes on figures that it shows."""
        lines = [[self.first, *(heading for heading, _ in self.columns)], ["---"] * (len(self.columns) + 1)]
        notes: list[str] = []
        for label, place, names in self.rows:
            cells = [_cell(template, place, names, rows, notes) for _, template in self.columns]
            if not any(cells):
                raise KeyError(f"docs/results has no figures of {place} for the row {label!r}")
            lines.append([label, *cells])
        shown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        below = "  \n".join(f"{mark} {note[:1].upper()}{note[1:]}." for mark, note in zip(_MARKS, notes, strict=False))
        return f"{shown}\n\n{below}" if notes else shown


def main(arguments: list[str]) -> int:
    """Rewrite pages, or check them; return the exit code."""
    rows, tables = read_rows(RESULTS), read_tables(RESULTS / "tables.toml")
    stale = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = refreshed(text, tables, rows)
        if new != text:
            stale.append(page.relative_to(ROOT).as_posix())
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    sys.stdout.write("\n".join(stale or ["All pages are up to date."]) + "\n")
    return int(bool(stale) and "--check" in arguments)


def pages() -> list[Path]:
    """Return all pages that may show figures."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "experiments").rglob("*.md")])


def read_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all recorded rows by set, name and epsilon."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[_key(f"{path.stem}/{row['name']}", row["epsilon"])] = row
    return found


def read_tables(path: Path) -> dict[str, Table]:
    """Return the tables that pages may show, by name."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Table(
            one["first"],
            [(heading, template) for heading, template in one["columns"]],
            [(label, place, names[0] if names else {}) for label, place, *names in one["rows"]],
        )
        for name, one in content.items()
    }


def refreshed(text: str, tables: Mapping[str, Table], rows: Rows) -> str:
    """Return a page with the figures and tables that it asks for.

    >>> refreshed("so <!-- a/b/1:rmse:.2f -->0.7<!-- end -->.", {}, {"a/b/1": {"figures": {"rmse": 0.875}}})
    'so <!-- a/b/1:rmse:.2f -->0.88<!-- end -->.'
    """

    def figure(found: re.Match[str]) -> str:
        key, name, form = found["key"], found["figure"], found["format"]
        if key not in rows or name not in rows[key]["figures"]:
            raise KeyError(f"docs/results has no {name} of {key}")
        return f"<!-- {key}:{name}:{form} -->{rows[key]['figures'][name]:{form}}<!-- end -->"

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in tables:
            raise KeyError(f"docs/results/tables.toml has no table {name}")
        return f"<!-- begin: results {name} -->\n\n{tables[name].markdown(rows)}\n\n<!-- end: results {name} -->"

    if broken := re.search(rf"^{_FIGURE.pattern}", text, re.DOTALL | re.MULTILINE):
        raise ValueError(f"{broken[0]} begins a line, which ends the paragraph: put a word before it")
    return _BLOCK.sub(block, _FIGURE.sub(figure, text))


def _cell(template: str, place: str, names: Mapping[str, str], rows: Rows, notes: list[str]) -> str:
    """Return a cell, empty if a figure of it is missing, with the marks of notes, which are added to `notes`."""
    shown, marks = template, ""
    for field in _FIELD.finditer(template):
        row, figure = rows.get(_key(place, field["epsilon"])), names.get(field["figure"], field["figure"])
        if row is None or figure not in row["figures"]:
            return ""
        note = row.get("note")
        if note and not figure.startswith(_BASELINES):
            notes.extend([note] if note not in notes else [])
            mark = _MARKS[notes.index(note)]
            marks += mark if mark not in marks else ""
        shown = shown.replace(field[0], format(row["figures"][figure], field["format"]))
    return shown + marks


def _key(place: str, epsilon: str) -> str:
    return f"{place}/{epsilon}" if epsilon else place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
