"""The page as an app: it opens without a network, takes over a new release, and its service worker sends nothing."""

from __future__ import annotations

from typing import Any

from .host import Host
from .samples import random_release
from .visitor import Visitor

ACTIVE = "navigator.serviceWorker.ready.then((found) => found.active.state === 'activated')"
STORED = """async () => {
  const names = await caches.keys();
  const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  return requests.flat().map(({ method, url }) => [method, url]);
}"""


def recommended(seed: int, rated: dict[str, int]) -> list[str]:
    return [one.title for one in random_release(seed=seed).fold_in(rated).recommend(k=12)]


def reopen(visitor: Visitor) -> Any:
    """Load the page again, and wait until it is there."""
    visitor.page.goto("about:blank")
    return visitor.open()


def test_it_opens_without_a_network_with_ratings_and_follows_a_new_release(browser: Any, host: Host) -> None:
    rated = {"Film 3": 5, "Film 8": 1}
    with Visitor(browser, host.site(random_release(), "deep/offline")) as visitor:
        page = visitor.open()
        for title, stars in rated.items():
            visitor.rate(title, stars)
        page.wait_for_function(ACTIVE)
        for seed in (0, 1):
            visitor.context.set_offline(True)
            start = len(host.log)
            page = reopen(visitor)
            assert visitor.titles() == recommended(seed, rated)
            visitor.rate("Film 21", 4)
            assert visitor.titles() == recommended(seed, {**rated, "Film 21": 4})
            page.locator("#rated li").first.locator(".clear").click()
            visitor.settle()
            assert host.log[start:] == []
            visitor.context.set_offline(False)
            stored = page.evaluate(STORED)
            files = host.about("deep/offline")["files"]
            assert isinstance(files, list)
            expected = {*files, ""} - {"index.html"}
            if seed == 1:
                assert {method for method, _ in stored} == {"GET"}
                assert {url.removeprefix(visitor.address) for _, url in stored} == expected  # the old release is gone
                break
            host.site(random_release(seed=1), "deep/offline")
            reopen(visitor)
            assert visitor.titles() == recommended(1, rated)
        visitor.expect("ERR_INTERNET_DISCONNECTED")


def test_a_copy_that_is_not_complete_is_not_used(browser: Any, host: Host) -> None:
    with Visitor(browser, host.site(random_release(), "torn")) as visitor:
        visitor.shorten_pauses()
        page = visitor.open()
        page.wait_for_function(ACTIVE)
        # As if the browser had been closed before all was stored:
        page.evaluate("caches.keys().then(([name]) => caches.open(name)).then((cache) => cache.delete('about.json'))")
        visitor.context.set_offline(True)
        visitor.open(state="failed")
        assert "cannot be reached" in page.inner_text("#failure-title")
        for complaint in ("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "FetchEvent", "Failed to"):
            visitor.expect(complaint)


def test_the_service_worker_sends_nothing_and_no_other_can_take_its_place(browser: Any, host: Host) -> None:
    with Visitor(browser, host.site(random_release(), "worker")) as visitor:
        page = visitor.open()
        page.wait_for_function(ACTIVE)
        page = reopen(visitor)  # now it is in charge
        assert page.evaluate("navigator.serviceWorker.controller !== null")
        start = len(host.log)
        page.evaluate("""async () => {
          const { controller } = navigator.serviceWorker;
          for (const message of [{ rating: 5 }, "about.json?rating=5"]) controller.postMessage(message);
        }""")
        outcome = "then(() => 'sent', () => 'refused')"
        for attempt in (
            "fetch('about.json')",
            "fetch('about.json?rating=5', { method: 'POST', body: '5' })",
            "caches.open('x').then((cache) => cache.add('index.html?rating=5'))",
            "navigator.serviceWorker.register('sw.js?rating=5')",
            "navigator.serviceWorker.register('js/recovery.js?rating=5', { scope: 'js/' })",
        ):
            assert page.evaluate(f"{attempt}.{outcome}") == "refused", attempt
        page.wait_for_timeout(300)
        sent = [(method, path, body) for method, path, body in host.log[start:] if not path.endswith("/sw.js")]
        assert sent == []  # but for the browser's own question whether there is a new service worker
        visitor.expect("Content Security Policy")


def test_it_can_be_installed(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        page.wait_for_function(ACTIVE)
        session = visitor.context.new_cdp_session(page)
        manifest = session.send("Page.getAppManifest")
        assert manifest["errors"] == []
        assert manifest["manifest"]["startUrl"] == address
        found = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
        assert [one["errorId"] for one in found] == ["in-incognito"]  # as every context of a test is


def test_a_host_that_stops_answering_does_not_keep_the_page_from_opening(browser: Any, host: Host) -> None:
    with Visitor(browser, host.site(random_release(), "silent")) as visitor:
        visitor.page.add_init_script("""(() => {
          const { timeout } = AbortSignal;
          AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 100);
        })()""")
        visitor.page.route("**/sw.js", lambda route: None)  # never answered
        page = visitor.open()
        assert visitor.titles() == recommended(0, {})
        assert page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
