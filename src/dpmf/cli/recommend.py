"""`dpmf recommend` and `dpmf similar`."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import click

from dpmf.cli.choice import ChoiceOptions, choice_options
from dpmf.cli.groups import grouped
from dpmf.cli.output import json_option, print_json, print_table, say
from dpmf.errors import InvalidArgument, InvalidRatings

_IMPERSONAL = {"ratings": "how well everybody likes items", "popularity": "popularity"}


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option(
    "--ratings",
    "ratings_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A person's own ratings: a CSV file with the columns item (id or title) and rating; for a release of implicit "
    "feedback the item is enough, or item and count if it weighs counts.",
)
@choice_options
@json_option
@grouped(asked=ChoiceOptions)
def recommend(release: Path, ratings_file: Path, asked: ChoiceOptions, as_json: bool) -> None:
    """Recommend items to one person, from their own ratings.

    Nothing leaves this process.
    """
    from dpmf.model import Release

    loaded = Release.load(release)
    read = read_own_counts if loaded.is_implicit else read_own_ratings
    person = loaded.fold_in(read(ratings_file))
    if person.unknown:
        click.echo(f"dpmf: {len(person.unknown)} rated items are not in the catalogue and were left out", err=True)
    by = person.ordered_by
    if by in _IMPERSONAL:
        learnt, known = loaded.learnt, ""
        number = {"popularity": learnt.popular, "ratings": learnt.rated}.get(by)
        if number is not None and number < learnt.n_items:
            known = f", which is known of {number:,} of {learnt.n_items:,} items and noise of the others"
        click.echo(f"dpmf: nothing personal: the list is by {_IMPERSONAL[by]}, as it is for everybody{known}", err=True)
    found = person.recommend(asked.k, include_rated=asked.include_rated, **asked.filters())
    if by == "nothing":
        raise InvalidArgument(
            f"{release} cannot recommend anything: it knows nothing beyond noise about any item; train on more people, "
            "or with a larger --epsilon"
        )
    _show(found, as_json, ordered_by=by)


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("item")
@click.option("-k", type=int, default=10, show_default=True, help="Number of items.")
@json_option
def similar(release: Path, item: str, k: int, as_json: bool) -> None:
    """List the items of a RELEASE most similar to ITEM.

    ITEM is an id or an exact title.
    """
    from dpmf.model import Release

    found = Release.load(release).similar_items(item, k)
    if not found:
        raise InvalidArgument(
            f"nothing beyond noise is known about items like {item!r}: ask about an item that more people have, or "
            "train on more people or with a larger --epsilon"
        )
    _show(found, as_json)


def read_own_ratings(path: Path) -> dict[str, float]:
    """Read a person's ratings: two columns, item and rating, with or without a header line."""
    rows = _read_rows(path)
    if [name.strip().lower() for name in rows[0]][:2] in (["item", "rating"], ["title", "rating"]):
        del rows[0]
    if not rows:
        raise _nothing_in(path)
    ratings: dict[str, float] = {}
    for number, row in enumerate(rows, start=1):
        try:
            item, value = row
            rating = float(value)
        except ValueError:
            raise InvalidRatings(
                f"{path}: rating {number} should be an item and a number, and is {','.join(row)!r}"
            ) from None
        if item in ratings:
            raise InvalidRatings(f"{path}: {item!r} is rated twice: keep one")
        ratings[item] = rating
    return ratings


def read_own_counts(path: Path) -> dict[str, float]:
    """Read which items a person has, and how often: an item that comes again counts again.

    A second column counts if a header line calls it count; else it is ignored, as is any rating.
    """
    rows = _read_rows(path)
    header = [name.strip().lower() for name in rows[0]]
    if header == ["item"] or (header[0] in ("item", "title") and header[1:2] in (["rating"], ["count"])):
        del rows[0]
    if not rows:
        raise _nothing_in(path)
    counts: dict[str, float] = {}
    for number, row in enumerate(rows, start=1):
        count = 1.0
        if header[1:2] == ["count"]:
            try:
                _, value = row
                count = float(value)
            except ValueError:
                raise InvalidRatings(
                    f"{path}: count {number} should be an item and a number, and is {','.join(row)!r}"
                ) from None
            if not 0 < count < math.inf:
                raise InvalidRatings(f"{path}: the count {count:g} of {row[0]!r} is not a number above 0")
        counts[row[0]] = counts.get(row[0], 0.0) + count
    return counts


def _read_rows(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except FileNotFoundError:
        raise InvalidArgument(f"no file {path}: name a CSV file with the columns item,rating") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidRatings(f"{path} is not a CSV file in UTF-8: {error}") from None
    if not rows:
        raise _nothing_in(path)
    return rows


def _nothing_in(path: Path) -> InvalidRatings:
    return InvalidRatings(f"{path} is empty: it should hold lines such as “Heat (1995)”,4")


def _show(found: list[Any], as_json: bool, **more: str) -> None:
    if as_json:
        print_json({"recommendations": [one.to_json() for one in found], **more})
        return
    if not found:
        say("nothing is left to recommend")
        return
    names = [name for name in ("item", "title", "score", "rating") if name in found[0].to_json()]
    rows = [(str(one.item), *(getattr(one, name) for name in names[1:])) for one in found]
    if not all(one.known for one in found):
        names.append("known from")
        rows = [(*row, "ratings" if one.known else "its description") for row, one in zip(rows, found, strict=True)]
    print_table("", tuple(names), rows)
