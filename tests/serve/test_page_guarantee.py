"""What the page says about privacy: a guarantee if it is certified, a red banner if not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.explain import guess

from .host import Host
from .samples import random_release
from .visitor import Visitor


def test_a_certified_release_shows_its_guarantee_and_no_banner(browser: Any, address: str) -> None:
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        assert page.is_hidden("#banner")
        visitor.go("privacy")
        assert (
            "certified" in page.inner_text("#chip") or page.locator("#chip").get_attribute("data-certified") == "true"
        )
        dots = {kind: page.locator(f".dots .{kind}").count() for kind in ("chance", "gain", "limit", "none")}
        # The noise that was used allows 53.98, and epsilon = 0.834 allows 69.72: each ends within a dot.
        assert dots == {"chance": 50, "gain": 4, "limit": 16, "none": 30}
        assert page.locator(".odds dt").all_inner_texts() == ["50", "≤ 54.0", "≤ 69.8"]
        assert "makes at most 4.0 more of them right" in page.inner_text("#promise")
        words = page.inner_text("#promise")
        for fact in ("0.8341", "0.000001", "user", "add-remove", "certified"):
            assert fact in words
        assert page.locator("#sections details").count() == 6


def test_a_limit_close_to_certainty_is_not_rounded_to_it(browser: Any, host: Host) -> None:
    event = GaussianEvent("item sums", noise_multiplier=0.85, coordinates=10**6)
    guarantee = Guarantee.certified_by(Budget(5.0, 1e-3), [event], releases=["item factors"])
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    with Visitor(browser, host.site(random_release(guarantee=guarantee), "close-to-certain")) as visitor:
        page = visitor.open()
        visitor.go("privacy")
        worst = f"{np.ceil(1000 * guess(guarantee.epsilon, guarantee.delta)) / 10:.1f}"
        # Two Gaussians, told apart as well as can be.
        used = f"{np.ceil(1000 * norm.cdf(0.5 / 0.85)) / 10:.1f}"
        assert float(used) < float(worst) < 100
        assert page.locator(".odds dt").all_inner_texts() == ["50", f"≤ {used}", f"≤ {worst}"]
        assert page.locator(".dots").get_attribute("aria-label") == (
            f"Of 100 guesses, 50 are right by chance, at most {used} with this release, and at most {worst} with any "
            "of this ε and δ."
        )


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


def test_a_guarantee_needs_both_about_json_and_the_release(browser: Any, host: Host) -> None:
    name = "doctored"
    address = host.site(random_release(guarantee=Guarantee.none()), name, accept_unproven=True)
    about = host.about(name)
    about |= {"certified": True, "mode": "certified", "epsilon": 0.5, "delta": 1e-6, "unit": "user"}
    about["guess"] = {"promised": 0.6, "exact": 0.6}
    host.files[f"{name}/about.json"] = json.dumps(about).encode()
    with Visitor(browser, address) as visitor:
        page = visitor.open()
        assert "Nothing is promised" in page.inner_text("#banner")
        assert page.locator("#chip").get_attribute("data-certified") == "false"
        assert page.locator(".dots").count() == 0
