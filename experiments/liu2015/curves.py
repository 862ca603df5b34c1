"""Training curves: the seconds of each epoch, and the error on held-out ratings after it.

Errors are measured between epochs and are not part of their time, except for LIBMF, which measures its own: one visit
of 1 % of the ratings without an update, and the norm of its factors. Its first iteration cannot be separated from its
preparation, and counts as the average of the others. It has no biases, and its errors are of predictions not clamped to
the scale. Its penalty and rate had the lowest error after 15 iterations among six pairs tried on every tenth
Netflix user with 128 factors: 0.03 and 0.05, without the L1 penalty that the Python package has by default. The other
methods have their defaults.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf import SGD, SGLD, Ratings
from dpmf.engine.resources import Resources
from dpmf.engine.threads import run_tasks
from dpmf.evaluation.metrics import rmse
from dpmf.evaluation.peer_process import ask
from dpmf.kernels.scores import predict_pairs
from dpmf.methods import Method
from dpmf.methods.sgld.chain import Chain
from experiments.liu2015.data import HOLDOUT, PLAIN, Parts

_PAIRS_PER_TASK = 1 << 16
_LIBMF = """
import json, os, sys, threading, time
import numpy as np
folder, factors, threads, iterations = sys.argv[1], *map(int, sys.argv[2:])
from libmf import mf
train, test = (np.load(f"{folder}/{name}.npy") for name in ("train", "test"))
engine = mf.MF(k=factors, nr_threads=threads, nr_iters=iterations, lambda_p1=0, lambda_q1=0, lambda_p2=0.03,
               lambda_q2=0.03, eta=0.05)
sys.stdout.flush()
reading, writing = os.pipe()
screen = os.dup(1)
os.dup2(writing, 1)  # what the library prints, a line when an iteration ends
moments = []
def listen():
    with os.fdopen(reading) as lines:
        for line in lines:
            words = line.split()
            if words and words[0].isdigit():
                moments.append((time.perf_counter(), float(words[2])))
            if words == ["END"]:
                return
listener = threading.Thread(target=listen)
listener.start()
began = time.perf_counter()
engine.mf_train_test(train, test)
os.write(1, b"END\\n")
listener.join()
os.dup2(screen, 1)
print("RESULT", json.dumps([[moment - began, error] for moment, error in moments]))
"""


class Epoch(NamedTuple):
    """The seconds of an epoch, the error after it, and for sampling also the error of averaged predictions."""

    seconds: float
    rmse: float
    average_rmse: float | None = None


def sgd_curve(parts: Parts, n_factors: int, n_epochs: int) -> list[Epoch]:
    """Return the training curve of descent with its defaults."""
    # The validation part for early stopping is the held-out part: same fraction, same seed, same split.
    method = SGD(n_factors=n_factors, n_epochs=n_epochs, validation=HOLDOUT, patience=n_epochs, seed=parts.seed)
    _compile(SGD(n_factors=n_factors, n_epochs=1))
    curve = []
    for record in method.fit(parts.ratings, n_threads=parts.n_threads).history:
        assert record.validation_rmse is not None
        curve.append(Epoch(record.seconds, record.validation_rmse))
    return curve


def sgld_curve(parts: Parts, n_factors: int, n_epochs: int) -> list[Epoch]:
    """Return the training curve of posterior sampling with its defaults, without a guarantee.

    The error after an epoch is that of the draw; averages are over the draws so far of the second half of the epochs.
    """
    method = SGLD(n_factors=n_factors, n_epochs=n_epochs, budget=PLAIN, seed=parts.seed)
    _compile(SGLD(n_factors=n_factors, n_epochs=1, budget=PLAIN))
    curve, total, count = [], np.zeros(len(parts.test)), 0
    with method.prepared(parts.train, None) as (counted, weights, bound):
        resources = Resources(parts.n_threads)
        chain = method.chain_on(counted, weights, bound, resources)
        predict = _predictor(chain, parts.test, parts.n_threads)
        for epoch in range(1, n_epochs + 1):
            record = method.advance(chain, epoch, resources.executor)
            predicted = predict()
            average = None
            if epoch > n_epochs // 2:
                total, count = total + predicted, count + 1
                average = _error(total / count, parts.test)
            curve.append(Epoch(record.seconds, _error(predicted, parts.test), average))
    return curve


def _compile(method: Method) -> None:
    """Compile everything before an epoch is timed."""
    method.fit(Ratings.of([1, 1, 2], [1, 2, 2], [1, 2, 3], scale=(1, 5)), n_threads=1)


def _predictor(chain: Chain, test: Ratings, n_threads: int) -> Callable[[], NDArray[np.float64]]:
    """Return a function that predicts test ratings from the chain's current factors, in the units of the ratings."""
    state, layout = chain.state, chain.state.grid.layout
    users = np.argsort(layout.user_order)[test.users].astype(np.int32)
    items = np.argsort(layout.item_order)[test.items].astype(np.int32)
    predicted = np.empty(len(test), np.float32)

    def work(task: int) -> None:
        part = slice(task * _PAIRS_PER_TASK, (task + 1) * _PAIRS_PER_TASK)
        predict_pairs(users[part], items[part], state.U, state.V, state.b, state.c, 0.0, predicted[part])

    def predict() -> NDArray[np.float64]:
        run_tasks(work, -(-len(test) // _PAIRS_PER_TASK), n_threads)
        return chain.sampler.density.centre + state.unit * predicted.astype(np.float64)

    return predict


def _error(predicted: NDArray[np.float64], test: Ratings) -> float:
    return rmse(np.clip(predicted, test.scale.lo, test.scale.hi) - test.values)


def libmf_curve(parts: Parts, n_factors: int, n_epochs: int) -> list[Epoch] | None:
    """Return the training curve of LIBMF, or None if it is not installed; `LIBMF_OBJ` names a build of its library."""
    with tempfile.TemporaryDirectory(prefix="dpmf-peer-") as folder:
        for name, part in (("train", parts.train), ("test", parts.test)):
            np.save(Path(folder) / name, np.c_[part.users, part.items, part.values].astype(np.float32))
        found = ask("libmf", ["-c", _LIBMF, folder, *map(str, (n_factors, parts.n_threads, n_epochs))])
    return None if found is None else curve_of(found)


def curve_of(moments: list[tuple[float, float]]) -> list[Epoch]:
    """Return the training curve for times and errors, the first epoch being the average of the others.

    >>> [epoch.seconds for epoch in curve_of([(9.0, 1.0), (11.0, 0.9), (13.0, 0.8)])]
    [2.0, 2.0, 2.0]
    """
    seconds: list[Any] = np.diff([moment for moment, _ in moments]).tolist()
    seconds = [sum(seconds) / len(seconds) if seconds else moments[0][0], *seconds]
    return [Epoch(one, error) for one, (_, error) in zip(seconds, moments, strict=True)]


CURVES: dict[str, Callable[[Parts, int, int], list[Epoch] | None]] = {
    "SGD": sgd_curve,
    "SGLD": sgld_curve,
    "LIBMF": libmf_curve,
}
