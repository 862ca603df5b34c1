"""Running the service: where it listens, with how many processes, and what it may serve to whom.

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

_SETTINGS = "DPMF_SERVE"  # how workers, which are new processes, learn what to serve
_MOST_WAITING, _MOST_AT_ONCE = 2048, 1024
_KEEP_ALIVE, _GRACE = 15, 10  # seconds


@dataclass(frozen=True)
class Serving:
    """What is served, and how.

    Attributes:
        folder: of the release.
        host, port: where to listen.
        workers: how many processes.
        recommends: whether POST /api/recommend is switched on.
        accept_unproven: whether a release may be served to others that is not certified.
    """

    folder: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    recommends: bool = False
    accept_unproven: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InvalidArgument(f"port {self.port} is none: give one from 1 to 65535, or 0 for any that is free")
        if not 1 <= self.workers <= 64:
            raise InvalidArgument(f"{self.workers} workers: give from 1 to 64")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self, release: Release) -> None:
        """Raise `NotCertified` if others would be served what nothing is proven about."""
        check_certified(release, accept_unproven=self.is_local or self.accept_unproven, name=self.folder)


def application_of(serving: Serving) -> Any:
    """Return the application, or raise what is wrong with the release, or missing."""
    if importlib.util.find_spec("uvicorn") is None:
        raise MissingExtra("the service needs FastAPI and uvicorn: pip install 'dpmf[serve]'")
    from dpmf.serve.service import build

    return build(Path(serving.folder), recommends=serving.recommends, check=serving.check)


def application() -> Any:
    """Return the application of a worker; one that starts while there is no good release waits for one."""
    serving, said = Serving(**json.loads(os.environ[_SETTINGS])), ""
    while True:
        try:
            return application_of(serving)
        except DpmfError as error:
            if str(error) != said:
                said = str(error)
                logger.warning("a worker waits for a release: %s", said)
            time.sleep(1.0)


def serve(serving: Serving, application: Any, sock: socket.socket) -> None:
    """Serve until stopped; requests that are being answered are answered first.

    Args:
        serving: what and how.
        application: as `application_of` returns it; several workers make one each.
        sock: where to listen, as `bound` returns it.
    """
    import uvicorn

    several = serving.workers > 1
    os.environ[_SETTINGS] = json.dumps(asdict(serving))
    uvicorn.run(
        "dpmf.serve.server:application" if several else application, factory=several, fd=sock.fileno(),
        workers=serving.workers, log_config=None, log_level="warning", access_log=False, server_header=False,
        timeout_keep_alive=_KEEP_ALIVE, timeout_graceful_shutdown=_GRACE, backlog=_MOST_WAITING,
        http="dpmf.serve.connections:Patient", ws="none", limit_concurrency=_MOST_AT_ONCE,
    )  # fmt: skip


def bound(serving: Serving) -> socket.socket:
    """Return a socket that listens where it should."""
    try:
        family = socket.getaddrinfo(serving.host, serving.port, type=socket.SOCK_STREAM)[0][0]
        sock = socket.socket(family)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else answers wait 40 ms for an acknowledgement
            sock.bind((serving.host, serving.port))
        except OSError:
            sock.close()
            raise
    except OSError as error:
        where = f"{serving.host} port {serving.port}"
        raise InvalidArgument(f"cannot listen on {where}: {error.strerror or error}") from None
    sock.set_inheritable(True)
    sock.listen(_MOST_WAITING)
    return sock
