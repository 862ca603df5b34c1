"""Options that say what is recommended.

>>> ChoiceOptions(5, ("Heat (1995)",), (), (), ("Horror",), None, False).filters()["only"]
['Heat (1995)']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dpmf.cli.groups import all_of
from dpmf.errors import InvalidArgument


@dataclass(frozen=True)
class ChoiceOptions:
    """What was asked for."""

    k: int
    only: tuple[str, ...]
    exclude: tuple[str, ...]
    only_genre: tuple[str, ...]
    exclude_genre: tuple[str, ...]
    most_per_genre: int | None
    include_rated: bool

    def filters(self) -> dict[str, Any]:
        """Return what may be recommended, as `dpmf.model.selection.find_filters` takes it."""
        return {
            "only": list(_read_items("--only", self.only)) if self.only else None,
            "exclude": _read_items("--exclude", self.exclude),
            "only_genres": self.only_genre or None,
            "exclude_genres": self.exclude_genre,
            "most_per_genre": self.most_per_genre,
        }


choice_options = all_of(
    (
        click.option("-k", type=int, default=10, show_default=True, help="Number of items."),
        click.option(
            "--only",
            multiple=True,
            metavar="ITEM",
            help="Choose among these items only (repeatable): an id, an exact title, or @FILE for a file with one per "
            "line.",
        ),
        click.option("--exclude", multiple=True, metavar="ITEM", help="Leave this item out (repeatable); or @FILE."),
        click.option(
            "--only-genre",
            multiple=True,
            metavar="GENRE",
            help="Choose among items of this genre (repeatable: any of them).",
        ),
        click.option(
            "--exclude-genre", multiple=True, metavar="GENRE", help="Leave out items of this genre (repeatable)."
        ),
        click.option(
            "--most-per-genre",
            type=int,
            metavar="N",
            help="Skip an item once one of its genres is in the list N times. Items without genres are not limited.",
        ),
        click.option("--include-rated", is_flag=True, help="Also recommend items already rated."),
    )
)


def _read_items(option: str, named: Iterable[str]) -> Iterator[str]:
    """Yield the items that an option names, those in files included."""
    for one in named:
        if not one.startswith("@"):
            yield one
            continue
        try:
            lines = Path(one[1:]).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"cannot read {option} {one}, a text file of one item per line: {error}") from None
        yield from (line.strip() for line in lines if line.strip())
