"""How long dpmf and LIBMF take to the same error, in one run on the same ratings.

    python benchmarks/target.py DATA [--libmf PATH] [--factors 128] [--epochs 15] [--target 0.8355]

Trains LIBMF on all but 1 % of DATA, takes its error on that 1 % as the target (or a lower one that is given), and then
trains `SGD` for 5, 6, … epochs until it is reached. Times are of training alone, and with each side's own preparation
of the ratings. Needs the PyPI package `libmf`; `--libmf` names a better build of its library.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dpmf import SGD, Ratings
from dpmf.compare.running import train_and_test

_LIBMF = """
import contextlib, io, json, sys, time
import numpy as np
train, test, factors, epochs = np.load(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
with contextlib.redirect_stdout(io.StringIO()):
    from libmf import mf
def fit(n):
    engine = mf.MF(fun=0, k=factors, nr_threads=2, nr_iters=n, lambda_p2=0.05, lambda_q2=0.05, eta=0.05)
    ratings = train.copy()  # it scales what it is given
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        engine.fit(ratings)
    return engine, time.perf_counter() - began
_, one = fit(1)
engine, all_of_it = fit(epochs)
P, Q = np.asarray(engine.p_factors()), np.asarray(engine.q_factors())  # its own predict() gives other numbers
users, items = test[:, 0].astype(int), np.minimum(test[:, 1].astype(int), len(Q) - 1)
predicted = np.nan_to_num(np.einsum("nk,nk->n", P[users], Q[items]), nan=float(train[:, 2].mean()))
error = float(np.sqrt(np.mean((np.clip(predicted, 1, 5) - test[:, 2]) ** 2)))
print("RESULT " + json.dumps({"rmse": error, "training": (all_of_it - one) * epochs / (epochs - 1), "all": all_of_it}))
"""


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--libmf", type=Path)
    parser.add_argument("--factors", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--target", type=float, default=1.0, help="an error that LIBMF is known to reach when tuned")
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    theirs = _libmf(ratings, arguments.factors, arguments.epochs, arguments.libmf)
    print(theirs, flush=True)
    for epochs in range(5, arguments.epochs + 1):
        began = time.perf_counter()
        run = train_and_test(SGD(n_factors=arguments.factors, n_epochs=epochs), ratings, holdout=0.01)
        ours = {
            "epochs": epochs,
            "rmse": run.accuracy["rmse"],
            "training": sum(record.seconds for record in run.model.history),
            "all": time.perf_counter() - began,
        }
        print(ours, flush=True)
        if ours["rmse"] <= min(theirs["rmse"], arguments.target):
            break
    ratio = {name: theirs[name] / ours[name] for name in ("training", "all")}
    print(json.dumps({"libmf": theirs, "dpmf": ours, "ratio": ratio}))


def _libmf(ratings: Ratings, factors: int, epochs: int, library: Path | None) -> dict[str, float]:
    environment = {**os.environ, **({"LIBMF_OBJ": str(library)} if library is not None else {})}
    with tempfile.TemporaryDirectory() as folder:
        for name, part in zip(("train", "test"), ratings.split(0.01), strict=True):
            np.save(f"{folder}/{name}.npy", np.c_[part.users, part.items, part.values].astype(np.float32))
        program = [sys.executable, "-W", "ignore", "-c", _LIBMF, f"{folder}/train.npy", f"{folder}/test.npy"]
        done = subprocess.run(
            [*program, str(factors), str(epochs)], env=environment, capture_output=True, text=True, check=True
        )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    result: dict[str, float] = json.loads(line.removeprefix("RESULT "))
    return result


if __name__ == "__main__":
    main()
