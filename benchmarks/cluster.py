"""Training on several Ray nodes of this machine, beside one process: bits, overhead, bytes, memory and losses.

    python benchmarks/cluster.py STORE [--workers 1 2 4] [--factors 64] [--epochs 5] [--kills 20] [--node-kills 1]

Every node is a raylet with one CPU, and every worker uses one thread. For each number of workers, SGD, plain ALS and
certified ALS (with seeded noise) are trained, and compared with one process byte for byte. The bytes of factors that
workers received from others are counted in the workers, and set beside what is implied: for SGD, W times the item side
for visits, and what the change of the first tier moves; for plain ALS, both sides to each of the other workers. Then
workers are killed at random moments, and nodes, which are replaced, and the bits compared again. All nodes share the
CPUs of one machine, so times say what the machinery costs, not how much sooner a cluster is done.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import math
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmf.engine.checkpoints import Checkpoint, machine_identity
from dpmf.engine.cluster import Call, Ray
from dpmf.engine.factors import padded
from dpmf.engine.portions import starts_of
from dpmf.engine.ray import RayCluster, RayTeam
from dpmf.engine.schedule import first_tier_of
from dpmf.engine.spread import Epoch, SpreadGrid
from dpmf.engine.store import StoredRatings
from dpmf.methods import ALS, SGD, Method
from dpmf.methods.als.spread import Solved
from dpmf.methods.sgd.descent import row_multiple
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget


class Watch:
    """Notes what happens inside: processes of workers, their memory, and bytes that they received."""

    def __init__(self) -> None:
        self.processes: list[int] = []
        self.received: list[tuple[int, ...]] = []
        self.peaks: dict[int, int] = {}
        check, run, carry_out = RayCluster._check, SpreadGrid.run, RayTeam.carry_out

        def checked(cluster: RayCluster, worker: int, situation: str) -> None:
            check(cluster, worker, situation)
            self.processes.append(cluster.get(cluster.hosts[worker].process.remote()))

        def ran(grid: SpreadGrid, constants: Any, first_tier: int) -> Epoch:
            epoch = run(grid, constants, first_tier)
            self.received.append(epoch.received)
            return epoch

        def carried(team: RayTeam, calls: Sequence[Call]) -> list[Any]:
            results = carry_out(team, calls)
            if results and all(isinstance(one, Solved) for one in results):
                self.received.append(tuple(one.received for one in results))
            return results

        RayTeam.carry_out = carried  # type: ignore[assignment,method-assign]
        RayCluster._check = checked  # type: ignore[assignment,method-assign]
        SpreadGrid.run = ran  # type: ignore[assignment,method-assign]

    def sample(self, _: EpochRecord) -> None:
        """Note the memory of all workers."""
        for process in self.processes:
            self.peaks[process] = max(self.peaks.get(process, 0), private_bytes(process))

    def forget(self) -> None:
        """Forget what was counted."""
        self.processes, self.received, self.peaks = [], [], {}


def private_bytes(process: int) -> int:
    """Return the memory of a process that no other shares."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


