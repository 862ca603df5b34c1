"""What the page loads: intact files of one release, or none."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from dpmf.privacy import Guarantee

from .host import Host
from .samples import random_release
from .visitor import Visitor

ABOUT, FACTS, TENSORS = "about.json", "release/release.json", "release/release.safetensors"
VECTORS = [b"", b"abc", b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", b"a" * 1_000_000]
HASH = """async ([script, texts]) => {
  const { sha256, sha256Here } = await import(script);
  const buffers = texts.map((text) => new TextEncoder().encode(text).buffer);
  return [buffers.map(sha256Here), await Promise.all(buffers.map(sha256))];
}"""


def both(host: Host, name: str) -> tuple[str, str]:
    """Put up two releases of the same catalogue, a certified one and another; return their names."""
    host.site(random_release(), f"{name}-certified")
    host.site(random_release(seed=1, guarantee=Guarantee.none()), f"{name}-unproven", accept_unproven=True)
    return f"{name}-certified", f"{name}-unproven"


def content_for(host: Host, name: str, source: str, target: str) -> bytes:
    """Return a file of one site as it would be at the address it has in another."""
    if name == ABOUT:
        return json.dumps({**host.about(source), "paths": host.about(target)["paths"]}).encode()
    return host.files[f"{source}/{host.paths(source)[name]}"]


def copy(host: Host, name: str, source: str, target: str) -> None:
    """Replace a file of one site by that of another."""
    host.files[f"{target}/{host.paths(target)[name]}"] = content_for(host, name, source, target)


@pytest.mark.parametrize("mixed", [[FACTS, TENSORS], [FACTS], [TENSORS], [ABOUT], [ABOUT, TENSORS]], ids=" ".join)
def test_files_of_two_releases_are_not_used(browser: Any, host: Host, mixed: list[str]) -> None:
    certified, unproven = both(host, "mixed-" + "-".join(name.replace("/", "-") for name in mixed))
    for name in mixed:
        copy(host, name, unproven, certified)
    start = len(host.log)
    with Visitor(browser, f"{host.address}/{certified}/") as visitor:
        visitor.shorten_pauses()
        page = visitor.open(state="failed")
        assert "is damaged" in page.inner_text("#failure-title")
        assert page.is_hidden("#discover")
    asked, paths = host.requested(certified, start), host.paths(certified)
    assert [asked.count(paths[name]) for name in (ABOUT, FACTS, TENSORS)] == [4, 4, 4]


def test_about_json_of_a_release_that_is_not_there_shows_nothing(browser: Any, host: Host) -> None:
    certified, unproven = both(host, "absent")
    host.files[f"{certified}/{ABOUT}"] = host.files[f"{unproven}/{ABOUT}"]
    with Visitor(browser, f"{host.address}/{certified}/") as visitor:
        visitor.shorten_pauses()
        page = visitor.open(state="failed")
        assert "cannot be reached" in page.inner_text("#failure-title")
        assert page.is_hidden("#discover")
        assert visitor.complaints
        visitor.expect("404")


@pytest.mark.parametrize("late", [ABOUT, FACTS, TENSORS])
def test_a_release_that_is_replaced_meanwhile_is_fetched_again(browser: Any, host: Host, late: str) -> None:
    certified, unproven = both(host, f"healing-{late.replace('/', '-')}")
    old = content_for(host, late, unproven, certified)
    answers = [old, old]
    with Visitor(browser, f"{host.address}/{certified}/") as visitor:
        visitor.shorten_pauses()

        def answer(route: Any) -> None:
            if answers:
                route.fulfill(body=answers.pop())
            else:
                route.continue_()

        visitor.page.route(f"**/{host.paths(certified)[late]}", answer)
        page = visitor.open()
        assert answers == []
        assert page.is_hidden("#banner")
        assert visitor.titles() == [one.title for one in random_release().fold_in({}).recommend(k=12)]


@pytest.mark.parametrize("late", [FACTS, TENSORS])
def test_a_file_that_is_not_there_yet_is_fetched_again(browser: Any, host: Host, late: str) -> None:
    """A manifest and the files it names may come from two workers, one of which has not read the release yet."""
    name = f"late-{late.rpartition('.')[2]}"
    with Visitor(browser, host.site(random_release(), name)) as visitor:
        visitor.shorten_pauses()
        missing = [404, 404]

        def answer(route: Any) -> None:
            if missing:
                route.fulfill(status=missing.pop(), body="not found")
            else:
                route.continue_()

        visitor.page.route(f"**/{host.paths(name)[late]}", answer)
        visitor.open()
        assert missing == []
        visitor.expect("404")


def test_where_the_browser_offers_no_sha_256_it_is_checked_too(browser: Any, host: Host) -> None:
    certified, unproven = both(host, "insecure")
    for state in ("ready", "failed"):
        with Visitor(browser, f"{host.address}/{certified}/") as visitor:
            visitor.shorten_pauses()
            visitor.page.add_init_script("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })")
            visitor.open(state=state)
        copy(host, TENSORS, unproven, certified)


def test_sha_256_is_that_of_python(browser: Any, host: Host) -> None:
    script = f"{host.site(random_release(), 'hashing')}{host.paths('hashing')['js/sha256.js']}"
    texts = [*VECTORS, *(b"x" * length for length in (54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128))]
    with Visitor(browser, f"{host.address}/blank.html") as visitor:
        visitor.page.goto(visitor.address)
        here, offered = visitor.page.evaluate(HASH, [script, [text.decode() for text in texts]])
        visitor.expect("404")  # the blank page has no icon
    assert here == offered == [hashlib.sha256(text).hexdigest() for text in texts]
    assert here[1] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("what", ["tensors", "facts", "missing"])
def test_a_damaged_release_is_an_error_in_words(browser: Any, host: Host, what: str) -> None:
    name = f"damaged-{what}"
    address = host.site(random_release(), name)
    facts, tensors = (f"{name}/{host.paths(name)[file]}" for file in (FACTS, TENSORS))
    if what == "tensors":
        content = bytearray(host.files[tensors])
        content[-3] ^= 1
        host.files[tensors] = bytes(content)
    elif what == "facts":
        host.files[facts] = b"{"
    else:
        del host.files[tensors]
    with Visitor(browser, address) as visitor:
        visitor.shorten_pauses()
        page = visitor.open(state="failed")
        title = "cannot be reached" if what == "missing" else "is damaged"
        assert title in page.inner_text("#failure-title")
        assert page.is_visible("#retry")
        assert page.is_hidden("#discover")
        visitor.expect("404")
