"""What `dpmf train` does for sgld alone: further chains, their picture, and what users pay."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmf.cli.output import METRICS_NOTE, print_table, say
from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.methods import SGLD
    from dpmf.runs.training import Run

_CHAINS = (
    click.option("--chains", type=int, default=0, metavar="N",
                 help="Run so many further chains of sgld, 2 at least, and see whether they agree."),
    click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Where to draw them: a PNG file."),
)  # fmt: skip


def chain_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options; `check_chains` takes them."""
    for option in reversed(_CHAINS):
        function = option(function)
    return function


def check_chains(
    method: str, mode: str, epsilon: float | None, chains: int, trace: Path | None, memory: str | None
) -> None:
    """Refuse chains that cannot be run or drawn."""
    if trace is not None and not chains:
        raise InvalidArgument("--trace draws what --chains run: say how many, such as --chains 2")
    if not chains:
        return
    if method != "sgld":
        raise InvalidArgument(f"--chains is for sgld: {method} has none")
    if chains < 2:
        raise InvalidArgument(f"--chains {chains}: one chain says nothing about another, so give at least 2")
    if mode == "certified" and epsilon != math.inf:
        raise InvalidArgument("--chains means nothing with --mode certified, which rests on no convergence")
    if memory is not None:
        raise InvalidArgument("--chains needs the ratings in memory: leave --memory out")
    if trace is not None:
        from dpmf.compare.plots.figure import format_of

        format_of(trace)  # before the training, not after it


def sampling_report(method: SGLD, run: Run, user_budgets: dict[str, float] | None) -> dict[str, Any]:
    """Return what is reported of SGLD beside what is reported of every method."""
    report: dict[str, Any] = {}
    if run.model.guarantee.mode == "paper":
        report["user_epsilons"] = method.paid(run.model, user_budgets)
    if run.convergence is not None:
        report["convergence"] = run.convergence.to_json()
    return report


def draw_traces(run: Run, path: Path) -> None:
    """Save the courses of the chains."""
    from dpmf.compare.plots import trace_picture

    assert run.convergence is not None
    trace_picture(run.convergence, path)


def print_sampling(run: Run, report: dict[str, Any]) -> None:
    """Print it for people."""
    if report["method"] != "sgld":
        return
    if report["mode"] == "paper":
        paid = report["user_epsilons"]
        rows = [
            (name, *(paid[key][column] for column in ("least", "median", "most")))
            for name, key in (("as claimed (theorem 2)", "claimed"), ("exact draws, add-remove", "add-remove"))
        ]
        print_table("What users pay: epsilon", ("", "least", "median", "most"), rows)
        rating = paid["rating"]
        say(
            f"At the errors they really have, the ratings of a typical user cost {paid['typical']:.4g}: an average, "
            f"which promises nothing. One rating: {rating['claimed']:.4g} as claimed, and for exact draws "
            f"{rating['weight 1']:.4g} at weight 1 and {rating['most']:.4g} at most. {METRICS_NOTE}"
        )
    if run.convergence is not None:
        say(f"{run.convergence}. {METRICS_NOTE}", "" if run.convergence.converged else "bold red")
