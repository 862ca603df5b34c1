"""People who join from the page: two servers in processes of their own, three browsers, and every request recorded."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dpmf.federated.deploy.catalogue_file import catalogue_beside
from dpmf.federated.deploy.certificate import write_certificate
from dpmf.federated.deploy.identity import write_identity
from dpmf.methods import ALS
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.verify import verify

from .joining_world import Offered, offered
from .process import running_service, wait_for
from .samples import random_release
from .visitor import Visitor

METHOD = ALS(n_factors=2, n_epochs=1, budget=Budget(5.0))
STEADY = """
let state = 1;
crypto.getRandomValues = (array) => {
  const words = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let place = 0; place < words.length; place++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    words[place] = state >>> 16;
  }
  return array;
};
"""


class Federation(NamedTuple):
    """An agreement, its servers and a site that offers it."""

    offer: Offered
    invitations: list[str]
    site: str
    folder: Path


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def running_server(role: str, agreement: Path, folder: Path) -> Iterator[None]:
    """Run one of the servers as its operator would."""
    files = {"key": "identity.pem", "folder": "state", "tls-cert": "../tls.pem", "tls-key": "../tls.key"}
    words = [sys.executable, "-m", "dpmf", "federate", role, "--agreement", str(agreement), "--linger", "5"]
    words += [word for name, file in files.items() for word in (f"--{name}", str(folder / file))]
    words += ["--gather", "600"] if role == "recommender" else []
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Run two servers and a site; the people of an agreement can join it once."""
    folder = tmp_path_factory.mktemp("federation")
    urls = [f"wss://localhost:{port}" for port in free_ports(2)]
    roles = ("recommender", "third-party")
    for role in roles:
        (folder / role).mkdir(mode=0o700)
    write_certificate("localhost", folder / "tls.pem", folder / "tls.key")
    keys = [write_identity(folder / role / "identity.pem") for role in roles]
    people = {"n_users": 3, "dropouts": 0, "colluders": 0}
    roots = [(folder / "tls.pem").read_text()]
    offer = offered(METHOD, (urls[0], urls[1]), items=random_release().items, keys=keys, roots=roots, **people)
    agreement = folder / "agreement.json"
    offer.file.write(agreement)
    catalogue_beside(agreement).write_bytes(offer.catalogue)
    random_release().save(folder / "release")
    with contextlib.ExitStack() as stack:
        for role in roles:
            stack.enter_context(running_server(role, agreement, folder / role))
        site, _ = stack.enter_context(running_service(folder / "release", "--agreement", str(agreement)))
        invitations = [offer.invitation(handle).text() for handle in range(3)]
        yield Federation(offer, invitations, site, folder)


def stored(count: int) -> str:
    """Return ratings as the page keeps them."""
    ratings = [{"item": 100 + item, "title": f"Film {item}", "rating": 1 + item % 5} for item in range(count)]
    return json.dumps({"format": "dpmf-ratings", "version": 1, "ratings": ratings})


class Joiner(Visitor):
    """A visitor of a site that offers an agreement; frames of all WebSockets are recorded."""

    def __init__(self, browser: Any, federation: Federation, handle: int, n_ratings: int) -> None:
        super().__init__(browser, federation.site, ignore_https_errors=True)
        self.federation, self.handle = federation, handle
        self.frames: list[tuple[str, str, str | bytes]] = []
        self.sockets: list[str] = []
        self.page.on("websocket", self._record)
        name = "dpmf-ratings:/:explicit:1-5"
        self.page.add_init_script(STEADY)
        self.page.add_init_script(f"localStorage.setItem({json.dumps(name)}, {json.dumps(stored(n_ratings))});")

    def _record(self, socket: Any) -> None:
        self.sockets.append(socket.url)
        socket.on("framesent", lambda frame: self.frames.append(("sent", socket.url, frame)))
        socket.on("framereceived", lambda frame: self.frames.append(("received", socket.url, frame)))

    def read_the_agreement(self) -> None:
        """Go to the page for joining by the link on the page."""
        self.open()
        self.go("privacy")
        self.page.click("#offer-link")
        self.page.wait_for_selector("body[data-state=ready] #joining:visible")

    def join(self) -> None:
        self.page.fill("#invitation", self.federation.invitations[self.handle])
        self.page.click("#join")

    def wait_for(self, state: str) -> None:
        self.page.wait_for_selector(f"#status[data-state={state}]")

    def lengths(self, way: str) -> dict[str, list[tuple[str, int]]]:
        """Return the kind and the length of all messages of one way, by server."""
        found: dict[str, list[tuple[str, int]]] = {}
        for one, url, frame in self.frames:
            if one == way:
                kind = json.loads(frame)["type"] if isinstance(frame, str) else "binary"
                found.setdefault(url, []).append((kind, len(frame)))
        return found


