"""Limits on what precedes a complete request: connections that are too slow, or send too much, are closed.

uvicorn by itself waits indefinitely for the first request of a connection and for the end of its headers.
"""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpmf.serve.limits import MOST_BYTES

_SECONDS = 10.0
_MOST_HEADER_BYTES = 1 << 15


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a time limit and a size limit before a request is complete."""

    _timer: TimerHandle
    _unread = 0  # bytes since the last complete request

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Accept bytes, unless there are too many for one request."""
        self._unread += len(data)
        if self._unread > _MOST_HEADER_BYTES + MOST_BYTES:
            self.transport.close()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Start the clock for the headers."""
        self._timer.cancel()
        self._timer = self.loop.call_later(_SECONDS, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the clock; `dpmf.serve.limits` limits the body."""
        self._timer.cancel()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Reset the byte count."""
        self._unread = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._timer.cancel()
        super().connection_lost(exc)
