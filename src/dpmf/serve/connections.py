"""Limits on what comes before a request can be read: who is too slow with it, or sends too much, is hung up on.

uvicorn waits for the first request of a connection, and for the end of headers, as long as it takes.
"""

from __future__ import annotations

from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpmf.serve.limits import MOST_BYTES

_SECONDS = 10.0
_MOST_HEADER_BYTES = 1 << 15


class Patient(HttpToolsProtocol):
    """uvicorn's protocol, with an end to its patience."""

    _timer: TimerHandle
    _unread = 0  # bytes since the last whole request

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless there are too many for one request."""
        self._unread += len(data)
        if self._unread > _MOST_HEADER_BYTES + MOST_BYTES:
            self.transport.close()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin to wait for headers."""
        self._timer.cancel()
        self._timer = self.loop.call_later(_SECONDS, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Leave the body to `dpmf.serve.limits`."""
        self._timer.cancel()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count anew."""
        self._unread = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._timer.cancel()
        super().connection_lost(exc)
