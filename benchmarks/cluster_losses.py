"""Training on Ray nodes of this machine while workers, nodes and the program itself are killed: the same bits.

    python benchmarks/cluster_losses.py STORE [--kills 20] [--node-kills 2] [--program-kills 2] [--methods sgd …]

There are two nodes, and a worker on each. SGD, plain SGLD, plain ALS and certified ALS are trained. Processes of
workers are killed with SIGKILL at random moments of as many runs as it takes; nodes are killed and replaced by others;
each time the result is compared with that of one process byte for byte (noise of the certified run is seeded for that).
The program is killed at a random moment after its first snapshot, and resumed: without privacy to the same bits, and
certified, unseeded, with one entry in its ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster import Nodes, Watch, certified_methods, digest, plain_methods

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Ray
from dpmf.engine.store import StoredRatings
from dpmf.methods import Method
from dpmf.model import EpochRecord
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger


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
    """Measure, and print a JSON object per method and kind of loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--node-kills", type=int, default=2)
    parser.add_argument("--program-kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=["sgd", "sgld", "als", "certified als"])
    parser.add_argument("--run", type=Path, help="train the first method here, with this folder of snapshots")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    store = StoredRatings.open(arguments.store, memory=1 << 34)
    known = {**plain_methods(arguments.factors, arguments.epochs), **certified_methods()}
    methods = {name: known[name] for name in arguments.methods}
    if arguments.run is not None:
        print(trained(store, next(iter(methods.values())), arguments.run))
        return
    alone = {
        name: digest(method.fit(store if method.streams else store.columns.load(), n_threads=1))
        for name, method in methods.items()
    }
    if arguments.kills or arguments.node_kills:
        lose_workers(arguments, store, methods, alone)
    for name in methods if arguments.program_kills else ():
        print(json.dumps({"method": name, **lose_programs(arguments, store, name, alone[name])}), flush=True)


def lose_workers(
    arguments: argparse.Namespace, store: StoredRatings, methods: dict[str, Method], alone: dict[str, str]
) -> None:
    """Kill workers and nodes while methods train on two nodes, until there were as many losses as asked for."""
    watch, nodes = Watch(), Nodes(2)
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


def lose_programs(arguments: argparse.Namespace, store: StoredRatings, name: str, alone: str) -> dict[str, object]:
    """Kill the program that trains on two workers of its own, and resume it."""
    words = [sys.executable, __file__, str(arguments.store), "--methods", name, "--factors", str(arguments.factors)]
    words += ["--epochs", str(arguments.epochs), "--run"]
    ended, entries = [], []
    for _ in range(arguments.program_kills):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            program = subprocess.Popen([*words, str(run)], stdout=subprocess.DEVNULL)
            while not list(run.glob("epoch-*")) and program.poll() is None:
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.5))
            program.kill()
            program.wait()
            resumed = subprocess.run([*words, str(run)], capture_output=True, text=True, check=True)
            ended.append(resumed.stdout.strip())
            if name.startswith("certified"):
                entries.append(len(Ledger(ledger_of(run)).entries()))
    if entries:
        return {"programs_killed": len(ended), "ledger_entries": entries}
    return {"programs_killed": len(ended), "same_bits": sum(one == alone for one in ended)}


def trained(store: StoredRatings, method: Method, run: Path) -> str:
    """Train on two workers, with snapshots, and return a digest; a certified run is not seeded, and has a ledger."""
    plan, ledger = Checkpoint(run, resume=True), None
    if method.kind == "certified":
        method, ledger = method.set_params(noise_seed=None), Ledger(ledger_of(run), Budget(10.0))
    return digest(method.fit(store, executor=Ray("local:2"), checkpoint=plan, ledger=ledger))


def ledger_of(run: Path) -> Path:
    """Return where the ledger of a run is."""
    return run.parent / "ledger"


if __name__ == "__main__":
    main()
