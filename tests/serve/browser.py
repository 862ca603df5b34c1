"""The browser that the page is tested in: Chromium, or anything built on it. (For Firefox see `firefox`.)

`DPMF_BROWSER` names the program (a path, or a name on `PATH`). Without it, the first of `chromium`,
`chromium-browser` and `google-chrome` on `PATH` is used. Browsers that Playwright may have downloaded are never used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
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


def find_browser(
    variable: str = VARIABLE, programs: Sequence[str] = PROGRAMS, name: str = "Chromium", package: str = "chromium"
) -> str:
    """Return the path of a browser; without one, skip the test, or fail it where `CI` is set.

    Args:
        variable: the environment variable that names it.
        programs: what it is called on `PATH`, the first first.
        name, package: what to install, and as which package of Debian.
    """
    asked = os.environ.get(variable)
    for program in [asked] if asked else programs:
        if found := shutil.which(program):
            return found
    reason = f"{variable}={asked} is not a program" if asked else f"none of {', '.join(programs)} is on PATH"
    give_up(f"no browser to test the page in: {reason}; install {name} (Debian: apt-get install {package})")


@contextmanager
def started_browser() -> Iterator[Any]:
    """Start the browser without a window, and yield Playwright's handle of it."""
    program = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        give_up("no Playwright to drive the browser with: pip install playwright (its own browsers are not needed)")
    flags = [*_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else [*_FLAGS]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def give_up(reason: str) -> NoReturn:
    """Skip the test, or fail it where `CI` is set."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
