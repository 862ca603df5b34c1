"""The page and browser caches: a host that sends no Cache-Control never shows a mix of two versions of a site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpmf.serve import site as site_module
from dpmf.serve.assets import fingerprint_page, page_files

from .host import Host
from .samples import random_release
from .visitor import Visitor

FACTS, TENSORS = "release/release.json", "release/release.safetensors"
Upgrade = Callable[[str], None]

# What a new version of the page may change: old text, new text, and what shows the change in the browser.
CHANGES = {
    "index.html": (
        "<span>dpmf</span>",
        "<span>new</span>",
        "document.querySelector('.brand').innerText === 'new'",
    ),
    "style.css": (
        "",
        "body { --new: 1; }",
        "getComputedStyle(document.body).getPropertyValue('--new') === '1'",
    ),
    "js/views/privacy.js": (
        "the same for everybody",
        "new for everybody",
        "document.getElementById('downloaded').textContent.includes('new for everybody')",
    ),
    "js/worker.js": (
        "const STARTERS = 60",
        "const STARTERS = 3",
        "document.getElementById('starter-list').children.length === 3",
    ),
}


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Return what replaces the page by a version in which one file differs."""

    def replace(name: str) -> None:
        old, new, _ = CHANGES[name]
        text = page_files()[name].decode()
        assert old in text
        changed = text.replace(old, new, 1) if old else text + new
        page = fingerprint_page({**page_files(), name: changed.encode()})
        monkeypatch.setattr(site_module, "fingerprinted_page", lambda: page)

    return replace


def expected_titles(seed: int) -> list[str]:
    return [one.title for one in random_release(seed=seed).fold_in({}).recommend(k=12)]


def test_a_new_release_is_shown_although_everything_else_is_cached(browser: Any, host: Host) -> None:
    with Visitor(browser, host.site(random_release(), "fresh")) as visitor:
        visitor.open()
        assert visitor.titles() == expected_titles(0)
        start = len(host.log)
        visitor.open()
        assert host.requested("fresh", start) == ["about.json"]  # the rest is in the cache, index.html included
        host.site(random_release(seed=1), "fresh")
        start = len(host.log)
        visitor.open()
        assert visitor.titles() == expected_titles(1)
        paths = host.paths("fresh")
        assert sorted(host.requested("fresh", start)) == sorted(["about.json", paths[FACTS], paths[TENSORS]])


@pytest.mark.parametrize("name", CHANGES)
def test_a_new_version_of_the_page_is_loaded_as_a_whole(browser: Any, host: Host, upgrade: Upgrade, name: str) -> None:
    folder = f"upgraded-{name.replace('/', '-')}"
    shows_change = CHANGES[name][2]
    with Visitor(browser, host.site(random_release(), folder)) as visitor:
        page = visitor.open()
        assert page.evaluate(shows_change) is False
        old = host.about(folder)["page"]
        upgrade(name)
        host.site(random_release(seed=1), folder)
        new = host.about(folder)["page"]
        assert new != old
        start = len(host.log)
        visitor.page.goto(visitor.address)
        page.wait_for_selector(f"meta[name=page-version][content='{new}']", state="attached")
        page.wait_for_selector("body[data-state=ready]")
        assert page.evaluate(shows_change) is True
        assert visitor.titles() == expected_titles(1)
        assert host.requested(folder, start).count("") == 1  # index.html, when the page was loaded again


@pytest.mark.parametrize("name", ["style.css", "js/views/privacy.js"])
def test_a_cached_index_that_names_missing_files_is_loaded_again(
    browser: Any, host: Host, upgrade: Upgrade, name: str
) -> None:
    folder = f"evicted-{name.replace('/', '-')}"
    address = host.site(random_release(), folder)
    host.never_stored.add(f"{folder}/{host.paths(folder)[name]}")
    with Visitor(browser, address) as visitor:
        visitor.open()
        upgrade(name)
        host.site(random_release(seed=1), folder)
        page = visitor.open()
        page.wait_for_selector(f"meta[name=page-version][content='{host.about(folder)['page']}']", state="attached")
        page.wait_for_selector("body[data-state=ready]")
        assert visitor.titles() == expected_titles(1)
        assert page.evaluate(CHANGES[name][2]) is True
        visitor.expect("404")


def test_files_that_stay_missing_are_an_error_in_words(browser: Any, host: Host) -> None:
    address = host.site(random_release(), "incomplete")
    script = f"incomplete/{host.paths('incomplete')['js/views/map.js']}"
    content = host.files.pop(script)
    start = len(host.log)
    with Visitor(browser, address) as visitor:
        page = visitor.open(state="failed")
        assert "incomplete" in page.inner_text("#failure-title")
        assert host.requested("incomplete", start).count("") == 2  # loaded again once, not for ever
        host.files[script] = content
        page.click("#retry")
        page.wait_for_selector("body[data-state=ready]")
        visitor.expect("404")


def test_a_site_that_is_replaced_in_part_is_not_shown(browser: Any, host: Host, upgrade: Upgrade) -> None:
    address = host.site(random_release(), "partial")
    old = host.files["partial/index.html"]
    old_files = dict(host.files)
    upgrade("index.html")
    host.site(random_release(), "partial")
    host.files |= {path: content for path, content in old_files.items() if path not in host.files}
    host.files["partial/index.html"] = old
    start = len(host.log)
    with Visitor(browser, address) as visitor:
        visitor.shorten_pauses()
        page = visitor.open(state="failed")
        assert "is damaged" in page.inner_text("#failure-title")
        assert "another version of this page" in page.inner_text("#failure-words")
        assert page.is_hidden("#discover")
        asked = host.requested("partial", start)
        assert (asked.count(""), asked.count("about.json")) == (2, 5)
        assert not [path for path in asked if path.startswith("release/")]
