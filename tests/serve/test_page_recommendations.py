"""What the page recommends and why, for every kind of release, compared with Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf import Joint
from dpmf.model import Ranking, Release
from dpmf.model.learnt import Learnt
from dpmf.privacy import Budget
from dpmf.ratings import Items, Scale
from dpmf.ratings.synthetic import make

from .host import Host
from .samples import IMPLICIT, RATED, random_release
from .visitor import Visitor


def test_recommendations_are_those_of_python_and_follow_ratings(browser: Any, address: str) -> None:
    release = random_release()
    with Visitor(browser, address) as visitor:
        visitor.open()
        rated: dict[str, int] = {}
        for title, stars in [("", 0), *RATED.items()]:
            if title:
                visitor.rate(title, stars)
                rated[title] = stars
            expected = release.fold_in(rated).recommend(k=12)
            assert visitor.titles() == [one.title for one in expected]
            shown = np.array([float(text) for text in visitor.scores()])
            np.testing.assert_allclose(shown, [one.score for one in expected], atol=0.0501)
        visitor.page.select_option("#genre", "Heist")
        visitor.settle()
        heists = [
            title for title, genre in zip(release.items.titles, release.items.genres, strict=True) if genre == "Heist"
        ]
        wanted = release.fold_in(rated).recommend(k=12, only=heists)
        assert visitor.titles() == [one.title for one in wanted]


def test_why_adds_up_and_similar_items_are_those_of_python(browser: Any, address: str) -> None:
    release = random_release()
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        title = visitor.titles()[0]
        reason = page.locator("#recommendations .because b").first.inner_text()
        page.locator("#recommendations .why").first.click()
        page.wait_for_selector("#item-why .total")
        values = [float(text.replace("−", "-")) for text in page.locator("#item-why .value").all_inner_texts()]
        assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.03)
        parts = dict(zip(page.locator("#item-why b").all_inner_texts(), values[1:-1], strict=True))
        assert set(parts) == set(RATED)
        assert max(parts, key=lambda name: parts[name]) == reason
        (score,) = release.fold_in(RATED).predict([title])
        assert min(max(values[-1], 1), 5) == pytest.approx(score, abs=0.006)
        alike = page.locator("#item-similar .what").all_inner_texts()
        assert alike == [one.title for one in release.similar_items(title, k=6)]


@pytest.mark.parametrize(("n_factors", "are_told"), [(2, False), (8, True)])
def test_degrees_of_likeness_are_shown_where_they_tell_items_apart(
    browser: Any, host: Host, n_factors: int, are_told: bool
) -> None:
    release = random_release(K=n_factors)
    with Visitor(browser, host.site(release, f"alike-{n_factors}")) as visitor:
        page = visitor.open()
        page.locator("#recommendations .why").first.click()
        page.wait_for_selector("#item-similar .what")
        alike = release.similar_items(page.inner_text("#item-title"), k=6)
        assert page.locator("#item-similar .what").all_inner_texts() == [one.title for one in alike]
        shown = page.locator("#item-similar .degree").all_inner_texts()
        assert shown == ([f"{round(100 * one.score)} % alike" for one in alike] if are_told else [])
        assert ("too little" in page.inner_text("#item-similar-words")) != are_told


def test_a_hovered_star_does_not_look_like_a_given_rating(browser: Any, address: str) -> None:
    fill = "(label) => getComputedStyle(label.querySelector('svg')).fill"
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        labels = page.locator("#recommendations > .card").first.locator(".stars label")
        labels.nth(3).hover()
        assert labels.nth(3).evaluate(fill) == "none"
        labels.nth(3).click()
        given = labels.nth(3).evaluate(fill)
        assert given != "none"  # at once, with the pointer still on it
        labels.nth(1).hover()
        assert [labels.nth(place).evaluate(fill) for place in range(5)] == ["none"] * 5
        page.mouse.move(0, 0)
        assert [labels.nth(place).evaluate(fill) for place in range(5)] == [given] * 4 + ["none"]


def test_a_card_in_use_stays_where_it_is_until_it_is_left(browser: Any, address: str) -> None:
    place = """() => [...document.querySelectorAll("#recommendations > .card")]
      .findIndex((card) => card.contains(document.activeElement))"""
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        for number in (5, 2, 7):
            before = visitor.titles()
            page.locator("#recommendations > .card").nth(number).locator("input").first.focus()
            for key in ("Space", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
                page.keyboard.press(key)
                visitor.answered()
                assert page.evaluate(place) == number
            assert visitor.titles()[number] == before[number]
            visitor.settle()
            assert before[number] not in visitor.titles()
            assert before[number] in visitor.titles("#rated")


def test_a_ranking_part_orders_and_the_rating_model_gives_the_stars(
    browser: Any, host: Host, ranking_of: Callable[..., Ranking]
) -> None:
    release = random_release(ranking=ranking_of(60, n_factors=6))
    with Visitor(browser, host.site(release, "both")) as visitor:
        page = visitor.open()
        assert page.inner_text("#list-title") == "Most popular"
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        expected = release.fold_in(RATED).recommend(k=12)
        assert visitor.titles() == [one.title for one in expected]
        np.testing.assert_allclose(
            [float(text) for text in visitor.scores()], [one.rating or 0 for one in expected], atol=0.0501
        )
        assert "Ordered by what goes with the titles you like. The number is your expected rating." in page.inner_text(
            "#list-note"
        )
        page.locator("#recommendations .why").first.click()
        page.wait_for_selector("#item-why .total")
        values = [float(text.replace("−", "-")) for text in page.locator("#item-why .value").all_inner_texts()]
        assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.003)
        assert values[-1] == pytest.approx(expected[0].score, abs=0.001)
        assert "follows from this sum" in page.inner_text("#item-why-words")
        alike = page.locator("#item-similar .what").all_inner_texts()
        assert alike == [one.title for one in release.similar_items(expected[0].item, k=6)]


def test_a_release_that_only_ranks_shows_no_stars(browser: Any, host: Host, ranking_of: Callable[..., Ranking]) -> None:
    release = random_release(K=0, item_biases=np.zeros(60, np.float32), ranking=ranking_of(60, n_factors=6))
    with Visitor(browser, host.site(release, "only-ranks")) as visitor:
        page = visitor.open()
        assert visitor.titles() == [one.title for one in release.fold_in({}).recommend(k=12)]
        visitor.rate("Film 3", 1)  # too low to count
        assert "Ratings from 3 on count" in page.inner_text("#list-note")
        rated = {"Film 3": 1, "Film 8": 5, "Film 21": 3, "Film 22": 4}
        for title in list(rated)[1:]:
            visitor.rate(title, rated[title])
        expected = release.fold_in(rated).recommend(k=12)
        assert visitor.titles() == [one.title for one in expected]
        assert page.locator("#recommendations .score:visible").count() == 0
        visitor.go("map")
        page.wait_for_selector("#map-best li")
        assert page.locator("#map-best .value").count() == 0
        page.locator("#map-best button").first.click()
        page.wait_for_selector("#item-why .total")
        assert page.inner_text("#item-score") == ""


TITLES = {
    "pairs": "For you", "factors": "For you", "ratings": "Liked by most", "popularity": "Most popular",
    "nothing": "In no particular order",
}  # fmt: skip
LEARNT = {
    "tastes": Learnt(60, factors=2, pairs=0),
    "no tastes": Learnt(60, factors=0, pairs=0, rated=20, popular=20),
    "only popularity": Learnt(60, factors=0, pairs=0, rated=0, popular=20),
    "noise": Learnt(60, factors=0, pairs=0, rated=0, popular=0),
}


@pytest.mark.parametrize("known", LEARNT)
def test_a_list_says_what_orders_it(browser: Any, host: Host, known: str) -> None:
    learnt = LEARNT[known]
    changes: dict[str, Any] = {} if known in ("tastes", "no tastes") else {"item_biases": np.zeros(60, np.float32)}
    release = random_release(configuration={"method": "als", "learnt": learnt.record()}, **changes)
    with Visitor(browser, host.site(release, f"order-{known.replace(' ', '-')}")) as visitor:
        page = visitor.open()
        for rated in ({}, {"Film 3": 5}):
            for title, stars in rated.items():
                visitor.rate(title, stars)
            assert page.inner_text("#list-title") == TITLES[release.fold_in(rated).ordered_by]
            by_number = "Ordered by your expected rating" in page.inner_text("#list-note")
            assert by_number == (release.fold_in(rated).ordered_by in ("ratings", "factors"))


def test_what_follows_by_popularity_says_so(browser: Any, host: Host, ranking_of: Callable[..., Ranking]) -> None:
    release = random_release(ranking=ranking_of(60, n_factors=6))
    assert release.ranking is not None
    linked = {release.items.titles[item] for item in release.ranking.items}
    with Visitor(browser, host.site(release, "follows")) as visitor:
        page = visitor.open()
        for title in sorted(linked)[:2]:
            visitor.rate(title, 5)
        while page.is_visible("#more"):
            page.click("#more")
            visitor.answered()
        cards = page.locator("#recommendations > .card").all()
        titles = visitor.titles()
        assert set(titles) - linked
        for card, title in zip(cards, titles, strict=True):
            assert ("By popularity" in card.locator(".because").inner_text()) == (title not in linked)


LINES = """async ([script, lists]) => {
  const { lineOf } = await import(script);
  return lists.map((scores) => { const line = lineOf(scores); return line === Infinity ? null : line; });
}"""


def line_of(scores: list[float]) -> float | None:
    """Return the least score of which at most a tenth of those as far from the middle lie below it; None for none."""
    middle = sorted(scores)[len(scores) // 2] if scores else 0.0
    above = [one for one in scores if one > middle]
    sound = [one for one in above if sum(2 * middle - other >= one for other in scores) <= 0.1 * sum(
        other >= one for other in above
    )]  # fmt: skip
    return min(sound, default=None)


def test_the_line_is_where_as_much_noise_as_a_tenth_lies_below(browser: Any, host: Host) -> None:
    script = f"{host.site(random_release(), 'lines')}{host.paths('lines')['js/line.js']}"
    rng = np.random.default_rng(6)
    lists: list[list[float]] = [[], [1.0], [1.0, 1.0], [0.0, 1.0, 2.0], [-5.0, 0.0, 0.0, 1.0], [0.0] * 20 + [3.0] * 4]
    lists += [np.concatenate([rng.normal(0, 1, 200), rng.normal(3, 1, 30)]).tolist(), rng.normal(0, 1, 200).tolist()]
    with Visitor(browser, f"{host.address}/blank.html") as visitor:
        visitor.page.goto(visitor.address)
        found = visitor.page.evaluate(LINES, [script, lists])
        visitor.expect("404")  # the blank page has no icon
    assert found == [line_of(scores) for scores in lists]
    assert found[5] == 3.0
    assert sum(one >= found[6] for one in lists[6]) > 10


@pytest.fixture(scope="module")
def trained() -> Release:
    """Return a release that ranks and predicts, of synthetic people whose taste goes by genre; its noise has a seed."""
    return Joint(budget=Budget(5.0), head=150, n_factors=8, n_epochs=2, noise_seed=1).fit(make(6000)).release


@pytest.mark.parametrize("genre", ["Space", "Romance"])
def test_the_list_of_a_fan_is_of_their_genre(browser: Any, host: Host, trained: Release, genre: str) -> None:
    assert trained.ranking is not None
    genres = dict(zip(trained.items.titles, trained.items.genres, strict=True))
    popular = [trained.items.titles[item] for item in trained.ranking.order]
    known = [title for title in popular if genres[title].startswith(genre)][:6]
    with Visitor(browser, host.site(trained, "trained", accept_unproven=True)) as visitor:
        page = visitor.open()
        for title in known:
            visitor.rate(title, 5)
        shown = visitor.titles()[:10]
        assert sum(genre in genres[title] for title in shown) >= 6
        classes = page.evaluate("[...document.getElementById('recommendations').children].map((one) => one.className)")
        above = visitor.titles()[: classes.index("line")] if "line" in classes else visitor.titles()
        assert len(above) >= 5
        assert sum(genre not in genres[title] for title in above[:5]) <= 1
        reasons = page.locator("#recommendations .because").all_inner_texts()[:10]
        assert sum("Mostly because of" in reason for reason in reasons) >= 9


def test_implicit_feedback_has_toggles(browser: Any, host: Host) -> None:
    release = random_release(**IMPLICIT)
    with Visitor(browser, host.site(release, "implicit")) as visitor:
        page = visitor.open()
        for title in ("Film 4", "Film 9"):
            visitor.find(title).locator(".have").click()
            page.fill("#search", "")
        visitor.settle()
        expected = release.fold_in(["Film 4", "Film 9"]).recommend(k=12)
        assert visitor.titles() == [one.title for one in expected]
        assert "What you have" in page.inner_text("#ratings-title")
        assert page.locator("#rated .have[aria-pressed=true]").count() == 2
        page.locator("#rated .have").first.click()
        visitor.settle()
        assert len(visitor.titles("#rated")) == 1


@pytest.mark.parametrize(
    ("scale", "control"), [(Scale(0.5, 5), ".buttons"), (Scale(0, 100), ".slider"), (Scale(1, 10), ".buttons")]
)
def test_other_scales_have_other_controls(browser: Any, host: Host, scale: Scale, control: str) -> None:
    release = random_release(scale=scale, mean=(scale.lo + scale.hi) / 2)
    with Visitor(browser, host.site(release, f"scale-{scale.hi:g}-{scale.lo:g}")) as visitor:
        page = visitor.open()
        card = visitor.find("Film 12")
        if control == ".slider":
            card.locator("input[type=range]").fill("80")
        else:
            card.locator(f"{control} label").last.click()
        page.fill("#search", "")
        visitor.settle()
        rating = 80 if control == ".slider" else scale.hi
        assert visitor.titles() == [one.title for one in release.fold_in({"Film 12": rating}).recommend(k=12)]


def test_titles_are_text_not_markup(browser: Any, host: Host) -> None:
    release = random_release(n=12)
    titles = ["<img src=x onerror=alert(1)>", "</script><b>bold</b>", *release.items.titles[2:]]
    nasty = replace(release, items=Items.of(list(release.items.ids), titles, ["<i>Genre</i>"] * 12))
    with Visitor(browser, host.site(nasty, "nasty")) as visitor:
        page = visitor.open()
        visitor.rate("onerror", 5)
        assert visitor.titles("#rated") == [titles[0]]
        assert page.locator("main img, main i, main b:has-text('bold')").count() == 0
