"""What the page keeps of somebody, whichever release takes the place of the one before."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from dataclasses import replace
from typing import Any

import pytest

from dpmf.model import Release
from dpmf.ratings import Items, Scale

from .conftest import Host, random_release
from .visiting import Visitor

IMPLICIT: dict[str, Any] = {"mean": 0.0, "scale": Scale(0, 1), "feedback": "implicit", "alpha": 2.0}
MOMENTS = itertools.count(int(time.time()) + 1000, 2)  # browsers take what is younger for what is new, by the second
RATED = {"Film 3": 5, "Film 8": 1, "Film 21": 4}


def put(host: Host, release: Release, name: str) -> str:
    """Export a release to where another may be."""
    shutil.rmtree(host.root.parent / f"release-{name}", ignore_errors=True)
    address = host.site(release, name)
    moment = next(MOMENTS)
    for path in (host.root / name).rglob("*.*"):
        os.utime(path, (moment, moment))
    return address


def text_of(*ratings: Any) -> str:
    return json.dumps({"format": "dpmf-ratings", "version": 1, "ratings": list(ratings)})


def keep(visitor: Visitor, name: str, text: str) -> None:
    visitor.page.goto(visitor.address)
    visitor.page.evaluate("([name, text]) => localStorage.setItem(name, text)", [name, text])


def kept(visitor: Visitor, name: str) -> list[Any]:
    return list(json.loads(visitor.stored()[name])["ratings"])


@pytest.mark.parametrize("other", [IMPLICIT, {"scale": Scale(0, 100), "mean": 60.0}, {"scale": Scale(1, 4)}])
def test_ratings_outlive_a_release_of_another_kind(browser: Any, host: Host, other: dict[str, Any]) -> None:
    with Visitor(browser, put(host, random_release(), "changing")) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        before = visitor.stored()
        put(host, random_release(**other), "changing")
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
        put(host, random_release(), "changing")
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
    with Visitor(browser, put(host, first, "renamed")) as visitor:
        page = visitor.open()
        for title in ("Film 0", "Film 3", "Film 8"):
            visitor.rate(title, 5)
        put(host, second, "renamed")
        visitor.open()
        assert visitor.titles("#rated") == ["Film 0"]
        assert "2 more are not in this catalogue" in page.inner_text("#rated-unused")
        visitor.rate("Book 3", 1)
        put(host, first, "renamed")
        visitor.open()
        assert sorted(visitor.titles("#rated")) == ["Film 0", "Film 3", "Film 8"]
        assert page.locator("#rated li:has-text('Film 3') input:checked").get_attribute("value") == "5"


def test_what_cannot_be_used_stays_as_it_was(browser: Any, host: Host) -> None:
    odd = [
        {"item": 105, "title": "Film 5", "rating": 9, "when": "today"},
        {"item": 106, "title": "Film 6"},
        "odd",
        None,
    ]
    name = "dpmf-ratings:/odd/:explicit:1-5"
    with Visitor(browser, host.site(random_release(), "odd")) as visitor:
        keep(visitor, name, text_of(*odd, {"item": 103, "title": "Film 3", "rating": 4}))
        page = visitor.open()
        assert visitor.titles("#rated") == ["Film 3"]
        assert "4 more are" in page.inner_text("#rated-unused")
        visitor.rate("Film 5", 2)
        assert kept(visitor, name)[:4] == odd
        assert len(kept(visitor, name)) == 6


@pytest.mark.parametrize("text", ["{", '{"format": "dpmf-ratings", "version": 2, "ratings": []}'])
def test_what_cannot_be_read_is_set_aside_before_anything_is_written(browser: Any, host: Host, text: str) -> None:
    name = "dpmf-ratings:/unreadable/:explicit:1-5"
    with Visitor(browser, put(host, random_release(), "unreadable")) as visitor:
        keep(visitor, name, text)
        visitor.open()
        assert visitor.stored() == {name: text}
        visitor.rate("Film 3", 5)
        assert visitor.stored()[f"{name}:unreadable"] == text
        keep(visitor, name, f"{text} again")
        visitor.open()
        visitor.rate("Film 3", 5)
        assert visitor.stored()[f"{name}:unreadable"] == text
        assert visitor.stored()[f"{name}:unreadable:2"] == f"{text} again"


def test_what_an_older_page_kept_is_taken_over_by_a_release_that_it_fits(browser: Any, host: Host) -> None:
    old, new = "dpmf-ratings:/older/", "dpmf-ratings:/older/:explicit:1-5"
    text = text_of({"item": 103, "title": "Film 3", "rating": 4}, {"item": 7, "title": "Elsewhere", "rating": 2})
    with Visitor(browser, put(host, random_release(**IMPLICIT), "older")) as visitor:
        keep(visitor, old, text)
        visitor.open()
        assert visitor.stored() == {old: text}
        assert visitor.titles("#rated") == []
        put(host, random_release(), "older")
        visitor.open()
        assert visitor.stored() == {new: text}
        assert visitor.titles("#rated") == ["Film 3"]
