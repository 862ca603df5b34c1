"""One page about an audit that needs nothing from anywhere."""

from __future__ import annotations

from pathlib import Path

from dpmf.audit.findings import Audit, Finding
from dpmf.audit.report.pictures import pictures
from dpmf.compare.report.markup import Cell, folded, listed, page, paragraph, table, text
from dpmf.files import write_text

_LIMITS = (
    "An audit can refute a guarantee; it cannot prove one. What proves it are the proofs of dpmf, and that this code "
    "does what they say is what the exact parts of this page check."
)


def write_report(audit: Audit, path: Path) -> None:
    """Write the page."""
    write_text(path, report(audit))


def report(audit: Audit) -> str:
    """Return the page."""
    about = audit.about
    title = f"Audit of {about['method']}: {audit.verdict}"
    drawn = pictures(audit)
    parts = [
        f"<h1>{text(title)}</h1>",
        paragraph(_LIMITS, "note"),
        table(("part", "verdict", "finding"), [[one.title, one.mark, one.sentence] for one in audit.findings]),
        *(['<div class="pair">' + "".join(drawn) + "</div>"] if drawn else []),
        *(part for one in audit.findings for part in _section(one)),
        "<h2>What was audited</h2>",
        table(("", ""), [[str(name), str(value)] for name, value in about.items() if name != "configuration"]),
        folded("All settings", listed(f"{name} = {value}" for name, value in about["configuration"].items())),
    ]
    return page(title, parts)


def _section(one: Finding) -> list[str]:
    rows = [[Cell(_shown(cell), number=isinstance(cell, int | float)) for cell in row] for row in one.rows]
    head = [
        f"<h2>{text(one.title)}: {text(one.mark)}</h2>",
        paragraph(one.sentence[0].upper() + one.sentence[1:] + "."),
    ]
    return [*head, table(one.columns, rows), *(paragraph(note, "soft") for note in one.notes)]


def _shown(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
