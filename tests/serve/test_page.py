"""The page in a real browser: what it shows, what it keeps, and that it sends nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale

from .conftest import Host, random_release, running
from .visiting import Visitor

RATED = {"Film 3": 5, "Film 8": 1, "Film 21": 4}


@pytest.fixture(scope="module")
def address(host: Host) -> str:
    return host.site(random_release(), "plain")


def session(visitor: Visitor, tmp_path: Path) -> None:
    """Do all that can be done on the page."""
    page = visitor.page
    for title, stars in RATED.items():
        visitor.rate(title, stars)
    page.fill("#search", "film 1")
    page.press("#search", "Escape")
    page.select_option("#genre", "Heist")
    page.select_option("#genre", "")
    page.click("#more")
    page.locator("#recommendations .why").first.click()
    page.wait_for_selector("#item-why .total")
    page.locator("#item-similar button").first.click()
    page.wait_for_selector("#item-back:visible")
    page.locator("#item-rating label").nth(2).click()
    page.click("#item-back")
    page.click("#item-map")
    page.wait_for_selector("#map-tip:visible")
    page.hover("#map-canvas")
    page.click("#map-in")
    page.locator("#legend button").first.click()
    page.keyboard.press("ArrowRight")
    visitor.go("privacy")
    page.locator("#sections summary").first.click()
    page.click("#theme")
    visitor.go("discover")
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(tmp_path / "mine.json")
    page.set_input_files("#import-file", tmp_path / "mine.json")
    page.wait_for_selector("#notice:has-text('4 imported')")
    page.click("#erase")
    page.click("#erase-dialog button[value=erase]")
    visitor.settle()


def test_a_whole_session_sends_nothing(browser: Any, host: Host, address: str, tmp_path: Path) -> None:
    start = len(host.log)
    with Visitor(browser, address) as visitor:
        visitor.open()
        loaded, seen = len(host.log), len(visitor.requests)
        session(visitor, tmp_path)
        visitor.page.wait_for_timeout(300)
        assert host.log[loaded:] == []
        after = [one.url for one in visitor.requests[seen:]]
        assert [url for url in after if not url.startswith(("blob:", "data:"))] == []
        assert visitor.context.cookies() == []
    files = json.loads((host.root / "plain" / "about.json").read_text())["files"]
    for method, path, body in host.log[start:]:
        assert (method, body) == ("GET", b"")
        assert path.removeprefix("/plain/") in [*files, ""]  # no query, nothing that is not a file of the site
    for one in visitor.requests:
        assert one.url.startswith((address, f"blob:{host.address}/", "data:")), one.url


def test_once_loaded_the_browser_forbids_every_request(browser: Any, host: Host, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        (worker,) = page.workers
        loaded = len(host.log)
        fetch = "url => fetch(url).then(() => 'sent', () => 'refused')"
        assert page.evaluate(fetch, f"{address}about.json") == "refused"
        assert worker.evaluate(fetch, f"{address}about.json") == "refused"
        load = """([tag, field, url]) => new Promise((done) => {
          const element = document.createElement(tag);
          element.onload = () => done("sent");
          element.onerror = () => done("refused");
          element[field] = url;
          document.head.append(element);
        })"""
        assert page.evaluate(load, ["img", "src", f"{address}index.html?rating=5"]) == "refused"
        assert page.evaluate(load, ["script", "src", f"{address}js/main.js?rating=5"]) == "refused"
        assert page.evaluate(f"import('{address}js/main.js?rating=5').then(() => 'sent', () => 'refused')") == "refused"
        beacon = "url => (navigator.sendBeacon(url, 'rating'), new Promise(done => setTimeout(done, 200)))"
        page.evaluate(beacon, address)
        assert host.log[loaded:] == []
        assert any("Content Security Policy" in text for text in visitor.complaints)
        visitor.complaints.clear()


def test_the_headers_let_the_page_do_all_it_does(browser: Any, host: Host, tmp_path: Path) -> None:
    with Visitor(browser, host.site(random_release(), "guarded")) as visitor:
        visitor.open()
        session(visitor, tmp_path)


def test_the_service_serves_it_just_so(browser: Any, tmp_path: Path) -> None:
    random_release().save(tmp_path / "release")
    with running(tmp_path / "release") as (address, _), Visitor(browser, address) as visitor:
        visitor.open()
        loaded = len(visitor.requests)
        session(visitor, tmp_path)
        assert all(one.url.startswith((address, f"blob:{address}", "data:")) for one in visitor.requests)
        assert [one for one in visitor.requests[loaded:] if not one.url.startswith(("blob:", "data:"))] == []


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


def test_ratings_survive_a_reload_and_erasing_erases(browser: Any, address: str, tmp_path: Path) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        before = visitor.titles()
        visitor.open()
        assert visitor.titles() == before
        assert sorted(visitor.titles("#rated")) == sorted(RATED)
        assert page.locator("#rated li:has-text('Film 3') input:checked").get_attribute("value") == "5"
        page.locator("#rated li:has-text('Film 8') .clear").click()
        visitor.settle()
        assert "Film 8" not in visitor.titles("#rated")
        page.click("#erase")
        page.click("#erase-dialog button[value=keep]")
        assert len(visitor.titles("#rated")) == 2
        page.click("#erase")
        page.click("#erase-dialog button[value=erase]")
        visitor.settle()
        assert visitor.stored() == {}
        visitor.open()
        assert visitor.titles("#rated") == []
        assert page.is_visible("#rated-empty")


def test_export_and_import_round_trip(browser: Any, address: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        for title, stars in RATED.items():
            visitor.rate(title, stars)
        with page.expect_download() as download:
            page.click("#export")
        download.value.save_as(mine)
        before = visitor.titles()
    content = json.loads(mine.read_text())
    assert {one["title"]: one["rating"] for one in content["ratings"]} == RATED
    content["ratings"] += [
        {"item": 999, "title": "Elsewhere", "rating": 4},
        {"item": 105, "title": "Film 5", "rating": 9},
        "rubbish",
        None,
    ]
    mine.write_text(json.dumps(content))
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        page.set_input_files("#import-file", mine)
        page.wait_for_selector("#notice:has-text('4 imported. 1 not in this catalogue')")
        assert "3 left out" in page.inner_text("#notice")
        visitor.settle()
        assert visitor.titles() == before
        assert "1 more is not in this catalogue" in page.inner_text("#rated-unused")
        assert "Elsewhere" in "".join(visitor.stored().values())


def test_importing_rubbish_says_so_and_changes_nothing(browser: Any, address: str, tmp_path: Path) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.rate("Film 3", 5)
        for content in ("", "{", "[]", '{"format": "dpmf-ratings"}', '{"ratings": [1]}', "\x00ÿ"):
            page.evaluate("document.getElementById('notice').hidden = true")
            (tmp_path / "rubbish.json").write_text(content)
            page.set_input_files("#import-file", tmp_path / "rubbish.json")
            page.wait_for_selector("#notice[data-kind=error]:has-text('choose one that this page exported')")
            assert visitor.titles("#rated") == ["Film 3"]


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
        tab_to("#erase", most=200)
        press("Enter")
        tab_to("#erase-dialog button[value=erase]")
        press("Enter")
        visitor.settle()
        assert visitor.stored() == {}


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


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_needs_no_sideways_scrolling(browser: Any, address: str, width: int) -> None:
    options = {"viewport": {"width": width, "height": 700}, "has_touch": True, "is_mobile": True}
    with Visitor(browser, address, **options) as visitor:
        page = visitor.open()
        visitor.rate("Film 3", 5)
        for view in ("discover", "ratings", "map", "privacy"):
            visitor.go(view)
            page.wait_for_timeout(50)
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


def test_a_certified_release_shows_its_promise_and_no_banner(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        assert page.is_hidden("#banner")
        visitor.go("privacy")
        assert (
            "certified" in page.inner_text("#chip") or page.locator("#chip").get_attribute("data-certified") == "true"
        )
        dots = {kind: page.locator(f".dots .{kind}").count() for kind in ("chance", "gain", "none")}
        assert dots == {"chance": 50, "gain": 20, "none": 30}  # epsilon = 0.834: right 69.7 times of 100
        words = page.inner_text("#promise")
        for fact in ("0.8341", "0.000001", "user", "add-remove", "certified"):
            assert fact in words
        assert page.locator("#sections details").count() == 6


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (Guarantee.none(), "Nothing is promised"),
        (
            Guarantee.paper(
                epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="a theorem", releases=["item factors"],
                assumptions=["It holds."],
            ),
            "a published claim that is not proven",
        ),
    ],
    ids=["none", "paper"],
)  # fmt: skip
def test_what_is_not_certified_has_a_red_banner(browser: Any, host: Host, guarantee: Guarantee, words: str) -> None:
    release = random_release(guarantee=guarantee)
    with Visitor(browser, host.site(release, f"unproven-{guarantee.mode}", accept_unproven=True)) as visitor:
        page = visitor.open()
        assert words in page.inner_text("#banner")
        red, green, blue = page.evaluate(
            "getComputedStyle(document.getElementById('banner')).backgroundColor.match(/\\d+/g)"
        )
        assert int(red) > 2 * max(int(green), int(blue))
        visitor.go("map")
        assert page.is_visible("#banner")
        visitor.go("privacy")
        assert page.locator(".dots").count() == 0
        assert "Nothing is proven" in page.inner_text("#promise")


@pytest.mark.parametrize("what", ["tensors", "facts", "missing"])
def test_a_damaged_release_is_an_error_in_words(browser: Any, host: Host, what: str) -> None:
    address = host.site(random_release(), f"damaged-{what}")
    folder = host.root / f"damaged-{what}" / "release"
    if what == "tensors":
        content = bytearray((folder / "release.safetensors").read_bytes())
        content[-3] ^= 1
        (folder / "release.safetensors").write_bytes(content)
    elif what == "facts":
        (folder / "release.json").write_text("{")
    else:
        (folder / "release.safetensors").unlink()
    with Visitor(browser, address) as visitor:
        page = visitor.open(state="failed")
        title = "cannot be reached" if what == "missing" else "is damaged"
        assert title in page.inner_text("#failure-title")
        assert page.is_visible("#retry")
        assert page.is_hidden("#discover")
        visitor.complaints = [text for text in visitor.complaints if "404" not in text]


def test_without_storage_it_works_and_says_so(browser: Any, address: str) -> None:
    deny = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    with Visitor(browser, address) as visitor:
        visitor.page.add_init_script(deny)
        page = visitor.open()
        assert page.is_visible("#not-kept")
        visitor.rate("Film 3", 5)
        assert visitor.titles("#rated") == ["Film 3"]


def test_what_is_stored_by_others_does_no_harm(browser: Any, address: str, host: Host) -> None:
    with Visitor(browser, address) as visitor:
        visitor.page.add_init_script("localStorage.setItem('dpmf-ratings:/plain/', '{\"format\": 7}')")
        visitor.open()
        assert visitor.titles("#rated") == []
    other = host.site(random_release(seed=1), "other")
    with Visitor(browser, address) as visitor:
        visitor.open()
        visitor.rate("Film 3", 5)
        visitor.address = other
        visitor.open()
        assert visitor.titles("#rated") == []  # the same origin, another site


def test_implicit_feedback_has_toggles(browser: Any, host: Host) -> None:
    release = random_release(mean=0.0, scale=Scale(0, 1), feedback="implicit", alpha=2.0)
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
