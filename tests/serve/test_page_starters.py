"""What the page asks a new visitor about: well known titles that are far apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf.model import Ranking, Release

from .host import Host
from .samples import IMPLICIT, random_release
from .visitor import Visitor

LIST = "#starter-list"


def expected_starters(release: Release, count: int) -> list[str]:
    """Return what the page should ask about: popularity times distance times new genres, greedily."""
    places = release.item_factors.astype(np.float64)  # all axes are on the page, which turns them at most
    genres = [set(filter(None, text.split("|"))) for text in release.items.genres]
    popularity, allowed = np.ones(len(places)), np.ones(len(places), bool)
    if release.ranking is not None:
        popularity = release.ranking.popularity.astype(np.float64)
        allowed = np.isin(np.arange(len(places)), release.ranking.items)
    chosen: list[int] = []
    seen: set[str] = set()
    while len(chosen) < count:
        values = np.where(allowed & (popularity > 0), popularity, -np.inf)
        for item in range(len(places)):
            apart = min((float(np.linalg.norm(places[item] - places[one])) for one in chosen), default=1.0)
            values[item] *= apart * (1 + len(genres[item] - seen) / max(len(genres[item]), 1))
        values[chosen] = -np.inf
        chosen.append(int(np.argmax(values)))
        seen |= genres[chosen[-1]]
    return [release.items.titles[item] for item in chosen]


@pytest.mark.parametrize("kind", ["by popularity", "by factors"])
def test_starters_are_well_known_and_far_apart(
    browser: Any, host: Host, ranking_of: Callable[..., Ranking], kind: str
) -> None:
    ranking = ranking_of(60, n_factors=6) if kind == "by popularity" else None
    release = random_release(ranking=ranking)
    with Visitor(browser, host.site(release, kind.replace(" ", "-"))) as visitor:
        page = visitor.open()
        assert visitor.titles(LIST) == expected_starters(release, 12)
        assert ("Well known" in page.inner_text("#starters-words")) == (ranking is not None)


def test_a_visitor_passes_over_what_they_do_not_know(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        first = visitor.titles(LIST)
        page.locator(f"{LIST} .pass").nth(3).focus()
        page.keyboard.press("Enter")
        assert visitor.titles(LIST)[:3] == first[:3]
        assert visitor.titles(LIST)[3:11] == first[4:]
        focused = "document.activeElement.getAttribute('aria-label')"
        assert page.evaluate(focused) == f"Don’t know it: {first[4]}"  # in the place of the one that went
        page.click("#starters-more")
        after = visitor.titles(LIST)
        assert len(after) == 12
        assert not set(after) & set(first)
        while page.inner_text("#starters-more") == "More titles":
            page.click("#starters-more")
        for _ in visitor.titles(LIST):
            page.locator(f"{LIST} .pass").first.click()
        assert page.is_visible("#starters-none")
        page.click("#starters-more")
        assert visitor.titles(LIST) == first


def test_starters_go_when_enough_is_known(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for count in range(1, 6):
            title = visitor.titles(LIST)[0]
            page.locator(f"{LIST} label[title^='4 star']").first.click()
            visitor.settle()
            assert title in visitor.titles("#rated")
            assert page.is_visible("#starters") == (count < 5)
        assert not set(visitor.titles("#rated")) & set(visitor.titles())


def test_starters_of_implicit_feedback_are_said_to_be_owned(browser: Any, host: Host) -> None:
    with Visitor(browser, host.site(random_release(**IMPLICIT), "implicit-start")) as visitor:
        page = visitor.open()
        assert page.inner_text("#starters-words") == "Far apart in taste. Say which of them you have."
        assert page.locator(f"{LIST} .pass").first.inner_text() == "Not mine"
