"""Options of a command in groups: a dataclass each, instead of an argument per option.

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
from dataclasses import dataclass, fields
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


@dataclass(frozen=True)
class SplitOptions:
    """What to hold out: --holdout and --split."""

    holdout: float | None
    how: str


@dataclass(frozen=True)
class MethodOptions:
    """Which method, and its settings."""

    method: str
    feedback: str
    factors: int | None
    epochs: int | None
    seed: int
    settings: tuple[str, ...]


@dataclass(frozen=True)
class PrivacyOptions:
    """What makes a run private."""

    epsilon: float | None
    delta: float
    mode: str
    neighbours: str
    items_public: bool
    user_budgets: Path | None
    ledger_file: Path | None
    cap: float | None

    @property
    def kind(self) -> str:
        """What kind of run is asked for: the mode, or "none" without a finite epsilon."""
        return self.mode if self.epsilon not in (None, float("inf")) else "none"


@dataclass(frozen=True)
class CheckpointOptions:
    """Where and when to keep snapshots."""

    checkpoint_folder: Path | None
    checkpoint_every: int | None
    checkpoint_minutes: float | None
    resume: bool
