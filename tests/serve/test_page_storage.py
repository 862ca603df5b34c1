"""What the page stores when one release takes the place of another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dpmf.ratings import Items, Scale

from .host import Host
from .samples import IMPLICIT, RATED, random_release
from .visitor import Visitor


def text_of(*ratings: Any) -> str:
    return json.dumps({"format": "dpmf-ratings", "version": 1, "ratings": list(ratings)})


def store(visitor: Visitor, name: str, text: str) -> None:
    visitor.page.goto(visitor.address)
    visitor.page.evaluate("([name, text]) => localStorage.setItem(name, text)", [name, text])


def stored_ratings(visitor: Visitor, name: str) -> list[Any]:
    return list(json.loads(visitor.stored()[name])["ratings"])


@pytest.mark.parametrize("other", [IMPLICIT, {"scale": Scale(0, 100), "mean": 60.0}, {"scale": Scale(1, 4)}])
def test_ratings_survive_a_release_of_another_kind(browser: Any, host: Host, other: dict[str, Any]) -> None:
    with Visitor(browser, host.site(random_release(), "changing")) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        before = visitor.stored()
        host.site(random_release(**other), "changing")
        visitor.open()
        assert visitor.titles("#rated") == []
        card = visitor.find("Film 5")
        if other is IMPLICIT:
            card.locator(".have").click()
        elif other["scale"].hi == 100:
            card.locator("input[type=range]").fill("80")
        else:
            card.locator("label").nth(2).click()
        page.fill("#search", "")
        visitor.settle()
        assert visitor.titles("#rated") == ["Film 5"]
        host.site(random_release(), "changing")
        visitor.open()
        assert sorted(visitor.titles("#rated")) == sorted(RATED)
        assert visitor.stored().items() > before.items()
        page.click("#erase")
        page.click("#erase-dialog button[value=erase]")
        visitor.settle()
        assert visitor.stored() == {}  # of every kind


def test_another_catalogue_with_the_same_ids_does_not_inherit_ratings(browser: Any, host: Host) -> None:
    first = random_release()
    titles = ["Film 0", *(f"Book {j}" for j in range(1, len(first.items)))]
    second = replace(first, items=Items.of(list(first.items.ids), titles, list(first.items.genres)))
    with Visitor(browser, host.site(first, "renamed")) as visitor:
        page = visitor.open()
        for title in ("Film 0", "Film 3", "Film 8"):
            visitor.rate(title, 5)
        host.site(second, "renamed")
        visitor.open()
        assert visitor.titles("#rated") == ["Film 0"]
        assert "2 more are not in this catalogue" in page.inner_text("#rated-unused")
        visitor.rate("Book 3", 1)
        host.site(first, "renamed")
        visitor.open()
        assert sorted(visitor.titles("#rated")) == ["Film 0", "Film 3", "Film 8"]
        assert page.locator("#rated li:has-text('Film 3') input:checked").get_attribute("value") == "5"


def test_unusable_entries_stay_as_they_were(browser: Any, host: Host) -> None:
    odd = [
        {"item": 105, "title": "Film 5", "rating": 9, "when": "today"},
        {"item": 106, "title": "Film 6"},
        "odd",
        None,
    ]
    name = "dpmf-ratings:/odd/:explicit:1-5"
    with Visitor(browser, host.site(random_release(), "odd")) as visitor:
        store(visitor, name, text_of(*odd, {"item": 103, "title": "Film 3", "rating": 4}))
        page = visitor.open()
        assert visitor.titles("#rated") == ["Film 3"]
        assert "4 more are" in page.inner_text("#rated-unused")
        visitor.rate("Film 5", 2)
        assert stored_ratings(visitor, name)[:4] == odd
        assert len(stored_ratings(visitor, name)) == 6


@pytest.mark.parametrize("text", ["{", '{"format": "dpmf-ratings", "version": 2, "ratings": []}'])
def test_unreadable_storage_is_set_aside_before_anything_is_written(browser: Any, host: Host, text: str) -> None:
    name = "dpmf-ratings:/unreadable/:explicit:1-5"
    with Visitor(browser, host.site(random_release(), "unreadable")) as visitor:
        store(visitor, name, text)
        visitor.open()
        assert visitor.stored() == {name: text}
        visitor.rate("Film 3", 5)
        assert visitor.stored()[f"{name}:unreadable"] == text
        store(visitor, name, f"{text} again")
        visitor.open()
        visitor.rate("Film 3", 5)
        assert visitor.stored()[f"{name}:unreadable"] == text
        assert visitor.stored()[f"{name}:unreadable:2"] == f"{text} again"


def test_ratings_of_an_older_page_move_to_a_release_they_fit(browser: Any, host: Host) -> None:
    old, new = "dpmf-ratings:/older/", "dpmf-ratings:/older/:explicit:1-5"
    text = text_of({"item": 103, "title": "Film 3", "rating": 4}, {"item": 7, "title": "Elsewhere", "rating": 2})
    with Visitor(browser, host.site(random_release(**IMPLICIT), "older")) as visitor:
        store(visitor, old, text)
        visitor.open()
        assert visitor.stored() == {old: text}
        assert visitor.titles("#rated") == []
        host.site(random_release(), "older")
        visitor.open()
        assert visitor.stored() == {new: text}
        assert visitor.titles("#rated") == ["Film 3"]
