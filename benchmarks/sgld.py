"""Posterior sampling: its speed beside descent, and its error against epsilon, table size and epochs.

    python benchmarks/sgld.py speed DATA [--factors 16,128] [--turns 5] [--threads 1]
    python benchmarks/sgld.py accuracy DATA [--holdout 0.01]
    python benchmarks/sgld.py curve DATA OUT [--epsilons 100,250,1000,10000] [--rhos 1,10] [--cap 100]
    python benchmarks/sgld.py table DATA OUT [--sizes 100,1000,10000,65536,0]
    python benchmarks/sgld.py epochs DATA OUT [--epochs 2,5,10,20,40,80]

DATA is a catalogue name, a file, a folder, or made:USERS:ITEMS:RATINGS, made-up ratings of that many users and items
with that many ratings of a user on average. Each command prints one JSON object; `curve` (error against epsilon, with
what is certified), `table` (error against the size of the table of normal numbers) and `epochs` (error of descent, of
one draw and of averaged draws after so many epochs) also write OUT.json and OUT.png. Held out are ratings chosen at
random, 1 % unless said otherwise; the paper's probe set of Netflix is harder.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dpmf import ALS, SGD, SGLD, Budget, Ratings
from dpmf.compare.running import train_and_test
from dpmf.compare.turns import in_turns, median_ratio
from dpmf.engine.threads import available_cpus
from dpmf.methods import Method
from dpmf.ratings.synthetic import make

_PLAIN = Budget(math.inf)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=tuple(_COMMANDS))
    parser.add_argument("data")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--factors", default="16")
    parser.add_argument("--holdout", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=available_cpus())
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--epsilons", default="100,250,1000,10000")
    parser.add_argument("--rhos", default="1,10")
    parser.add_argument("--cap", type=int, default=100)
    parser.add_argument("--epochs", default="2,5,10,20,40,80")
    parser.add_argument("--sizes", default="100,1000,10000,65536,0")
    arguments = parser.parse_args()
    ratings = _ratings(arguments.data)
    found = {
        "what": arguments.what,
        "data": arguments.data,
        "ratings": len(ratings),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in ("numpy", "numba", "dpmf")},
        **_COMMANDS[arguments.what](ratings, arguments),
    }
    if arguments.out is not None:
        arguments.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _ratings(data: str) -> Ratings:
    if data.startswith("made:"):
        users, items, mean = map(int, data.split(":")[1:])
        return make(users, items, mean_ratings=mean)
    return Ratings.read(data)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _speed(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return updates per second, and the median over turns of what sampling has of the speed of descent."""
    rows = []
    for K in map(int, arguments.factors.split(",")):
        kinds: dict[str, Method] = {
            "descent": SGD(n_factors=K, n_epochs=2),
            "table": SGLD(n_factors=K, n_epochs=2, budget=_PLAIN),
            "fresh": SGLD(n_factors=K, n_epochs=2, budget=_PLAIN, table=0),
        }
        runs = {name: partial(_best_epoch, one, ratings, arguments) for name, one in kinds.items()}
        turns = in_turns(runs, arguments.turns)
        row: dict[str, Any] = {"factors": K, "threads": arguments.threads, "turns": len(turns)}
        row |= {f"{name}_updates_per_second": max(turn[name] for turn in turns) for name in kinds}
        row |= {f"{name}_to_descent": median_ratio(turns, name, "descent") for name in ("table", "fresh")}
        rows.append(row)
    return {"rows": rows}


def _best_epoch(method: Method, ratings: Ratings, arguments: argparse.Namespace) -> float:
    history = method.fit(ratings, n_threads=arguments.threads).history
    return len(ratings) / min(record.seconds for record in history)


def _error(method: Method, ratings: Ratings, arguments: argparse.Namespace, **more: Any) -> dict[str, float]:
    options = {"holdout": arguments.holdout, "seed": arguments.seed, "n_threads": arguments.threads}
    return train_and_test(method, ratings, **options, **more).accuracy


