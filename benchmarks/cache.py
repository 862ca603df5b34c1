"""How the block grid uses the caches, counted by Valgrind on a simulated processor.

    python benchmarks/cache.py DATA OUT [--factors 16,256,2048] [--ratings 500000]

Runs the training kernel over the block grid, and over the same ratings in random order, under `callgrind` with a
first-level cache of 32 KB and a last-level cache of 32 MB, and writes misses per data reference and per update to
OUT.json. Valgrind has no AVX-512 and ignores prefetches, so the kernel is compiled for AVX2 and the misses are those
that prefetching has to hide. Counts do not depend on other load on the machine.

With many factors, random order is sampled: every stretch of a random order is like every other, so its first part, over
the factors of the same users and items, has the misses per update of the whole. The block grid is always counted in
full. Every row records how many ratings were visited. Rows of the same ratings that OUT.json already has are kept, so
an interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpmf import Ratings
from dpmf.bench.speed import first_users
from dpmf.engine.grid import BlockGrid
from dpmf.engine.local import ThreadExecutor
from dpmf.kernels.sgd import Step, sgd_block
from dpmf.methods.sgd.descent import Descent

_CACHES = ("--D1=32768,8,64", "--LL=33554432,16,64")
_OLDER_CPU = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2,-avx512f"}
_EVENTS = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")
Counts = dict[str, int]
_MOST_FACTORS = 100_000_000  # visited by an epoch in random order; simulating more takes a quarter of an hour


def main() -> None:
    """Count, and write OUT.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--factors", default="16,256,2048")
    parser.add_argument("--ratings", type=int, default=500_000)
    parser.add_argument("--counting", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    factors = [int(part) for part in arguments.factors.split(",")]
    if arguments.counting:
        _count_all(Path(arguments.data), factors, arguments.out)
        return
    ratings = Ratings.read(arguments.data)
    few = first_users(ratings, int(np.searchsorted(ratings.indptr, arguments.ratings)))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            f"{folder}/ratings.npz",
            users=few.users,
            items=few.items,
            values=few.values,
            n_items=few.n_items,
            name=few.name,
        )
        this = [sys.executable, __file__, f"{folder}/ratings.npz", str(arguments.out), "--counting"]
        this += ["--factors", arguments.factors]
        environment = {**os.environ, **_OLDER_CPU}
        tool = ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--instr-atstart=no", *_CACHES]
        subprocess.run([*tool, f"--callgrind-out-file={folder}/counts", *this], env=environment, check=True)


def _count_all(path: Path, factors: list[int], out: Path) -> None:
    """Count for every number of factors and both orders; runs under callgrind."""
    saved = np.load(path)
    ratings = Ratings.of(
        saved["users"], saved["items"], saved["values"], scale=(1, 5), items=range(int(saved["n_items"]))
    )
    rows: list[dict[str, Any]] = []
    sizes = {"users": ratings.n_users, "items_rated": len(np.unique(ratings.items)), "ratings": len(ratings)}
    facts = {"data": str(saved["name"]), **sizes, "caches": list(_CACHES), "tool": "callgrind"}
    known = _known(out.with_suffix(".json"), facts)
    for n_factors in factors:
        sample = min(len(ratings), _MOST_FACTORS // n_factors)
        for order, visited, make in (("block grid", len(ratings), _in_blocks), ("random", sample, _shuffled)):
            row = {"factors": n_factors, "order": order, "ratings_visited": visited}
            same = [one for one in known if row.items() <= one.items()]
            rows.append(same[0] if same else row | _rates(_counted(make(ratings, n_factors, visited)), 2 * visited))
            print(rows[-1], flush=True)
            # Written after every row: the next may take very long.
            report = {**facts, "rows": rows + [one for one in known if one not in rows]}
            out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")


def _known(path: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an earlier run on the same ratings, if there was one."""
    report = json.loads(path.read_text()) if path.exists() else {}
    return report["rows"] if facts.items() <= report.items() else []


def _in_blocks(ratings: Ratings, n_factors: int, _visited: int) -> Callable[[], object]:
    state = _state(ratings, BlockGrid.build(ratings), n_factors)
    return lambda: state.run_epoch(1, 0.01, 0.01, ThreadExecutor(1))


def _shuffled(ratings: Ratings, n_factors: int, visited: int) -> Callable[[], object]:
    """Return the first part of an epoch over a single block in random order, as in plain stochastic descent."""
    grid = BlockGrid.build(ratings, size=1)
    state, step = _state(ratings, grid, n_factors), Step.of(grid.mean, 0.01, 0.01, 1.0)
    order = np.random.default_rng(0).permutation(len(ratings))[:visited]
    users, items, codes = (np.ascontiguousarray(column[order]) for column in grid.ratings)
    rows = (state.U, state.V, state.b, state.c)
    return lambda: sgd_block(users, items, codes, grid.table, *rows, step, np.uint64(0))


def _state(ratings: Ratings, grid: BlockGrid, n_factors: int) -> Descent:
    keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
    return Descent.start(grid, *keys, n_factors=n_factors, sd=0.1, unit=1.0, seed=0)


def _counted(epoch: Callable[[], object]) -> Counts:
    """Return the counts of two epochs: three minus one, so that switching the counters on and off cancels out."""
    epoch()  # compiled and warm
    one, three = (_interval(epoch, times) for times in (1, 3))
    return {name: three[name] - one[name] for name in _EVENTS}


def _interval(epoch: Callable[[], object], times: int) -> Counts:
    _control("-i", "on")
    _control("-z")
    for _ in range(times):
        epoch()
    _control("-d")
    _control("-i", "off")
    newest = max(_output().parent.glob(f"{_output().name}.*"), key=lambda file: int(file.suffix[1:]))
    found = re.search(r"^(?:summary|totals): (.*)$", newest.read_text(), re.MULTILINE)
    assert found is not None
    return dict(zip(_EVENTS, map(int, found[1].split()), strict=True))


def _control(*command: str) -> None:
    subprocess.run(["callgrind_control", *command, str(os.getpid())], capture_output=True, check=True)


def _output() -> Path:
    return Path(sys.argv[1]).parent / "counts"


def _rates(counts: Counts, n_updates: int) -> dict[str, float]:
    references = counts["Dr"] + counts["Dw"]
    first, last = (counts[f"{level}mr"] + counts[f"{level}mw"] for level in ("D1", "DL"))
    return {
        "instructions_per_update": counts["Ir"] / n_updates,
        "first_level_miss_percent": 100 * first / references,
        "last_level_miss_percent": 100 * last / references,
        "first_level_misses_per_update": first / n_updates,
        "last_level_misses_per_update": last / n_updates,
    }


if __name__ == "__main__":
    main()
