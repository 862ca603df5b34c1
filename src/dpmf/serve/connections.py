"""Limits on what precedes a complete request: connections that are too slow, too many, or send too much, are closed.

uvicorn by itself waits indefinitely for the first request of a connection and for the end of its headers, and counts
idle connections as work: a thousand of them would keep everybody out. Here, the one that has waited longest makes room.
"""

from __future__ import annotations

from asyncio import TimerHandle
from functools import cache
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpmf.serve.limits import MOST_BYTES

_SECONDS = 10.0
_MOST_HEADER_BYTES = 1 << 15
_MOST_CONNECTIONS = 16_384  # that wait for a request; fewer where fewer files may be open
_SPARE_FILES = 200  # for everything but connections


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a time limit and a size limit before a request is complete."""

    _timer: TimerHandle
    _unread = 0  # bytes since the last complete request
    _waiting: ClassVar[dict[LimitedProtocol, None]] = {}  # for a complete request, longest first

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_SECONDS, transport.close)
        self._waiting[self] = None
        if len(self._waiting) > _most_connections():
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.transport.close()

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
        self._waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if not self.transport.is_closing():
            self._waiting[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._timer.cancel()
        self._waiting.pop(self, None)
        super().connection_lost(exc)


@cache
def _most_connections() -> int:
    """Return how many connections may wait; at the system's limit on open files, nobody could be accepted any more."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST_CONNECTIONS
    return max(min(_MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE_FILES), 1)
