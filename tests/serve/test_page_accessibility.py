"""The page for everybody: keyboard, screen reader, phone, light and dark."""

from __future__ import annotations

import itertools
from typing import Any

from .visitor import Visitor


def test_the_keyboard_is_enough(browser: Any, address: str) -> None:
    with Visitor(browser, address, reduced_motion="reduce") as visitor:
        page = visitor.open()
        press = page.keyboard.press

        def tab_to(selector: str, most: int = 80) -> None:
            for _ in range(most):
                press("Tab")
                if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                    return
            raise AssertionError(f"no way to {selector} with the keyboard")

        tab_to(".skip")
        press("Enter")
        tab_to("#search")
        page.keyboard.type("film 21")
        tab_to("#recommendations input[type=radio]")
        press("Space")
        for _ in range(4):
            press("ArrowRight")
        visitor.answered()
        assert page.evaluate("document.activeElement.value") == "5"  # still there, although it is rated now
        assert page.evaluate("getComputedStyle(document.activeElement.parentElement).outlineStyle") == "solid"
        assert visitor.titles("#rated") == ["Film 21"]
        page.focus("#search")
        press("Escape")
        tab_to("#recommendations .why")
        press("Enter")
        page.wait_for_selector("#item-dialog[open]")
        assert page.evaluate("document.activeElement.id") == "item-title"
        tab_to("#item-similar button")
        press("Enter")
        tab_to("#item-back")
        press("Enter")
        press("Escape")
        assert page.evaluate("document.activeElement.matches('.why')")  # back where it was
        page.focus("nav a[href='#map']")
        press("Enter")
        tab_to("#map-canvas")
        press("ArrowRight")
        press("ArrowRight")
        page.wait_for_selector("#map-tip:visible")
        press("Enter")
        page.wait_for_selector("#item-dialog[open]")
        press("Escape")
        page.focus("nav a[href='#discover']")
        press("Enter")
        page.focus("#more")  # behind all cards, which are alike
        tab_to("#erase")
        press("Enter")
        tab_to("#erase-dialog button[value=erase]")
        press("Enter")
        visitor.settle()
        assert visitor.stored() == {}


def test_changes_are_announced_and_everything_has_a_name(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.rate("Film 3", 5)
        page.wait_for_selector("#live:has-text('Recommendations updated')", state="attached")
        assert visitor.titles()[0] in page.inner_text("#live")
        nameless = page.evaluate("""() => [...document.querySelectorAll("button, input, select, canvas[tabindex], a")]
          .filter((one) => !one.hidden && !one.textContent.trim() && !one.getAttribute("aria-label"))
          .filter((one) => !one.labels?.length)
          .map((one) => one.outerHTML)""")
        assert nameless == []
        twice = page.evaluate("""() => [...document.querySelectorAll("[id]")].map((one) => one.id)
          .filter((id, place, all) => all.indexOf(id) !== place)""")
        assert twice == []
        for landmark in ("banner", "main", "navigation", "search"):
            assert page.get_by_role(landmark).count() == 1, landmark


def test_a_phone_needs_no_sideways_scrolling(browser: Any, address: str) -> None:
    options = {"viewport": {"width": 390, "height": 700}, "has_touch": True, "is_mobile": True}
    with Visitor(browser, address, **options) as visitor:
        page = visitor.open()
        visitor.rate("Film 3", 5)
        for view, width in itertools.product(("discover", "ratings", "map", "privacy"), (320, 390)):
            page.set_viewport_size({"width": width, "height": 700})
            visitor.go(view)
            page.wait_for_selector(f"#{view}:visible")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            wide = page.evaluate(
                """width => [...document.querySelectorAll("main *, header *, nav *")]
              .filter((one) => one.checkVisibility() && !one.closest(".hidden, .choices"))
              .filter((one) => one.getBoundingClientRect().right > width + 1)
              .map((one) => one.outerHTML.slice(0, 80))""",
                width,
            )
            assert wide == [], view
        visitor.go("discover")
        page.locator("#recommendations .why").first.tap()
        page.wait_for_selector("#item-why .total")
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.getElementById('item-dialog').scrollWidth") <= width


def test_themes_follow_the_system_until_one_is_chosen(browser: Any, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with Visitor(browser, address, color_scheme="dark") as visitor:
        page = visitor.open()
        dark = page.evaluate(ground)
        page.click("#theme")
        light = page.evaluate(ground)
        assert dark != light
        visitor.open()
        assert page.evaluate(ground) == light
    with Visitor(browser, address, color_scheme="light") as visitor:
        assert visitor.open().evaluate(ground) == light
