"""`dpmf compare`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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
    parse_settings,
    read_ratings,
    split_option,
    test_option,
)
from dpmf.cli.output import METRICS_NOTE, json_option, print_json, print_table, progress, say
from dpmf.cli.profiles import ProfileOptions, check_profiles, profile_options, read_profiles
from dpmf.cli.protocol import ProtocolOptions, protocol_options
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS

if TYPE_CHECKING:
    from dpmf.compare.results import Row
    from dpmf.ratings.alignment import Aligned


@dataclass(frozen=True)
class _Asked:
    """What is compared."""

    methods: str | None
    epsilons: str
    delta: float
    modes: str
    neighbours: str
    items_public: bool
    settings: tuple[str, ...]


@dataclass(frozen=True)
class _Repeated:
    """How often, on which splits."""

    repeats: int
    holdout: float | str
    how: str
    seed: int


@click.command()
@click.argument("data")
@click.option(
    "--methods",
    show_default="all that can be private",
    metavar="NAME,…",
    help="What to compare; sgd, which is not private, is always there.",
)
@click.option(
    "--epsilons",
    default="0.5,1,2,5,10,20",
    show_default=True,
    metavar="E,…",
    help="Privacy budgets; 'inf' means not private.",
)
@click.option(
    "--delta",
    type=float,
    default=1e-6,
    show_default=True,
    metavar="D",
    help="Of certified runs; claims have those of the paper.",
)
@click.option(
    "--modes",
    default="certified,paper",
    show_default=True,
    metavar="MODE,…",
    help="Proven here, claimed by a paper, or both.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="What certified runs hide: that a person takes part (add-remove), or only what they contribute.",
)
@click.option("--items-public", is_flag=True, help="Assert that the item ids in DATA are a public list.")
@profile_options
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="Runs of each, with a split, a start and noise of its own.",
)
@click.option("--holdout", type=Held(), default=0.1, show_default=True, metavar="F", help="Fraction to test on.")
@split_option
@test_option
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 2000),
    default=0,
    show_default=True,
    help="Determines the first split and start; further repeats have the next. Noise is never seeded.",
)
@click.option(
    "--threads", type=int, metavar="N", help="Number of threads, all CPUs by default; never changes the result."
)
@click.option(
    "--jobs",
    type=int,
    metavar="N",
    help="Runs side by side after the first repeat, which is timed; one per thread by default.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="METHOD.NAME=VALUE",
    help="Set any other parameter of a method (repeatable).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for rows and report, comparison-NAME by default; what it has is not run again.",
)
@protocol_options
@data_options
@json_option
@grouped(asked=_Asked, repeated=_Repeated, profiles=ProfileOptions, protocol=ProtocolOptions)
def compare(
    data: str,
    asked: _Asked,
    repeated: _Repeated,
    profiles: ProfileOptions,
    protocol: ProtocolOptions,
    test_file: str | None,
    threads: int | None,
    jobs: int | None,
    out: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compare methods on DATA: accuracy against privacy.

    Runs every method at every epsilon, several times, and writes rows as they come. After an interruption, the same
    command resumes.
    """
    protocol.check({"holdout": "--holdout", "how": "--split", "test_file": "--test"})
    check_test(test_file, {"holdout": "--holdout", "how": "--split"})
    held = parse_holdout(repeated.holdout, repeated.how)
    from dpmf.compare.comparison import Comparison
    from dpmf.compare.report import write_report
    from dpmf.compare.sweep import Sweep, points_of
    from dpmf.engine.threads import thread_count
    from dpmf.ratings.alignment import beside, read_test

    names, modes = _methods(asked.methods), _modes(asked.modes)
    check_profiles(names, "certified" if "certified" in modes else "paper", profiles, required=False)
    points = points_of(names, modes, _epsilons(asked.epsilons), with_profiles=profiles.profiles is not None)
    plan = Sweep(
        points,
        **{**vars(repeated), "holdout": held},
        delta=asked.delta,
        neighbours=asked.neighbours,
        items_public=asked.items_public,
        settings=_settings(asked.settings),
        profiles=read_profiles(profiles, asked.delta),
        new_users=protocol.new_users(repeated.seed) if protocol.for_new_users else None,
    )
    thread_count(threads)
    if jobs is not None and jobs < 1:
        raise InvalidArgument(f"--jobs {jobs}: give a whole number from 1 on")
    tested: Aligned | None = None
    with progress("reading", None):
        ratings = read_ratings(data, **reading)
        if test_file is not None:
            test = read_test(test_file, data, parse_data_options(**reading), ratings.scale)
            tested = beside(ratings, test)
            plan = replace(plan, test=tested.ratings)
    out = out or Path(f"comparison-{Path(data).stem or 'data'}")
    command = shlex.join(["dpmf", *sys.argv[1:]])
    with (
        Comparison.open(out, plan, ratings, command=command) as comparison,
        progress("comparing", None) as advance,
    ):
        rows = comparison.run(n_threads=threads, jobs=jobs, progress=_Display(advance))
        report, picture = write_report(comparison.folder, comparison.facts, plan, rows)
    if as_json:
        print_json({**_report(rows, report, picture), **({} if tested is None else tested.to_json())})
    else:
        if tested is not None:
            say(f"Tested on {tested}")
        _print(rows, report, picture)
        for name in dict.fromkeys(point.method for point in points):
            if METHODS[name].takes.get("profiles") and profiles.profiles is None:
                say(f"{name} is run as the paper claims only: to be certified it needs --profiles")
    private = [row for row in rows if row.mode != "none"]
    if private and all(row.error for row in private):
        raise InvalidArgument(f"no private run has ended, the first because: {private[0].error}")


