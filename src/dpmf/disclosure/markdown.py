r"""Texts in Markdown.

>>> escaped("a|b\nc")
'a\\|b c'
"""

from __future__ import annotations

from collections.abc import Sequence


def escaped(text: str) -> str:
    """Return text as one line, in which nothing ends a cell or starts markup."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return "".join(f"\\{one}" if one in "\\|<`*[]" else one for one in plain)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    whole = [columns, ("---",) * len(columns), *rows]
    return ["| " + " | ".join(escaped(cell) for cell in cells) + " |" for cells in whole]
