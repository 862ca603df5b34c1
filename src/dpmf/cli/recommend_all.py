"""`dpmf recommend-all`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.choice import ChoiceOptions, choice_options
from dpmf.cli.groups import grouped
from dpmf.cli.options import data_options, parse_data_options, parse_size
from dpmf.cli.output import json_option, print_json, progress, say
from dpmf.cli.train_options import ClusterOptions, cluster_options
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.engine.cluster import Ray
    from dpmf.model import Release
    from dpmf.runs.recommending import Some, Written

_NO_USERS = "a release knows no users: name their ratings with --ratings DATA"


@click.command("recommend-all")
@click.argument("source", metavar="RELEASE|MODEL", type=click.Path(path_type=Path))
@click.option(
    "--ratings",
    "data",
    metavar="DATA",
    help="Recommend to everybody in DATA; for a model, by default to all its users.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Parquet file to write, or, on a cluster, a new folder of them. Sensitive.",
)
@choice_options
@click.option(
    "--threads", type=int, metavar="N", help="Number of threads, all CPUs by default; never changes the result."
)
@click.option("--memory", metavar="SIZE", help="Stream ratings from disk if they take more than this, such as 1GB.")
@cluster_options
@data_options
@json_option
@grouped(asked=ChoiceOptions, spread=ClusterOptions)
def recommend_all(
    source: Path,
    data: str | None,
    out: Path,
    asked: ChoiceOptions,
    spread: ClusterOptions,
    threads: int | None,
    memory: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Recommend items to everybody, into a Parquet file.

    A release is given everybody's ratings and fits each person to their own; a model knows its users and what they
    rated. The file has the columns user, item, rank and score, and rating if there is one beside the score. On a
    cluster, each worker writes files of its own people, from a block store, to a folder on a disk that all nodes share.
    """
    from dpmf.engine.threads import thread_count
    from dpmf.model.selection import find_filters
    from dpmf.runs.recommending import Choice, check_table, write_lists

    thread_count(threads)
    executor = spread.executor()
    if executor is not None:
        written = _on_cluster(executor, source, data, out, asked, memory, threads, reading)
        _report(written, out, as_json)
        return
    check_table(out, asked.k)
    if data is not None and out.exists() and Path(data).exists() and out.samefile(data):
        raise InvalidArgument(f"{out} holds the ratings: name another file to write the recommendations to")
    limit = None if memory is None else parse_size(memory)
    with (
        progress("recommending", None) as show,
        _people(source, data, limit, threads, reading) as (release, total, people),
    ):
        choice = Choice(asked.k, find_filters(release.items, **asked.filters()), asked.include_rated)
        written = write_lists(
            out,
            release,
            people,
            choice,
            n_threads=threads,
            memory=limit,
            progress=lambda done: show(done, f"{done:,} people", total),
        )
    _report(written, out, as_json)


def _report(written: Written, out: Path, as_json: bool) -> None:
    if as_json:
        print_json({**written._asdict(), "out": str(out)})
        return
    say(f"{written.rows:,} recommendations to {written.people:,} people in {out}: sensitive, keep it inside")


def _on_cluster(
    executor: Ray,
    source: Path,
    data: str | None,
    out: Path,
    asked: ChoiceOptions,
    memory: str | None,
    threads: int | None,
    reading: dict[str, Any],
) -> Written:
    from dpmf.engine.store import StoredRatings
    from dpmf.model import Release
    from dpmf.model.selection import find_filters
    from dpmf.runs.list_parts import write_lists_on
    from dpmf.runs.reading import check_store
    from dpmf.runs.recommending import Choice

    if (source / "model.json").is_file():
        raise InvalidArgument("a model has its users here: name a release, or leave --cluster out")
    if memory is not None:
        raise InvalidArgument("--memory is for one machine: on a cluster some people at a time are in memory anyway")
    release = Release.load(source)
    if data is None:
        raise InvalidArgument(_NO_USERS)
    check_store(data, parse_data_options(**reading))
    store, choice = (
        StoredRatings.open(data),
        Choice(asked.k, find_filters(release.items, **asked.filters()), asked.include_rated),
    )
    with progress("recommending on a cluster", None) as show:
        return write_lists_on(
            executor,
            store,
            release,
            out,
            choice,
            n_threads=threads,
            progress=lambda done: show(done, f"{done:,} people", store.n_users),
        )


@contextlib.contextmanager
def _people(
    source: Path, data: str | None, memory: int | None, threads: int | None, reading: dict[str, Any]
) -> Iterator[tuple[Release, int, Iterator[Some]]]:
    """Yield what to recommend from, the number of people, and the people."""
    from dpmf.model import Model, Release
    from dpmf.runs.reading import read_for
    from dpmf.runs.recommending import of_model, open_people

    options = parse_data_options(**reading)
    if (source / "model.json").is_file():
        model = Model.load(source)
        users = model.user_ids if data is None else read_for(model.release, data, options).user_ids
        yield model.release, len(users), of_model(model, users)
        return
    release = Release.load(source)
    if data is None:
        raise InvalidArgument(_NO_USERS)
    with open_people(release, data, options, memory=memory, n_threads=threads) as (total, people):
        yield release, total, people
