"""Write the reference of the command line from the program itself, into every page that has the marker.

>>> "`--epsilon E`" in reference()
True
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

MARKER = "<!-- commands -->"
_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_SPECIAL = re.compile(r"[\\*_<\[\]]")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the reference where a page asks for it."""
    return markdown.replace(MARKER, reference()) if MARKER in markdown else markdown


def reference() -> str:
    """Return all commands of `dpmf` with all their options, in Markdown."""
    from dpmf.cli import dpmf

    return "\n".join(describe(dpmf, context_of(dpmf, "dpmf"), level=2))


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """Return what a command is called, with its own settings, such as how help is spelt."""
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def describe(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """Yield the lines about a command, and about those below it.

    Args:
        command: what to describe.
        context: its name, and that of the commands above it.
        level: of its heading; commands below it have the next one.
    """
    yield f"{'#' * level} {context.command_path}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield f"{prose(' '.join(paragraph.split()))}\n"
    usage = [context.command_path, *command.collect_usage_pieces(context)]
    yield f"```text\n{' '.join(usage)}\n```\n"
    for parameter in command.get_params(context):
        name, meaning = parameter.get_help_record(context) or ("", "")
        if meaning or (name and isinstance(parameter, click.Option)):  # arguments without help are in the usage already
            yield f"`{name}`\n:   {prose(meaning)}\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from describe(below, context_of(below, name, context), level + 1)


def prose(text: str) -> str:
    """Return text that Markdown shows as it is, with options as code.

    >>> prose("Sign what --out saves, see `a_b`; a*b  [default: 1]")
    'Sign what `--out` saves, see `a_b`; a\\\\*b  \\\\[default: 1\\\\]'
    """
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    return _OPTION.sub(r"`\g<0>`", escaped)
