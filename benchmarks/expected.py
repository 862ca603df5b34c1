"""What `dpmf train --dry-run` expects of the error of ratings, beside the error that runs have.

    python benchmarks/expected.py synthetic [--people 6000] [--runs 3] [--record]   measure on worlds, into docs/results
    python benchmarks/expected.py references    the table of src/dpmf/runs/expected.py
    python benchmarks/expected.py check         a Markdown table: expected, and measured

Everything but the first reads docs/results, where benchmarks/private.py puts what it measures, with and without traits.
The table is of MovieLens 100K, Anime and synthetic ratings; all else is only checked.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from record import RESULTS, epsilon_text, record
from worlds import World

from dpmf import ALS, Budget
from dpmf.runs.expected import REFERENCES, expected_of
from dpmf.runs.training import train_and_test

_WORLDS = {1_000: 1500, 6_000: 3500, 48_000: 5000}  # people, and items
_EPSILONS = (1.0, 5.0, 20.0)
_PEOPLE = {
    "ml-100k": 943,
    "anime": 4714,
    "ml-1m": 6040,
    "ml-1m-both": 6040,
    "netflix-every-10": 48_000,
    "netflix": 480_000,
}
_CHOSEN = {"ml-100k": "MovieLens 100K", "anime": "Anime"}
_CHECKED = (  # name, set of results, title, and whether genres count
    ("ml-100k", "als", "MovieLens 100K", True),
    ("ml-100k", "als-without-traits", "the same, without traits", False),
    ("anime", "als", "Anime", True),
    ("anime", "als-without-traits", "the same, without traits", False),
    ("ml-1m", "als", "MovieLens 1M", True),
    ("ml-1m", "als-without-traits", "the same, without traits", False),
    ("ml-1m-both", "purposes", "the same, by `joint`", True),
    ("netflix-every-10", "als", "every tenth Netflix user", False),
    ("netflix", "als", "Netflix", False),
)


def main() -> None:
    """Measure, or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("synthetic", "references", "check"))
    parser.add_argument("--people", type=int, choices=_WORLDS, help="of the world to measure on; all by default")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "synthetic":
        for people in [arguments.people] if arguments.people else _WORLDS:
            _measure(people, _WORLDS[people], arguments.runs, keep=arguments.record)
    elif arguments.what == "references":
        _print_references()
    else:
        _print_check()


def _measure(people: int, items: int, runs: int, *, keep: bool) -> None:
    ratings, found = World(people, items).ratings(), {}
    for epsilon in _EPSILONS:
        method = ALS(budget=Budget(epsilon), items_public=True)
        done = [train_and_test(method, ratings, holdout=0.1, seed=3).accuracy for _ in range(runs)]
        figures = {name: float(np.mean([one[name] for one in done])) for name in ("rmse", "baseline_rmse")}
        found[epsilon_text(epsilon)] = figures
        print(people, epsilon, figures, flush=True)
    if keep:
        record("als-without-traits", f"synthetic-{people}", found, runs=runs)


def _shares(results: str, name: str) -> dict[float, float]:
    """Return, by epsilon, the error relative to that of the per-user mean."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in (RESULTS / f"{results}.jsonl").open()]
    found = {float(row["epsilon"]): row["figures"] for row in rows if row["name"] == name}
    return {
        epsilon: one["rmse"] / one["baseline_rmse"]
        for epsilon, one in sorted(found.items())
        if np.isfinite(epsilon) and "baseline_rmse" in one
    }


def _print_references() -> None:
    sets = [(title, _PEOPLE[name], name) for name, title in _CHOSEN.items()]
    sets += [(f"synthetic ratings of {people:,} people", people, f"synthetic-{people}") for people in _WORLDS]
    for title, people, name in sets:
        with_traits, without = _shares("als", name), _shares("als-without-traits", name)
        for epsilon, share in without.items():
            told = f"{with_traits[epsilon]:.3f}" if epsilon in with_traits else "None"
            print(f'    Reference("{title}", {people:_}, {epsilon:g}, {share:.3f}, {told}),')


def _print_check() -> None:
    """Print what is expected of each set of ratings by all others, and what was measured."""
    heads = [f"ε = {epsilon:g}: expected | measured" for epsilon in _EPSILONS]
    print(f"| | {' | '.join(heads)} |\n|{'---|' * (1 + 2 * len(heads))}")
    for name, results, title, genres in _CHECKED:
        shares, cells = _shares(results, name), []
        for epsilon in _EPSILONS:
            others = [one for one in REFERENCES if one.name != _CHOSEN.get(name)]
            found = expected_of(epsilon * _PEOPLE[name], genres=genres, references=others)
            cells += [
                "nothing" if found is None else f"{found.least:.2f} to {found.most:.2f}",
                f"{shares[epsilon]:.3f}",
            ]
        print(f"| {' | '.join([title, *cells])} |")


if __name__ == "__main__":
    main()
