"""Limits on the body of a request: its size, and the time it takes to arrive.

Plain ASGI, around the application: a body that is too large or too slow never reaches it. Every answer gets the same
headers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 16
MOST_SECONDS = 10.0


class _TooMuch(Exception):
    """The body exceeds the limit."""


class Limits:
    """Refuse bodies that are too long (413) or take too long to arrive (408).

    Args:
        application: the ASGI application behind it.
        headers: added to every answer that has none of these names.
        most_bytes, most_seconds: limits of a body.
    """

    def __init__(
        self,
        application: Application,
        headers: Mapping[str, str],
        most_bytes: int = MOST_BYTES,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self._application, self._most_bytes, self._most_seconds = application, most_bytes, most_seconds
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on if its body arrives in time and is small enough."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        send = self._with_headers(send)
        try:
            body = await asyncio.wait_for(self._body(scope, receive), self._most_seconds)
        except _TooMuch:
            await _refuse(send, 413, f"the request is longer than {self._most_bytes} bytes: send less at a time")
            return
        except TimeoutError:
            await _refuse(send, 408, f"the request took longer than {self._most_seconds:g} seconds to arrive")
            return
        if body is None:
            return  # the client disconnected first
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._application(scope, replay, send)

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self._headers if one[0] not in own)]
            await send(message)

        return sending

    async def _body(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client has disconnected."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._most_bytes:
            raise _TooMuch
        parts, length = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > self._most_bytes:
                raise _TooMuch
            if not message.get("more_body"):
                return b"".join(parts)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close")]  # fmt: skip
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
