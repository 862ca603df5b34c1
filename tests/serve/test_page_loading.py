"""What the page loads: files of one release, or none."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import Any

import pytest

from dpmf.privacy import Guarantee

from .conftest import Host, random_release
from .visiting import Visitor

ABOUT, FACTS, TENSORS = "about.json", "release/release.json", "release/release.safetensors"
VECTORS = [b"", b"abc", b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", b"a" * 1_000_000]
HASH = """async ([address, texts]) => {
  const { sha256, sha256Here } = await import(`${address}js/sha256.js`);
  const buffers = texts.map((text) => new TextEncoder().encode(text).buffer);
  return [buffers.map(sha256Here), await Promise.all(buffers.map(sha256))];
}"""


def both(host: Host, name: str) -> tuple[str, str]:
    """Export two releases of the same catalogue, a certified one and another; return their names."""
    host.site(random_release(), f"{name}-certified")
    host.site(random_release(seed=1, guarantee=Guarantee.none()), f"{name}-unproven", accept_unproven=True)
    return f"{name}-certified", f"{name}-unproven"


@pytest.mark.parametrize("mixed", [[FACTS, TENSORS], [FACTS], [TENSORS], [ABOUT], [ABOUT, TENSORS]], ids=" ".join)
def test_files_of_two_releases_are_not_used(browser: Any, host: Host, mixed: list[str]) -> None:
    certified, unproven = both(host, "mixed-" + "-".join(name.replace("/", "-") for name in mixed))
    for name in mixed:
        shutil.copy(host.root / unproven / name, host.root / certified / name)
    start = len(host.log)
    with Visitor(browser, f"{host.address}/{certified}/") as visitor:
        page = visitor.open(state="failed")
        assert "is damaged" in page.inner_text("#failure-title")
        assert page.is_hidden("#discover")
    asked = [path.removeprefix(f"/{certified}/") for _, path, _ in host.log[start:]]
    assert [asked.count(name) for name in (ABOUT, FACTS, TENSORS)] == [4, 4, 4]


@pytest.mark.parametrize("late", [ABOUT, FACTS, TENSORS])
def test_a_release_that_is_replaced_meanwhile_is_fetched_again(browser: Any, host: Host, late: str) -> None:
    certified, unproven = both(host, f"healing-{late.replace('/', '-')}")
    old = (host.root / unproven / late).read_bytes()
    answers = [old, old]
    with Visitor(browser, f"{host.address}/{certified}/") as visitor:

        def answer(route: Any) -> None:
            if answers:
                route.fulfill(body=answers.pop())
            else:
                route.continue_()

        visitor.page.route(f"**/{late}", answer)
        page = visitor.open()
        assert answers == []
        assert page.is_hidden("#banner")
        assert visitor.titles() == [one.title for one in random_release().fold_in({}).recommend(k=12)]


def test_a_promise_needs_both_what_is_said_and_the_release(browser: Any, host: Host) -> None:
    _, name = both(host, "doctored")
    folder = host.root / name
    about = json.loads((folder / ABOUT).read_text())
    about |= {"certified": True, "mode": "certified", "epsilon": 0.5, "delta": 1e-6, "unit": "user"}
    (folder / ABOUT).write_text(json.dumps({**about, "guess": {"promised": 0.6, "exact": 0.6}}))
    with Visitor(browser, f"{host.address}/{name}/") as visitor:
        page = visitor.open()
        assert "Nothing is promised" in page.inner_text("#banner")
        assert page.locator("#chip").get_attribute("data-certified") == "false"
        assert page.locator(".dots").count() == 0


def test_sha_256_is_that_of_python(browser: Any, host: Host) -> None:
    address = host.site(random_release(), "hashing")
    texts = [*VECTORS, *(b"x" * length for length in (54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128))]
    with Visitor(browser, f"{host.address}/blank.html") as visitor:
        visitor.page.goto(visitor.address)
        here, offered = visitor.page.evaluate(HASH, [address, [text.decode() for text in texts]])
        visitor.complaints.clear()  # the blank page has no icon
    assert here == offered == [hashlib.sha256(text).hexdigest() for text in texts]
    assert here[1] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_where_the_browser_offers_no_sha_256_it_is_checked_too(browser: Any, host: Host) -> None:
    certified, unproven = both(host, "insecure")
    for state in ("ready", "failed"):
        with Visitor(browser, f"{host.address}/{certified}/") as visitor:
            visitor.page.add_init_script("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })")
            visitor.open(state=state)
        shutil.copy(host.root / unproven / TENSORS, host.root / certified / TENSORS)
