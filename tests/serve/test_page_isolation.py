"""The page sends nothing: what a host receives during a session, and what the browser refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .host import Host
from .process import running_service
from .samples import RATED, random_release
from .visitor import Visitor


def session(visitor: Visitor, tmp_path: Path) -> None:
    """Do all that can be done on the page."""
    page = visitor.page
    for title, stars in RATED.items():
        visitor.rate(title, stars)
    page.fill("#search", "film 1")
    page.press("#search", "Escape")
    page.select_option("#genre", "Heist")
    page.select_option("#genre", "")
    page.click("#more")
    page.locator("#recommendations .why").first.click()
    page.wait_for_selector("#item-why .total")
    page.locator("#item-similar button").first.click()
    page.wait_for_selector("#item-back:visible")
    page.locator("#item-rating label").nth(2).click()
    page.click("#item-back")
    page.click("#item-map")
    page.wait_for_selector("#map-tip:visible")
    page.hover("#map-canvas")
    page.click("#map-in")
    page.locator("#legend button").first.click()
    page.keyboard.press("ArrowRight")
    visitor.go("privacy")
    page.locator("#sections summary").first.click()
    page.click("#theme")
    visitor.go("discover")
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "mine.json")
    page.set_input_files("#import-file", tmp_path / "mine.json")
    page.wait_for_selector("#notice:has-text('4 imported')")
    page.click("#erase")
    page.click("#erase-dialog button[value=erase]")
    visitor.settle()


def test_a_whole_session_sends_nothing(browser: Any, host: Host, address: str, tmp_path: Path) -> None:
    start = len(host.log)
    with Visitor(browser, address) as visitor:
        visitor.open()
        loaded, seen = len(host.log), len(visitor.requests)
        session(visitor, tmp_path)
        visitor.page.wait_for_timeout(300)
        assert host.log[loaded:] == []
        after = [one.url for one in visitor.requests[seen:]]
        assert [url for url in after if not url.startswith(("blob:", "data:"))] == []
        assert visitor.context.cookies() == []
    files = host.about("plain")["files"]
    assert isinstance(files, list)
    for method, path, body in host.log[start:]:
        assert (method, body) == ("GET", b"")
        assert path.removeprefix("/plain/") in [*files, ""]  # no query, nothing that is not a file of the site
    for one in visitor.requests:
        assert one.url.startswith((address, f"blob:{host.address}/", "data:")), one.url


def test_once_loaded_the_browser_forbids_every_request(browser: Any, host: Host, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        (worker,) = page.workers
        loaded = len(host.log)
        fetch = "url => fetch(url).then(() => 'sent', () => 'refused')"
        assert page.evaluate(fetch, f"{address}about.json") == "refused"
        assert worker.evaluate(fetch, f"{address}about.json") == "refused"
        load = """([tag, field, url]) => new Promise((done) => {
          const element = document.createElement(tag);
          element.onload = () => done("sent");
          element.onerror = () => done("refused");
          element[field] = url;
          document.head.append(element);
        })"""
        assert page.evaluate(load, ["img", "src", f"{address}index.html?rating=5"]) == "refused"
        script = f"{address}{host.paths('plain')['js/main.js']}?rating=5"
        assert page.evaluate(load, ["script", "src", script]) == "refused"
        assert page.evaluate(f"import('{script}').then(() => 'sent', () => 'refused')") == "refused"
        beacon = "url => (navigator.sendBeacon(url, 'rating'), new Promise(done => setTimeout(done, 200)))"
        page.evaluate(beacon, address)
        assert host.log[loaded:] == []
        assert page.evaluate("performance.getEntriesByType('navigation')[0].type") == "navigate"  # not loaded again
        assert any("Content Security Policy" in text for text in visitor.complaints)
        visitor.expect("Content Security Policy")


def test_the_headers_let_the_page_do_all_it_does(browser: Any, host: Host, tmp_path: Path) -> None:
    with Visitor(browser, host.site(random_release(), "guarded")) as visitor:
        visitor.open()
        session(visitor, tmp_path)


def test_the_service_serves_the_same_page(browser: Any, tmp_path: Path) -> None:
    random_release().save(tmp_path / "release")
    with running_service(tmp_path / "release") as (address, _), Visitor(browser, address) as visitor:
        visitor.open()
        loaded = len(visitor.requests)
        session(visitor, tmp_path)
        assert all(one.url.startswith((address, f"blob:{address}", "data:")) for one in visitor.requests)
        assert [one for one in visitor.requests[loaded:] if not one.url.startswith(("blob:", "data:"))] == []
