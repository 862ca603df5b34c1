"""The HTTP service: right answers, clear refusals, nothing kept, and a new release without a pause."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import itertools
import json
import logging
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2 as httpx
import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from uvicorn.config import Config
from uvicorn.server import ServerState

from dpmf.errors import DamagedFile, NotCertified
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.serve import connections as patience
from dpmf.serve import live as live_module
from dpmf.serve.limits import MOST_BYTES, Limits
from dpmf.serve.server import Serving
from dpmf.serve.service import MOST_RATINGS, build

from .conftest import running, wait_for

CERTIFIED = Guarantee.certified_by(
    Budget(1.0), [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)], releases=["item factors"]
)


@pytest.fixture
def folder(release: Release, tmp_path: Path) -> Path:
    replace(release, guarantee=CERTIFIED).save(tmp_path / "release")
    return tmp_path / "release"


def application(folder: Path, recommends: bool = True) -> Limits:
    return build(folder, recommends=recommends, check=Serving(str(folder)).check)


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(application(folder)) as client:
        yield client


def ask(client: TestClient, ratings: dict[str, float], **more: Any) -> httpx.Response:
    return client.post("/api/recommend", json={"ratings": ratings, **more})


def test_recommendations_are_those_of_the_library(client: TestClient, release: Release) -> None:
    ratings = {"10": 5, "Alien (1979)": 1.5, "60": 3, "never heard of": 4}
    answer = ask(client, ratings, k=4)
    assert answer.status_code == 200
    person = release.fold_in(ratings)
    expected = [one._asdict() for one in person.recommend(k=4)]
    found = answer.json()["recommendations"]
    assert [one["item"] for one in found] == [one["item"] for one in expected]
    np.testing.assert_allclose([one["score"] for one in found], [one["score"] for one in expected], atol=1e-4)
    assert answer.json()["unknown"] == ["never heard of"]


def test_who_rated_nothing_that_is_known_gets_what_everybody_likes(client: TestClient, release: Release) -> None:
    answer = ask(client, {"nothing": 3}, k=2).json()
    assert [one["item"] for one in answer["recommendations"]] == [one.item for one in release.fold_in({}).recommend(2)]
    assert answer["unknown"] == ["nothing"]


def test_implicit_releases_recommend_too(release: Release, tmp_path: Path) -> None:
    implicit = replace(release, feedback="implicit", alpha=2.0, guarantee=CERTIFIED)
    implicit.save(tmp_path / "release")
    with TestClient(application(tmp_path / "release")) as client:
        found = ask(client, {"10": 1, "20": 1}, k=3).json()["recommendations"]
    assert [one["item"] for one in found] == [one.item for one in implicit.fold_in([10, 20]).recommend(k=3)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ratings": {"10": 6}}, 422), ({"ratings": {"10": 0.5}}, 422), ({"ratings": {}}, 422), ({}, 422),
        ({"ratings": {"10": "5"}}, 422), ({"ratings": {"10": None}}, 422), ({"ratings": {"10": True}}, 422),
        ({"ratings": [10]}, 422), ({"ratings": {"10": 5}, "k": 0}, 422), ({"ratings": {"10": 5}, "k": 101}, 422),
        ({"ratings": {"10": 5}, "k": 2.5}, 422), ({"ratings": {"10": 5}, "who": "me"}, 422), ([], 422),
        ({"ratings": {"10": 5, "Heat (1995)": 4}}, 409), ({"ratings": {"Up": 5}}, 409),
        ({"ratings": {str(number): 3 for number in range(MOST_RATINGS + 1)}}, 422),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_a_reason(client: TestClient, body: Any, status: int) -> None:
    answer = client.post("/api/recommend", json=body)
    assert answer.status_code == status
    assert answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"ratings":{"10":NaN}}', b'{"ratings":{"10":1e999}}',
                                  b'{"ratings":{"\\ud800":5}}'])  # fmt: skip
def test_what_is_no_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/recommend", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_long_requests_are_refused_before_they_are_read(client: TestClient) -> None:
    assert client.post("/api/recommend", content=b"x" * (MOST_BYTES + 1)).status_code == 413

    def drip() -> Iterator[bytes]:
        for _ in range(MOST_BYTES // 1000 + 2):
            yield b"x" * 1000

    assert client.post("/api/recommend", content=drip()).status_code == 413


def test_slow_requests_are_given_up() -> None:
    sent: list[Any] = []

    async def scenario() -> None:
        async def never() -> Any:
            await asyncio.sleep(60)

        async def note(message: Any) -> None:
            sent.append(message)

        async def unreached(*_: Any) -> None:
            raise AssertionError

        await Limits(unreached, {"X-Test": "1"}, most_seconds=0.05)({"type": "http", "headers": []}, never, note)

    # A browser that other tests drive has a loop in this thread already.
    with ThreadPoolExecutor(1) as alone:
        alone.submit(asyncio.run, scenario()).result()
    assert sent[0]["status"] == 408
    assert (b"x-test", b"1") in sent[0]["headers"]


def test_recommending_here_is_off_unless_asked_for(folder: Path) -> None:
    with TestClient(application(folder, recommends=False)) as client:
        assert ask(client, {"10": 5}).status_code == 405  # only files are there, and nobody posts to those
        assert "/api/recommend" not in client.get("/api/openapi.json").json()["paths"]
        assert client.get("/api/release").json()["recommends_here"] is False
    with TestClient(application(folder)) as client:
        described = client.get("/api/openapi.json").json()["paths"]["/api/recommend"]["post"]["description"]
        assert "Sends ratings to this server" in described


def test_the_catalogue_can_be_searched_and_paged(client: TestClient) -> None:
    whole = client.get("/api/items").json()
    assert whole["total"] == 6
    assert whole["items"][0] == {"item": 10, "title": "Heat (1995)", "genres": "Crime"}
    assert [one["item"] for one in client.get("/api/items", params={"query": "AMÉLIE destin"}).json()["items"]] == [30]
    assert [one["item"] for one in client.get("/api/items", params={"offset": 4, "limit": 9}).json()["items"]] == [
        50,
        60,
    ]
    assert client.get("/api/items", params={"query": "no such"}).json() == {"total": 0, "items": []}
    for wrong in ({"limit": 0}, {"limit": 101}, {"offset": -1}, {"query": "x" * 201}):
        assert client.get("/api/items", params=wrong).status_code == 422


def test_similar_items(client: TestClient, release: Release) -> None:
    found = client.get("/api/similar", params={"item": "Heat (1995)", "k": 2}).json()["similar"]
    assert found == [one._asdict() for one in release.similar_items(10, 2)]
    assert client.get("/api/similar", params={"item": "nothing"}).status_code == 404
    assert client.get("/api/similar", params={"item": "Up"}).status_code == 409  # two have this title
    assert client.get("/api/similar").status_code == 422


def test_the_promise_and_the_health(client: TestClient) -> None:
    promise = client.get("/api/release").json()
    assert promise["guarantee"] == json.loads(json.dumps(CERTIFIED.to_json()))
    assert (promise["certified"], promise["n_items"], promise["n_factors"], promise["scale"]) == (
        True,
        6,
        2,
        {"lo": 1, "hi": 5},
    )
    assert client.get("/api/health").json()["status"] == "ok"


def test_files_are_compressed_and_kept(client: TestClient, folder: Path) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.content == client.get("/index.html").content
    facts = client.get("/release/release.json")
    assert facts.content == (folder / "release.json").read_bytes()
    assert facts.headers["content-encoding"] == "gzip"
    plain = client.get("/release/release.json", headers={"accept-encoding": "identity"})
    assert plain.content == facts.content
    assert "content-encoding" not in plain.headers
    again = client.get("/release/release.json", headers={"if-none-match": facts.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head("/release/release.json").content == b""
    for missing in ("/nothing", "/../pyproject.toml", "/release/", "/api/nothing", "/%00"):
        assert client.get(missing).status_code == 404


def test_every_answer_is_hardened(client: TestClient) -> None:
    for answer in (client.get("/"), client.get("/nothing"), client.get("/api/health"), ask(client, {"10": 9}),
                   client.post("/api/recommend", content=b"x" * (MOST_BYTES + 1))):  # fmt: skip
        assert "connect-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in answer.headers


def test_nothing_of_a_person_is_logged(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ask(client, {"10": 4.321, "Alien (1979)": 1.234})
    ask(client, {"10": 4.321, "my secret film": 1.234})
    ask(client, {"10": 43.21})
    ours = [record for record in caplog.records if not record.name.startswith("httpx")]
    for secret in ("4.321", "1.234", "43.21", "Alien", "secret"):
        assert secret not in " ".join(record.getMessage() for record in ours)


def test_a_new_release_is_taken_over_and_a_damaged_one_is_not(
    folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live_module, "_EVERY", 0.02)
    with TestClient(application(folder)) as client:

        def mean_score() -> float:
            return float(ask(client, {"10": 5}, k=5).json()["recommendations"][-1]["score"])

        before = mean_score()
        replace(release, guarantee=CERTIFIED, item_biases=release.item_biases - 1).save(folder)
        wait_for(lambda: mean_score() != before)
        after = mean_score()
        tag = client.get("/release/release.json").headers["etag"]
        facts = (folder / "release.json").read_text()
        (folder / "release.json").write_text(facts.replace("Heat", "Cold"))  # its digest does not fit any more
        wait_for(lambda: "is not taken over" in caplog.text)
        assert mean_score() == after
        assert client.get("/release/release.json").headers["etag"] == tag
        replace(release, guarantee=CERTIFIED).save(folder)
        wait_for(lambda: mean_score() == before)


def test_a_release_that_is_copied_file_by_file_is_taken_over_in_the_end(
    folder: Path, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_EVERY", 0.02)
    replace(release, guarantee=CERTIFIED, item_biases=release.item_biases - 1).save(tmp_path / "next")
    with TestClient(application(folder)) as client:
        before = client.get("/about.json").content
        (folder / "release.json").write_bytes((tmp_path / "next" / "release.json").read_bytes())
        time.sleep(0.2)
        assert client.get("/about.json").content == before  # half of it is no release
        (folder / "release.safetensors").write_bytes((tmp_path / "next" / "release.safetensors").read_bytes())
        wait_for(lambda: client.get("/about.json").content != before)


def test_what_is_served_is_what_was_checked(folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is replaced while it is read, by one that others may not see, is not served in part either."""
    honest, calls = Release.load, itertools.count()

    def load(path: Any, *more: Any) -> Release:
        found = honest(path, *more)
        if next(calls) == 0:
            release.save(folder)  # nothing is proven about it
        return found

    monkeypatch.setattr(Release, "load", load)
    with pytest.raises(DamagedFile, match="changed while it was read"):
        build(folder, recommends=False, check=Serving(str(folder), host="0.0.0.0").check)


