"""Tables that scripts put into pages of the documentation, between two comments.

>>> replaced("a\\n<!-- begin: x -->\\nold\\n<!-- end: x -->\\nb\\n", "x", "new")
'a\\n<!-- begin: x -->\\n\\nnew\\n\\n<!-- end: x -->\\nb\\n'
"""

from __future__ import annotations

from pathlib import Path


def replaced(text: str, name: str, table: str) -> str:
    """Return a page with another table in the block of this name."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    before, found, rest = text.partition(begin)
    _, also_found, after = rest.partition(end)
    if not (found and also_found):
        raise SystemExit(f"the page has no block {name}")
    return f"{before}{begin}\n{table.strip()}\n\n{end}{after}"


def put_block(page: Path | None, name: str, table: str) -> None:
    """Replace a table in a page, if one is given."""
    if page is not None:
        page.write_text(replaced(page.read_text(), name, table))
