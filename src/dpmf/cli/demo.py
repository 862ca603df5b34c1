"""`dpmf demo`."""

from __future__ import annotations

from pathlib import Path

import click

from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    metavar="DIR",
    help="Where to save the release and the picture.",
)
@click.option("--threads", type=int, metavar="N", help="Threads; all CPUs by default.")
@json_option
def demo(out: Path, threads: int | None, as_json: bool) -> None:  # fmt: skip
    """Show the whole story on built-in synthetic ratings, with a picture."""
    from dpmf.compare.demo import run_demo

    with progress("training on synthetic ratings", None) as advance:
        shown = run_demo(
            out, n_threads=threads, callbacks=[lambda record: advance(record.epoch, f"epoch {record.epoch}")]
        )
    run = shown.run
    if as_json:
        print_json({
            **run.accuracy,
            "mode": run.model.guarantee.mode,
            "recommendations": [one._asdict() for one, _ in shown.recommendations],
            "out": str(shown.release),
            "picture": None if shown.picture is None else str(shown.picture),
        })  # fmt: skip
        return
    say(f"Learnt from {run.n_ratings:,} made-up ratings in {run.seconds:.1f} s.\n")
    rows = [
        ("mean of your own ratings (free, private)", run.accuracy["baseline_rmse"]),
        ("sgd (not private)", run.accuracy["rmse"]),
    ]
    print_table("Error on held-out ratings (rmse, smaller is better)", ("", "rmse"), rows)
    say(METRICS_NOTE, "dim")
    print_table("Somebody's own ratings, which stay with them", ("title", "rating"), list(shown.ratings.items()))
    print_table(
        "What the release recommends to them, computed locally", ("title", "genres", "expected rating"),
        [(one.title, genres, one.score) for one, genres in shown.recommendations],
    )  # fmt: skip
    say(f"Guarantee: {run.model.guarantee}", "bold red")
    say(f"\nRelease saved in {shown.release}" + (f", picture in {shown.picture}" if shown.picture else ""))
    if shown.picture is None:
        say("No picture: it needs matplotlib (pip install 'dpmf[plot]')", "yellow")
