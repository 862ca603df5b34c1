"""A headless Chromium and a static host on this machine, for benchmarks and pictures of the page.

The browser is found as in the tests: `DPMF_BROWSER`, else chromium, chromium-browser or google-chrome on `PATH`.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium without a window, and yield Playwright's handle of it."""
    from playwright.sync_api import sync_playwright

    asked = os.environ.get("DPMF_BROWSER")
    program = next(filter(None, map(shutil.which, [asked] if asked else _PROGRAMS)), None)
    if program is None:
        raise SystemExit("no browser: install Chromium (Debian: apt-get install chromium), or set DPMF_BROWSER")
    flags = [*_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else [*_FLAGS]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def rate(page: Any, title: str, stars: int) -> None:
    """Search for a title on the page, and rate it."""
    page.fill("#search", title)
    page.locator("#recommendations > .card").first.locator(f"label[title^='{stars} star']").click()
    page.fill("#search", "")
    page.evaluate("document.activeElement.blur()")
