"""Training on several Ray nodes of this machine, beside one process: bits, overhead, bytes and memory.

    python benchmarks/cluster.py STORE [--workers 1 2 4] [--factors 64] [--epochs 5]

Every node is a raylet with one CPU, and every worker uses one thread. For each number of workers, SGD, plain SGLD, ALS,
implicit ALS and EASE and every certified method (with seeded noise) are trained, and compared with one process byte for
byte. The bytes of factors that workers received from others are counted in the workers, and set beside what is implied:
for SGD and SGLD, W times the item side for visits, what the change of the first tier moves, and for SGLD the tiers that
are averaged elsewhere; for plain ALS, both sides to each of the other workers. All nodes share the CPUs of one machine,
so times say what the machinery costs, not how much sooner a cluster is done. `cluster_losses.py` kills workers, nodes
and the program.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.engine.checkpoints import machine_identity
from dpmf.engine.cluster import Call, Ray
from dpmf.engine.factors import padded
from dpmf.engine.portions import owner_of, starts_of
from dpmf.engine.ray import RayCluster, RayTeam
from dpmf.engine.schedule import first_tier_of
from dpmf.engine.spread import Epoch, SpreadGrid
from dpmf.engine.store import StoredRatings
from dpmf.methods import ALS, EASE, SGD, SGLD, GaussianGD, Joint, Method, Sketch
from dpmf.methods.als.spread import Solved
from dpmf.methods.sgd.descent import row_multiple
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget

NOTHING = Budget(math.inf)


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

        def ran(grid: SpreadGrid, constants: Any, first_tier: int, *more: Any) -> Epoch:
            epoch = run(grid, constants, first_tier, *more)
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
    if release.ranking is not None:
        parts += [one.tobytes() for one in vars(release.ranking).values() if isinstance(one, np.ndarray)]
    parts.append(json.dumps([release.mean, *(one.train_rmse for one in model.history)]).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def implied_bytes(store: StoredRatings, method: Method, n_workers: int) -> list[int]:
    """Return the bytes of factors and biases, and for SGLD of clocks, that travel in each epoch."""
    facts = method.facts()
    if n_workers == 1 or isinstance(method, ALS):
        both = (store.n_users + store.n_items) * (4 * padded(facts["n_factors"]) + 4)
        return [(n_workers - 1) * both] * facts["n_epochs"]
    packed, size = facts.get("storage") == "bfloat16", store.blocks.size
    items = [tier.stop - tier.start for tier in store.blocks.layout.tiers]
    plain = 4 * padded(facts["n_factors"], row_multiple(packed)) // (2 if packed else 1) + 4
    row = plain + (8 if isinstance(method, SGLD) else 0)
    starts = starts_of(size, n_workers)
    implied, before = [], 0
    for epoch in range(1, facts["n_epochs"] + 1):
        first = first_tier_of(facts["seed"], epoch, size)
        moved = [tier for tier in range(size) if owner_of(tier - before, starts) != owner_of(tier - first, starts)]
        total = row * (n_workers * sum(items) + sum(items[tier] for tier in moved))
        if isinstance(method, SGLD) and epoch > facts["n_epochs"] - facts["n_samples"]:
            away = [tier for tier in range(size) if owner_of(tier - first, starts) != owner_of(tier, starts)]
            total += plain * sum(items[tier] for tier in away)
        implied.append(total)
        before = first
    return implied


def times(model: Model, began: float) -> dict[str, float]:
    """Return the seconds of a run, and the median of those of its epochs, if it has any."""
    seconds = sorted(record.seconds for record in model.history)
    median = {"epoch_seconds": round(seconds[len(seconds) // 2], 4)} if seconds else {}
    return {**median, "seconds": round(time.perf_counter() - began, 2)}


def plain_methods(n_factors: int, n_epochs: int) -> dict[str, Method]:
    """Return what is trained without privacy."""
    same: dict[str, Any] = {"n_factors": n_factors, "n_epochs": n_epochs}
    return {
        "sgd": SGD(**same),
        "sgld": SGLD(**same, budget=NOTHING),
        "als": ALS(**same, budget=NOTHING),
    }


def certified_methods() -> dict[str, Method]:
    """Return what is trained with noise, which is seeded."""
    same: dict[str, Any] = {"budget": Budget(5.0), "noise_seed": 1, "items_public": True}
    return {
        "certified als": ALS(n_factors=8, n_epochs=3, **same),
        "certified implicit als": ALS(n_factors=4, n_epochs=2, feedback="implicit", **same),
        "certified ease": EASE(**same),
        "certified joint": Joint(n_factors=4, n_epochs=2, **same),
        "certified sgld": SGLD(n_factors=4, n_epochs=3, **same),
        "certified gaussian": GaussianGD(n_factors=4, n_epochs=3, **same),
        "certified sketch": Sketch(n_factors=4, n_epochs=3, **same),
    }


def main() -> None:
    """Measure, and print a JSON object per run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    store, watch = StoredRatings.open(arguments.store, memory=1 << 34), Watch()
    same: dict[str, Any] = {"n_factors": arguments.factors, "n_epochs": arguments.epochs}
    methods: dict[str, Method] = {
        **plain_methods(arguments.factors, arguments.epochs),
        "implicit als": ALS(**same, feedback="implicit", budget=NOTHING),
        "ease": EASE(budget=NOTHING),
        **certified_methods(),
    }
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    print(json.dumps({"ratings": len(store), "users": store.n_users, "items": store.n_items, **machine_identity()}))
    alone = {}
    for name, method in methods.items():
        began = time.perf_counter()
        model = method.fit(store if method.streams else store.columns.load(), n_threads=1)
        alone[name] = digest(model)
        print(json.dumps({"method": name, "workers": 0, **times(model, began)}), flush=True)
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
                **times(model, began),
            }
            if watch.received:
                implied = implied_bytes(store, method, n_workers)
                facts["received_bytes"] = [sum(one) for one in watch.received]
                facts["as_implied"] = facts["received_bytes"] == implied
            facts["private_bytes"] = sorted(watch.peaks.values())
            print(json.dumps(facts), flush=True)
        nodes.stop()


if __name__ == "__main__":
    main()
