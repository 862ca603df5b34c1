"""How the time of an epoch of SGD grows with workers: a model, its constants measured here, and a simulation.

    python benchmarks/cluster_growth.py [--measure] [--measured FILE] [--out PICTURE]

With T strips and W workers an epoch has T steps. In each, every worker visits its T / W blocks of the step, then passes
one tier, |V| / T bytes, to its neighbour; whoever leads the run calls each worker once. So, to first order,

    seconds = ratings / (W · u) + |V| / B + h T + c W + v T² / W,

u being updates per second of a worker, B the bandwidth of a link, h the time that a small message takes from worker to
worker (nothing with one worker), c that of a call, and v that of a visit to a block without ratings. With more workers
than 16, T = W. `--measure` takes the time of epochs of next to no ratings on workers of this machine, which share its
CPUs, so that h, c and v, which are fitted to them, are rather too large: messages that real nodes send at the same time
are sent one after the other here. The simulation follows every message: calls are handed out one after the other, a
step waits for the worker's previous one and for the tier that its neighbour sends, and blocks take different times.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Ray
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import available_cpus
from dpmf.methods import SGD
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

_STRIPS, _WORKERS = (4, 16, 48), (1, 2, 4)
_UNEVEN = 0.2  # standard deviation of the time of a block, relative to its mean


class Constants(NamedTuple):
    """What is measured: seconds of a message, of a call and of a visit; updates per second of a worker."""

    message: float
    call: float
    visit: float
    updates: float


class Size(NamedTuple):
    """What is trained, and how wide links are: bytes per second."""

    ratings: float
    items: float
    n_factors: int
    bandwidth: float

    @property
    def item_bytes(self) -> float:
        """The size of the item side."""
        return self.items * 4 * (self.n_factors + 1)


def strips_for(n_workers: int) -> int:
    """Return T."""
    return max(16, n_workers)


def modelled(size: Size, n_workers: int, constants: Constants) -> float:
    """Return the seconds of an epoch, to first order."""
    T = strips_for(n_workers)
    wire = size.item_bytes / size.bandwidth if n_workers > 1 else 0.0
    messages = constants.message * T if n_workers > 1 else 0.0
    machinery = messages + constants.call * n_workers + constants.visit * T**2 / n_workers
    return size.ratings / (n_workers * constants.updates) + wire + machinery


def simulated(size: Size, n_workers: int, constants: Constants, seed: int = 0) -> float:
    """Return the seconds of an epoch, message by message."""
    T, random = strips_for(n_workers), np.random.default_rng(seed)
    per_block = size.ratings / T**2 / constants.updates + constants.visit
    sending = constants.message + size.item_bytes / T / size.bandwidth if n_workers > 1 else 0.0
    own = np.diff(np.linspace(0, T, n_workers + 1).round()).astype(int)
    done = arrived = constants.call * np.arange(1, n_workers + 1)  # each begins when it is called
    for _ in range(T):
        spread = _UNEVEN / np.sqrt(own)  # a worker's blocks of a step are visited one after the other
        work = per_block * own * np.maximum(1 + spread * random.standard_normal(n_workers), 0.1)
        done = np.maximum(done, arrived) + work
        arrived = np.roll(done, -1) + sending
    return float(np.maximum(done, arrived).max())


def measured() -> list[tuple[int, int, float]]:
    """Return strips, workers and the median seconds of an epoch of next to no ratings."""
    ratings, found = make(600, 200, mean_ratings=10), []
    with tempfile.TemporaryDirectory() as folder:
        for size in _STRIPS:
            store = StoredRatings.build(MemorySource(ratings), Path(folder) / f"{size}", size=size, memory=1 << 30)
            for n_workers in (one for one in _WORKERS if one <= size):
                method = SGD(n_factors=16, n_epochs=20)
                model = method.fit(store, executor=Ray(f"local:{n_workers}"), n_threads=1)
                seconds = float(np.median([record.seconds for record in model.history[2:]]))
                found.append((size, n_workers, seconds))
                print(
                    json.dumps({"strips": size, "workers": n_workers, "epoch_seconds": round(seconds, 5)}), flush=True
                )
    return found


def fitted(found: list[tuple[int, int, float]], n_cpus: int) -> tuple[NDArray[np.float64], float]:
    """Return seconds of a message, a call and a visit that fit best, and the largest error as a part of what it is of.

    Messages of one step that more workers send than there are CPUs are sent one after the other.
    """
    from scipy.optimize import nnls

    turns = [-(-W // n_cpus) for _, W, _ in found]
    rows = np.array([(T * n * (W > 1), W, T**2 / min(W, n_cpus)) for (T, W, _), n in zip(found, turns, strict=True)])
    relative = rows / np.array([one for *_, one in found])[:, None]
    seconds, _ = nnls(relative, np.ones(len(relative)))
    return seconds, float(np.abs(relative @ seconds - 1).max())


def main() -> None:
    """Measure if asked to, and print and draw seconds of an epoch by workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", action="store_true", help="time epochs on this machine first")
    parser.add_argument("--measured", type=Path, default=Path("docs/benchmarks/cluster.json"))
    parser.add_argument("--updates", type=float, default=20e6, help="updates per second of a worker")
    parser.add_argument("--out", type=Path, help="a picture")
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    if arguments.measure:
        content = {"cpus": available_cpus(), "strips_workers_seconds": measured()}
        arguments.measured.write_text(json.dumps(content) + "\n")
    stored = json.loads(arguments.measured.read_text())
    seconds, error = fitted(stored["strips_workers_seconds"], stored["cpus"])
    message, call, visit = seconds.tolist()
    constants = Constants(message, call, visit, arguments.updates)
    print(json.dumps({**constants._asdict(), "largest_error": error}))
    sizes = {
        "10^9 ratings, 10^5 items, K = 64": Size(1e9, 1e5, 64, 1.25e9),
        "10^10 ratings, 10^6 items, K = 128": Size(1e10, 1e6, 128, 1.25e9),
        "10^11 ratings, 10^6 items, K = 128": Size(1e11, 1e6, 128, 1.25e9),
    }
    workers = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
    for name, size in sizes.items():
        model = [modelled(size, one, constants) for one in workers]
        detail = [simulated(size, one, constants) for one in workers]
        best = workers[int(np.argmin(detail))]
        rows = [(one, round(x, 1), round(y, 1)) for one, x, y in zip(workers, model, detail, strict=True)]
        print(json.dumps({"size": name, "workers_model_simulation": rows, "quickest": best}))
        sizes[name] = size
    if arguments.out is not None:
        draw(sizes, workers, constants, arguments.out)


def draw(sizes: dict[str, Size], workers: list[int], constants: Constants, path: Path) -> None:
    """Draw seconds of an epoch by workers, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for (name, size), colour in zip(sizes.items(), ("tab:blue", "tab:orange", "tab:green"), strict=True):
        axes.plot(workers, [modelled(size, one, constants) for one in workers], color=colour, label=name)
        axes.plot(workers, [simulated(size, one, constants) for one in workers], "o", color=colour, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="seconds of an epoch, modelled")
    axes.legend(title="lines: model, dots: simulation")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
