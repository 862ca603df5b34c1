"""What notebooks show of an object: small tables, in HTML.

>>> show_table({"title": ["Heat & <Dust>"], "score": [4.25]})
'<table><thead><tr><th>title</th><th>score</th></tr></thead>\
<tbody><tr><td>Heat &amp; &lt;Dust&gt;</td><td>4.25</td></tr></tbody></table>'
>>> show_facts("Ratings", {"users": 3})
'<table><caption>Ratings</caption><tbody><tr><th>users</th><td>3</td></tr></tbody></table>'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

MOST_ROWS = 50


def show_table(columns: Mapping[str, Sequence[object]], title: str | None = None) -> str:
    """Return a table with a row for each place in the columns; after `MOST_ROWS` it says how many there are."""
    rows = list(zip(*columns.values(), strict=True))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        body += f'<tr><td colspan="{len(columns)}">… {len(rows):,} rows</td></tr>'
    caption = "" if title is None else f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def show_facts(title: str, facts: Mapping[str, object]) -> str:
    """Return a table of two columns, with a title."""
    rows = "".join(f"<tr><th>{escape(name)}</th>{_cell(fact)}</tr>" for name, fact in facts.items())
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    """Return a cell; of a sequence, a list."""
    if isinstance(value, list | tuple):
        return f"<td><ul>{''.join(f'<li>{escape(str(one))}</li>' for one in value)}</ul></td>"
    if isinstance(value, float):
        return f"<td>{value:.6g}</td>"
    return f"<td>{value:,}</td>" if type(value) is int else f"<td>{escape(str(value))}</td>"
