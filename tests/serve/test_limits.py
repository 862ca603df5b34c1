"""Limits on requests: too long, too slow, or without an end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient
from uvicorn.config import Config
from uvicorn.server import ServerState

from dpmf.serve import connections
from dpmf.serve.limits import MOST_BYTES, Limits


def test_long_requests_are_refused_before_they_are_read(client: TestClient) -> None:
    assert client.post("/api/recommend", content=b"x" * (MOST_BYTES + 1)).status_code == 413

    def drip() -> Iterator[bytes]:
        for _ in range(MOST_BYTES // 1000 + 2):
            yield b"x" * 1000

    assert client.post("/api/recommend", content=drip()).status_code == 413


def test_slow_requests_time_out() -> None:
    sent: list[Any] = []

    async def scenario() -> None:
        async def never() -> Any:
            await asyncio.Event().wait()

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


def test_connections_that_are_too_slow_or_send_too_much_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol itself, without a network: a silent connection, half a header, and a header without end."""
    monkeypatch.setattr(connections, "_SECONDS", 0.05)

    async def scenario(first: bytes, again: bytes) -> None:
        config = Config(lambda *_: None, http=connections.LimitedProtocol, ws="none", log_config=None)
        config.load()
        protocol = connections.LimitedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
        closed = asyncio.Event()
        transport = Mock(is_closing=lambda: False, close=closed.set)
        protocol.connection_made(transport)
        if first:
            protocol.data_received(first)
        for _ in range(200 if again else 0):
            protocol.data_received(again)
        assert closed.is_set() or not again  # what sends too much is not waited for
        await asyncio.wait_for(closed.wait(), 600)
        protocol.connection_lost(None)

    with ThreadPoolExecutor(1) as alone:
        for first, again in ((b"", b""), (b"GET / HT", b""), (b"GET / HTTP/1.1\r\nX: ", b"x" * 1000)):
            alone.submit(asyncio.run, scenario(first, again)).result()


def test_the_connection_that_has_waited_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_most_connections", lambda: 3)
    monkeypatch.setattr(connections.LimitedProtocol, "_waiting", {})

    async def scenario() -> None:
        config = Config(lambda *_: None, http=connections.LimitedProtocol, ws="none", log_config=None)
        config.load()
        closed: list[int] = []
        protocols = [
            connections.LimitedProtocol(config, ServerState(), {}, asyncio.get_running_loop()) for _ in range(6)
        ]
        for number, protocol in enumerate(protocols[:5]):
            protocol.connection_made(Mock(is_closing=lambda: False, close=lambda number=number: closed.append(number)))
        assert closed == [0, 1]
        protocols[2].cycle = Mock(response_complete=False)
        protocols[2].on_message_complete()  # answered now, and not among those that wait
        protocols[5].connection_made(Mock(is_closing=lambda: False, close=lambda: closed.append(5)))
        assert closed == [0, 1]
        protocols[2].on_response_complete()
        assert list(connections.LimitedProtocol._waiting) == [*protocols[3:], protocols[2]]
        for protocol in protocols:
            protocol.connection_lost(None)
        assert not connections.LimitedProtocol._waiting

    with ThreadPoolExecutor(1) as alone:
        alone.submit(asyncio.run, scenario()).result()
