"""Alternating least squares beside Spark MLlib's, on the same ratings and threads: processor time to equal error.

    python benchmarks/spark.py DATA --spark-python PYTHON [--every 10] [--factors 32 64] [--threads 2]

PYTHON is an interpreter that can import pyspark and NumPy; it may be of another environment. Java has to be installed.
A tenth of the ratings is held out. Spark is tuned first: its regularization is the one of `--regularizations` with the
lowest held-out error after ten iterations; dpmf is not tuned. Then both are fitted from the start with more and more
iterations, and what counts is the processor time of the whole process, user and system, during the fit: each is warmed
up by fits before, Spark has the ratings cached in memory, and reading is left out. Spark's error is that of the factors
it hands over, in single precision and limited to the scale; a user or an item that it does not know gets the mean.
Prints one JSON object, which names the BLAS that Spark used: JNIBLAS is a native one, which it finds if libblas.so.3
and liblapack.so.3 are installed (Debian: libopenblas0-pthread), or in a folder of LD_LIBRARY_PATH.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpmf import ALS, Budget, Ratings, __version__, evaluate
from dpmf.ratings.subset import select_users

ITERATIONS = (1, 2, 3, 4, 6, 8, 10, 15)
REGULARIZATIONS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15)

# Runs under another interpreter, in which dpmf need not be installed.
PEER = r"""
import json, os, sys, time
import numpy as np
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
import pyspark

