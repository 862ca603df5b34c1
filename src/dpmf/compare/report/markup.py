"""HTML by hand: everything that comes from outside is escaped here, once.

>>> table(["method", "rmse"], [["a<b", Cell("0.9", number=True)]])
'<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">method</th><th scope="col" class="n">rmse</th></tr>\
</thead><tbody><tr><td>a&lt;b</td><td class="n">0.9</td></tr></tbody></table></div>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1b1d21; --soft: #5a606b; --line: #d5d9e0; --back: #ffffff; --card: #f5f7fa;
  --proven: #00563f; --claim: #8a3b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a5acb8; --line: #3b414b; --back: #16181c;
  --card: #1f2329; --proven: #6fd3b0; --claim: #ffb27a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; color: var(--ink); background: var(--back);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.4rem; }
p, ul { margin: 0.5rem 0; max-width: 46rem; }
.lead { font-size: 1.15rem; font-weight: 600; }
.note { background: var(--card); border-left: 4px solid var(--claim); padding: 0.6rem 0.9rem; max-width: none; }
.soft, caption { color: var(--soft); font-size: 0.9rem; }
.scroll { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.7rem 0.25rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; }
.n { text-align: right; }
td.n { white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: 0.8em; }
.proven::before { content: "● "; color: var(--proven); }
.claim::before { content: "○ "; color: var(--claim); }
figure { margin: 0.8rem 0; background: #ffffff; border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem; }
figure svg { display: block; margin: 0 auto; max-width: 48rem; height: auto; }
@media (prefers-color-scheme: dark) { @media screen { figure { background: #1a1a1a; }
  figure svg { filter: invert(0.9) hue-rotate(180deg); } } }
section h2 { margin-top: 0.6rem; } section .lead { font-size: 1rem; } .pair + h2 { margin-top: 1.2rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0.8rem; }
.pair figure { margin: 0; }
details { margin: 0.5rem 0; border-bottom: 1px solid var(--line); padding-bottom: 0.4rem; }
details details { border: 0; }
summary { cursor: pointer; font-weight: 600; padding: 0.25rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.85rem; }
pre { background: var(--card); padding: 0.7rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { :root { --ink: #000; --soft: #333; --back: #fff; --card: #f2f2f2; --line: #999; --proven: #000;
  --claim: #000; } body { max-width: none; padding: 0; font-size: 10pt; } figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; } details:not([open]) { display: none; }
  .scroll { overflow: visible; } table { font-size: 8pt; }
  th, td { padding-right: 0.4rem; } }
@media (max-width: 30rem) { section table { font-size: 0.8rem; } section :is(th, td) { padding-right: 0.35rem; }
  section td small { display: none; } }
"""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what it says.
        below: what it says below that, smaller.
        number: whether it is set to the right.
        kind: "proven" or "claim", which have a mark before the text; "" for neither.
    """

    text: str
    number: bool = False
    kind: str = ""
    below: str = ""


def text(content: object) -> str:
    """Return text that cannot be mistaken for markup."""
    return escape(str(content), quote=True)


def paragraph(content: object, kind: str = "") -> str:
    """Return a paragraph."""
    return f"<p{_class(kind)}>{text(content)}</p>"


def listed(entries: Iterable[object]) -> str:
    """Return a list."""
    return "<ul>" + "".join(f"<li>{text(one)}</li>" for one in entries) + "</ul>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Cell]], caption: str = "") -> str:
    """Return a table that scrolls by itself where the screen is narrow."""
    cells = [[one if isinstance(one, Cell) else Cell(one) for one in row] for row in rows]
    numeric = [bool(cells) and all(row[place].number for row in cells) for place in range(len(columns))]
    kinds = (_class("n" if right else "") for right in numeric)
    heads = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in cells)
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    content = f"{named}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>{content}</table></div>'


def folded(summary: str, content: str) -> str:
    """Return markup that is shown, and printed, when asked for."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page that needs nothing from anywhere."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _cell(cell: Cell) -> str:
    kinds = " ".join(kind for kind in ("n" if cell.number else "", cell.kind) if kind)
    below = f"<small>{text(cell.below)}</small>" if cell.below else ""
    return f"<td{_class(kinds)}>{text(cell.text)}{below}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
