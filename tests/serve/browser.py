"""The browser that the page is tested in: Chromium, or anything built on it.

`DPMF_BROWSER` names the program (a path, or a name on `PATH`). Without it, the first of `chromium`,
`chromium-browser` and `google-chrome` on `PATH` is used. Browsers that Playwright may have downloaded are never used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

VARIABLE = "DPMF_BROWSER"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str:
    """Return the path of the browser; without one, skip the test, or fail it where `CI` is set."""
    asked = os.environ.get(VARIABLE)
    for name in [asked] if asked else PROGRAMS:
        if found := shutil.which(name):
            return found
    reason = f"{VARIABLE}={asked} is not a program" if asked else f"none of {', '.join(PROGRAMS)} is on PATH"
    _give_up(f"no browser to test the page in: {reason}; install Chromium (Debian: apt-get install chromium)")


@contextmanager
def started_browser() -> Iterator[Any]:
    """Start the browser without a window, and yield Playwright's handle of it."""
    program = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _give_up("no Playwright to drive the browser with: pip install playwright (its own browsers are not needed)")
    flags = [*_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else [*_FLAGS]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