def test_requests_go_on_while_the_release_is_replaced_again_and_again(
    folder: Path, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "_EVERY", 0.01)
    versions = [replace(release, guarantee=CERTIFIED, mean=3.0 + 0.1 * number) for number in range(6)]
    names = ("release/release.json", "release/release.safetensors")
    with TestClient(application(folder)) as client:
        seen = set()
        for version in versions * 3:
            version.save(folder)
            for _ in range(8):
                assert ask(client, {"10": 5}).status_code == 200
                about = client.get("/about.json").content
                facts, tensors = (client.get(f"/{name}").content for name in names)
                named = json.loads(about)["sha256"]
                if named[names[0]] == hashlib.sha256(facts).hexdigest():  # else it was replaced in between
                    assert named[names[1]] == hashlib.sha256(tensors).hexdigest()
                seen.add(about)
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True),
                        ("0.0.0.0", False), ("::", False), ("192.0.2.7", False), ("example.org", False)]
)  # fmt: skip
def test_what_is_not_proven_stays_on_this_machine(release: Release, host: str, local: bool) -> None:
    serving = Serving("release", host=host)
    assert serving.is_local is local
    serving.check(replace(release, guarantee=CERTIFIED))
    if local:
        serving.check(release)
    else:
        with pytest.raises(NotCertified, match="--accept-unproven"):
            serving.check(release)
        replace(serving, accept_unproven=True).check(release)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--host", "0.0.0.0"), "--accept-unproven"), (("--port", "70000"), "70000"), (("--workers", "0"), "0 workers"),
        (("--host", "192.0.2.7", "--accept-unproven"), "cannot listen"), (("--host", "nowhere.invalid",
          "--accept-unproven"), "cannot listen"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_gets_one_line(
    command: Any, release: Release, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    release.save(tmp_path / "release")
    result = command("serve", tmp_path / "release", *options)
    assert result.returncode == 1
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_there_has_to_be_a_release(command: Any, tmp_path: Path) -> None:
    result = command("serve", tmp_path / "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert "no release at" in result.stderr


@pytest.mark.filterwarnings("ignore")
def test_the_description_of_the_service_is_true(folder: Path) -> None:
    """Schemathesis sends what the description allows, and what it does not, and checks every answer against it."""
    app, seen = application(folder), set[str]()
    with TestClient(app):
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
        found: Any
        for found in schema.get_all_operations():
            for mode in GenerationMode:

                @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
                @given(case=found.ok().as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    seen.add(case.operation.label)
                    case.call_and_validate()

                with contextlib.suppress(Unsatisfiable):  # what takes no arguments cannot be asked wrongly
                    check()
    assert len(seen) == 5


def test_it_starts_answers_and_stops_gracefully(folder: Path) -> None:
    """The real program, two workers: everything is answered, and the exit is clean."""
    with running(folder, "--workers", "2", "--recommend-here") as (address, process):
        results: list[int] = []

        def load() -> None:
            with httpx.Client(base_url=address) as client:
                for _ in range(40):
                    results.append(client.post("/api/recommend", json={"ratings": {"10": 5}}).status_code)

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [200] * 120
        body = b'{"ratings":{"10":5}}'
        head = (
            b"POST /api/recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]))) as half:
            half.sendall(head + body[:5])
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            half.sendall(body[5:])
            assert half.recv(100).startswith(b"HTTP/1.1 200")
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == ""  # nothing of any request


def test_who_is_too_slow_or_sends_too_much_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol itself, without a network: a silent connection, half a header, and a header without end."""
    monkeypatch.setattr(patience, "_SECONDS", 0.05)

    async def scenario(first: bytes, again: bytes = b"") -> bool:
        config = Config(lambda *_: None, http=patience.Patient, ws="none", log_config=None)
        config.load()
        protocol = patience.Patient(config, ServerState(), {}, asyncio.get_running_loop())
        transport = Mock(is_closing=lambda: False)
        protocol.connection_made(transport)
        if first:
            protocol.data_received(first)
        for _ in range(200 if again else 0):
            protocol.data_received(again)
        await asyncio.sleep(0 if again else 0.2)
        protocol.connection_lost(None)
        return bool(transport.close.called)

    with ThreadPoolExecutor(1) as alone:
        for first, again in ((b"", b""), (b"GET / HT", b""), (b"GET / HTTP/1.1\r\nX: ", b"x" * 1000)):
            assert alone.submit(asyncio.run, scenario(first, again)).result()


def test_head_is_answered_and_refusals_do_not_repeat(client: TestClient) -> None:
    assert client.head("/api/health").status_code == 200
    assert client.head("/api/nothing").status_code == 404
    assert "secret" not in ask(client, {"my secret film": 9}).text
    plain = client.get("/release/release.json", headers={"accept-encoding": "gzip;q=0, identity"})
    assert "content-encoding" not in plain.headers


def test_gzip_is_the_same_bytes(folder: Path, client: TestClient) -> None:
    raw = (folder / "release.json").read_bytes()
    with client.stream("GET", "/release/release.json", headers={"accept-encoding": "gzip"}) as answer:
        assert gzip.decompress(b"".join(answer.iter_raw())) == raw