class Nodes:
    """Nodes of a cluster on this machine, with one CPU each."""

    def __init__(self, count: int) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        soon = {
            "health_check_initial_delay_ms": 500,
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 2,
        }
        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": soon})
        self._others = [self._cluster.add_node(num_cpus=1) for _ in range(count - 1)]
        self.address: str = self._cluster.address

    def replace(self) -> None:
        """Kill a node as if its power had gone, and add another."""
        self._others.append(self._cluster.add_node(num_cpus=1))
        self._cluster.remove_node(self._others.pop(0), allow_graceful=False)

    def stop(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


def digest(model: Model) -> str:
    """Return a digest of what was learnt of items, and of the training errors."""
    release = model.release
    parts = [release.item_factors.tobytes(), release.item_biases.tobytes()]
    parts.append(json.dumps([release.mean, *(one.train_rmse for one in model.history)]).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def implied_bytes(store: StoredRatings, method: SGD | ALS, n_workers: int) -> list[int]:
    """Return the bytes of factors and biases that travel in each epoch."""
    if n_workers == 1 or isinstance(method, ALS):
        facts = method.facts()
        both = (store.n_users + store.n_items) * (4 * padded(facts["n_factors"]) + 4)
        return [(n_workers - 1) * both] * facts["n_epochs"]
    multiple, size = row_multiple(method.storage == "bfloat16"), store.blocks.size
    row = 4 * (-(-method.n_factors // multiple) * multiple) // (2 if method.storage == "bfloat16" else 1) + 4
    sizes = [row * (tier.stop - tier.start) for tier in store.blocks.layout.tiers]
    starts = starts_of(size, n_workers)

    def owner(strip: int) -> int:
        return max(worker for worker in range(n_workers) if starts[worker] <= strip % size)

    implied, before = [], 0
    for epoch in range(1, method.n_epochs + 1):
        first = first_tier_of(method.seed, epoch, size)
        moved = sum(one for tier, one in enumerate(sizes) if owner(tier - before) != owner(tier - first))
        implied.append(n_workers * sum(sizes) + moved)
        before = first
    return implied


def seconds_per_epoch(model: Model) -> float:
    """Return the median."""
    ordered = sorted(record.seconds for record in model.history)
    return ordered[len(ordered) // 2]


class Fire:
    """Kills processes of workers at random moments, from another thread.

    Args:
        watch: knows the processes.
        shots: how many to kill.
    """

    def __init__(self, watch: Watch, shots: int) -> None:
        self._watch, self._shots, self.fired, self._over = watch, shots, 0, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self.fired < self._shots and not self._over.wait(random.uniform(0.2, 3.0)):
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(random.choice(self._watch.processes[-2:]), signal.SIGKILL)
                self.fired += 1

    def __enter__(self) -> Fire:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def main() -> None:
    """Measure, and print a JSON object per run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--node-kills", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    store, watch = StoredRatings.open(arguments.store, memory=1 << 34), Watch()
    sgd = SGD(n_factors=arguments.factors, n_epochs=arguments.epochs)
    als = ALS(n_factors=8, n_epochs=3, budget=Budget(5.0), noise_seed=1, items_public=True)
    plain = ALS(n_factors=arguments.factors, n_epochs=arguments.epochs, budget=Budget(math.inf))
    methods: dict[str, Method] = {"sgd": sgd, "plain als": plain, "certified als": als}
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    print(json.dumps({"ratings": len(store), "users": store.n_users, "items": store.n_items, **machine_identity()}))
    alone = {}
    for name, method in methods.items():
        model = method.fit(store if method.streams else store.columns.load(), n_threads=1)
        alone[name] = digest(model)
        print(json.dumps({"method": name, "workers": 0, "epoch_seconds": seconds_per_epoch(model)}))
    for n_workers in arguments.workers:
        nodes = Nodes(n_workers)
        executor = Ray(nodes.address, n_workers)
        for name, method in methods.items():
            watch.forget()
            began = time.perf_counter()
            model = method.fit(store, executor=executor, n_threads=1, callbacks=[watch.sample])
            facts: dict[str, Any] = {
                "method": name,
                "workers": n_workers,
                "same_bits": digest(model) == alone[name],
                "epoch_seconds": seconds_per_epoch(model),
                "seconds": time.perf_counter() - began,
            }
            if isinstance(method, SGD) or method is plain:
                implied = implied_bytes(store, method, n_workers)
                facts["received_bytes"] = [sum(one) for one in watch.received]
                facts["as_implied"] = facts["received_bytes"] == implied
            facts["private_bytes"] = sorted(watch.peaks.values())
            print(json.dumps(facts), flush=True)
        nodes.stop()
    if arguments.kills or arguments.node_kills:
        survive(arguments, store, watch, methods, alone)


def survive(
    arguments: argparse.Namespace,
    store: StoredRatings,
    watch: Watch,
    methods: dict[str, Method],
    alone: dict[str, str],
) -> None:
    """Kill workers and nodes while methods train on two nodes, until there were as many losses as asked for."""
    nodes = Nodes(2)
    executor = Ray(nodes.address, 2)
    for name, method in methods.items():
        lost = runs = same = 0
        while lost < arguments.kills:
            watch.forget()
            with tempfile.TemporaryDirectory() as folder, Fire(watch, arguments.kills - lost) as fire:
                model = method.fit(store, executor=executor, checkpoint=Checkpoint(Path(folder) / "run"))
            lost, runs, same = lost + fire.fired, runs + 1, same + (digest(model) == alone[name])
        print(json.dumps({"method": name, "workers_killed": lost, "runs": runs, "same_bits": same}), flush=True)
        same = 0
        for _ in range(arguments.node_kills):
            fatal = random.randint(1, 2)

            def strike(record: EpochRecord, fatal: int = fatal) -> None:
                if record.epoch == fatal:
                    nodes.replace()

            with tempfile.TemporaryDirectory() as folder:
                plan = Checkpoint(Path(folder) / "run")
                model = method.fit(store, executor=executor, checkpoint=plan, callbacks=[strike])
            same += digest(model) == alone[name]
        killed = {"method": name, "nodes_killed": arguments.node_kills, "same_bits": same}
        print(json.dumps(killed), flush=True)
    nodes.stop()


if __name__ == "__main__":
    main()
