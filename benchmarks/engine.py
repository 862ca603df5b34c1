"""How the engine's speed and memory depend on factors, threads and the number of ratings.

    python benchmarks/engine.py DATA OUT [--factors 16,32,…] [--sizes 1000000,…] [--larger STORE]

Writes OUT.json, with the machine and the versions, and OUT.png. Speed is in updates per second, the best of several
epochs; the limit is a bound that no run exceeds (`dpmf.bench.limit`), from peaks measured in the same run. Memory is
the peak resident size of `dpmf train` on a block store, in its own process, without a limit and with `--memory 500MB`.
`--larger` names a store with more ratings than DATA, which is streamed with `--memory 2GB`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dpmf import Ratings
from dpmf.bench.speed import bench, engine_speed, first_users
from dpmf.engine.grid import BlockGrid
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import available_cpus
from dpmf.ratings.store.pieces import MemorySource
from dpmf.runs.peak_memory import peak_memory

_GROWTH_FACTORS = 64
_TURNS = 9  # of which ratios are the median


def main() -> None:
    """Measure, and write figures and a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--factors", default="16,32,64,128,256,512,1024,2048")
    parser.add_argument("--sizes", default="1000000,3000000,10000000,30000000,100000000")
    parser.add_argument("--larger", type=Path)
    arguments = parser.parse_args()
    n_threads = available_cpus()
    ratings, loading = _load(arguments.data, n_threads)
    print(loading, flush=True)
    factors = [int(part) for part in arguments.factors.split(",")]
    by_factors = []
    for row in bench(_about(ratings, 10_000_000), factors, n_threads=n_threads, epochs=_TURNS, peers=False):
        print(row, flush=True)
        by_factors.append(row)
    growth = []
    for size in map(int, arguments.sizes.split(",")):
        part = _about(ratings, size)
        growth.append({**_growth(part, n_threads), **_memory(part)})
        print(growth[-1], flush=True)
    larger = None if arguments.larger is None else _trained(arguments.larger, "--memory", "2GB", "--epochs", "3")
    report = {
        "data": ratings.name,
        "machine": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("dpmf", "numba", "llvmlite", "numpy")},
        "loading": loading,
        "by_factors": by_factors,
        "growth": growth,
        "larger": larger,
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    _draw(report, arguments.out.with_suffix(".png"))


def _load(data: str, n_threads: int) -> tuple[Ratings, dict[str, Any]]:
    """Read, hold out 1 % and lay out the blocks; return the ratings and the time of each step."""
    moments = [time.perf_counter()]
    ratings = Ratings.read(data)
    moments.append(time.perf_counter())
    training, _ = ratings.split(0.01)
    moments.append(time.perf_counter())
    BlockGrid.build(training, n_threads=n_threads)
    moments.append(time.perf_counter())
    took = dict(zip(("read", "split", "blocks"), np.diff(moments).tolist(), strict=True))
    return ratings, {**took, "ratings": len(ratings), "peak_memory": peak_memory()}


def _about(ratings: Ratings, size: int) -> Ratings:
    """Return the first users, with about `size` ratings."""
    return first_users(ratings, int(np.searchsorted(ratings.indptr, size)))


def _growth(ratings: Ratings, n_threads: int) -> dict[str, Any]:
    grid = BlockGrid.build(ratings, n_threads=n_threads)
    speed = engine_speed(ratings, grid, _GROWTH_FACTORS, n_threads, epochs=3)
    in_blocks = sum(column.nbytes for column in grid.ratings)
    return {"ratings": len(ratings), "epoch_seconds": len(ratings) / speed, "bytes_in_blocks": in_blocks}


def _memory(ratings: Ratings) -> dict[str, Any]:
    """Return the resident memory of training on these ratings, without a limit and streamed."""
    with tempfile.TemporaryDirectory() as folder:
        StoredRatings.build(MemorySource(ratings), Path(folder) / "store")
        plain = _trained(Path(folder) / "store")
        streamed = _trained(Path(folder) / "store", "--memory", "40MB" if len(ratings) < 10_000_000 else "500MB")
    return {"memory": plain["peak_memory"], "streamed": streamed}


def _trained(store: Path, *options: str) -> dict[str, Any]:
    line = ["train", str(store), "--method", "sgd", "--factors", str(_GROWTH_FACTORS), "--epochs", "2", "--json"]
    done = subprocess.run([sys.executable, "-m", "dpmf", *line, *options], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    kept = ("seconds", "epoch_seconds", "updates_per_second", "streamed", "peak_memory")
    return {name: report[name] for name in kept}


def _draw(report: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, right, last = figure.subplots(1, 3)
    rows = report["by_factors"]
    factors = [row["factors"] for row in rows]
    for key, label, style in (
        ("updates_per_second", f"{rows[0]['threads']} threads", "o-"),
        ("one_thread_updates_per_second", "1 thread", "s--"),
        ("bfloat16_updates_per_second", "16-bit items", "^:"),
        ("roofline_updates_per_second", "limit", "-."),
    ):
        left.loglog(factors, [row[key] / 1e6 for row in rows], style, base=2, label=label)
    left.set(xlabel="factors", ylabel="million updates per second", title=f"{report['data']}, 10 M ratings")
    left.legend(frameon=False)
    growth = report["growth"]
    right.loglog([row["ratings"] for row in growth], [row["epoch_seconds"] for row in growth], "o-")
    right.set(xlabel="ratings", ylabel="seconds per epoch", title=f"{_GROWTH_FACTORS} factors")
    sizes = [row["ratings"] for row in growth]
    last.loglog(sizes, [row["memory"] / 1e9 for row in growth], "o-", label="in memory")
    last.loglog(sizes, [row["streamed"]["peak_memory"] / 1e9 for row in growth], "s--", label="with a limit")
    last.set(xlabel="ratings", ylabel="resident, GB", title=f"{_GROWTH_FACTORS} factors")
    last.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
