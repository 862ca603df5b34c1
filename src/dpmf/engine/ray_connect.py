"""Ray's side of being connected: a cluster of our own that leaves nothing behind, or one that others have started."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmf.engine.cluster import Ray
from dpmf.errors import DpmfError
from dpmf.files import scratch_folder

logger = logging.getLogger(__name__)
_REACH_SECONDS = 10.0
_STARTS = 5  # of a cluster of our own: Ray gives up after half a minute, which is little on a busy machine
_LOOKS = 600  # at processes that are ending, a tenth of a second apart
_TOKEN, _TOKEN_MODE = "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"


@contextlib.contextmanager
def own_cluster(ray: Any, settings: Ray, n_workers: int) -> Iterator[None]:
    """Start a cluster on this machine, which ends with the block."""
    if ray.is_initialized():
        raise DpmfError(
            f"this process is connected to a Ray cluster already: take 'auto' instead of {settings.address!r}"
        )
    with scratch_folder("ray") as folder, _own_token():  # what Ray writes vanishes with the cluster
        try:
            for left in reversed(range(_STARTS)):
                try:
                    _init(ray, settings, num_cpus=n_workers, include_dashboard=False, _temp_dir=str(folder))
                    break
                except _TooLate:
                    if not left:
                        raise
            yield
        finally:
            ray.shutdown()
            _wait_for_the_end(folder)


def attach(ray: Any, settings: Ray) -> None:
    """Connect to a cluster that others have started."""
    _check_reachable(settings.address)
    _init(ray, settings, address=settings.address)


def write_rows(dataset: Any, folder: Path) -> None:
    """Let a Ray Dataset write its rows to Parquet files, wherever they are, without a word on the terminal."""
    data = importlib.import_module("ray.data")
    context, log = data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, log.level
    context.enable_progress_bars = False
    log.setLevel(logging.CRITICAL)
    try:
        dataset.write_parquet(str(folder))
    except Exception as error:  # whatever the user's own functions raise where rows are made
        raise DpmfError(
            f"Ray Data cannot write the rows: {(str(error).strip() or repr(error)).splitlines()[-1]}"
        ) from None
    finally:
        context.enable_progress_bars = before[0]
        log.setLevel(before[1])


class _TooLate(DpmfError):
    """Ray gave up on its own processes."""


def _init(ray: Any, settings: Ray, **options: Any) -> None:
    """Connect to Ray, or say why not; its handling of signals does not replace ours."""
    mine = threading.current_thread() is threading.main_thread()
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)} if mine else {}
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, TimeoutError):
        if settings.address == "auto":
            raise _no_answer(settings.address) from None
        raise DpmfError(
            f"what listens at {settings.address} does not let this process in: look at the port, at the versions of "
            "Ray, and whether both sides have the same token (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
        ) from None
    except Exception as error:  # some of what Ray raises is of no other type
        _clear_up(error)
        if "timed out during startup" in str(error):
            raise _TooLate(f"Ray did not start within half a minute, {_STARTS} times: is this machine busy?") from None
        if "AF_UNIX path length" in str(error):
            raise DpmfError(
                f"{tempfile.gettempdir()} is too long for the paths of Ray's sockets: set TMPDIR to a shorter one, "
                "such as /tmp"
            ) from None
        raise DpmfError(f"cannot use the Ray cluster {settings.address}: {error}") from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _check_reachable(address: str) -> None:
    """Refuse an address at which nothing listens: Ray would try for minutes."""
    address = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()
    except (OSError, OverflowError):
        raise _no_answer(address) from None


def _no_answer(address: str) -> DpmfError:
    return DpmfError(f"no Ray cluster answers at {address}: start one with `ray start --head`, or take local:2")


def _clear_up(error: BaseException) -> None:
    """End the processes of a node that Ray gave up on, which it leaves running."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            node.kill_all_processes(check_alive=False, allow_graceful=False)


def _wait_for_the_end(folder: Path) -> None:
    """Wait until the processes that write to a folder have ended: Ray does not wait for all of them."""
    for _ in range(_LOOKS):
        if not any(_mentions(process, str(folder)) for process in Path("/proc").glob("[0-9]*")):
            return
        time.sleep(0.1)
    logger.warning("processes of Ray are still running, and may leave files in %s", folder)


def _mentions(process: Path, folder: str) -> bool:
    try:
        return int(process.name) != os.getpid() and folder in (process / "cmdline").read_text()
    except (OSError, UnicodeDecodeError):
        return False


@contextlib.contextmanager
def _own_token() -> Iterator[None]:
    """Give a cluster of our own a token that no file holds, unless the environment says otherwise."""
    if _TOKEN_MODE in os.environ or _TOKEN in os.environ:
        yield
        return
    os.environ |= {_TOKEN: secrets.token_hex(32), _TOKEN_MODE: "token"}
    try:
        _read_token_again()
        yield
    finally:
        for name in (_TOKEN, _TOKEN_MODE):
            os.environ.pop(name, None)
        _read_token_again()


def _read_token_again() -> None:
    """Let Ray look at the environment: it remembers what it found there first. Older versions have no tokens."""
    raylet = importlib.import_module("ray._raylet")
    loader = getattr(raylet, "AuthenticationTokenLoader", None)
    if loader is not None:
        loader.instance().reset_cache()
        raylet.Config.initialize("")
