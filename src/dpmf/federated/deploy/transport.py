"""TLS WebSockets: the only module that knows them. Connections have bounded queues, sizes and times.

A message that is long is made when there is room to send it, and only some of them are under way at a time; whoever
does not read, or sends more than they may, is disconnected. Nothing is compressed: it would not get shorter, and take
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import ssl
from asyncio import sslproto
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dpmf.errors import DpmfError, InvalidArgument, MissingExtra
from dpmf.federated.deploy.agreement_parts import Server, is_loopback
from dpmf.federated.deploy.door import Content
from dpmf.federated.deploy.frames import MOST_CONTROL_BYTES, Close
from dpmf.federated.deploy.metrics import log

if TYPE_CHECKING:
    from websockets.asyncio.connection import Connection as Socket

_SEND_SECONDS, _PATIENCE_SECONDS = 30.0, 1.0
_DEVICE_SEND_SECONDS = 120.0  # nothing waits behind a device's answer, and its own machine may be slow
_MOST_QUEUED = 64
_MOST_UNDER_WAY = 64  # long messages, at a time
_HANDSHAKE_SECONDS = 10.0
_PING_SECONDS, _PONG_SECONDS = 60.0, 60.0
_CLOSE_SECONDS = 5.0
_BACKLOG = 2048
_TLS_BUFFER_BYTES = 1 << 15  # of asyncio's own loop

Result = TypeVar("Result")
GetFile = Callable[[str], tuple[str, bytes] | None]
"""Takes a path and returns the content type and the content of a public file; None if there is none."""


class Unreachable(DpmfError):
    """The other end cannot be reached, or is not who it should be. Trying again may help."""


class Connection:
    """One end of a WebSocket, with a queue of what is to be sent; a `Peer`.

    Args:
        socket: of the library.
        gate: how many long messages may be under way at a time, from this process.
        most_queued: how many messages may wait; beyond that, the other end is too slow.
        send_seconds: how long a message may take.

    Attributes:
        code: why it was closed, once it is; 1006 if nobody said.
    """

    def __init__(
        self,
        socket: Socket,
        gate: asyncio.Semaphore,
        most_queued: int = _MOST_QUEUED,
        send_seconds: float = _SEND_SECONDS,
    ) -> None:
        self._socket, self._gate, self._most_queued, self._send_seconds = socket, gate, most_queued, send_seconds
        self._queue: deque[Content] = deque()
        self._closing: Close | None = None
        self._sender: asyncio.Task[None] | None = None
        self.code = 1006

    def send(self, message: Content) -> None:
        """Send a message as soon as there is room."""
        if self._closing is not None:
            return
        if len(self._queue) >= self._most_queued:
            self._queue.clear()
            self.close(Close.TOO_SLOW)
            return
        self._queue.append(message)
        self._start()

    def close(self, code: Close, reason: str = "") -> None:
        """Send what is left, and close."""
        if self._closing is None:
            self._closing = code
            self._start()

    async def messages(self) -> AsyncIterator[str | bytes]:
        """Yield what arrives, until the connection is closed from either side."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                message = await self._socket.recv()
                if self._closing is not None:
                    continue
                if isinstance(message, str) and len(message) > MOST_CONTROL_BYTES:
                    self.close(Close.TOO_LONG)
                    continue
                yield message
        except ConnectionClosed as end:
            self.code = 1006 if end.rcvd is None else end.rcvd.code
        finally:
            self._closing = Close.STOPPING if self._closing is None else self._closing
            self._queue.clear()

    async def closed(self) -> None:
        """Wait until everything is sent and the connection is closed."""
        if self._sender is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender
        await self._socket.wait_closed()

    def _start(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while self._queue:
                message = self._queue.popleft()
                if callable(message):
                    await self._send_long(message)
                else:
                    await asyncio.wait_for(self._socket.send(message), self._send_seconds)
            if self._closing is not None:
                await self._socket.close(self._closing, self._closing.name.lower().replace("_", " "))
        except ConnectionClosed:
            pass
        except TimeoutError:
            self._socket.transport.abort()

    async def _send_long(self, make: Callable[[], bytes | None]) -> None:
        """Make and send a long message; whoever is slow to take it does not keep others waiting for long."""
        async with self._gate:
            content = make()
            if content is None:
                return
            sending = asyncio.ensure_future(self._socket.send(content))
            await asyncio.wait({sending}, timeout=_PATIENCE_SECONDS)
        await asyncio.wait_for(sending, self._send_seconds)


@dataclass(frozen=True)
class Listening:
    """Where a server listens.

    Attributes:
        host, port: the address.
        certificate, key: files in PEM, for TLS; None on loopback only.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InvalidArgument(f"port {self.port} does not exist: choose one from 1 to 65535, or 0 for any free one")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("a certificate and its key go together: give both")
        if self.certificate is None and not is_loopback(self.host):
            raise InvalidArgument(f"{self.host} can be reached from elsewhere: give a certificate and its key for TLS")

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None without TLS."""
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.num_tickets = 0  # devices stay; nobody resumes
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Load the certificate from its files, again if it was renewed; for connections from now on."""
        assert self.certificate is not None
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgument(
                f"cannot use the certificate {self.certificate} with the key {self.key}: {error.strerror or error}"
            ) from None


@contextlib.asynccontextmanager
async def serving(
    listening: Listening,
    handlers: Mapping[str, Callable[[Connection], Awaitable[None]]],
    get_file: GetFile,
    most_bytes: int,
    context: ssl.SSLContext | None,
    most_queued: Mapping[str, int] | None = None,
) -> AsyncIterator[int]:
    """Serve WebSockets and a few files; yield the port.

    Args:
        listening: where.
        handlers: what to do with the connections of each path.
        get_file: the files.
        most_bytes: the longest message that is accepted.
        context: for TLS.
        most_queued: how many messages may wait for a connection, by path, where it is not the usual number.
    """
    check_installed()
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

    gate = asyncio.Semaphore(_MOST_UNDER_WAY)
    allow_connections()
    sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES  # else 256 KiB for each connection

    def process(socket: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path).path
        if path in handlers:
            return None
        found = get_file(path)
        status = HTTPStatus.OK if found is not None else HTTPStatus.NOT_FOUND
        kind, body = found if found is not None else ("application/json", b'{"detail":"not found"}')
        if path.endswith("/health") and body != HEALTHY:
            status = HTTPStatus.SERVICE_UNAVAILABLE
        headers = Headers()
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Access-Control-Allow-Origin", "*"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ):
            headers[name] = value
        return Response(status.value, status.phrase, headers, body)

    async def handle(socket: ServerConnection) -> None:
        assert socket.request is not None
        path = urlsplit(socket.request.path).path
        connection = Connection(socket, gate, (most_queued or {}).get(path, _MOST_QUEUED))
        await handlers[path](connection)
        await connection.closed()

    try:
        server = await serve(
            handle, listening.host, listening.port, ssl=context, process_request=process, compression=None,
            max_size=most_bytes, max_queue=2, server_header=None, backlog=_BACKLOG, open_timeout=_HANDSHAKE_SECONDS,
            ping_interval=_PING_SECONDS, ping_timeout=_PONG_SECONDS, close_timeout=_CLOSE_SECONDS, logger=_quiet(),
        )  # fmt: skip
    except OSError as error:
        where = f"{listening.host} port {listening.port}"
        raise InvalidArgument(f"cannot listen on {where}: {error.strerror or error}") from None
    async with server:
        yield next(iter(server.sockets)).getsockname()[1]


@contextlib.asynccontextmanager
async def connected(
    server: Server, path: str, most_bytes: int, most_queued: int = _MOST_QUEUED
) -> AsyncIterator[Connection]:
    """Yield a connection to a server of the agreement, whose certificate has to be one that the agreement accepts."""
    check_installed()
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException

    try:
        socket = await connect(
            server.url + path, ssl=client_context(server), compression=None, max_size=most_bytes, max_queue=2,
            proxy=None, open_timeout=_HANDSHAKE_SECONDS, ping_interval=_PING_SECONDS, ping_timeout=_PONG_SECONDS,
            close_timeout=_CLOSE_SECONDS, logger=_quiet(), user_agent_header=None,
        )  # fmt: skip
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(
            f"{server.url} has a certificate that is not the agreement's: {error.verify_message}"
        ) from None
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unreachable(f"{server.url} cannot be reached: {getattr(error, 'strerror', None) or error}") from None
    try:
        yield Connection(socket, asyncio.Semaphore(1), most_queued, _DEVICE_SEND_SECONDS)
    finally:
        await socket.close()


def client_context(server: Server) -> ssl.SSLContext | None:
    """Return the TLS context for a server: its own roots if the agreement has any, or else the system's."""
    if urlsplit(server.url).scheme == "ws":
        return None
    try:
        context = ssl.create_default_context(cadata="\n".join(server.roots) or None)
    except ssl.SSLError:
        raise InvalidArgument(f"the agreement has certificates for {server.url} that cannot be read") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


HEALTHY = json.dumps({"status": "ok"}).encode()


def run_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a program to its end, on uvloop where that is installed: TLS takes half the processor time there."""
    factory = None
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().set_exception_handler(_note)
        return runner.run(main)


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in the loop itself, such as a connection that ended within a handshake, by its kind alone."""
    log("connection error", kind=type(context.get("exception")).__name__)


def check_installed() -> None:
    """Raise `MissingExtra` if the library is missing."""
    if importlib.util.find_spec("websockets") is None:
        raise MissingExtra("connections need websockets: pip install 'dpmf[federate]'")


def allow_connections() -> None:
    """Raise the limit on open files, one of which is each connection, as far as the system lets us."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _quiet() -> Any:
    """Return a logger that says nothing: its messages would have addresses in them."""
    import logging

    quiet = logging.getLogger("dpmf.federated.deploy.websockets")
    quiet.setLevel(logging.CRITICAL)
    return quiet
