"""Options of methods that have chains: more of them, to see whether they agree, and their picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmf.cli.groups import all_of
from dpmf.errors import InvalidArgument
from dpmf.methods import METHODS

if TYPE_CHECKING:
    from dpmf.runs.training import Run

chain_options = all_of(
    [
        click.option(
            "--chains",
            type=int,
            default=0,
            metavar="N",
            help="Run N more chains of sgld, at least 2, and test whether they agree.",
        ),
        click.option(
            "--trace", type=click.Path(path_type=Path), metavar="FILE", help="Plot the chains to this PNG file."
        ),
    ]
)


@dataclass(frozen=True)
class ChainOptions:
    """How many more chains, and where their picture goes."""

    chains: int
    trace: Path | None


def check_chains(method: str, kind: str, options: ChainOptions, *, streams: bool) -> None:
    """Refuse chains that cannot be run or drawn.

    Args:
        method: its name.
        kind: what kind of run: "certified", "paper" or "none".
        options: what was asked for.
        streams: whether ratings may stay on disk.
    """
    if options.trace is not None and not options.chains:
        raise InvalidArgument("--trace draws what --chains run: say how many, such as --chains 2")
    if not options.chains:
        return
    kinds = METHODS[method].takes.get("chains")
    if kinds is None:
        takers = " or ".join(name for name, one in METHODS.items() if "chains" in one.takes)
        raise InvalidArgument(f"--chains is for {takers}: {method} has none")
    if options.chains < 2:
        raise InvalidArgument(f"--chains {options.chains}: one chain says nothing about another, so give at least 2")
    if kind not in kinds:
        raise InvalidArgument(f"--chains means nothing with --mode {kind}, which rests on no convergence")
    if streams:
        raise InvalidArgument("--chains needs the ratings in memory: leave --memory out")
    if options.trace is not None:
        from dpmf.compare.plots.figure import format_of

        format_of(options.trace)  # before the training, not after it


def draw_traces(run: Run, options: ChainOptions) -> None:
    """Save the courses of the chains, if that was asked for."""
    if options.trace is not None:
        from dpmf.compare.plots import trace_picture

        assert run.convergence is not None
        trace_picture(run.convergence, options.trace)
