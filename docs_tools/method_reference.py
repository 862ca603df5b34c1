"""Write what the registry of methods says into every page that has a marker: a table, and the reference of each class.

>>> "| `als` | `ALS` | user |" in table()
True
>>> classes().splitlines()[0]
'::: dpmf.ALS'
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from dpmf.methods import Method

TABLE, CLASSES = "<!-- methods -->", "<!-- method classes -->"
_COLUMNS = ("`--method`", "class", "certified for a", "paper's claim", "feedback", "streams from disk")
_KINDS = {"certified": "certified", "paper": "as claimed", "none": "not private"}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put table and classes where a page asks for them."""
    return with_methods(markdown)


def with_methods(markdown: str) -> str:
    """Return a page with table and classes in the place of their markers."""
    for marker, content in ((TABLE, table), (CLASSES, classes)):
        if marker in markdown:
            markdown = markdown.replace(marker, content())
    return markdown


def table() -> str:
    """Return what each method can do, in Markdown."""
    from dpmf.methods import METHODS

    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_row, METHODS.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def classes() -> str:
    """Return the references of all classes, as mkdocstrings takes them."""
    from dpmf.methods import METHODS

    return "\n\n".join(f"::: dpmf.{method.__name__}" for method in METHODS.values())


def _row(method: type[Method]) -> tuple[str, ...]:
    kinds = [kind for kind in _KINDS if kind == "none" or kind in method.modes]
    streamed = [_KINDS[kind] for kind in kinds if _configured(method, kind).streams]
    return (
        f"`{method.name}`",
        f"`{method.__name__}`",
        method.unit_for("certified") if "certified" in method.modes else "–",
        "yes" if "paper" in method.modes else "–",
        ", ".join(method.feedbacks),
        "always" if len(streamed) == len(kinds) else ", ".join(streamed) or "–",
    )


def _configured(method: type[Method], kind: str) -> Method:
    """Return a method for a kind of run."""
    mode, epsilon = (method.plain_mode, math.inf) if kind == "none" else (kind, 1.0)
    return method(**method.private_fields(mode, epsilon))
