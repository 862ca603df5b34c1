"""The privacy label on the page: readable by everybody, and never better than the release."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpmf.privacy import Budget, GaussianEvent, Guarantee

from .host import Host
from .samples import random_release
from .visitor import Visitor

EVENT = GaussianEvent("item sums", 5.0, 1, 10**6)
UNPROVEN = {
    "none": Guarantee.none(),
    "seeded": Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], seeded=True),
    "paper": Guarantee.paper(
        epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="a theorem", releases=["item factors"],
        assumptions=["It holds."],
    ),
}  # fmt: skip
COLOUR = "getComputedStyle(document.getElementById('label')).borderTopColor"


def rows_of(page: Any) -> dict[str, str]:
    row = "(row) => [row.children[0].innerText, row.children[1].innerText]"
    pairs = page.evaluate(f"[...document.querySelectorAll('#label-rows > div')].map({row})")
    return dict(pairs)


def test_a_certified_release_has_a_label_that_says_how_strongly(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.go("privacy")
        page.get_by_role("region", name="Private, and certified: ε = 0.8341 per user").wait_for()
        rows = rows_of(page)
        assert "right at most 69.8 times out of 100. A coin is right 50 times." in rows["How strongly"]
        assert "δ = one in 1,000,000" in rows["How strongly"]
        assert rows["What is protected"].endswith("and whether they took part at all.")
        assert {"Learnt from", "Who could see the ratings", "What stays with you", "What is not protected"} <= set(rows)


@pytest.mark.parametrize(
    ("kind", "verdict", "title"),
    [
        ("none", "none", "Not private"),
        ("seeded", "none", "Not private"),
        ("paper", "claimed", "Claimed to be private, not certified"),
    ],
)
def test_what_is_not_certified_looks_different(
    browser: Any, host: Host, address: str, kind: str, verdict: str, title: str
) -> None:
    with Visitor(browser, address) as visitor:
        certified = visitor.open().evaluate(COLOUR)
    where = host.site(random_release(guarantee=UNPROVEN[kind]), f"label-{kind}", accept_unproven=True)
    with Visitor(browser, where) as visitor:
        page = visitor.open()
        visitor.go("privacy")
        assert page.inner_text("#label-title") == title
        assert page.locator("#label").get_attribute("data-verdict") == verdict
        assert page.evaluate(COLOUR) != certified
        assert ("Nothing." in rows_of(page)["What is protected"]) == (verdict == "none")


@pytest.mark.parametrize("doctored", ["label", "all"])
def test_a_label_is_not_believed_without_the_release(browser: Any, host: Host, doctored: str) -> None:
    name = f"label-doctored-{doctored}"
    address = host.site(random_release(guarantee=Guarantee.none()), name, accept_unproven=True)
    about = host.about(name)
    about["label"] = {"verdict": "certified", "title": "Private, and certified", "rows": []}
    if doctored == "all":
        about |= {"certified": True, "mode": "certified", "epsilon": 0.5, "delta": 1e-6, "unit": "user"}
        about["guess"] = {"promised": 0.6, "exact": 0.6}
    host.files[f"{name}/about.json"] = json.dumps(about).encode()
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        visitor.go("privacy")
        assert page.inner_text("#label-title") == "Not private"
        assert "Believe neither." in rows_of(page)["Who says so"]
