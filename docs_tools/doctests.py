"""Show doctests of docstrings as code, wherever they stand: Markdown would take `>>>` for a quotation.

>>> fenced("Adds.\\n\\n>>> 1 + 1\\n2")
'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_BLOCK = re.compile(r"^>>> .*?(?=\n[ \t]*\n|\Z)", re.DOTALL | re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around every block that begins with a prompt."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Do so in the docstring of any module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Return a docstring, already without the indentation of its code, with blocks of doctests fenced."""
    return _BLOCK.sub(lambda block: f"```pycon\n{block[0].rstrip()}\n```", docstring)
