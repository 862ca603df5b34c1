"""The core of the page in Firefox: recommendations, the lock, and opening without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .firefox import VARIABLE, Firefox, started_firefox
from .host import Host
from .samples import RATED, random_release

TITLES = "[...document.querySelectorAll('#recommendations .title')].map((one) => one.innerText)"
ANSWERED = "document.getElementById('recommendations').getAttribute('aria-busy') === 'false'"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Return a window of Firefox; starting it takes the most time here, so tests share it."""
    with started_firefox(tmp_path_factory.mktemp("firefox")) as firefox:
        yield firefox


def search(firefox: Firefox, words: str) -> None:
    firefox.evaluate(
        f"((field) => {{ field.value = {json.dumps(words)}; field.dispatchEvent(new Event('input')); }})"
        "(document.getElementById('search'))"
    )


def rate(firefox: Firefox, title: str, stars: int) -> None:
    search(firefox, title)
    firefox.click(f"#recommendations > .card label[title^='{stars} star']")
    firefox.evaluate("document.activeElement.blur()")
    search(firefox, "")
    firefox.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")
    firefox.wait(ANSWERED)


def test_recommendations_follow_ratings_and_nothing_is_sent(firefox: Firefox, host: Host) -> None:
    firefox.open(host.site(random_release(), "firefox"))
    start = len(host.log)
    for title, stars in RATED.items():
        rate(firefox, title, stars)
    assert firefox.evaluate(TITLES) == [one.title for one in random_release().fold_in(RATED).recommend(k=12)]
    firefox.click("nav a[href='#map']")
    firefox.wait("document.querySelectorAll('#map-best li').length === 6")
    assert firefox.complaints == []
    for attempt in (
        "fetch('about.json?rating=5')",
        "import(`${location.href}js/main.js?rating=5`)",
        "navigator.serviceWorker.register('sw.js?rating=5')",
        "new Promise((onload, onerror) => { Object.assign(new Image(), { onload, onerror, src: 'x.png' }); })",
    ):
        assert firefox.evaluate(f"{attempt}.then(() => 'sent', () => 'refused')") == "refused", attempt
    firefox.evaluate("navigator.sendBeacon('about.json', 'rating') || null")
    assert host.log[start:] == []


def test_it_opens_without_a_network(firefox: Firefox, tmp_path: Path) -> None:
    host = Host(tmp_path)
    try:
        address = host.site(random_release(), "away")
        firefox.open(address)
        rate(firefox, "Film 3", 5)
        firefox.wait("navigator.serviceWorker.ready.then((found) => found.active.state === 'activated')")
    finally:
        host.close()
    firefox.open(address)
    firefox.wait(ANSWERED)
    assert firefox.evaluate(TITLES) == [one.title for one in random_release().fold_in({"Film 3": 5}).recommend(k=12)]


def test_without_firefox_tests_are_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "nowhere")
    monkeypatch.delenv("CI", raising=False)
    reason = "DPMF_FIREFOX=nowhere is not a program; install Firefox .*apt-get install firefox-esr"
    with pytest.raises(pytest.skip.Exception, match=reason), started_firefox(tmp_path):
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=reason), started_firefox(tmp_path):
        pass
