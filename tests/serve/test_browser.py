"""Where the tests of the page find a browser, and what they say if there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from .browser import PROGRAMS, VARIABLE, find_browser


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def install(folder: Path, name: str) -> str:
    (folder / name).touch(mode=0o755)
    return str(folder / name)


def test_the_variable_comes_first_then_known_names(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in reversed(PROGRAMS):
        found = install(programs, name)
        assert find_browser() == found
    own = install(programs, "brave")
    for value in ("brave", own):
        monkeypatch.setenv(VARIABLE, value)
        assert find_browser() == own


def test_without_a_browser_tests_are_skipped_with_a_reason(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"google-chrome is on PATH; install Chromium .*apt-get install"):
        find_browser()
    install(programs, "chromium")
    monkeypatch.setenv(VARIABLE, "nowhere")
    with pytest.raises(pytest.skip.Exception, match="DPMF_BROWSER=nowhere is not a program"):
        find_browser()


def test_on_continuous_integration_it_is_a_failure(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="install Chromium"):
        find_browser()
