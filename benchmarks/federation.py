"""The certified protocol on loopback TLS: two servers in processes of their own, and many real clients.

    python benchmarks/federation.py run [--people 1000] [--items 1000] [--factors 8] [--rounds 6] [--processes 2]
        [--leave 0.05] [--tolerate 0.1] [--misbehaving 50] [--method als] [--head 100] [--folder DIR] [--seed 1]
    python benchmarks/federation.py hostile [--people 1000] [--items 1000] [--factors 8] [--seed 1]

`run` prints seconds per round (from the moment a round is opened until its sum is unmasked), bytes and processor time
per person, and memory of the servers. With `--misbehaving`, some of the people are slow, silent, late, hostile or there
twice (`federation_misbehaving.py`). Servers are killed in `federation_faults.py`. Ledgers are in --folder: on a disk
every answer waits for it, with `/dev/shm` it does not. `hostile` measures how far one person who does not keep to the
arithmetic moves a release, in one process, with the same noise either way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

_DPMF = [sys.executable, "-m", "dpmf"]
ROLES = ("recommender", "third-party")


class Deployment:
    """The servers' keys, agreement and processes."""

    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        self.folder, self.asked = folder, asked
        self.ports = dict(zip(ROLES, _free_ports(2), strict=True))
        self.metrics = dict(zip(ROLES, _free_ports(2), strict=True))
        self.agreement = folder / "agreement.json"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.most_resident = dict.fromkeys(ROLES, 0)
        self.cpu_seconds = dict.fromkeys(ROLES, 0.0)  # of the processes that run now
        self.cpu_before = dict.fromkeys(ROLES, 0.0)  # when everybody had joined

    def agree(self) -> None:
        """Make keys and the agreement."""
        asked, folder = self.asked, self.folder
        for role in ROLES:
            _call("federate", "keys", str(folder / role), "--host", "localhost")
        _call("federate", "keys", str(folder / "inviter"))
        (folder / "items.csv").write_text("item\n" + "\n".join(map(str, range(asked.items))) + "\n")
        settings = {"als": [f"n_factors={asked.factors}", f"n_epochs={asked.rounds}"], "ease": [f"head={asked.head}"]}
        tolerated = int(asked.tolerate * asked.people)
        per_round = asked.people if not asked.leave else int(asked.people * (1 - asked.leave / 2))
        servers = []
        for role in ROLES:
            url = f"wss://localhost:{self.ports[role]}"
            servers += [f"--{role}-name", role, f"--{role}-url", url]
            servers += [f"--{role}-key", str(folder / role / "identity.pub")]
            servers += [f"--{role}-root", str(folder / role / "tls.pem")]
        _call(
            "federate", "agree", str(self.agreement), "--name", "benchmark", "--method", asked.method,
            "--epsilon", str(asked.epsilon), *(word for one in settings[asked.method] for word in ("--set", one)),
            "--items", str(folder / "items.csv"), "--scale", "1:5", "--per-round", str(per_round),
            "--dropouts", str(tolerated), "--colluders", "0", "--inviter", str(folder / "inviter" / "identity.pub"),
            "--admitted-by", "the benchmark", "--most", str(asked.people),
            "--ends", f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}",
            "--round-seconds", str(asked.round_seconds), "--grace-seconds", "5", *servers,
        )  # fmt: skip
        for role in ROLES:
            _call("federate", "sign", str(self.agreement), "--key", str(folder / role / "identity.pem"))

    def start(self, role: str) -> None:
        """Start a server, again after it was killed."""
        keys = self.folder / role
        with (self.folder / f"{role}.log").open("ab") as log:
            self.processes[role] = subprocess.Popen(
                [
                    *_DPMF, "federate", role, "--agreement", str(self.agreement), "--key", str(keys / "identity.pem"),
                    "--folder", str(self.folder / f"{role} state"), "--host", "localhost",
                    "--tls-cert", str(keys / "tls.pem"), "--tls-key", str(keys / "tls.key"), "--linger", "600",
                    "--metrics-port", str(self.metrics[role]), "--most-waiting", "20000",
                    *(["--gather", "10"] if role == "recommender" else []),
                ],
                stderr=log, stdout=log,
            )  # fmt: skip

    def watch(self) -> None:
        """Note how much memory and processor time the servers have used."""
        for role, process in self.processes.items():
            with suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
                self.most_resident[role] = max(self.most_resident[role], int(peak.split()[1]) * 1024)
                ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                self.cpu_seconds[role] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def resident(self, role: str) -> int:
        """Return the memory of a server now, in bytes."""
        pages = int(Path(f"/proc/{self.processes[role].pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def participants(self, role: str) -> int:
        """Return how many people a server has connected, by its own count."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.metrics[role]), 2) as link:
            link.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            text = b"".join(iter(lambda: link.recv(1 << 16), b"")).decode()
            line = next((one for one in text.splitlines() if one.startswith("dpmf_federate_participants{")), "x 0")
            return int(float(line.split()[1]))
        return 0

    def kill(self, role: str) -> None:
        """End a server at once, and start it again."""
        self.watch()
        process = self.processes[role]
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.start(role)

    def stop(self) -> None:
        """Tell both servers to stop, once everybody has heard that the run is over."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(120)

    def events(self, role: str) -> list[dict[str, Any]]:
        """Return what a server has logged, with times in seconds."""
        found = []
        for line in (self.folder / f"{role}.log").read_text().splitlines():
            with suppress(ValueError):
                content = json.loads(line)
                when = datetime.strptime(content["time"], "%Y-%m-%d %H:%M:%S,%f")
                found.append({**content["log"], "at": when.timestamp()})
        return found


def start_crowd(deployment: Deployment, noise_seed: int | None = None) -> subprocess.Popen[bytes]:
    """Start everybody's clients."""
    folder, asked = deployment.folder, deployment.asked
    return subprocess.Popen(
        [
            *_DPMF, "federate", "simulate-crowd", "--agreement", str(deployment.agreement), "--inviter-key",
            str(folder / "inviter" / "identity.pem"), "--folder", str(folder / "ledgers"), "--people",
            str(asked.people - asked.misbehaving), "--processes", str(asked.processes), "--leave", str(asked.leave),
            "--away", str(asked.away), "--seed", str(asked.seed), "--patience", "12", "--json",
            *([] if noise_seed is None else ["--noise-seed", str(noise_seed)]),
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip


def run(asked: argparse.Namespace) -> None:
    """Play a run, and print what it took."""
    folder = Path(tempfile.mkdtemp(prefix="dpmf-federation-", dir=asked.folder))
    try:
        deployment = Deployment(folder, asked)
        deployment.agree()
        for role in reversed(ROLES):
            deployment.start(role)
        time.sleep(5)
        idle = {role: deployment.resident(role) for role in ROLES}
        crowd = start_crowd(deployment)
        others = _start_misbehaving(deployment) if asked.misbehaving else None
        connected = _accompany(deployment, crowd)
        output = crowd.communicate()[0]
        _print_report(deployment, json.loads(output or b"{}"), idle, connected, asked)
        if others is not None:
            with suppress(subprocess.TimeoutExpired):
                print(f"misbehaving: {others.communicate(timeout=60)[0].decode().strip()}")
            others.kill()
        deployment.stop()
    finally:
        for process in deployment.processes.values():
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _start_misbehaving(deployment: Deployment) -> subprocess.Popen[bytes]:
    """Start people who do not do what they should."""
    folder, asked = deployment.folder, deployment.asked
    program = Path(__file__).with_name("federation_misbehaving.py")
    first, count = asked.people - asked.misbehaving, asked.misbehaving
    words = [deployment.agreement, folder / "inviter" / "identity.pem", folder / "others", first, count]
    return subprocess.Popen([sys.executable, str(program), *map(str, words)], stdout=subprocess.PIPE)


def _accompany(deployment: Deployment, crowd: subprocess.Popen[bytes]) -> dict[str, int]:
    """Watch until the crowd has finished; return the servers' memory when most people were connected."""
    most = 0
    connected: dict[str, int] = {}
    while crowd.poll() is None:
        time.sleep(0.2)
        deployment.watch()
        if most < deployment.asked.people:
            count = deployment.participants("recommender")
            if count > most:
                most, connected = count, {role: deployment.resident(role) for role in ROLES}
                deployment.cpu_before = dict(deployment.cpu_seconds)
    return connected | {"people": most}


def _print_report(
    deployment: Deployment,
    crowd: dict[str, Any],
    idle: dict[str, int],
    connected: dict[str, int],
    asked: argparse.Namespace,
) -> None:
    from importlib.metadata import version

    asking, adding = (deployment.events(role) for role in ROLES)
    opened = {one["round"]: one["at"] for one in asking if one["event"] == "round opened"}
    seconds = [one["at"] - opened[one["round"]] for one in asking if one["event"] == "round closed"]
    closed = [one["round"] for one in adding if one["event"] == "round closed"]
    assert len(closed) == len(set(closed)), "a round was closed twice"
    outcomes = [one["outcome"] for one in asking if one["event"] == "over"]
    rounds, people = max(len(closed), 1), asked.people
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors"
    print(f"{machine}, Python {platform.python_version()}, "
          f"websockets {version('websockets')}; {vars(asked)}")  # fmt: skip
    print(f"outcome {outcomes}; {crowd.get('outcomes')}; {len(closed)} rounds closed, "
          f"{sum(one['event'] in ('round lost', 'round discarded') for one in asking)} lost or discarded")  # fmt: skip
    if seconds:
        print(f"seconds per round: median {statistics.median(seconds):.2f}, largest {max(seconds):.2f}, "
              f"all {[round(one, 2) for one in seconds]}")  # fmt: skip
    content = json.loads(json.loads(deployment.agreement.read_text())["agreement"])["computed"]["rounds"]
    for way in ("bytes_down", "bytes_up"):
        print(f"{way}: at most {max(one[way] for one in content):,} per person and round")
    answered = max(crowd.get("answered", 0), 1)
    print(f"clients: {1e3 * crowd.get('cpu_seconds', 0) / answered:.2f} ms of processor time per answer, with joining; "
          f"{crowd.get('connects')} connects, largest process {crowd.get('peak_bytes', 0) / 1e6:.0f} MB")  # fmt: skip
    for role in ROLES:
        per = (connected.get(role, 0) - idle[role]) / max(connected["people"], 1)
        print(f"{role}: at most {deployment.most_resident[role] / 1e6:.0f} MB, idle {idle[role] / 1e6:.0f} MB, "
              f"{per / 1e3:.0f} KB per connection ({connected['people']} of {people})")  # fmt: skip
        spent = deployment.cpu_seconds[role] - deployment.cpu_before[role]
        print(f"{role}: {1e3 * spent / rounds / people:.2f} ms of processor time per person and round")


def hostile(asked: argparse.Namespace) -> None:
    """Print how far one person moves the factors and biases of a release, and the predictions for everybody else."""
    from unittest.mock import patch

    from dpmf import ALS, Budget
    from dpmf.evaluation import evaluate
    from dpmf.federated.certified import CertifiedScenario, User, simulate_certified, simulation
    from dpmf.methods.certified.questions import Question
    from dpmf.ratings.synthetic import make

    ratings = make(asked.people, asked.items, seed=asked.seed)
    train, test = ratings.split(0.1, seed=asked.seed)
    method = ALS(n_factors=asked.factors, n_epochs=asked.rounds, budget=Budget(asked.epsilon), noise_seed=1)
    scenario = CertifiedScenario(Budget(asked.epsilon), method=method, noise_seed=1)
    target = int(np.argsort(np.bincount(train.items, minlength=train.n_items))[train.n_items // 2])  # of middling fame

    def attacked(times: float) -> Any:
        """Return a run in which person 0 adds this many times the largest honest answer, all of it on one item."""

        class Hostile(User):
            __slots__ = ()

            def _noisy(self, question: Question) -> Any:
                sums = super()._noisy(question)
                bound = question.sensitivity(self._agreement.budget.neighbours)
                if question.what == "user moments" or not times:
                    return sums
                pushed = np.zeros(question.shape, np.int64).reshape(train.n_items, -1)
                pushed[target, -1] = int(times * self._mechanism.steps(question.what, bound) * question.reach)
                return sums + pushed.reshape(-1)

        def side(*given: Any, **more: Any) -> User:
            return (Hostile if more["place"] == 0 else User)(*given, **more)

        with patch.object(simulation, "User", side):
            return simulate_certified(train, scenario).model

    honest = attacked(0.0)
    before, figures = honest.release, evaluate(honest, test)
    print(f"{vars(asked)}; rmse {figures['rmse']:.4f} with nobody hostile")
    spread = float(np.std(before.item_biases))
    for times in (1.0, 10.0, 100.0, 1_000.0, 10_000.0):
        model = attacked(times)
        moved = model.release.item_biases - before.item_biases
        others = np.delete(moved, target)
        print(
            f"{times:g} times an honest answer: the bias of its item moves by {moved[target]:+.3f} stars (biases have "
            f"a standard deviation of {spread:.3f}), those of others by at most {np.abs(others).max():.3f}; "
            f"rmse {evaluate(model, test)['rmse']:.4f}"
        )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _call(*words: str) -> None:
    subprocess.run([*_DPMF, *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "hostile"])
    for name, default in {
        "people": 1000, "items": 1000, "factors": 8, "rounds": 6, "processes": 2, "head": 100, "seed": 1,
        "misbehaving": 0,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, number in {
        "epsilon": 5.0, "leave": 0.0, "tolerate": 0.1, "away": 5.0, "round-seconds": 60.0,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=float, default=number)
    parser.add_argument("--method", choices=["als", "ease"], default="als")
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    (run if asked.what == "run" else hostile)(asked)


if __name__ == "__main__":
    main()
