"""`dpmf evaluate`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import grouped
from dpmf.cli.options import (
    Held,
    check_test,
    data_options,
    parse_data_options,
    parse_holdout,
    read_ratings,
    split_option,
    test_option,
)
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.cli.protocol import ProtocolOptions, protocol_options, said_of
from dpmf.cli.train_options import ClusterOptions, cluster_options
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.engine.cluster import Ray
    from dpmf.evaluation.new_users import NewUsers
    from dpmf.model import Release
    from dpmf.privacy import Budget, Guarantee
    from dpmf.ratings import Ratings


@dataclass(frozen=True)
class _Asked:
    """What to hold out, and how to test on it."""

    holdout: float | str
    how: str
    test_file: str | None
    seed: int
    k: int
    least_ratings: int


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--holdout", type=Held(), default=0.1, show_default=True, metavar="F", help="The fraction to test on.")
@split_option
@test_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the split, or of who is held out.")
@click.option("-k", type=int, default=10, show_default=True, help="Length of the ranked lists.")
@click.option(
    "--least-ratings",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Test only on users and items with at least N other ratings.",
)
@click.option("--threads", type=int, metavar="N", help="Number of threads; all CPUs by default.")
@protocol_options
@click.option("--peers", is_flag=True, help="For new users: also rank by popularity, exact and private, and by EASE.")
@cluster_options
@data_options
@json_option
@grouped(asked=_Asked, protocol=ProtocolOptions, spread=ClusterOptions)
def evaluate(
    release: Path,
    data: str,
    asked: _Asked,
    protocol: ProtocolOptions,
    spread: ClusterOptions,
    peers: bool,
    threads: int | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Evaluate a saved RELEASE on DATA.

    Users are folded in with part of their ratings and tested on the rest.

    With --protocol new-users, the people that --seed chooses are ranked for: those that `dpmf train --holdout-users`
    with the same seed held out. A release that was trained on them looks better than it is.
    """
    ratings_only = {"holdout": "--holdout", "how": "--split", "test_file": "--test"}
    protocol.check({**ratings_only, "k": "-k", "least_ratings": "--least-ratings"})
    check_test(asked.test_file, {"holdout": "--holdout", "how": "--split"})
    if peers and not protocol.for_new_users:
        raise InvalidArgument("--peers rank for new users: add --protocol new-users")
    parse_holdout(asked.holdout, asked.how)
    from dpmf.model import Release

    loaded, executor = Release.load(release), spread.executor()
    if executor is not None:
        with progress("evaluating on a cluster", None):
            _print_figures(_on_cluster(executor, loaded, data, asked, protocol, threads, reading), as_json)
        return
    with progress("evaluating", None):
        ratings = read_ratings(data, release=loaded, **reading)
        if protocol.for_new_users:
            new_users = protocol.new_users(asked.seed, positive=-math.inf if loaded.is_implicit else None)
            figures, others = _for_new_users(loaded, ratings, new_users, peers, threads)
        else:
            known, test, counts = _parts(loaded, ratings, asked, data, reading)
            figures, others = {**_on_ratings(loaded, known, test, asked, threads), **counts}, {}
    if as_json:
        print_json({**figures, "peers": others} if peers else figures)
        return
    if protocol.for_new_users:
        _print_new_users(figures, others)
        say(METRICS_NOTE, "dim")
    else:
        _print_figures(figures, as_json)