class _Display:
    """One display of all runs: a bar on a terminal, elsewhere a line for each run that has ended."""

    def __init__(self, advance: Callable[..., None]) -> None:
        self._advance, self._shown = advance, 0

    def __call__(self, done: int, total: int, note: str) -> None:
        self._advance(done, f"{done} of {total}: {note}", total)
        if done > self._shown and not sys.stderr.isatty():
            click.echo(f"{done} of {total}: {note}", err=True)
        self._shown = done


def _report(rows: Sequence[Row], report: Path, picture: Path | None) -> dict[str, Any]:
    """Return what scripts may rely on."""
    from dpmf.compare.summary import summarize

    points = [{name: value for name, value in asdict(point).items() if name != "rows"} for point in summarize(rows)]
    return {
        "rows": [row.to_json() for row in rows],
        "points": points,
        "report": str(report),
        "picture": None if picture is None else str(picture),
        "note": METRICS_NOTE,
    }


def _print(rows: Sequence[Row], report: Path, picture: Path | None) -> None:
    from dpmf.compare.report.tables import BRIEF, BRIEF_RANKED, brief, brief_ranked, by_guarantee
    from dpmf.compare.summary import summarize
    from dpmf.privacy.budget import delta_warning

    points = summarize(rows)
    for_new_users = any(row.ranking for row in rows)
    columns, cells_of = (BRIEF_RANKED, brief_ranked) if for_new_users else (BRIEF, brief)
    for guarantee, cells in by_guarantee(points, cells_of).items():
        heading = guarantee.text[0].upper() + guarantee.text[1:]
        print_table(heading, columns, [[cell.text for cell in row] for row in cells])
    for point in points:
        for error in point.errors:
            say(f"{point.method}, {point.mode}, epsilon {point.asked:g}, did not end: {error}", "yellow")
    for warning in dict.fromkeys(delta_warning(point.delta) for point in points):
        if warning is not None:
            say(f"Warning: {warning}.", "bold red")
    if any(point.is_claim for point in points):
        say("What papers claim is not certified by anything here.", "bold red")
    say(METRICS_NOTE, "dim")
    say(f"Report: {report}")
    if picture is not None:
        say(f"Picture: {picture}")


def _names(option: str, given: str) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    if not names:
        raise InvalidArgument(f"{option} {given!r} names nothing: give names with commas between")
    return names


def _methods(given: str | None) -> list[str]:
    if given is None:
        return [name for name, method in METHODS.items() if method.modes]
    return _names("--methods", given)


def _modes(given: str) -> list[str]:
    modes = _names("--modes", given)
    for mode in modes:
        if mode not in ("certified", "paper"):
            raise InvalidArgument(f"--modes {given!r}: {mode!r} is not known, choose from certified,paper")
    return modes


def _epsilons(given: str) -> list[float]:
    try:
        epsilons = [float(one) for one in _names("--epsilons", given)]
    except ValueError:
        raise InvalidArgument(f"--epsilons {given!r} should be numbers with commas between, such as 0.5,1,5") from None
    for epsilon in epsilons:
        if not epsilon > 0:
            raise InvalidArgument(f"--epsilons {given!r}: {epsilon:g} should be above 0; inf means not private")
    return epsilons


def _settings(pairs: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Read METHOD.NAME=VALUE pairs."""
    found: dict[str, dict[str, str]] = {}
    for place, value in parse_settings(pairs).items():
        method, dot, name = place.partition(".")
        if not dot or not name:
            raise InvalidArgument(f"--set {place}={value} should be METHOD.NAME=VALUE, such as als.n_factors=16")
        found.setdefault(method, {})[name] = value
    return found
