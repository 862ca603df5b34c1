"""`dpmf plot`: single pictures from saved results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpmf.cli.options import data_options, read_ratings
from dpmf.cli.output import METRICS_NOTE, progress
from dpmf.cli.plot_options import (
    check_kinds,
    check_picture,
    finish,
    models_of,
    picture_options,
    releases_of,
    rows_of,
)
from dpmf.cli.train_options import read_user_budgets

_folder = click.argument("source", metavar="RESULTS", type=click.Path(path_type=Path))
_folders = click.argument("sources", metavar="SOURCE…", nargs=-1, required=True, type=click.Path(path_type=Path))
_SENSITIVE = f"{METRICS_NOTE} What single people chose is sensitive: keep the picture inside."


@click.group()
def plot() -> None:
    """Draw what saved results, models, releases and data show."""


@plot.command()
@_folder
@click.option(
    "--metric",
    type=click.Choice(["rmse", "mae", "recall", "ndcg", "kld", "ndcg@100", "ndcg@10", "recall@20", "recall@50"]),
    default="rmse",
    show_default=True,
    help="What to draw against epsilon; those with @ are of new users.",
)
@picture_options
def accuracy(source: Path, metric: str, size: str | None, out: Path, **asked: Any) -> None:
    """Draw accuracy against epsilon, from RESULTS of `dpmf compare`; users and ratings in panels of their own."""
    inches = check_picture(out, size)
    check_kinds([source], ["results"])
    from dpmf.compare.plots.accuracy import accuracy_figure, accuracy_series, reference_lines, units_with

    rows = rows_of(source)
    picture = accuracy_figure(rows, metric, inches)
    panels = [
        {"unit": unit, "lines": [asdict(line) for line in accuracy_series(rows, metric, unit)]}
        for unit in units_with(rows, metric)
    ]
    finish(picture, {"metric": metric, "panels": panels, "references": reference_lines(rows, metric)}, out=out, **asked)


@plot.command()
@_folders
@picture_options
def convergence(sources: tuple[Path, ...], size: str | None, out: Path, **asked: Any) -> None:
    """Draw the training error after each epoch, of RESULTS of `dpmf compare` or of models."""
    inches = check_picture(out, size)
    kind = check_kinds(sources, ["results", "model"])
    from dpmf.compare.plots.convergence import model_courses, run_courses
    from dpmf.compare.plots.figure import figure
    from dpmf.compare.plots.runs import panels

    if kind == "results":
        rows = rows_of(sources[0])
        picture = panels(rows, "history", lambda unit, ax: run_courses(rows, unit, ax), size=inches)
    else:
        picture = model_courses(models_of(sources), figure(*(inches or (7, 5))).subplots()).figure
    finish(picture, _curves(picture, "epochs", "rmse"), out=out, **asked)


@plot.command()
@_folder
@click.option("--epsilon", type=float, metavar="E", help="Only private runs at this epsilon; by default a few.")
@picture_options
def errors(source: Path, epsilon: float | None, size: str | None, out: Path, **asked: Any) -> None:
    """Draw how absolute errors on held-out ratings are distributed, from RESULTS of `dpmf compare`."""
    inches = check_picture(out, size)
    check_kinds([source], ["results"])
    from dpmf.compare.plots.errors import error_distribution
    from dpmf.compare.plots.runs import panels

    rows = rows_of(source)
    picture = panels(
        rows,
        "error_cdf",
        lambda unit, ax: error_distribution(rows, unit, ax, epsilon=epsilon),
        epsilon=epsilon,
        size=inches,
    )
    finish(picture, _curves(picture, "sizes", "shares"), out=out, **asked)


@plot.command()
@_folders
@picture_options
def budget(sources: tuple[Path, ...], size: str | None, out: Path, **asked: Any) -> None:
    """Draw the privacy budget that certified releases have spent, round by round, as the accountant recomputes it."""
    inches = check_picture(out, size)
    check_kinds(sources, ["release", "model"])
    from dpmf.compare.plots.figure import figure
    from dpmf.compare.plots.spending import budget_spent, spending_json, spending_of

    releases = releases_of(sources)
    with progress("accounting", None):
        courses = {name: spending_of(release.guarantee, name) for name, release in releases.items()}
    picture = budget_spent(courses, figure(*(inches or (7, 5))).subplots()).figure
    lines = [{"release": name, **spending_json(course)} for name, course in courses.items()]
    finish(picture, {"lines": lines}, out=out, note="", **asked)  # all of it can be computed from what is released


@plot.command()
@click.argument("source", metavar="MODEL", type=click.Path(path_type=Path))
@click.option(
    "--user-budgets",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="CSV of user,epsilon: the list that the model was trained with.",
)
@picture_options
def personal(source: Path, user_budgets: Path, size: str | None, out: Path, **asked: Any) -> None:
    """Draw how the budgets that users of a certified MODEL spend are distributed. Sensitive."""
    inches = check_picture(out, size)
    check_kinds([source], ["model"])
    from dpmf.compare.plots.figure import figure
    from dpmf.compare.plots.personal import distribution, paid_by_users, personal_budgets

    (model,) = models_of([source]).values()
    paid = paid_by_users(model, read_user_budgets(user_budgets) or {})
    picture = personal_budgets(paid, model.guarantee.epsilon, figure(*(inches or (7, 5))).subplots()).figure
    epsilons, shares = distribution(paid)
    drawn = {"users": len(paid), "budget": model.guarantee.epsilon, "epsilons": epsilons, "shares": shares}
    finish(picture, drawn, out=out, note=_SENSITIVE, **asked)


@plot.command()
@_folders
@picture_options
def spectrum(sources: tuple[Path, ...], size: str | None, out: Path, **asked: Any) -> None:
    """Draw the singular values of item factors, of RESULTS of `dpmf compare`, of releases or of models."""
    inches = check_picture(out, size)
    kind = check_kinds(sources, ["results", "release", "model"])
    from dpmf.compare.plots.figure import figure
    from dpmf.compare.plots.runs import panels
    from dpmf.compare.plots.spectrum import release_spectra, run_spectra

    note = METRICS_NOTE
    if kind == "results":
        rows = rows_of(sources[0])
        picture = panels(rows, "spectrum", lambda unit, ax: run_spectra(rows, unit, ax), size=inches)
    else:
        releases = releases_of(sources)
        picture = release_spectra(releases, figure(*(inches or (7, 5))).subplots()).figure
        if all(release.guarantee.certified for release in releases.values()):
            note = ""  # it is computed from what the guarantee covers
    finish(picture, _curves(picture, "places", "values"), out=out, note=note, **asked)


@plot.command()
@click.argument("data")
@data_options
@picture_options
def popularity(data: str, size: str | None, out: Path, title: str | None, as_json: bool, **reading: Any) -> None:
    """Draw how the ratings in DATA are distributed over items."""
    inches = check_picture(out, size)
    import numpy as np

    from dpmf.compare.plots.popularity import popularity_figure, popularity_figures

    ratings = read_ratings(data, **reading)
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    picture = popularity_figure(counts, inches)
    finish(picture, popularity_figures(counts), out=out, title=title, as_json=as_json)


def _curves(picture: Any, across: str, up: str) -> dict[str, Any]:
    """Return the lines of a picture, panel by panel; repeats of a run have its label once."""
    panels = []
    for ax in picture.axes:
        lines: list[dict[str, Any]] = []
        for line in ax.get_lines():
            hidden = line.get_label().startswith("_")
            label = lines[-1]["label"] if hidden and lines else line.get_label()
            numbers = {across: list(map(float, line.get_xdata())), up: list(map(float, line.get_ydata()))}
            lines.append({"label": label, **numbers})
        panels.append({"lines": lines})
    return {"panels": panels}
