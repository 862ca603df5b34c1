"""`dpmf bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpmf.cli.options import data_options, read_ratings
from dpmf.cli.output import json_option, print_json, print_table, progress, say
from dpmf.errors import InvalidArgument


@click.command()
@click.argument("data", default="synthetic")
@click.option("--factors", default="32,128", show_default=True, metavar="K,…", help="Numbers of factors to try.")
@click.option(
    "--epochs", type=click.IntRange(1), default=3, show_default=True, help="Epochs per figure; the best counts."
)
@click.option("--threads", type=int, metavar="N", help="Number of threads; all CPUs by default.")
@click.option("--users", type=click.IntRange(1), metavar="N", help="Use this many users of DATA at most.")
@click.option(
    "--libmf", type=click.Path(path_type=Path), metavar="PATH", help="A build of LIBMF (a shared library) to use."
)
@click.option("--peers/--no-peers", default=True, show_default=True, help="Also run LIBMF and implicit, if installed.")
@click.option("--serving", is_flag=True, help="Also time recommendations and fold-in, beside implicit if installed.")
@data_options
@json_option
def bench(
    data: str,
    factors: str,
    epochs: int,
    threads: int | None,
    users: int | None,
    libmf: Path | None,
    peers: bool,
    serving: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Measure the speed of the engine on DATA.

    The limit of this machine, and peers in the same run, stand beside it.
    """
    from dpmf.bench.peers import MOST_RACING_FACTORS
    from dpmf.bench.serving import serving_speed
    from dpmf.bench.speed import bench as measure
    from dpmf.bench.speed import first_users
    from dpmf.engine.threads import thread_count

    if libmf is not None and not libmf.is_file():
        raise InvalidArgument(f"no file {libmf}: --libmf names a shared library such as libmf.so")
    counts = _numbers(factors)
    n_threads = thread_count(threads)
    with progress("reading", None):
        ratings = first_users(read_ratings(data, **reading), users)
    rows = []
    with progress("measuring", len(counts)) as advance:
        measured = measure(ratings, counts, n_threads=n_threads, epochs=epochs, libmf=libmf, peers=peers)
        for done, row in enumerate(measured, start=1):
            rows.append(row)
            advance(done, f"{row['factors']} factors")
    served = serving_speed(n_threads, peers=peers) if serving else None
    if as_json:
        print_json({**rows[-1], "rows": rows, "serving": served, "ratings": len(ratings)})
        return
    say(f"{ratings.name}: {ratings!r}, {n_threads} threads. Million updates per second:")
    print_table("", _TITLES, [_cells(row) for row in rows])
    _print_limits(rows)
    if peers:
        print_table("Least squares for observations, beside implicit", _RACE_TITLES, [_race_cells(row) for row in rows])
        say(
            "Seconds of an iteration, and to the lowest objective that both reached, on the ratings of the first users "
            f"if there are many; up to {MOST_RACING_FACTORS} factors.",
            "dim",
        )
    if served is not None:
        print_table(
            "Serving, people per second", ("", "people/s"), [(name, _text(value)) for name, value in served.items()]
        )


_TITLES = (
    "factors",
    "dpmf",
    "one thread",
    "over one",
    "copy over one",
    "limit",
    "of the limit",
    "limited by",
    "bfloat16",
    "of its limit",
    "LIBMF",
    "over LIBMF",
)
_PLACE_TITLES = ("", "size", "read", "written", "copied", "copied by one", "over one")
_KINDS = ("", "one_thread_", "roofline_", "bfloat16_")
_RACE_TITLES = (
    "factors",
    "ratings",
    "iterations",
    "dpmf, s each",
    "implicit, s each",
    "dpmf, s total",
    "implicit, s total",
    "over implicit",
)


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    ours, theirs = row["updates_per_second"], row.get("libmf_updates_per_second")
    million = {name: f"{row[f'{name}updates_per_second'] / 1e6:.1f}" for name in _KINDS}
    return (
        row["factors"],
        million[""],
        million["one_thread_"],
        f"{row['over_one_thread']:.2f}×",
        _copy(row),
        million["roofline_"],
        f"{row['roofline_ratio']:.2f}",
        row["limited_by"],
        million["bfloat16_"],
        f"{row['bfloat16_roofline_ratio']:.2f}",
        f"{theirs / 1e6:.1f}" if theirs else "–",
        f"{ours / theirs:.1f}×" if theirs else "–",
    )


def _copy(row: dict[str, Any]) -> str:
    """Return by how much several threads copy faster than one, at the place behind L1 that takes the longest."""
    gains = row["copy_over_one_thread"]
    place = max(list(gains)[1:] or gains, key=lambda place: row["seconds_per_update"][place])
    return f"{gains[place]:.2f}× ({place})"


def _print_limits(rows: list[dict[str, Any]]) -> None:
    """Print how long an update takes and each of its parts at least, and what the machine can do."""
    last = rows[-1]
    titles = ("factors", "items", "measured", *last["seconds_per_update"])
    times = [_times(row, kind, items) for row in rows for kind, items in (("", "float32"), ("bfloat16_", "16 bits"))]
    print_table("Where time goes: nanoseconds of an update on each thread", titles, times)
    say(
        "The least that each can take; they may overlap, and the limit is the largest. "
        "Memory is an estimate: of it the limit counts only what is certain.",
        "dim",
    )
    print_table(
        f"The machine, GB/s of {last['machine']['threads_at_once']} threads", _PLACE_TITLES, _places(last["machine"])
    )
    several, one = (last["machine"][name]["multiply_adds_per_second"] / 1e9 for name in ("threads", "one_thread"))
    say(f"{several:.0f}·10⁹ multiply-adds per second, {one:.0f}·10⁹ on one thread.", "dim")


def _times(row: dict[str, Any], kind: str, items: str) -> tuple[object, ...]:
    seconds = [1 / row[f"{kind}updates_per_second"], *row[f"{kind}seconds_per_update"].values()]
    return (row["factors"], items, *(f"{row['threads'] * one * 1e9:.2f}" for one in seconds))


def _places(machine: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for place, rates in machine["threads"]["bytes_per_second"].items():
        size = machine["caches"][place]["bytes"] if place in machine["caches"] else None
        alone = machine["one_thread"]["bytes_per_second"][place]["rewritten"]
        figures = [f"{rate / 1e9:.0f}" for rate in (*rates.values(), alone)]
        rows.append(
            (place, "–" if size is None else f"{size >> 10:,} KB", *figures, f"{rates['rewritten'] / alone:.2f}×")
        )
    return rows


def _race_cells(row: dict[str, Any]) -> tuple[object, ...]:
    seconds = (
        "als_iteration_seconds",
        "implicit_iteration_seconds",
        "als_seconds_to_objective",
        "implicit_seconds_to_objective",
    )
    ratio = row["als_over_implicit"]
    return (
        row["factors"],
        _text(row["implicit_ratings"]),
        _text(row["implicit_iterations"]),
        *("–" if row[name] is None else f"{row[name]:.3g}" for name in seconds),
        "–" if ratio is None else f"{ratio:.2f}×",
    )


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidArgument(f"--factors {text!r} should be numbers with commas between, such as 32,128") from None
