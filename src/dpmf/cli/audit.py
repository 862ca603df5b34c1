"""`dpmf audit`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.groups import grouped
from dpmf.cli.options import data_options, parse_settings, read_ratings, was_given
from dpmf.cli.output import json_option, print_json, print_table, progress, say
from dpmf.cli.train_options import method_for
from dpmf.errors import InvalidArgument, NotVerified
from dpmf.methods import METHODS, configure

if TYPE_CHECKING:
    from dpmf.audit.findings import Audit
    from dpmf.methods import Method
    from dpmf.model import Release

_PARTS = "sensitivity, noise, two_worlds, one_run, attacks"
_STYLES = {True: "green", False: "bold red", None: ""}


@dataclass(frozen=True)
class _Budgeted:
    """What a method is audited with, where no release says it."""

    epsilon: float | None
    delta: float | None
    mode: str
    neighbours: str | None
    feedback: str
    factors: int | None
    epochs: int | None
    settings: tuple[str, ...]


@dataclass(frozen=True)
class _Extent:
    """How much is done."""

    parts: str | None
    runs: int | None
    canaries: int
    seed: int


@click.command()
@click.argument("subject", required=False, metavar="[METHOD|RELEASE]")
@click.option("--epsilon", type=float, metavar="E", help="The ε to audit a METHOD at; a release brings its own.")
@click.option("--delta", type=float, metavar="D", help="The δ; by default 1e-6, or that of a paper's claim.")
@click.option(
    "--mode",
    type=click.Choice(["certified", "paper"]),
    default="certified",
    show_default=True,
    help="Which guarantee to audit: proven here (certified), or as a paper claims of its method as published.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    help="What is hidden: that a person takes part, or only what they contribute; add-remove, or that of a claim.",
)
@click.option(
    "--feedback",
    type=click.Choice(["explicit", "implicit"]),
    default="explicit",
    show_default=True,
    help="What to learn from: ratings, or which items people have.",
)
@click.option("--factors", type=int, metavar="K", help="Length of the factor vectors.")
@click.option("--epochs", type=int, metavar="N", help="Passes over the ratings; rounds of a private run.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set any other parameter of the method (repeatable)."
)
@click.option("--data", metavar="DATA", help="Ratings to audit on; small synthetic ones by default.")
@click.option(
    "--parts",
    metavar="NAME,…",
    show_default=f"all: {_PARTS}",
    help="What to do. With --mode paper the claim is always tested, and only attacks can be left out.",
)
@click.option(
    "--runs",
    type=click.IntRange(10, 1_000_000),
    metavar="N",
    help="Runs of each of two worlds; up to 500 by default, and fewer if they take long.",
)
@click.option(
    "--canaries",
    type=click.IntRange(10, 100_000),
    default=400,
    show_default=True,
    metavar="N",
    help="Number of canaries in the one run.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of worlds and persons; noise is never seeded."
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a page (HTML) with pictures.")
@data_options
@json_option
@grouped(budgeted=_Budgeted, extent=_Extent)
def audit(
    subject: str | None, budgeted: _Budgeted, extent: _Extent, data: str | None, report: Path | None, as_json: bool,
    **reading: Any,
) -> None:  # fmt: skip
    """Try to refute the guarantee of a METHOD or a RELEASE.

    For a RELEASE, the method and the configuration that it was made with are audited.

    Exact sensitivity of everything that is released, size and tails of the noise, the best attack on whole runs in two
    worlds that differ in one person, one run with many canaries, and attacks that people fear. With --mode paper it is
    a published claim that is tested. The exit code is 1 if something is violated, a paper's claim included.
    """
    from dpmf.audit.report.page import write_report
    from dpmf.audit.run import PARTS, Plan
    from dpmf.audit.run import audit as carry_out

    _check_options(data, report, reading)
    release = _release_of(subject)
    method = _method_of(subject, budgeted) if release is None else _of_release(release)
    ratings = None if data is None else read_ratings(data, release=release, **reading)
    parts = PARTS if extent.parts is None else tuple(one.strip() for one in extent.parts.split(","))
    plan = Plan(method, ratings, release, parts, extent.runs, extent.canaries, extent.seed)
    with progress("audit", None) as advance:
        found = carry_out(plan, lambda done, note: advance(done, note))
    if report is not None:
        write_report(found, report)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found, report)
    if not found.ok:
        wrong = next(one for one in found.findings if one.ok is False)
        raise NotVerified(f"{found.verdict}: {wrong.sentence}")


def _check_options(data: str | None, report: Path | None, reading: Mapping[str, Any]) -> None:
    """Refuse, before anything is audited, what would be ignored and a report that could not be written."""
    for name in reading:
        if data is None and was_given(name):
            raise InvalidArgument(f"--{name.rstrip('_')} says how to read --data, which is not given: leave it out")
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        raise InvalidArgument(f"--report {report} cannot be written: name a file in a folder that exists")


def _release_of(subject: str | None) -> Release | None:
    """Return the release that was named; None if it is a method, or nothing."""
    from dpmf.model import Release

    if subject is None or subject in METHODS:
        return None
    if not Path(subject).exists():
        known = ", ".join(name for name, one in METHODS.items() if one.modes)
        raise InvalidArgument(f"{subject!r} is neither a method nor a release: give a folder, or one of {known}")
    return Release.load(Path(subject))


def _of_release(release: Release) -> Method:
    from dpmf.audit.release import method_of

    for name in ("epsilon", "delta", "mode", "neighbours", "feedback", "factors", "epochs", "settings"):
        if was_given(name):
            option = "set" if name == "settings" else name
            raise InvalidArgument(f"--{option} cannot be given with a release, which brings its own: leave it out")
    return method_of(release)


def _method_of(name: str | None, asked: _Budgeted) -> Method:
    name = method_for(name, None, asked.feedback)
    method = METHODS[name]
    if not method.modes:
        raise InvalidArgument(f"{name} guarantees nothing, so there is nothing to audit: choose a private method")
    if asked.feedback not in method.feedbacks:
        raise InvalidArgument(f"--feedback {asked.feedback} is refused: {name} learns from ratings only")
    if asked.mode not in method.modes:
        raise InvalidArgument(f"--mode {asked.mode}: no paper makes a claim about {name} that could be audited here")
    if asked.epsilon is None or not math.isfinite(asked.epsilon):
        raise InvalidArgument(f"{name} needs --epsilon, a number such as 1: without a budget nothing is guaranteed")
    known, settings = {field.name for field in fields(method)}, dict[str, Any](parse_settings(asked.settings))
    for option, given in (("factors", asked.factors), ("epochs", asked.epochs)):
        if given is not None and f"n_{option}" not in known:
            raise InvalidArgument(f"--{option} {given} means nothing for {name}, which has none: leave it out")
        if given is not None:
            settings[f"n_{option}"] = given
    if asked.feedback != "explicit":
        settings["feedback"] = asked.feedback
    private = method.private_fields(
        asked.mode, asked.epsilon, asked.delta, neighbours=asked.neighbours, items_public=True
    )
    return configure(name, {**settings, **private})


def _print(found: Audit, report: Path | None) -> None:
    about = found.about
    chosen = "".join(f", {name}={value} for the audit" for name, value in about.get("set_for_the_audit", {}).items())
    say(
        f"Audit of {about['method']}, {found.mode}, epsilon {about['epsilon']:g}: {about['data']} ratings{chosen}",
        "bold",
    )
    for one in found.findings:
        say(f"\n{one.title}: {one.mark}", "bold " + _STYLES[one.ok] if one.ok is not False else _STYLES[False])
        say(f"{one.sentence[0].upper()}{one.sentence[1:]}.")
        if one.rows:
            print_table("", one.columns, one.rows)
        for note in one.notes:
            say(note, "dim")
    if report is not None:
        say(f"\nThe report is in {report}")
    say(f"\nVerdict: {found.verdict}", "bold" if found.ok else "bold red")
    if found.ok:
        say("An audit can refute a guarantee, and not prove it: docs/proofs does.", "dim")
