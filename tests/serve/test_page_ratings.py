"""Ratings on the page: kept over a reload, exported, imported and erased."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .host import Host
from .samples import RATED, random_release
from .visitor import Visitor


def test_ratings_survive_a_reload_and_erasing_erases(browser: Any, address: str, tmp_path: Path) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        before = visitor.titles()
        visitor.open()
        assert visitor.titles() == before
        assert sorted(visitor.titles("#rated")) == sorted(RATED)
        assert page.locator("#rated li:has-text('Film 3') input:checked").get_attribute("value") == "5"
        page.locator("#rated li:has-text('Film 8') .clear").click()
        visitor.settle()
        assert "Film 8" not in visitor.titles("#rated")
        page.click("#erase")
        page.click("#erase-dialog button[value=keep]")
        assert len(visitor.titles("#rated")) == 2
        page.click("#erase")
        page.click("#erase-dialog button[value=erase]")
        visitor.settle()
        assert visitor.stored() == {}
        visitor.open()
        assert visitor.titles("#rated") == []
        assert page.is_visible("#rated-empty")


def test_export_and_import_round_trip(browser: Any, address: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        with page.expect_download() as download:
            page.click("#export")
        download.value.save_as(mine)
        before = visitor.titles()
    content = json.loads(mine.read_text())
    assert {one["title"]: one["rating"] for one in content["ratings"]} == RATED
    content["ratings"] += [
        {"item": 999, "title": "Elsewhere", "rating": 4},
        {"item": 105, "title": "Film 5", "rating": 9},
        "rubbish",
        None,
    ]
    mine.write_text(json.dumps(content))
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        page.set_input_files("#import-file", mine)
        page.wait_for_selector("#notice:has-text('4 imported. 1 not in this catalogue')")
        assert "3 left out" in page.inner_text("#notice")
        visitor.settle()
        assert visitor.titles() == before
        assert "1 more is not in this catalogue" in page.inner_text("#rated-unused")
        assert "Elsewhere" in "".join(visitor.stored().values())


def test_importing_rubbish_says_so_and_changes_nothing(browser: Any, address: str, tmp_path: Path) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.rate("Film 3", 5)
        for content in ("", "{", "[]", '{"format": "dpmf-ratings"}', '{"ratings": [1]}', "\x00ÿ"):
            page.evaluate("document.getElementById('notice').hidden = true")
            (tmp_path / "rubbish.json").write_text(content)
            page.set_input_files("#import-file", tmp_path / "rubbish.json")
            page.wait_for_selector("#notice[data-kind=error]:has-text('choose one that this page exported')")
            assert visitor.titles("#rated") == ["Film 3"]


def test_without_storage_it_works_and_says_so(browser: Any, address: str) -> None:
    deny = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    with Visitor(browser, address) as visitor:
        visitor.page.add_init_script(deny)
        page = visitor.open()
        assert page.is_visible("#not-kept")
        visitor.rate("Film 3", 5)
        assert visitor.titles("#rated") == ["Film 3"]


def test_storage_of_other_pages_does_no_harm(browser: Any, address: str, host: Host) -> None:
    with Visitor(browser, address) as visitor:
        visitor.page.add_init_script("localStorage.setItem('dpmf-ratings:/plain/', '{\"format\": 7}')")
        visitor.open()
        assert visitor.titles("#rated") == []
    other = host.site(random_release(seed=1), "other")
    with Visitor(browser, address) as visitor:
        visitor.open()
        visitor.rate("Film 3", 5)
        visitor.address = other
        visitor.open()
        assert visitor.titles("#rated") == []  # the same origin, another site


def test_of_many_ratings_the_newest_are_shown_until_asked_for_more(browser: Any, host: Host) -> None:
    release = random_release(n=130)
    rated = [{"item": 100 + j, "title": f"Film {j}", "rating": 1 + j % 5} for j in range(120)]
    content = json.dumps({"format": "dpmf-ratings", "version": 1, "ratings": rated}).encode()
    with Visitor(browser, host.site(release, "many")) as visitor:
        page = visitor.open()
        page.set_input_files(
            "#import-file", {"name": "mine.json", "mimeType": "application/json", "buffer": content}
        )  # fmt: skip
        page.wait_for_selector("#rated li:has-text('Film 119')")
        visitor.answered()
        assert page.inner_text("#rated-count") == "120"
        assert len(visitor.titles("#rated")) == 100
        page.click("#rated-more")
        assert len(visitor.titles("#rated")) == 120
        assert page.is_hidden("#rated-more")
        every = {one["title"]: one["rating"] for one in rated}
        assert visitor.titles() == [one.title for one in release.fold_in(every).recommend(k=10)]
