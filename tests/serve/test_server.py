"""The server as a program: what it refuses to serve, and how it starts and stops."""

from __future__ import annotations

import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from dpmf.errors import NotCertified
from dpmf.model import Release
from dpmf.serve.server import ServerSettings

from .process import running_service
from .samples import CERTIFIED


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True),
                        ("0.0.0.0", False), ("::", False), ("192.0.2.7", False), ("example.org", False)]
)  # fmt: skip
def test_uncertified_releases_stay_on_this_machine(release: Release, host: str, local: bool) -> None:
    settings = ServerSettings("release", host=host)
    assert settings.is_local is local
    settings.check(replace(release, guarantee=CERTIFIED))
    if local:
        settings.check(release)
    else:
        with pytest.raises(NotCertified, match="accept_unproven=True"):
            settings.check(release)
        replace(settings, accept_unproven=True).check(release)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--host", "0.0.0.0"), "--accept-unproven"), (("--port", "70000"), "70000"), (("--workers", "0"), "0 workers"),
        (("--host", "192.0.2.7", "--accept-unproven"), "cannot listen"), (("--host", "nowhere.invalid",
          "--accept-unproven"), "cannot listen"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(
    command: Any, release: Release, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    release.save(tmp_path / "release")
    result = command("serve", tmp_path / "release", *options)
    assert result.returncode == 1
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_missing_release_is_one_line(command: Any, tmp_path: Path) -> None:
    result = command("serve", tmp_path / "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert "no release at" in result.stderr


def test_the_program_starts_answers_and_stops_gracefully(folder: Path) -> None:
    """The real program, two workers: everything is answered, and the exit is clean."""
    with running_service(folder, "--workers", "2", "--recommend-here") as (address, process):
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
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0
    assert errors == ""  # nothing of any request


# The program, with more patience than a busy machine can exhaust.
PATIENT = """
from dpmf.cli import main
from dpmf.serve import connections, limits, server
connections._SECONDS = server._GRACE = server._KEEP_ALIVE = 600
limits.Limits.__init__.__defaults__ = (*limits.Limits.__init__.__defaults__[:-1], 600)
main()
"""


def test_a_request_in_progress_is_answered_before_the_program_stops(folder: Path) -> None:
    head = b"POST /api/recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
    body = b'{"ratings":{"10":5}}'
    with running_service(folder, "--recommend-here", program=("-c", PATIENT)) as (address, process):
        place = "127.0.0.1", int(address.rstrip("/").rpartition(":")[2])
        with socket.create_connection(place) as idle, socket.create_connection(place) as half:
            idle.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert idle.recv(10_000).startswith(b"HTTP/1.1 200")
            half.sendall(head + b"Expect: 100-continue\r\n\r\n" + body[:5])
            assert half.recv(1000).startswith(b"HTTP/1.1 100")  # the request has begun
            process.send_signal(signal.SIGTERM)
            while idle.recv(10_000):  # when the program begins to stop, it closes what is idle
                pass
            half.sendall(body[5:])
            assert half.recv(100).startswith(b"HTTP/1.1 200")
        _, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (0, "")
