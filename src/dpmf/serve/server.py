"""The server process: its address, its workers, and which releases it may serve to whom.

Workers are processes that share one socket. Each of them watches the release by itself.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import logging
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpmf.errors import DpmfError, InvalidArgument, MissingExtra
from dpmf.model import Release
from dpmf.serve.about import check_certified

logger = logging.getLogger(__name__)

_VARIABLE = "DPMF_SERVE"  # passes the settings on to workers, which are new processes
_MOST_WAITING = 2048
_KEEP_ALIVE, _GRACE = 15, 10  # seconds


@dataclass(frozen=True)
class ServerSettings:
    """What `dpmf serve` is asked to do.

    Attributes:
        folder: the release's folder.
        host, port: address to listen on.
        workers: number of processes.
        recommends: whether POST /api/recommend is switched on.
        accept_unproven: whether a release that is not certified may be served to other machines.
        agreement: the file of an agreement that visitors can join; None for none.
    """

    folder: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    recommends: bool = False
    accept_unproven: bool = False
    agreement: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InvalidArgument(f"port {self.port} does not exist: choose one from 1 to 65535, or 0 for any free one")
        if not 1 <= self.workers <= 64:
            raise InvalidArgument(f"{self.workers} workers: choose from 1 to 64")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self, release: Release) -> None:
        """Raise `NotCertified` if a release that is not certified would be served to other machines."""
        check_certified(release, accept_unproven=self.is_local or self.accept_unproven, name=self.folder)


def build_application(settings: ServerSettings) -> Any:
    """Return the ASGI application.

    Raises:
        DpmfError: the release cannot or may not be served, or FastAPI or uvicorn is missing.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise MissingExtra("the service needs FastAPI and uvicorn: pip install 'dpmf[serve]'")
    from dpmf.serve.service import build

    agreement = None if settings.agreement is None else Path(settings.agreement)
    return build(Path(settings.folder), recommends=settings.recommends, check=settings.check, agreement=agreement)


def application() -> Any:
    """Return the application of a worker; without a valid release it waits for one."""
    settings, said = ServerSettings(**json.loads(os.environ[_VARIABLE])), ""
    while True:
        try:
            return build_application(settings)
        except DpmfError as error:
            if str(error) != said:
                said = str(error)
                logger.warning("a worker is waiting for a release: %s", said)
            time.sleep(1.0)


def serve(settings: ServerSettings, application: Any, sock: socket.socket) -> None:
    """Serve until stopped; requests in progress are answered first.

    Args:
        settings: what is asked for.
        application: as `build_application` returns it; each of several workers builds its own.
        sock: the socket that `listening_socket` returns.
    """
    import uvicorn

    _allow_connections()
    several = settings.workers > 1
    os.environ[_VARIABLE] = json.dumps(asdict(settings))
    # Level: a warning for each malformed request would let anybody fill the log.
    uvicorn.run(
        "dpmf.serve.server:application" if several else application, factory=several, fd=sock.fileno(),
        workers=settings.workers, log_config=None, log_level="error", access_log=False, server_header=False,
        timeout_keep_alive=_KEEP_ALIVE, timeout_graceful_shutdown=_GRACE, backlog=_MOST_WAITING,
        http="dpmf.serve.connections:LimitedProtocol", ws="none",
    )  # fmt: skip


def _allow_connections() -> None:
    """Raise the limit on open files, one of which is each connection, as far as the system lets us."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def listening_socket(settings: ServerSettings) -> socket.socket:
    """Return a socket that listens on the address of the settings."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        sock = socket.socket(family)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else answers wait 40 ms for an acknowledgement
            sock.bind((settings.host, settings.port))
        except OSError:
            sock.close()
            raise
    except OSError as error:
        where = f"{settings.host} port {settings.port}"
        raise InvalidArgument(f"cannot listen on {where}: {error.strerror or error}") from None
    sock.set_inheritable(True)
    sock.listen(_MOST_WAITING)
    return sock
