"""`dpmf data`: the catalogue of data sets, and getting them into shape."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from dpmf.cli.options import parse_size, read_ratings, reading_arguments, reading_options
from dpmf.cli.output import json_option, print_json, print_table, progress, say
from dpmf.errors import InvalidArgument


@click.group()
def data() -> None:
    """List, describe, fetch and ingest data sets."""


@data.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the data sets that dpmf knows by name."""
    from dpmf.ratings.catalogue import CATALOGUE, folder_of

    here = {name: name == "synthetic" or folder_of(name).is_dir() for name in CATALOGUE}
    if as_json:
        rows = [
            {"name": one.name, "title": one.title, "scale": one.scale, "ratings": one.ratings or None,
             "users": one.users, "items": one.items, "here": here[one.name], "fetchable": one.archive is not None}
            for one in CATALOGUE.values()
        ]  # fmt: skip
        print_json({"datasets": rows})
        return
    shown = [
        (one.name, one.title, f"{one.scale[0]:g}–{one.scale[1]:g}", f"{one.ratings:,}" if one.ratings else "",
         "yes" if here[one.name] else "fetch" if one.archive else "by hand")
        for one in CATALOGUE.values()
    ]  # fmt: skip
    print_table("", ("name", "title", "scale", "ratings", "here"), shown)


@data.command()
@click.argument("source", metavar="DATA")
@reading_options
@json_option
def describe(source: str, as_json: bool, **reading: Any) -> None:
    """Describe DATA: what the catalogue says of it, and what is in it if it is on this machine."""
    from dpmf.errors import DpmfError
    from dpmf.ratings.catalogue import CATALOGUE
    from dpmf.ratings.summary import describe as describe_ratings

    facts: dict[str, Any] = {}
    known = None if Path(source).exists() else CATALOGUE.get(source)
    if known is not None:
        facts = {"name": known.name, "title": known.title, "licence": known.licence, "homepage": known.homepage,
                 "address": known.archive.url if known.archive else None}  # fmt: skip
    try:
        facts |= describe_ratings(read_ratings(source, **reading))
    except DpmfError as error:
        if known is None:
            raise
        facts["note"] = str(error)
    if as_json:
        print_json(facts)
    else:
        print_table("", ("", ""), [(name, str(value)) for name, value in facts.items() if value is not None])


@data.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to put it; a place of dpmf's own by default.",
)
@json_option
def fetch(name: str, folder: Path | None, as_json: bool) -> None:
    """Download the data set NAME from its publisher, check and unpack it."""
    from dpmf.ratings.catalogue import find, folder_of
    from dpmf.ratings.fetch import fetch as download

    dataset = find(name)
    if not as_json:
        say(f"Licence: {dataset.licence}", "dim")
    with progress(f"fetching {name}", 100) as advance:
        got = download(
            dataset, folder or folder_of(name),
            progress=lambda done, total: advance(round(100 * done / total) if total else 0, f"{done / 1e6:.1f} MB"),
        )  # fmt: skip
    if as_json:
        print_json({"name": name, "folder": str(got)})
    else:
        say(f"{name} is in {got}")


@data.command()
@click.argument("source", metavar="DATA")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an ingested data set that is already in FOLDER.")
@click.option("--memory", metavar="SIZE", help="Sort on the disk if the ratings take more than this, such as 1GB.")
@reading_options
@json_option
def ingest(source: str, folder: Path, replace: bool, memory: str | None, as_json: bool, **reading: Any) -> None:
    """Read DATA once, check it, and write it to FOLDER as a block store, which opens at once and can be streamed."""
    from dpmf.engine.store import StoredRatings, check_store_replaceable
    from dpmf.ratings import Ratings
    from dpmf.ratings.store.pieces import InPieces
    from dpmf.runs.streamed import streaming_source

    check_store_replaceable(folder, replace)
    here, target = Path(source).resolve(), folder.resolve()
    if Path(source).exists() and (here.is_relative_to(target) or target.is_relative_to(here)):
        raise InvalidArgument(f"{folder} is where the data come from: choose another folder")
    limit = sys.maxsize if memory is None else parse_size(memory)
    with progress("ingesting", None), tempfile.TemporaryDirectory(prefix="dpmf-ingest-") as scratch:
        arguments = reading_arguments(**reading)
        with streaming_source(source, memory=limit, n_factors=0, scratch=Path(scratch), **arguments) as found:
            store = StoredRatings.build(InPieces(found) if isinstance(found, Ratings) else found, folder)
    if as_json:
        print_json({"folder": str(folder), "ratings": len(store), "users": store.n_users, "items": store.n_items})
    else:
        say(f"{store!r} written to {folder}")


@data.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--like", default="movielens-1m", show_default=True, metavar="NAME", help="Take sizes and scale of this set."
)
@click.option("--ratings", type=int, metavar="N", help="How many ratings; as many as --like by default.")
@click.option("--users", type=int, metavar="N", help="How many users.")
@click.option("--items", type=int, metavar="N", help="How many items.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes the ratings.")
@json_option
def make(
    folder: Path, like: str, ratings: int | None, users: int | None, items: int | None, seed: int, as_json: bool
) -> None:
    """Write made-up ratings of any size to FOLDER: for measuring speed and memory, not accuracy."""
    from dpmf.files import check_replaceable
    from dpmf.ratings import Scale
    from dpmf.ratings.catalogue import find
    from dpmf.ratings.store.synthetic import make_on_disk

    check_replaceable(folder, ())
    model = find(like)
    sizes = {
        "n_ratings": model.ratings if ratings is None else ratings,
        "n_users": model.users if users is None else users,
        "n_items": model.items if items is None else items,
    }
    with progress("making ratings", None):
        make_on_disk(folder, **sizes, scale=Scale(*model.scale), seed=seed, name=f"made up like {like}")
    if as_json:
        print_json({"folder": str(folder), **sizes})
    else:
        say(f"{sizes['n_ratings']:,} made-up ratings written to {folder}")