def test_the_page_for_joining_connects_to_the_two_servers_alone(browser: Any, federation: Federation) -> None:
    with Joiner(browser, federation, 0, 3) as visitor:
        visitor.read_the_agreement()
        page = visitor.page
        finished: list[str] = []
        page.on("requestfinished", lambda request: finished.append(request.url))
        reached = "url => fetch(url).then(() => 'sent', () => 'refused')"
        assert page.evaluate(reached, f"{federation.site}about.json?rating=5") == "refused"
        connect = """url => new Promise((done) => {
          const socket = new WebSocket(url);
          socket.onopen = () => done("open");
          socket.onerror = () => done("refused");
        })"""
        port = federation.site.rstrip("/").rpartition(":")[2]
        assert page.evaluate(connect, f"ws://127.0.0.1:{port}/v1/join") == "refused"
        script = f"import('{federation.site}js/recovery.js?rating=5').then(() => 'sent', () => 'refused')"
        assert page.evaluate(script) == "refused"
        assert finished == []
        assert page.evaluate(connect, f"{federation.offer.file.servers['recommender'].url}/v1/join") == "open"
        visitor.expect("Content Security Policy")
        visitor.expect("Content-Security-Policy")
        visitor.expect("WebSocket connection")


def test_nothing_is_sent_unless_invitation_and_limit_allow_it(browser: Any, federation: Federation) -> None:
    with Joiner(browser, federation, 1, 3) as visitor:
        visitor.read_the_agreement()
        page = visitor.page
        assert "3 ratings in this browser will count" in page.inner_text("#own")
        assert "ε = 5" in page.inner_text("#cost")
        for invitation, limit, words in (
            ("dpmf-invitation-1:AAAA", "5", "no invitation"),
            (offered(METHOD).invitation(1).text(), "5", "not to this agreement"),
            (federation.invitations[1], "4.5", "more than your limit of 4.5"),
        ):
            page.fill("#invitation", invitation)
            page.fill("#limit", limit)
            page.click("#join")
            page.wait_for_selector(f"#status:has-text('{words}')")
            page.wait_for_selector("#join:enabled")
        assert page.inner_text("#sent-words") == "Nothing so far."
        assert visitor.sockets == []
        page.goto(f"{federation.site}join.html#{federation.invitations[1]}")
        page.wait_for_selector("body[data-state=ready] #joining:visible")
        page.reload()  # the address alone changed
        page.wait_for_selector("body[data-state=ready] #joining:visible")
        assert page.evaluate("location.hash") == ""


def test_three_browsers_carry_out_an_agreement_and_send_nothing_else(browser: Any, federation: Federation) -> None:
    file = federation.offer.file
    recommender, third_party = (f"{server.url}/v1/join" for server in file.servers.values())
    with contextlib.ExitStack() as stack:
        joiners = [
            stack.enter_context(Joiner(browser, federation, handle, n_ratings))
            for handle, n_ratings in enumerate((0, 2, 60))
        ]
        for one in joiners:
            one.read_the_agreement()
            assert one.sockets == []  # nobody is connected to before the click
        for one in joiners:
            one.join()
        for one in joiners:
            one.wait_for("over")
            assert "Thank you" in one.page.inner_text("#status")
        fetched = [Counter(request.url.partition("blob:")[0] for request in one.requests) for one in joiners]
        assert fetched[1:] == fetched[:-1]  # whatever was rated
        for one in joiners:
            assert set(one.sockets) == {recommender, third_party}
            for request in one.requests:
                assert request.url.startswith((federation.site, "blob:", "data:")), request.url
                assert request.method == "GET"
                assert request.post_data is None
            sent = one.lengths("sent")
            assert [kind for kind, _ in sent[recommender]] == ["join"]
            answers = [("binary", length) for length in file.lengths("bytes_up")]
            assert sent[third_party] == [*sent[recommender], *answers]
            assert sent == joiners[0].lengths("sent")  # with the same random bits, and other ratings
            asked = [length for kind, length in one.lengths("received")[recommender] if kind == "binary"]
            assert asked == file.lengths("bytes_down")
            rows = one.page.locator("#sent tbody tr")
            assert rows.count() == 2 + len(answers)
            shown = [int(text.replace(",", "")) for text in rows.locator("td:last-child").all_inner_texts()]
            assert sum(shown) == sum(length for messages in sent.values() for _, length in messages)
            assert f"{len(answers)} answers" in one.page.inner_text("#entries")
            one.page.reload()
            one.page.wait_for_selector("body[data-state=ready] #joining:visible")
            assert "So far ε = 5 is spent" in one.page.inner_text("#ledger")
        answered = [
            [frame for way, _, frame in one.frames if way == "sent" and isinstance(frame, bytes)] for one in joiners
        ]
        assert all(len(set(frames)) == len(joiners) for frames in zip(*answered, strict=True))
    folder = federation.folder / "recommender" / "state" / "release"
    wait_for(lambda: (folder / "release.json").exists())
    release = Release.load(folder)
    assert verify(release.guarantee).ok
    assert release.n_measured_factors == METHOD.n_factors
