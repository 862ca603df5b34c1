"""What a visitor of the page does."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Visitor:
    """Somebody with a browser of their own, who notes what goes wrong. A context manager."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        self.context.set_default_timeout(5000)
        self.page = self.context.new_page()
        self.address = address
        self.complaints: list[str] = []
        self.requests: list[Any] = []
        self.context.on("request", lambda request: self.requests.append(request))
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.context.close()
        if kind is None:
            assert self.complaints == []

    def open(self, state: str = "ready") -> Any:
        """Open the page, and wait until it has loaded, or failed."""
        self.page.goto(self.address)
        self.page.wait_for_selector(f"body[data-state={state}]")
        return self.page

    def settle(self) -> None:
        """Wait until what was entered has come back from the worker, and the focus is nowhere."""
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
        """Return the numbers of the recommendations."""
        return list(self.page.locator("#recommendations .number").all_inner_texts())

    def stored(self) -> dict[str, str]:
        """Return what the browser keeps."""
        kept: dict[str, str] = self.page.evaluate("({...localStorage})")
        return kept

    def go(self, view: str) -> None:
        """Follow a link of the navigation."""
        self.page.locator(f"nav a[href='#{view}']").click()
