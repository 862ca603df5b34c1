"""Printing for people or for programs.

>>> print(rounded({"rmse": 0.123456789, "delta": 1e-9, "n": 3}))
{'rmse': 0.123457, 'delta': 1e-09, 'n': 3}
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
METRICS_NOTE = "These figures are for the data holder: no guarantee covers them."


def print_json(content: Any) -> None:
    """Print one JSON object; what is not a number becomes null."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    click.echo(json.dumps(rounded(content), ensure_ascii=not is_utf8, allow_nan=False))


def rounded(content: Any) -> Any:
    """Return JSON content with six digits after the point, or six that count if it is small; null for NaN."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    if isinstance(content, float):
        if not math.isfinite(content):
            return None
        return round(content, 6) if abs(content) >= 1e-3 else float(f"{content:.6g}")
    return content


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; columns of numbers are set to the right."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", header_style="bold", box=_box())
    for place, name in enumerate(columns):
        numeric = all(isinstance(row[place], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    _console().print(table)


def say(text: str, style: str = "") -> None:
    """Print a line of text, with a style on a terminal."""
    _console().print(_harmless(text), style=style, markup=False, highlight=False)


@contextlib.contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Yield a function (done, note, total=None) that moves a progress bar; on a terminal only, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda done, note, total=total: bar.update(task, completed=done, note=note, total=total)


def _cell(cell: object) -> str:
    from rich.markup import escape

    if isinstance(cell, float):
        return f"{cell:.4f}"
    return f"{cell:,}" if isinstance(cell, int) else escape(_harmless(str(cell)))


def _harmless(text: str) -> str:
    """Return text without control characters: a title in a file must not command the terminal that shows it.

    >>> _harmless("Heat \\x1b[2J")
    'Heat �[2J'
    """
    return "".join("�" if unicodedata.category(one) == "Cc" and one != "\n" else one for one in text)


def _console() -> Any:
    from rich.console import Console

    # Not a terminal: no colours, and lines as long as they are, so that grep and cut see whole rows.
    console = Console()
    return console if console.is_terminal else Console(width=1000, no_color=True)


def _box() -> Any:
    from rich import box

    return box.SIMPLE
