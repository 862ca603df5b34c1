"""Options of a command in groups: a dataclass each, instead of an argument per option.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Size:
...     width: int
...     height: int
>>> @grouped(size=Size)
... def draw(size, title):
...     return size, title
>>> draw(width=3, height=2, title="map")
(Size(width=3, height=2), 'map')
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def grouped(**kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Hand over options as dataclasses: to each argument that is named here, those with the names of its fields."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(**given: Any) -> Any:
            groups = {
                name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
                for name, kind in kinds.items()
            }
            return function(**groups, **given)

        return wrapped

    return decorate


def all_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[Function], Function]:
    """Return a decorator that adds several options, in this order."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def folder_option(option: str, name: str, meaning: str) -> Callable[[Any], Any]:
    """Return an option that names a folder.

    Args:
        option: as it is written.
        name: of the argument.
        meaning: its help.
    """
    return click.option(option, name, type=click.Path(path_type=Path), metavar="DIR", help=meaning)
