"""Throughput and latency of the service's recommendations.

python benchmarks/service.py [--items 17770] [--factors 32] [--ratings 20] [--seconds 20] [--requests 0] [--workers 2]

Builds a synthetic release, starts the real program with --recommend-here, and sends requests from one more process,
one at a time over each of a number of persistent connections; `--requests` sends that number instead of stopping after
a time. Client and workers share the processors. Prints one JSON object; anything but status 200 is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dpmf.model import Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale

_BODIES = 500
_WARM_UP = 2.0  # seconds that do not count


def release_of(n_items: int, n_factors: int) -> Release:
    """Return a release of random numbers."""
    rng = np.random.default_rng(1)
    return Release(
        items=Items.of(np.arange(1, n_items + 1), [f"Item {number}" for number in range(n_items)]),
        scale=Scale(1, 5), mean=3.5,
        item_factors=(0.3 * rng.normal(size=(n_items, n_factors))).astype(np.float32),
        item_biases=(0.3 * rng.normal(size=n_items)).astype(np.float32),
        ridge=Ridge(1.0, 5.0), configuration={"method": "synthetic"}, guarantee=Guarantee.none(),
    )  # fmt: skip


def requests_of(n_items: int, n_ratings: int) -> list[bytes]:
    """Return requests of users with `n_ratings` ratings each, as bytes."""
    rng, found = np.random.default_rng(2), []
    for _ in range(_BODIES):
        items = rng.choice(n_items, n_ratings, replace=False) + 1
        ratings = {str(item): int(rng.integers(1, 6)) for item in items}
        body = json.dumps({"ratings": ratings, "k": 10}).encode()
        lines = ("POST /api/recommend HTTP/1.1", "Host: x", "Content-Type: application/json",
                 f"Content-Length: {len(body)}", "", "")  # fmt: skip
        found.append("\r\n".join(lines).encode() + body)
    return found


class Load:
    """Requests over persistent connections, and their outcome."""

    def __init__(self, port: int, bodies: list[bytes], most: int, until: float) -> None:
        self._port, self._bodies, self._most, self._until = port, bodies, most, until
        self.sent = self.errors = 0
        self.seconds: list[float] = []

    async def connection(self) -> None:
        """Send one request after the other."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while (self.sent < self._most) if self._most else (time.perf_counter() < self._until):
            body = self._bodies[self.sent % _BODIES]
            self.sent += 1
            began = time.perf_counter()
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.seconds.append(time.perf_counter() - began)
            self.errors += not head.startswith(b"HTTP/1.1 200")
        writer.close()


async def measure(port: int, bodies: list[bytes], connections: int, seconds: float, most: int) -> Load:
    """Send requests for some seconds, or `most` of them, and return the outcome."""
    load = Load(port, bodies, most, time.perf_counter() + seconds)
    await asyncio.gather(*(load.connection() for _ in range(connections)))
    return load


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, usual in (("items", 17_770), ("factors", 32), ("ratings", 20), ("workers", 2), ("connections", 16),
                        ("requests", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release_of(asked.items, asked.factors).save(Path(folder) / "release")
        words = [sys.executable, "-m", "dpmf", "serve", f"{folder}/release", "--port", "0", "--recommend-here",
                 "--workers", str(asked.workers), "--json"]  # fmt: skip
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(json.loads(process.stdout.readline())["address"].rstrip("/").rpartition(":")[2])
            bodies = requests_of(asked.items, asked.ratings)
            time.sleep(15)  # until all workers have compiled their kernels
            asyncio.run(measure(port, bodies, asked.connections, _WARM_UP, 0))
            began = time.perf_counter()
            load = asyncio.run(measure(port, bodies, asked.connections, asked.seconds, asked.requests))
            seconds = time.perf_counter() - began
            process.terminate()
    taken = np.array(load.seconds)
    print(json.dumps({
        **vars(asked), "sent": load.sent, "errors": load.errors, "seconds": round(seconds, 1),
        "requests_per_second": round(load.sent / seconds), "median_ms": round(1e3 * float(np.median(taken)), 2),
        "p99_ms": round(1e3 * float(np.quantile(taken, 0.99)), 2), "cpus": os.cpu_count(),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
