"""`dpmf data`: list, describe, fetch, ingest and generate data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dpmf.cli.groups import grouped
from dpmf.cli.options import data_options, parse_data_options, parse_size
from dpmf.cli.output import json_option, print_json, print_table, progress, say
from dpmf.cli.train_options import ClusterOptions, cluster_options
from dpmf.errors import InvalidArgument


@click.group()
def data() -> None:
    """List, describe, fetch, ingest and generate data sets."""


@data.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the data sets that dpmf knows by name."""
    from dpmf.ratings.catalogue import CATALOGUE, folder_of

    here = {name: name == "synthetic" or folder_of(name).is_dir() for name in CATALOGUE}
    if as_json:
        datasets = [
            {
                "name": one.name,
                "title": one.title,
                "scale": one.scale,
                "ratings": one.ratings or None,
                "users": one.users,
                "items": one.items,
                "here": here[one.name],
                "fetchable": one.archive is not None,
            }
            for one in CATALOGUE.values()
        ]
        print_json({"datasets": datasets})
        return
    rows = []
    for one in CATALOGUE.values():
        scale, ratings = f"{one.scale[0]:g}–{one.scale[1]:g}", f"{one.ratings:,}" if one.ratings else ""
        status = "yes" if here[one.name] else "fetch" if one.archive else "by hand"
        rows.append((one.name, one.title, scale, ratings, status))
    print_table("", ("name", "title", "scale", "ratings", "here"), rows)


@data.command()
@click.argument("source", metavar="DATA")
@click.option(
    "--write-dataset",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the detected facts to DIR, as dataset.json and items.csv, for you to correct and confirm.",
)
@data_options
@json_option
def describe(source: str, target: Path | None, as_json: bool, **given: Any) -> None:
    """Describe DATA: what the catalogue says about it, what it holds, how it is read, and how to train on it."""
    from dpmf.cli.described import describe_data

    facts = describe_data(source, target, given)
    if as_json:
        print_json(facts)
        return
    shown = {name: value for name, value in facts.items() if value is not None and name != "command"}
    print_table("", ("", ""), [(name, _in_words(value)) for name, value in shown.items()])
    if target is not None:
        say(f"{target}/dataset.json and items.csv are a proposal: read and correct them, and set confirmed to true.")
        say("That scale and items are public is then an assumption of the guarantee. Then run:")
    elif "command" in facts:
        say("If this is right, run:")
    if "command" in facts:
        say(f"  {facts['command']}")


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@data.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to save it; by default in the data folder of dpmf.",
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

        def report(done: int, total: int | None) -> None:
            advance(round(100 * done / total) if total else 0, f"{done / 1e6:.1f} MB")

        target = download(dataset, folder or folder_of(name), progress=report)
    if as_json:
        print_json({"name": name, "folder": str(target)})
    else:
        say(f"{name} is in {target}")


@data.command()
@click.argument("source", metavar="DATA")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an ingested data set that is already in FOLDER.")
@click.option("--memory", metavar="SIZE", help="Sort on the disk if the ratings take more than this, such as 1GB.")
@click.option(
    "--strips",
    type=int,
    metavar="N",
    help="Strips of the block grid, for more than 16 workers of a cluster; results depend on it.",
)
@cluster_options
@data_options
@json_option
@grouped(spread=ClusterOptions)
def ingest(
    source: str,
    folder: Path,
    replace: bool,
    memory: str | None,
    strips: int | None,
    spread: ClusterOptions,
    as_json: bool,
    **given: Any,
) -> None:
    """Read DATA once, check it, and write it to FOLDER as a block store, which opens at once and can be streamed.

    On a cluster, DATA is a Parquet file, a folder of such files or a pattern, which workers read and sort together,
    each within --memory (2GB unless given). DATA and FOLDER are on a disk that all nodes share. The store is the same.
    """
    from dpmf.engine.blockfile import MOST_STRIPS
    from dpmf.engine.store import StoredRatings, check_store_replaceable
    from dpmf.files import scratch_folder
    from dpmf.ratings import Ratings
    from dpmf.ratings.store.pieces import MemorySource
    from dpmf.runs.streamed import open_ratings

    check_store_replaceable(folder, replace)
    here, target = Path(source).resolve(), folder.resolve()
    if Path(source).exists() and (here.is_relative_to(target) or target.is_relative_to(here)):
        raise InvalidArgument(f"{folder} is where the data come from: choose another folder")
    limit = sys.maxsize if memory is None else parse_size(memory)
    if strips is not None and not 1 <= strips <= MOST_STRIPS:
        raise InvalidArgument(f"--strips {strips}: give a whole number from 1 to {MOST_STRIPS}")
    options, executor = parse_data_options(**given), spread.executor()
    if executor is not None:
        from dpmf.ratings.location import locate
        from dpmf.runs.ingesting import ingest_on

        with progress("ingesting on a cluster", None):
            each = None if memory is None else limit
            store = ingest_on(executor, locate(source, options), folder, size=strips, memory=each)
    else:
        with (
            progress("ingesting", None),
            scratch_folder("ingest") as scratch,
            open_ratings(source, memory=limit, n_factors=0, scratch=scratch, options=options) as found,
        ):
            ratings = MemorySource(found) if isinstance(found, Ratings) else found
            store = StoredRatings.build(ratings, folder, size=strips)
    if as_json:
        print_json({"folder": str(folder), "ratings": len(store), "users": store.n_users, "items": store.n_items})
    else:
        say(f"{store!r} written to {folder}")


@data.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--like", default="movielens-1m", show_default=True, metavar="NAME", help="Data set whose sizes and scale to copy."
)
@click.option("--ratings", type=int, metavar="N", help="Number of ratings; that of --like by default.")
@click.option("--users", type=int, metavar="N", help="Number of users; that of --like by default.")
@click.option("--items", type=int, metavar="N", help="Number of items; that of --like by default.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the ratings.")
@json_option
def make(
    folder: Path, like: str, ratings: int | None, users: int | None, items: int | None, seed: int, as_json: bool
) -> None:
    """Write synthetic ratings of any size to FOLDER: for measuring speed and memory, not accuracy."""
    from dpmf.files import check_replaceable
    from dpmf.ratings import Scale
    from dpmf.ratings.catalogue import find
    from dpmf.ratings.store.synthetic import write_synthetic

    check_replaceable(folder, ())
    model = find(like)
    sizes = {
        "n_ratings": model.ratings if ratings is None else ratings,
        "n_users": model.users if users is None else users,
        "n_items": model.items if items is None else items,
    }
    with progress("generating ratings", None):
        write_synthetic(folder, **sizes, scale=Scale(*model.scale), seed=seed, name=f"synthetic, like {like}")
    if as_json:
        print_json({"folder": str(folder), **sizes})
    else:
        say(f"{sizes['n_ratings']:,} synthetic ratings written to {folder}")
