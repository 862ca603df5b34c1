"""`dpmf evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpmf.cli.options import check_holdout, data_options, read_ratings, split_option
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--holdout", type=float, default=0.1, show_default=True, metavar="F", help="The fraction to test on.")
@split_option
@click.option("--seed", type=int, default=0, show_default=True, help="Determines the split.")
@click.option("-k", type=int, default=10, show_default=True, help="Length of the ranked lists.")
@click.option(
    "--least-ratings",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Test only on users and items with at least N other ratings.",
)
@click.option("--threads", type=int, metavar="N", help="Threads; all CPUs by default.")
@data_options
@json_option
def evaluate(
    release: Path,
    data: str,
    holdout: float,
    how: str,
    seed: int,
    k: int,
    least_ratings: int,
    threads: int | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Evaluate a saved RELEASE on DATA: fold every user in on part of their ratings, test on the rest."""
    check_holdout(holdout, how)
    from dpmf.evaluation import baseline_errors
    from dpmf.evaluation import evaluate as measure
    from dpmf.evaluation.accuracy import popularity_figures
    from dpmf.evaluation.leak import frequent
    from dpmf.evaluation.metrics import rmse
    from dpmf.model import Release

    loaded = Release.load(release)
    with progress("evaluating", None):
        ratings = read_ratings(data, release=loaded, **reading)
        known, test = ratings.split(holdout, seed=seed, how=how)
        test = frequent(known, test, least_ratings)
        figures = measure(loaded, test, known=known, k=k, n_threads=threads)
        if loaded.is_implicit:
            popular = popularity_figures(loaded, known, test, k=k)
            figures |= {f"popularity_{name}": popular[name] for name in (f"recall@{k}", f"ndcg@{k}")}
        else:
            figures["baseline_rmse"] = rmse(baseline_errors(known, test))
    if as_json:
        print_json(figures)
        return
    print_table("", ("measure", "value"), list(figures.items()))
    say(METRICS_NOTE, "dim")