folder, threads, memory = sys.argv[1], sys.argv[2], sys.argv[3]
session = (
    SparkSession.builder.master(f"local[{threads}]").appName("als").config("spark.driver.memory", memory)
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", str(2 * int(threads)))
    .config("spark.driver.extraJavaOptions", "--add-modules=jdk.incubator.vector").getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")
virtual = session.sparkContext._jvm
machine = virtual.java.lang.ProcessHandle.current().pid()
blas = virtual.dev.ludovic.netlib.blas.BLAS.getInstance().getClass().getName().rpartition(".")[2]
test = np.load(f"{folder}/test.npz")
lo, hi, mean = test["lo"], test["hi"], test["mean"]
ratings = session.read.parquet(f"{folder}/train.parquet").repartition(2 * int(threads)).cache()
ratings.count()

def spent(process):
    fields = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def peak():
    lines = open(f"/proc/{machine}/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

def factors_of(frame, size, rank):
    rows = frame.collect()
    found, known = np.zeros((size, rank), np.float32), np.zeros(size, bool)
    places = np.array([row["id"] for row in rows])
    found[places], known[places] = np.array([row["features"] for row in rows], np.float32), True
    return found, known

def fit(rank, iterations, regularization):
    before, begin = spent(machine) + spent(os.getpid()), time.perf_counter()
    model = ALS(
        rank=rank, maxIter=iterations, regParam=regularization, userCol="user", itemCol="item", ratingCol="rating",
        numUserBlocks=2 * int(threads), numItemBlocks=2 * int(threads), seed=0,
    ).fit(ratings)
    model.itemFactors.count()
    seconds, cpu = time.perf_counter() - begin, spent(machine) + spent(os.getpid()) - before
    users, known_users = factors_of(model.userFactors, int(test["n_users"]), rank)
    items, known_items = factors_of(model.itemFactors, int(test["n_items"]), rank)
    predicted = np.einsum("nk,nk->n", users[test["users"]], items[test["items"]])
    predicted[~(known_users[test["users"]] & known_items[test["items"]])] = mean
    error = float(np.sqrt(np.mean((np.clip(predicted, lo, hi) - test["values"]) ** 2)))
    return {"iterations": iterations, "seconds": seconds, "cpu_seconds": cpu, "rmse": error}

for line in sys.stdin:
    asked = json.loads(line)
    found = fit(**asked) | {"peak_mb": peak(), "versions": f"{pyspark.__version__}, {blas}"}
    print("ANSWER " + json.dumps(found), flush=True)
"""


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--spark-python", required=True)
    parser.add_argument("--spark-memory", default="6g")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--factors", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--regularizations", type=float, nargs="+", default=list(REGULARIZATIONS))
    parser.add_argument("--iterations", type=int, nargs="+", default=list(ITERATIONS))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    if arguments.every > 1:
        ratings = select_users(ratings, np.arange(0, ratings.n_users, arguments.every))
    train, test = ratings.split(0.1, seed=7)
    report: dict[str, Any] = {
        "data": ratings.name,
        "ratings": len(ratings),
        "threads": arguments.threads,
        "processor": platform.processor() or platform.machine(),
        "dpmf": __version__,
    }
    with tempfile.TemporaryDirectory() as folder, Peer(arguments, Path(folder), train, test) as peer:
        for rank in arguments.factors:
            report[f"rank {rank}"] = _race(rank, train, test, peer, arguments)
            _say(f"rank {rank}: {json.dumps(report[f'rank {rank}']['cpu ratio'])}")
        report["spark"] = peer.versions
        report["spark peak MB"] = peer.peak
    report["dpmf peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(report, indent=2))


class Peer:
    """Spark in a process of its own, which fits what it is asked for."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, train: Ratings, test: Ratings) -> None:
        _write(folder, train, test)
        (folder / "peer.py").write_text(PEER)
        self.peak, self.versions = 0, ""
        self._process = subprocess.Popen(
            [arguments.spark_python, folder / "peer.py", folder, str(arguments.threads), arguments.spark_memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def fit(self, rank: int, iterations: int, regularization: float) -> dict[str, float]:
        """Return processor time and held-out error of a fit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"rank": rank, "iterations": iterations, "regularization": regularization}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("ANSWER "):
                answer: dict[str, Any] = json.loads(line.removeprefix("ANSWER "))
                self.peak, self.versions = answer.pop("peak_mb"), answer.pop("versions")
                return answer
        raise SystemExit("Spark has ended without an answer: are Java and pyspark installed?")


def _write(folder: Path, train: Ratings, test: Ratings) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"user": train.users.astype(np.int32), "item": train.items, "rating": train.values})
    pq.write_table(table, folder / "train.parquet")
    np.savez(
        folder / "test.npz",
        users=test.users,
        items=test.items,
        values=test.values,
        n_users=train.n_users,
        n_items=train.n_items,
        lo=train.scale.lo,
        hi=train.scale.hi,
        mean=train.values.mean(),
    )


def _race(rank: int, train: Ratings, test: Ratings, peer: Peer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit both with more and more iterations, and return what each cost, and the ratio at equal errors."""
    peer.fit(rank, 2, 0.1)
    _ours(rank, 1, train, test, arguments.threads)
    tuning = {one: peer.fit(rank, 10, one)["rmse"] for one in arguments.regularizations}
    best = min(tuning, key=lambda one: tuning[one])
    _say(f"rank {rank}: regParam {best:g} of {tuning}")
    spark = [peer.fit(rank, one, best) for one in arguments.iterations]
    _say(f"Spark: {spark}")
    ours = [_ours(rank, one, train, test, arguments.threads) for one in arguments.iterations]
    _say(f"dpmf: {ours}")
    lowest = min(one["rmse"] for one in spark)
    ratios = {}
    for target in (lowest + 0.005, lowest + 0.001, lowest):
        theirs, mine = _to(target, spark), _to(target, ours)
        ratios[f"{target:.4f}"] = None if mine is None or theirs is None else round(theirs / mine, 1)
    return {
        "regParam": best,
        "tuning": tuning,
        "spark": spark,
        "dpmf": ours,
        "lowest": {"spark": lowest, "dpmf": min(one["rmse"] for one in ours)},
        "cpu ratio": ratios,
    }


def _ours(rank: int, iterations: int, train: Ratings, test: Ratings, threads: int) -> dict[str, float]:
    before, begin = time.process_time(), time.perf_counter()
    method = ALS(n_factors=rank, n_epochs=iterations, budget=Budget(math.inf))
    model = method.fit(train, n_threads=threads)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - before
    return {
        "iterations": iterations,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rmse": float(evaluate(model, test)["rmse"]),
    }


def _to(target: float, fits: list[dict[str, float]]) -> float | None:
    """Return the least processor time of a fit that reaches an error; None if none does."""
    return min((one["cpu_seconds"] for one in fits if one["rmse"] <= target + 1e-9), default=None)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
