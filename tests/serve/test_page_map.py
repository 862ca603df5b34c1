"""The map of the page: names that can be read, a legend of all colours, a taste that is never cut off."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from dpmf.model.learnt import Learnt
from dpmf.serve.map import map_of

from .host import Host
from .samples import RATED, random_release
from .visitor import Visitor

# What the last frame wrote: texts with their boxes, in pixels of the page.
RECORD = """(() => {
  window.texts = [];
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) { window.texts = []; clearRect.apply(this, box); };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    window.texts.push({ text, left: x, right: x + this.measureText(text).width, top: y - 7, bottom: y + 7 });
    fillText.call(this, text, x, y);
  };
})()"""
SIZE = "(canvas) => [canvas.clientWidth, canvas.clientHeight]"


def check_texts(page: Any) -> list[str]:
    """Return the names on the map; none covers another, and all are on the map."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    texts = page.evaluate("window.texts")
    width, height = page.locator("#map-canvas").evaluate(SIZE)
    for place, one in enumerate(texts):
        assert 0 <= one["left"] < one["right"] <= width
        assert 0 <= one["top"] < one["bottom"] <= height
        for other in texts[:place]:
            apart = one["left"] >= other["right"] or other["left"] >= one["right"]
            assert apart or one["top"] >= other["bottom"] or other["top"] >= one["bottom"], (one, other)
    return [one["text"] for one in texts]


@pytest.mark.parametrize("width", [1280, 360])
def test_names_never_cover_each_other_and_the_taste_is_always_there(browser: Any, host: Host, width: int) -> None:
    crowded = np.random.default_rng(3).normal(0, 0.02, (60, 2)).astype(np.float32) + np.float32(0.5)
    crowded[0] = -2
    release = random_release(K=2, item_factors=crowded)
    with Visitor(browser, host.site(release, "crowded"), viewport={"width": width, "height": 700}) as visitor:
        visitor.page.add_init_script(RECORD)
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        visitor.go("map")
        page.wait_for_selector("#map-best li")
        assert "your taste" in check_texts(page)
        for _ in range(4):
            page.click("#map-in")
            assert "your taste" in check_texts(page)
        assert page.is_hidden("#map-taste")


def test_the_legend_has_every_colour_of_the_map(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.go("map")
        names = page.locator("#legend button").all_inner_texts()
        assert names == ["Space", "Heist", "Horror", "Romance", "Other or none"]  # every fifth film has no genre
        page.click("#legend button:last-child")
        assert page.locator("#legend button:last-child").get_attribute("aria-pressed") == "true"
        page.focus("#map-canvas")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#map-tip:visible")
        number = int(page.inner_text("#map-tip b").removeprefix("Film "))
        assert number % 5 == 4


def test_only_what_is_known_is_on_the_map(browser: Any, host: Host) -> None:
    learnt = Learnt(60, factors=4, pairs=0, with_factors=np.arange(60) % 3 == 1)
    release = random_release(configuration={"method": "als", "learnt": learnt.record()})
    with Visitor(browser, host.site(release, "mapped")) as visitor:
        page = visitor.open()
        visitor.rate("Film 4", 5)
        visitor.go("map")
        page.wait_for_selector("#map-best li")
        assert page.inner_text("#map-known").startswith("20 of 60 titles are on the map")
        assert page.locator("#map-best li").count() == 6
        visitor.go("discover")
        for title, is_mapped in (("Film 4", True), ("Film 5", False)):
            visitor.find(title).locator("button.title").click()
            assert page.is_visible("#item-map") == is_mapped
            page.keyboard.press("Escape")


def test_the_taste_lies_among_the_titles_that_suit_it(browser: Any, host: Host) -> None:
    """Three groups of items, each liked by people of its own: the glow is brightest over the group that was rated."""
    group = np.arange(150) // 50
    rng = np.random.default_rng(4)
    factors = (np.eye(4)[group] + rng.normal(0, 0.1, (150, 4))).astype(np.float32)
    release = random_release(n=150, item_factors=factors, item_biases=np.zeros(150, np.float32))
    with Visitor(browser, host.site(release, "groups")) as visitor:
        visitor.page.add_init_script(RECORD)
        page = visitor.open()
        for title in ("Film 60", "Film 71", "Film 82"):
            visitor.rate(title, 5)
        visitor.go("map")
        page.wait_for_selector("#map-best li")
        best = page.locator("#map-best .what").all_inner_texts()
        assert {int(title.removeprefix("Film ")) // 50 for title in best} == {1}
        check_texts(page)
        texts = {one["text"]: one for one in page.evaluate("window.texts")}
        places = np.frombuffer(base64.b64decode(map_of(release)), "<u2").reshape(-1, 2) / 65534
        middles = np.array([places[group == number].mean(axis=0) for number in range(3)])
        width, height = page.locator("#map-canvas").evaluate(SIZE)
        taste = texts["your taste"]
        at = np.array([taste["left"] + taste["right"] - width, height - taste["top"] - taste["bottom"]])
        spread = middles - (places.max(axis=0) + places.min(axis=0)) / 2
        unit = at / np.linalg.norm(at)
        assert int((spread @ unit / np.linalg.norm(spread, axis=1)).argmax()) == 1