def _print_figures(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(figures)
        return
    print_table("", ("measure", "value"), list(figures.items()))
    say(METRICS_NOTE, "dim")


def _parts(
    loaded: Release, ratings: Ratings, asked: _Asked, data: str, reading: dict[str, Any]
) -> tuple[Ratings, Ratings, dict[str, int]]:
    """Return the ratings to fold in, those to test on, and what is to be said of a test file."""
    from dpmf.ratings.alignment import beside, read_test
    from dpmf.runs.reading import as_weighed, options_for

    if asked.test_file is None:
        known, test = ratings.split(parse_holdout(asked.holdout, asked.how), seed=asked.seed, how=asked.how)
        return known, test, {}
    options = options_for(loaded, parse_data_options(**reading))
    read = as_weighed(loaded, asked.test_file, read_test(asked.test_file, data, options, ratings.scale))
    found = beside(ratings, read)
    return ratings, found.ratings, found.to_json()


def _on_cluster(
    executor: Ray,
    loaded: Release,
    data: str,
    asked: _Asked,
    protocol: ProtocolOptions,
    threads: int | None,
    reading: dict[str, Any],
) -> dict[str, Any]:
    from dpmf.engine.store import StoredRatings
    from dpmf.runs.evaluating import evaluate_on
    from dpmf.runs.parts import Split
    from dpmf.runs.reading import check_store

    unfit = {
        "--protocol new-users": protocol.for_new_users,
        "--test": asked.test_file,
    }
    for what in (one for one, given in unfit.items() if given):
        raise InvalidArgument(f"{what} needs all ratings in one place: leave it out, or --cluster")
    executor.check()
    check_store(data, parse_data_options(**reading))
    split = Split(parse_holdout(asked.holdout, asked.how), asked.how, asked.seed)
    asked_for = {"k": asked.k, "least_ratings": asked.least_ratings}
    return evaluate_on(executor, StoredRatings.open(data), loaded, split, **asked_for, n_threads=threads)


def _on_ratings(loaded: Release, known: Ratings, test: Ratings, asked: _Asked, threads: int | None) -> dict[str, Any]:
    from dpmf.evaluation import baseline_errors
    from dpmf.evaluation import evaluate as measure
    from dpmf.evaluation.accuracy import popularity_figures
    from dpmf.evaluation.leak import frequent
    from dpmf.evaluation.metrics import rmse

    k = asked.k
    test = frequent(known, test, asked.least_ratings)
    figures = measure(loaded, test, known=known, k=k, n_threads=threads)
    if loaded.predicts_ratings:
        figures["baseline_rmse"] = rmse(baseline_errors(known, test))
    if loaded.is_implicit or loaded.ranks:
        popular = popularity_figures(loaded, known, test, k=k)
        figures |= {f"popularity_{name}": popular[name] for name in (f"recall@{k}", f"ndcg@{k}")}
    return figures


def _for_new_users(
    loaded: Release, ratings: Ratings, new_users: NewUsers, peers: bool, threads: int | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of the release, and those of the peers by name."""
    from dpmf.evaluation.new_users import measure_ranker, release_ranker, split_users
    from dpmf.evaluation.peers import count_items, peer_names, positives_of, train_peer

    train, people = split_users(ratings, new_users)
    liked = positives_of(train, new_users.least_positive(ratings.scale))
    popularity = count_items(liked, ratings.n_items)
    figures = {**people.counts(), **measure_ranker(release_ranker(loaded, threads), people, popularity)}
    others: dict[str, Any] = {}
    budget = _budget(loaded.guarantee)
    for name in peer_names(with_budget=budget is not None) if peers else ():
        ranker = train_peer(name, liked, ratings.n_items, budget=budget, n_threads=threads)
        others[name] = measure_ranker(ranker, people, popularity)
    return figures, others


def _budget(guarantee: Guarantee) -> Budget | None:
    """Return what a release has spent on protecting people; None if that is nothing, or a claim."""
    from dpmf.privacy import Budget

    if guarantee.mode != "certified" or guarantee.unit != "user":
        return None
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    assert guarantee.neighbours is not None
    return Budget.recorded(guarantee.epsilon, guarantee.delta, "user", guarantee.neighbours)


def _print_new_users(figures: dict[str, Any], peers: dict[str, dict[str, Any]]) -> None:
    from dpmf.evaluation.new_users import FIGURES

    rows = []
    for name in FIGURES:
        interval = figures.get(f"{name}_interval")
        shown = "" if interval is None else f"{interval[0]:.4f}–{interval[1]:.4f}"
        rows.append((name, figures[name], shown, *(one[name] for one in peers.values())))
    say(said_of(figures))
    print_table("", ("measure", "release", "95 % interval", *peers), rows)