def _accuracy(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return errors of descent, of averaged draws, and of one draw from the untrimmed posterior at s = 1."""
    K = int(arguments.factors)
    most = int((ratings.indptr[1:] - ratings.indptr[:-1]).max())
    draw = SGLD(n_factors=K, budget=Budget(4 * most * _per_rating(ratings)), mode="paper", cap=most, items_public=True)
    kinds: dict[str, Method] = {
        "descent": SGD(n_factors=K),
        "average of draws": SGLD(n_factors=K, budget=_PLAIN),
        "one draw at s = 1": draw,
    }
    return {"rows": [{"kind": name, **_error(one, ratings, arguments)} for name, one in kinds.items()]}


def _per_rating(ratings: Ratings) -> float:
    return (ratings.scale.hi - ratings.scale.lo + 1.0) ** 2


def _curve(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    K, rows = int(arguments.factors), []
    ax = _axes(
        arguments, "what is claimed, what exact draws cost, and what is certified", "epsilon per user, add-remove"
    )
    for rho in _numbers(arguments.rhos):
        claims: list[dict[str, Any]] = []
        for epsilon in _numbers(arguments.epsilons):
            method = SGLD(
                n_factors=K, budget=Budget(epsilon), mode="paper", cap=arguments.cap, rho=rho, items_public=True
            )
            found = _error(method, ratings, arguments)
            claims.append(
                {"rho": rho, "claimed": epsilon, "exact": method.bound(ratings.scale).tight("add-remove"), **found}
            )
        for name, style in (("claimed", "-"), ("exact", "--")):
            ax.semilogx(
                [row[name] for row in claims],
                [row["rmse"] for row in claims],
                f"o{style}",
                label=f"{name}, rho={rho:g}",
            )
        rows += claims
    certified = []
    for name in ("ALS", "SGLD"):
        part: list[dict[str, Any]] = []
        for epsilon in (1.0, 5.0, 20.0):
            private: Method = (ALS if name == "ALS" else SGLD)(budget=Budget(epsilon), items_public=True)
            part.append({"method": name, "certified": epsilon, **_error(private, ratings, arguments)})
        errors = [row["rmse"] for row in part]
        ax.semilogx([row["certified"] for row in part], errors, "s-", label=f"{name}, certified")
        certified += part
    ax.axhline(rows[0]["baseline_rmse"], color="0.5", label="mean of your own ratings")
    return _drawn(ax, arguments, {"rows": rows, "certified": certified})


def _table(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    sizes, rows = [int(one) for one in _numbers(arguments.sizes)], []
    for size in sizes:
        method = SGLD(n_factors=int(arguments.factors), budget=_PLAIN, table=size)
        rows.append({"size": size, "rmse": _error(method, ratings, arguments)["rmse"]})
    ax = _axes(arguments, "Error by size of the table of normal numbers", "numbers in the table")
    ax.semilogx([row["size"] for row in rows if row["size"]], [row["rmse"] for row in rows if row["size"]], "o-")
    for row in rows:
        if not row["size"]:
            ax.axhline(row["rmse"], color="0.5", label="fresh numbers")
    return _drawn(ax, arguments, {"rows": rows})


def _epochs(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    K, rows = int(arguments.factors), []
    for n_epochs in map(int, arguments.epochs.split(",")):
        draws = SGLD(n_factors=K, n_epochs=n_epochs, budget=_PLAIN)
        kinds: dict[str, Method] = {
            "descent": SGD(n_factors=K, n_epochs=n_epochs),
            "one draw": replace(draws, n_samples=1),
            "average of draws": draws,
        }
        errors = {name: _error(one, ratings, arguments)["rmse"] for name, one in kinds.items()}
        rows.append({"epochs": n_epochs, **errors})
    ax = _axes(arguments, "Error by epochs", "epochs")
    for name in ("descent", "one draw", "average of draws"):
        ax.semilogx([row["epochs"] for row in rows], [row[name] for row in rows], "o-", label=name)
    return _drawn(ax, arguments, {"rows": rows})


def _axes(arguments: argparse.Namespace, title: str, xlabel: str) -> Any:
    if arguments.out is None:
        raise SystemExit(f"{arguments.what} needs OUT, where to write figures and a picture")
    ax = Figure(figsize=(8, 5), layout="constrained").subplots()
    ax.set(title=title, xlabel=xlabel, ylabel="rmse on held-out ratings")
    return ax


def _drawn(ax: Any, arguments: argparse.Namespace, found: dict[str, Any]) -> dict[str, Any]:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="small")
    ax.figure.savefig(arguments.out.with_suffix(".png"), dpi=120)
    return found


_COMMANDS = {"speed": _speed, "accuracy": _accuracy, "curve": _curve, "table": _table, "epochs": _epochs}

if __name__ == "__main__":
    main()
