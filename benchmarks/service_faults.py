"""The service under clients that are slow, malformed, idle or many, while its release is replaced: figures of each.

    python benchmarks/service_faults.py [--requests 1000000] [--idle 10000] [--replacements 1000] [--malformed 20000]
        [--page docs/faults.md]

Starts the real program with one worker. No answer may have a status of 500 or more, and ordinary requests have to be
answered throughout. Memory is that of the worker, measured 40 times over the requests; its slope is that of a straight
line through the second half. Prints one JSON object; --page also writes a table into a page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from blocks import put_block
from service import release_of, requests_of

_AT_ONCE, _MANY = 16, 200
_PATIENCE = 2.0  # seconds for an answer to what may be half a request
_ITEMS, _FACTORS, _RATINGS = 2000, 16, 10
_MEASUREMENTS = 40
_ODD = (b"\0", b"\r\n", b"-1", b"9" * 30, b"NaN", b"[" * 500, b"\xff\xfe", b"{}")


class Client:
    """Requests to the service, and the statuses of its answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.statuses: Counter[str] = Counter()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a new connection."""
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def send(self, bodies: list[bytes], most: int) -> None:
        """Send a number of ordinary requests over persistent connections."""
        left = iter(range(most))

        async def connection() -> None:
            reader, writer = await self.open()
            for number in left:
                writer.write(bodies[number % len(bodies)])
                await self._status(reader)
            writer.close()

        await asyncio.gather(*(connection() for _ in range(_AT_ONCE)))

    async def try_bytes(self, content: bytes) -> None:
        """Send any bytes over a connection of their own, and note what comes back, if anything does."""
        with contextlib.suppress(OSError):
            reader, writer = await self.open()
            writer.write(content)
            try:
                line = (await asyncio.wait_for(reader.read(4096), _PATIENCE)).split(b"\r\n")[0]
                outcome = line.split(b" ")[1].decode() if line.startswith(b"HTTP/") else "closed"
            except TimeoutError:
                outcome = "waits for the rest"
            self.statuses[outcome] += 1
            writer.close()

    async def _status(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.statuses[head.split(b" ")[1].decode()] += 1


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a request with a few bytes changed, cut off or repeated."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, kind = rng.randrange(len(changed)), rng.randrange(4)
        if kind == 0:
            changed[place] = rng.randrange(256)
        elif kind == 1:
            del changed[place : place + rng.choice((1, 4, 50))]
        elif kind == 2:
            changed[place:place] = changed[place : place + rng.choice((1, 4, 50))]
        else:
            changed[place:place] = rng.choice(
                (b"\0", b"\r\n", b"-1", b"9" * 30, b"NaN", b"[" * 500, b"\xff\xfe", b"{}")
            )
        if not changed:
            return b"\r\n"
    return bytes(changed)


def memory_of(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def idle(port: int, count: int, bodies: list[bytes]) -> dict[str, object]:
    """Hold idle connections, and connections with half a request, and send ordinary requests meanwhile."""
    client, held = Client(port), []
    for number in range(count):
        reader, writer = await client.open()
        if number % 4 == 1:
            writer.write(b"GET /api/health HT")
        elif number % 4 == 2:
            writer.write(bodies[0][:-5])
        held.append((reader, writer))
        if number % 500 == 0:
            await client.send(bodies, 50)
    await client.send(bodies, 2000)
    for _, writer in held:
        writer.close()
    return {"connections": count, "statuses": dict(client.statuses)}


async def slow(port: int, bodies: list[bytes]) -> dict[str, object]:
    """Send requests a byte at a time over many connections, which the service ends, and ordinary ones meanwhile."""
    client, ended = Client(port), Counter[str]()

    async def drip() -> None:
        reader, writer = await client.open()
        with contextlib.suppress(OSError):
            for place in range(len(bodies[0])):
                writer.write(bodies[0][place : place + 1])
                await writer.drain()
                await asyncio.sleep(0.2)
        answer = b""
        with contextlib.suppress(OSError):
            answer = await reader.read(4096)
        ended[answer.split(b" ")[1].decode() if answer.startswith(b"HTTP/") else "closed"] += 1

    drips = [asyncio.create_task(drip()) for _ in range(500)]
    await client.send(bodies, 5000)
    await asyncio.gather(*drips)
    return {"connections": 500, "ended": dict(ended), "statuses": dict(client.statuses)}


async def replaced(port: int, folder: Path, times: int, bodies: list[bytes]) -> dict[str, object]:
    """Replace the release many times while requests go on."""
    client, ended = Client(port), False
    releases = release_of(_ITEMS, _FACTORS), release_of(_ITEMS, _FACTORS)
    releases[1].item_biases[:] += 0.5

    async def load() -> None:
        while not ended:
            await client.send(bodies, 200)

    loading = asyncio.create_task(load())
    for number in range(times):
        await asyncio.to_thread(releases[number % 2].save, folder)
    ended = True
    await loading
    return {"replacements": times, "statuses": dict(client.statuses)}


def run(asked: argparse.Namespace, folder: Path, port: int, pid: int) -> dict[str, Any]:
    """Inflict everything, one after the other."""
    bodies, rng = requests_of(_ITEMS, _RATINGS), random.Random(1)
    found: dict[str, Any] = {}
    client = Client(port)

    async def malformed() -> None:
        for _ in range(asked.malformed // _MANY):
            await asyncio.gather(*(client.try_bytes(mutated(rng.choice(bodies), rng)) for _ in range(_MANY)))

    asyncio.run(malformed())
    found["malformed"] = {"requests": asked.malformed, "statuses": dict(client.statuses)}
    found["slow"] = asyncio.run(slow(port, bodies))
    found["idle"] = asyncio.run(idle(port, asked.idle, bodies))
    found["replaced"] = asyncio.run(replaced(port, folder, asked.replacements, bodies))
    steady, memory = Client(port), []
    for _ in range(_MEASUREMENTS):
        asyncio.run(steady.send(bodies, asked.requests // _MEASUREMENTS))
        memory.append(memory_of(pid))
    half = _MEASUREMENTS // 2
    at = np.arange(half, _MEASUREMENTS) * (asked.requests // _MEASUREMENTS)
    slope = float(np.polyfit(at, memory[half:], 1)[0])
    found["memory"] = {
        "requests": asked.requests, "statuses": dict(steady.statuses), "first_bytes": memory[0],
        "last_bytes": memory[-1], "slope_bytes_per_request": round(slope, 3),
    }  # fmt: skip
    return found


def table(found: dict[str, Any]) -> str:
    """Return a table in Markdown: what was inflicted, and what became of requests."""
    memory = found["memory"]
    titles = {
        "malformed": f"{found['malformed']['requests']:,} malformed requests",
        "slow": f"{found['slow']['connections']} clients that send a byte at a time, and ordinary requests",
        "idle": f"{found['idle']['connections']:,} connections, idle or with half a request, and ordinary requests",
        "replaced": f"the release replaced {found['replaced']['replacements']:,} times, and ordinary requests",
        "memory": f"{memory['requests']:,} ordinary requests: memory of {memory['first_bytes'] / 2**20:.0f} MiB at "
        f"first and {memory['last_bytes'] / 2**20:.0f} MiB in the end, "
        f"{memory['slope_bytes_per_request'] + 0.0:.3f} bytes per request",
    }
    lines = ["| inflicted | answers by status | 5xx |", "|---|---|---|"]
    for name, title in titles.items():
        statuses = dict(sorted(found[name]["statuses"].items()))
        answers = ", ".join(f"{status}: {times:,}" for status, times in statuses.items())
        bad = sum(times for status, times in statuses.items() if status.startswith("5"))
        lines.append(f"| {title} | {answers} | {bad} |")
    return "\n".join(lines)


def main() -> None:
    """Start the service, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, usual in (("requests", 1_000_000), ("idle", 10_000), ("replacements", 1000), ("malformed", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "release"
        release_of(_ITEMS, _FACTORS).save(folder)
        words = [sys.executable, "-m", "dpmf", "serve", str(folder), "--port", "0", "--recommend-here", "--json"]
        log = Path(name) / "log"
        with log.open("w") as file, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=file, text=True) as process:
            assert process.stdout is not None
            try:
                port = int(json.loads(process.stdout.readline())["address"].rstrip("/").rpartition(":")[2])
                time.sleep(2)
                found = run(asked, folder, port, process.pid)
            finally:
                process.terminate()
        complaints = [line for line in log.read_text().splitlines() if "the old one stays" not in line]
    found["errors"] = sum(times for part in found.values() if isinstance(part, dict)
                          for status, times in part.get("statuses", {}).items() if status.startswith("5"))  # fmt: skip
    found["complaints"] = complaints[:5]
    print(json.dumps(found, indent=1))
    put_block(asked.page, "service", table(found))


if __name__ == "__main__":
    main()
