"""The service as a program of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen


@contextlib.contextmanager
def running_service(
    folder: Path, *options: str, program: tuple[str, str] = ("-m", "dpmf")
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `dpmf serve` as a user would, yield its address and the process, and stop it afterwards."""
    words = [sys.executable, *program, "serve", str(folder), "--port", "0", "--json", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["address"]
            wait_for(lambda: _answers(address))
            yield address, process
        finally:
            process.terminate()


def wait_for(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait until a condition holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}api/health") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
