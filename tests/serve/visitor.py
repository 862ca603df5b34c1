"""A visitor of the page: a browser context, and what people do on the page."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class Visitor:
    """Somebody with a browser profile of their own. A context manager that fails if the browser complained.

    Attributes:
        context, page: Playwright's own.
        address: of the page that `open` opens.
        complaints: errors and warnings of the browser's console.
        requests: everything that the browser was asked to fetch.
    """

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        self.context.set_default_timeout(300_000)  # milliseconds; machines may be busy
        self.page = self.context.new_page()
        self.address = address
        self.complaints: list[str] = []
        self._expected: tuple[str, ...] = ()
        self.requests: list[Any] = []
        self.context.on("request", lambda request: self.requests.append(request))
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.context.close()
        if kind is None:
            assert self.unexpected == []

    def expect(self, text: str) -> None:
        """Let the browser complain about this, now and until it is closed: complaints may arrive late."""
        self._expected += (text,)

    @property
    def unexpected(self) -> list[str]:
        """The complaints that are not expected."""
        return [one for one in self.complaints if not any(text in one for text in self._expected)]

    def open(self, state: str = "ready") -> Any:
        """Open the page, wait until it is in a state ("ready" or "failed"), and return it."""
        self.page.goto(self.address)
        self.page.wait_for_selector(f"body[data-state={state}]")
        return self.page

    def shorten_pauses(self) -> None:
        """Let the page wait 1 % of the time it would wait; before `open`."""
        self.page.add_init_script("const wait = setTimeout; window.setTimeout = (done, ms) => wait(done, ms / 100);")

    def settle(self) -> None:
        """Take the focus away, and wait until what was entered has come back from the worker."""
        self.page.evaluate("document.activeElement.blur()")
        self.page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")
        self.answered()

    def answered(self) -> None:
        """Wait until what was entered has come back from the worker."""
        self.page.wait_for_selector("#recommendations[aria-busy=false]", state="attached")

    def find(self, title: str) -> Any:
        """Search for a title, and return the first card."""
        self.page.fill("#search", title)
        return self.page.locator("#recommendations > .card").first

    def rate(self, title: str, stars: int) -> None:
        """Search for a title, and rate it."""
        self.find(title).locator(f"label[title^='{stars} star']").click()
        self.page.fill("#search", "")
        self.settle()

    def titles(self, inside: str = "#recommendations") -> list[str]:
        """Return the titles of a list."""
        return list(self.page.locator(f"{inside} .title").all_inner_texts())

    def scores(self) -> list[str]:
        """Return the scores of the recommendations, as shown."""
        return list(self.page.locator("#recommendations .number").all_inner_texts())

    def stored(self) -> dict[str, str]:
        """Return the local storage."""
        stored: dict[str, str] = self.page.evaluate("({...localStorage})")
        return stored

    def go(self, view: str) -> None:
        """Follow a link of the navigation."""
        self.page.locator(f"nav a[href='#{view}']").click()
