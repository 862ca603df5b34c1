"""Reproduce a published figure, or list them all.

python -m experiments
python -m experiments balu2016 figure1 --data …/ml-1m [--full] [--seed 0] [--redraw] [--out experiments/results]
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from pathlib import Path

from dpmf import DpmfError
from experiments.figure import Figure, Run, make, remake

PAPERS = ("liu2015", "hua2015", "balu2016", "mugdho2023")
RESULTS = Path(__file__).parent / "results"


def figures_of(paper: str) -> dict[str, Figure]:
    """Return the figures of a paper by name."""
    found: dict[str, Figure] = importlib.import_module(f"experiments.{paper}").FIGURES
    return found


def main(arguments: list[str] | None = None) -> int:
    """Reproduce one figure, or list all; return 0, or 1 after printing an error."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Reproduce a published figure.")
    parser.add_argument("paper", nargs="?", choices=PAPERS)
    parser.add_argument("figure", nargs="?")
    parser.add_argument("--data", help="folder of ratings, file or catalogue name")
    parser.add_argument("--full", action="store_true", help="at the published size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--redraw", action="store_true", help="plot and judge the rows of an earlier run again")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for rows, plot and verdict")
    chosen = parser.parse_args(arguments)
    if chosen.figure is None:
        _list([chosen.paper] if chosen.paper else PAPERS)
        return 0
    figures = figures_of(chosen.paper)
    if chosen.figure not in figures:
        parser.error(f"{chosen.paper} has no {chosen.figure!r}: choose from {', '.join(figures)}")
    if chosen.data is None:
        parser.error(f"--data is missing; the figure is meant for {' or '.join(figures[chosen.figure].data)}")
    name = Path(chosen.data).name
    run = Run(chosen.data, chosen.out / chosen.paper / f"{chosen.figure}-{name}", chosen.full, chosen.seed)
    data = f"…/{name}" if Path(chosen.data).exists() else name  # a local path, or a name of the catalogue
    command = f"python -m experiments {chosen.paper} {chosen.figure} --data {data}"
    command += (" --full" if chosen.full else "") + (f" --seed {chosen.seed}" if chosen.seed else "")
    try:
        figure = figures[chosen.figure]
        print(remake(figure, run) if chosen.redraw else make(figure, run, command))
    except DpmfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command resumes from here", file=sys.stderr)
        return 130
    return 0


def _list(papers: tuple[str, ...] | list[str]) -> None:
    for paper in papers:
        print(paper)
        names: dict[int, list[str]] = {}
        figures = figures_of(paper)
        for name, figure in figures.items():
            names.setdefault(id(figure), []).append(name)  # a figure may have several names
        for same in names.values():
            figure = figures[same[0]]
            shown = same[0] if len(same) == 1 else f"{same[0]} … {same[-1]}"
            print(f"  {shown:22}  {figure.title} ({', '.join(figure.data)})")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader of the list may close the pipe early
    sys.exit(main())
