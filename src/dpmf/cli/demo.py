"""`dpmf demo`."""

from __future__ import annotations

import math
from pathlib import Path

import click

from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.errors import InvalidArgument


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    metavar="DIR",
    help="Where to save the release and the picture.",
)
@click.option("--threads", type=int, metavar="N", help="Number of threads; all CPUs by default.")
@json_option
def demo(out: Path, threads: int | None, as_json: bool) -> None:
    """Train on synthetic ratings, release and recommend.

    The ratings are built in. Errors with and without privacy are shown side by side and as a picture.
    """
    from dpmf.compare.demo import run_demo

    if out.exists() and not out.is_dir():
        raise InvalidArgument(f"{out} exists and is not a folder: choose another name")
    with progress("training on synthetic ratings", None) as advance:
        shown = run_demo(
            out, n_threads=threads, callbacks=[lambda record: advance(record.epoch, f"round {record.epoch}")]
        )
    private, open_run = shown.runs[5.0], shown.runs[math.inf]
    if as_json:
        print_json(
            {
                **private.accuracy,
                "mode": private.model.guarantee.mode,
                "epsilon": private.model.guarantee.epsilon,
                "ndcg_by_epsilon": {f"{epsilon:g}": run.accuracy["ndcg@10"] for epsilon, run in shown.runs.items()},
                "rmse_by_epsilon": {f"{epsilon:g}": run.accuracy["rmse"] for epsilon, run in shown.runs.items()},
                "recommendations": [one.to_json() for one, _ in shown.recommendations],
                "out": str(shown.release),
                "picture": None if shown.picture is None else str(shown.picture),
            }
        )
        return
    n_users = len(private.model.user_ids)
    say(f"Trained on {private.n_ratings:,} synthetic ratings of {n_users:,} users in {private.seconds:.1f} s.\n")
    rows = [
        ("per-user mean (uses no one else's data)", private.accuracy["baseline_rmse"]),
        *(
            (f"private, epsilon {epsilon:g}", run.accuracy["rmse"])
            for epsilon, run in shown.runs.items()
            if math.isfinite(epsilon)
        ),
        ("no noise (not private)", open_run.accuracy["rmse"]),
    ]
    print_table("Error on held-out ratings (rmse, smaller is better)", ("", "rmse"), rows)
    lists = [
        ("most popular items (private)", private.accuracy["popularity_ndcg@10"]),
        *(
            (f"private, epsilon {epsilon:g}" if math.isfinite(epsilon) else "no noise (not private)", one)
            for epsilon, one in ((epsilon, run.accuracy["ndcg@10"]) for epsilon, run in shown.runs.items())
        ),
    ]
    print_table("Lists against held-out items (ndcg@10, larger is better)", ("", "ndcg@10"), lists)
    say(METRICS_NOTE, "dim")
    print_table("One user's ratings, which never leave their device", ("title", "rating"), list(shown.ratings.items()))
    print_table(
        "Recommendations computed on their device from the release",
        ("title", "genres", "expected rating"),
        [(one.title, genres, one.rating) for one, genres in shown.recommendations],
    )
    say(f"Guarantee: {private.model.guarantee}", "bold")
    say("`dpmf explain` puts it in plain words; `dpmf verify` recomputes it.", "dim")
    say(f"\nRelease saved in {shown.release}" + (f", picture in {shown.picture}" if shown.picture else ""))
    say(f"Open it as a web page where ratings stay in the browser: dpmf serve {shown.release}")
    if shown.picture is None:
        say("No picture: it needs matplotlib (pip install 'dpmf[plot]')", "yellow")
