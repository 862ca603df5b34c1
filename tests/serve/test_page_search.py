"""What somebody types finds the title that they mean, in the page of a real browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dpmf.model import Release
from dpmf.ratings import Items

from .host import Host
from .samples import CERTIFIED, random_release
from .test_page_maths import put_up
from .visitor import Visitor


def test_titles_are_found_by_words_without_accents(browser: Any, host: Host, release: Release) -> None:
    paths = put_up(host, replace(release, guarantee=CERTIFIED), "search")
    search = """async ([paths, texts]) => {
      const { makeCatalogue } = await import(paths["js/catalogue.js"]);
      const { items } = await (await fetch(paths["release/release.json"])).json();
      const catalogue = makeCatalogue(items);
      return [texts.map((text) => catalogue.search(text, 9).found), catalogue.find(40, "Up"), catalogue.find("x", "Up"),
        catalogue.find("x", "七人の侍"), catalogue.find(7, "nothing")];
    }"""
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        texts = ["AMELIE", "  destin  fabuleux ", "up", "horror", "侍", "zzz", "a"]
        found = page.evaluate(search, [paths, texts])
    finally:
        page.close()
    assert found[0] == [[2], [2], [3, 4], [1], [5], [], [1, 0, 2]]
    assert found[1:] == [3, None, 5, None]


FILMS = [
    "Terminator, The (1984)", "Terminator 2: Judgment Day (1991)", "Star Wars: Episode IV - A New Hope (1977)",
    "Star Wars: Episode I - The Phantom Menace (1999)", "Lord of the Rings, The (1978)", "The Matrix (1999)",
    "Ocean's Eleven (1960)", "Spider-Man (2002)", "Rocky II (1979)", "I, Robot (2004)", "One Fine Day (1996)",
    "Godfather: Part II, The (1974)", "Alien (1979)", "Nineteen Eighty-Four (1984)",
]  # fmt: skip
FOUND = {
    "terminater": ("typing", [0, 1]),
    "termniator 2": ("typing", [1]),
    "terminatr judgement": ("typing", [1]),
    "star wars 4": ("all", [2]),
    "star wars 1": ("all", [3, 2]),  # itself, before a year that begins so
    "STAR WARS iv": ("all", [2]),
    "starwars": ("all", [2, 3]),
    "lotr": ("all", [4]),
    "lord rin": ("all", [4]),
    "oceans 11": ("all", [6]),
    "ocean’s eleven": ("all", [6]),
    "spiderman": ("all", [7]),
    "rocky 2": ("all", [8]),
    "rocky two": ("all", [8]),
    "one": ("all", [10]),
    "godfather 2": ("all", [11]),
    "alein": ("typing", [12]),
    "matrx": ("typing", [5]),
    "the matrix reloaded": ("some", [5]),
    "qqqqqq": ("none", []),
    "zzz yyy": ("none", []),
    "???": ("none", []),
}
SEARCH = """async ([path, titles, texts]) => {
  const { makeSearch } = await import(path);
  const search = makeSearch(titles, titles.map(() => []));
  return texts.map((text) => search(text, 9));
}"""


@pytest.fixture(scope="module")
def answers(browser: Any, host: Host) -> dict[str, Any]:
    paths = put_up(host, random_release(), "searching")
    page = browser.new_page()
    try:
        page.goto(f"{host.address}/blank.html")
        found = page.evaluate(SEARCH, [paths["js/search.js"], FILMS, list(FOUND)])
    finally:
        page.close()
    return dict(zip(FOUND, found, strict=True))


@pytest.mark.parametrize("text", FOUND)
def test_titles_are_found_as_people_type_them(answers: dict[str, Any], text: str) -> None:
    how, expected = FOUND[text]
    answer = answers[text]
    assert (answer["how"], answer["found"], answer["total"]) == (how, expected, len(expected))


def test_a_search_says_how_it_matches_and_suggests_something(browser: Any, host: Host) -> None:
    items = Items.of([str(place) for place in range(len(FILMS))], FILMS, [""] * len(FILMS))
    release = random_release(n=len(FILMS), items=items)
    with Visitor(browser, host.site(release, "films")) as visitor:
        page = visitor.open()
        notes = {}
        for text in ("terminater", "the matrix reloaded", "qqqqqq"):
            visitor.find(text).wait_for()
            notes[text] = page.inner_text("#list-note")
            assert page.is_hidden("#nothing")
            if text == "terminater":
                assert visitor.titles() == FILMS[:2]
        assert notes["terminater"].endswith("Did you mean one of these?")
        assert notes["the matrix reloaded"] == "Nothing has all of these words. This has some of them."
        assert notes["qqqqqq"].endswith("Check the spelling, or try one of these.")
        assert len(visitor.titles()) >= 4  # what one may start with
