"""A real browser, a host for exported sites that keeps a log, and releases made by hand."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from dpmf.model import Release, Ridge
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Items, Scale
from dpmf.serve.site import SECURITY_HEADERS, export_site

EVENT = GaussianEvent("item sums", 5.0, 1, 40)
PROMISE = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"])
FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
GENRES = ("Space", "Heist", "Romance", "Horror|Space", "")


def random_release(n: int = 60, K: int = 4, *, seed: int = 0, **changes: Any) -> Release:
    """Return a certified release of random factors. Titles are "Film 0", "Film 1", …"""
    rng = np.random.default_rng(seed)
    release = Release(
        items=Items.of(
            np.arange(100, 100 + n), [f"Film {j}" for j in range(n)], [GENRES[j % len(GENRES)] for j in range(n)]
        ),
        scale=Scale(1, 5),
        mean=3.4,
        item_factors=rng.normal(0, 0.5, (n, K)).astype(np.float32),
        item_biases=rng.normal(0, 0.3, n).astype(np.float32),
        ridge=Ridge(bias=2.0, factors=5.0),
        configuration={"method": "als"},
        guarantee=PROMISE,
    )
    return replace(release, **changes)


class Host:
    """A host for sites, on this machine only; `log` has every request: its method, its path and what it carried.

    A site that is called "guarded" is sent with the headers for hosts that send any.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log: list[tuple[str, str, bytes]] = []
        log = self.log

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Print nothing."""

            def end_headers(self) -> None:
                if self.path.startswith("/guarded/"):
                    for name, value in SECURITY_HEADERS.items():
                        self.send_header(name, value)
                super().end_headers()

            def parse_request(self) -> bool:
                if not super().parse_request():
                    return False
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                log.append((self.command, self.path, body))
                return True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def site(self, release: Release, name: str, *, accept_unproven: bool = False) -> str:
        """Export a release, and return the address of its page."""
        release.save(self.root.parent / f"release-{name}")
        export_site(self.root.parent / f"release-{name}", self.root / name, accept_unproven=accept_unproven)
        return f"{self.address}/{name}/"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `dpmf serve` as a user would, and yield its address and the process; it is stopped afterwards."""
    words = [sys.executable, "-m", "dpmf", "serve", str(folder), "--port", "0", "--json", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = json.loads(process.stdout.readline())["address"]
            wait_for(lambda: _answers(address), 60)
            yield address, process
        finally:
            process.terminate()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something is so, or fail."""
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


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Return a host that lives as long as the tests do."""
    root = tmp_path_factory.mktemp("host") / "root"
    root.mkdir()
    (root / "blank.html").write_text("<!doctype html><title>blank</title>")
    made = Host(root)
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a headless Chromium."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no browser: the page is tested in Chromium (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright to drive the browser with")
    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else [*FLAGS]
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=flags)
        yield started
        started.close()
