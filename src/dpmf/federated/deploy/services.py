"""The two servers as programs: hosts on a transport, a clock, signals, health and metrics.

Each keeps its state in a folder of its own, and its private key in a file of its own; they share nothing but the
agreement.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.engine.journal import locked
from dpmf.errors import BudgetExceeded, DpmfError, InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.deploy.admission import admission_of
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.door import Limits
from dpmf.federated.deploy.frames import JOIN_PATH, LINK_PATH, MOST_CONTROL_BYTES
from dpmf.federated.deploy.identity import public_of
from dpmf.federated.deploy.metrics import log
from dpmf.federated.deploy.recommender_host import RecommenderHost
from dpmf.federated.deploy.round_log import opened_log
from dpmf.federated.deploy.run import Run
from dpmf.federated.deploy.third_party_host import ThirdPartyHost
from dpmf.federated.deploy.transport import HEALTHY, Connection, GetFile, Listening, Unreachable, connected, serving
from dpmf.files import read_json, write_text
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.model import Release

_TICK_SECONDS = 0.1
_LINK_QUEUE = 1 << 17  # every participant who comes and goes is a message
_RETRY_SECONDS = (0.5, 10.0)
_RELEASE_FILES = {"release.json": "application/json", "release.safetensors": "application/octet-stream"}
Host = RecommenderHost | ThirdPartyHost


class Stopped(DpmfError):
    """The server was asked to stop."""


@dataclass(frozen=True)
class ServiceSettings:
    """What a server is started with.

    Attributes:
        file: the agreement.
        catalogue: the bytes of the catalogue's file.
        identity: the server's private key.
        folder: for its state.
        listening: where it serves.
        admitted: the list of participants' keys, if the agreement has one.
        metrics_port: on loopback, for Prometheus; None for none.
        limits: how much others may occupy.
        gather_seconds: how long the recommender waits for people before it begins a round with some missing.
        linger_seconds: how long a server goes on telling people that the run is over.
    """

    file: AgreementFile
    catalogue: bytes
    identity: Ed25519PrivateKey
    folder: Path
    listening: Listening
    admitted: Path | None = None
    metrics_port: int | None = None
    limits: Limits = field(default_factory=Limits)
    gather_seconds: float = 30.0
    linger_seconds: float = 60.0

    def agreement(self, role: str) -> Agreement:
        """Return what the protocol goes by, after all checks that can be made before anything starts."""
        self.file.check_signed()
        if self.file.servers[role].key != public_of(self.identity):
            raise InvalidArgument(
                f"the key is not that of the {role.replace('_', ' ')} of the agreement: use the one it states"
            )
        return self.file.agreement(self.catalogue)


class Service:
    """What both servers have in common.

    Args:
        settings: of the server.
        role: of the server.
        on_ready: called with the port once it listens.
    """

    def __init__(self, settings: ServiceSettings, role: str, on_ready: Callable[[int], None]) -> None:
        self.settings, self.role, self._on_ready = settings, role, on_ready
        self.agreement = settings.agreement(role)
        self.stopping = asyncio.Event()
        self.over = asyncio.Event()
        self._release: Path | None = None
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def most_bytes(self) -> int:
        """The longest message that a participant, or the other server, sends here."""
        return MOST_CONTROL_BYTES

    async def participant(self, host: Host, connection: Connection) -> None:
        """Serve a connection of a participant."""
        host.opened(connection, now())
        try:
            await _deliver(connection, host.text, host.binary)
        finally:
            host.closed(connection, now())

    async def link(self, host: Host, connection: Connection) -> None:
        """Serve the connection between the two servers, from either end."""
        host.link_opened(connection, now())
        try:
            await _deliver(connection, host.link_text, host.link_binary)
        finally:
            host.link_closed(connection)

    def get_file(self, path: str) -> tuple[str, bytes] | None:
        """Return a public file."""
        if path == "/v1/agreement":
            return "application/json", self.settings.file.to_bytes()
        if path == "/v1/catalogue":
            return "application/json", self.settings.catalogue
        if path == "/v1/health":
            return "application/json", b'{"status": "stopping"}' if self.stopping.is_set() else HEALTHY
        name = path.removeprefix("/v1/release/")
        if self._release is not None and name in _RELEASE_FILES:
            return _RELEASE_FILES[name], (self._release / name).read_bytes()
        return None

    @contextlib.asynccontextmanager
    async def running(self, host: Host, link: Callable[[Connection], Any] | None) -> AsyncIterator[int]:
        """Serve, keep time, and listen to signals."""
        settings = self.settings
        context = settings.listening.context()
        handlers: dict[str, Any] = {JOIN_PATH: lambda connection: self.participant(host, connection)}
        if link is not None:
            handlers[LINK_PATH] = link
        queued = {LINK_PATH: _LINK_QUEUE}

        def renew() -> None:
            if context is not None:
                settings.listening.load(context)
                log("certificate loaded")

        async with contextlib.AsyncExitStack() as stack:
            serve = serving(settings.listening, handlers, self.get_file, self.most_bytes, context, queued)
            port = await stack.enter_async_context(serve)
            if settings.metrics_port is not None:
                await stack.enter_async_context(_serving_metrics(settings.metrics_port, self.get_file, host))
            stack.enter_context(_signals(self._stop, renew))
            ticking = asyncio.create_task(_tick(host))
            try:
                log("listening", role=self.role, port=port)
                self._on_ready(port)
                yield port
            finally:
                ticking.cancel()
                host.stop()

    def _stop(self) -> None:
        log("stopping", role=self.role)
        self.stopping.set()

    async def _linger(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), self.settings.linger_seconds)


class ThirdPartyService(Service):
    """The third party as a program."""

    def __init__(self, settings: ServiceSettings, on_ready: Callable[[int], None] = lambda port: None) -> None:
        super().__init__(settings, THIRD_PARTY, on_ready)

    @property
    def most_bytes(self) -> int:
        """The longest message: an answer, or the list of those who take part."""
        answer = max(self.settings.file.lengths("bytes_up"))
        return max(answer, 4 * self.agreement.n_users) + MOST_CONTROL_BYTES

    async def run(self) -> None:
        """Serve until stopped, or until the run is over."""
        settings = self.settings
        admits = admission_of(settings.file, settings.admitted)
        with opened_log(settings.folder, settings.file.id) as rounds:
            host = ThirdPartyHost(
                settings.file, self.agreement, settings.identity, admits, rounds, settings.limits,
                lambda outcome: self.over.set(),
            )  # fmt: skip

            async with self.running(host, lambda connection: self.link(host, connection)):
                await _first(self.stopping.wait(), self.over.wait())
                if self.over.is_set():
                    await self._linger()
                while host.is_open and not self.over.is_set():  # its sum would be lost; a round has a deadline
                    await asyncio.sleep(_TICK_SECONDS)


class RecommenderService(Service):
    """The recommender as a program."""

    def __init__(self, settings: ServiceSettings, on_ready: Callable[[int], None] = lambda port: None) -> None:
        super().__init__(settings, RECOMMENDER, on_ready)

    async def run(self) -> Release | None:
        """Serve until the run is over, or until stopped; return the release if there is one."""
        with locked(
            self.settings.folder
        ):  # before anybody is connected to: a second process would take over the session
            return await self._run()

    async def _run(self) -> Release | None:
        settings, loop = self.settings, asyncio.get_running_loop()
        admits = admission_of(settings.file, settings.admitted)
        host = RecommenderHost(
            settings.file, self.agreement, settings.identity, admits, settings.limits, settings.gather_seconds
        )
        answered = asyncio.Event()
        is_new = not (settings.folder / "run").exists()
        host.on_answer = answered.set

        async def play(questions: Sequence[Question]) -> tuple[Noisy, ...]:
            answered.clear()
            host.ask(questions, now())
            await _first(answered.wait(), self._ended(host))
            answer = host.answer
            if answer is None:
                raise Stopped("the recommender was stopped while it waited for people")
            if is_new and host.is_refused and not host.metrics["rounds_closed"]:
                raise InvalidArgument(
                    f"{settings.folder} is new, and the third party has added up for this agreement before: name the "
                    "folder of the process that asked for it; if that is lost, begin a new run with a new agreement"
                )
            if isinstance(answer, Exception):
                raise answer
            return answer

        def play_from_thread(questions: Sequence[Question]) -> tuple[Noisy, ...]:
            return asyncio.run_coroutine_threadsafe(play(questions), loop).result()

        async def people() -> None:
            since = now()
            while not host.can_begin(since, now()):
                if self.stopping.is_set():
                    break
                await asyncio.sleep(_TICK_SECONDS)
            if self.stopping.is_set():
                raise Stopped("the recommender was stopped; start it again to continue")

        def before(place: int) -> None:
            asyncio.run_coroutine_threadsafe(people(), loop).result()
            log("stage", number=place, of=len(self.agreement.stages))

        run = Run(settings.file, self.agreement, settings.folder / "run")
        async with self.running(host, None):
            linking = asyncio.create_task(self._link(host))
            release: Release | None = None
            outcome = ""  # if something else goes wrong, the run can be continued
            try:
                release = self._finished()
                if release is None:
                    release = await asyncio.to_thread(run.carry_out, host.machine, play_from_thread, before)
                    release.save(settings.folder / "release")
                    write_text(settings.folder / "finished.json", json.dumps({"agreement": settings.file.id.hex()}))
                self._release, outcome = settings.folder / "release", "finished"
            except Stopped:
                return None
            except BudgetExceeded:
                outcome = "failed"
                raise
            finally:
                if outcome and not self.stopping.is_set():
                    host.finish(outcome)
                    log("over", outcome=outcome)
                    await self._linger()
                linking.cancel()
            return release

    def _finished(self) -> Release | None:
        """Return the release of an earlier process that finished the run."""
        path = self.settings.folder / "finished.json"
        if not path.exists() or read_json(path).get("agreement") != self.settings.file.id.hex():
            return None
        return Release.load(self.settings.folder / "release")

    async def _ended(self, host: RecommenderHost) -> None:
        """Wait until the server is stopping and no round is open: one that is open is worth waiting for."""
        await self.stopping.wait()
        while host.is_open:
            await asyncio.sleep(_TICK_SECONDS)

    async def _link(self, host: RecommenderHost) -> None:
        """Stay connected to the third party."""
        least, most = _RETRY_SECONDS
        wait = least
        longest = max(self.settings.file.lengths("bytes_up")) + 4 * self.agreement.n_users + MOST_CONTROL_BYTES
        while True:
            try:
                server = self.settings.file.servers[THIRD_PARTY]
                async with connected(server, LINK_PATH, longest, _LINK_QUEUE) as connection:
                    wait = least
                    await self.link(host, connection)
            except Unreachable as error:
                log("third party unreachable", reason=str(error))
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))
            wait = min(2 * wait, most)


def now() -> float:
    """Return the time that deadlines are measured by; it never goes back, and no date depends on it."""
    return time.monotonic()


async def _deliver(
    connection: Connection,
    text: Callable[[Connection, str, float], None],
    binary: Callable[[Connection, bytes, float], None],
) -> None:
    """Pass on what arrives, until the connection ends."""
    async for message in connection.messages():
        if isinstance(message, str):
            text(connection, message, now())
        else:
            binary(connection, message, now())


async def _tick(host: Host) -> None:
    while True:
        await asyncio.sleep(_TICK_SECONDS)
        host.tick(now())


async def _first(*waits: Any) -> None:
    """Wait until the first of several is over."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


@contextlib.contextmanager
def _signals(stop: Callable[[], None], renew: Callable[[], None]) -> Any:
    """Stop at once politely, at the second signal abruptly; load certificates again at SIGHUP."""
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def on_stop() -> None:
        stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, before.get(number, signal.SIG_DFL))

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.getsignal(number)
            loop.add_signal_handler(number, on_stop)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, renew)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows; or not the main thread, as in tests
        before.clear()
    try:
        yield
    finally:
        for stopping, handler in before.items():
            loop.remove_signal_handler(stopping)
            signal.signal(stopping, handler)


@contextlib.asynccontextmanager
async def _serving_metrics(port: int, get_file: GetFile, host: Host) -> AsyncIterator[int]:
    """Serve /metrics and /v1/health on loopback, apart from what everybody can reach."""

    def found(path: str) -> tuple[str, bytes] | None:
        if path == "/metrics":
            return "text/plain; version=0.0.4", host.metrics.render().encode()
        return get_file(path) if path == "/v1/health" else None

    async with serving(Listening("127.0.0.1", port), {}, found, MOST_CONTROL_BYTES, None) as bound:
        log("metrics", port=bound)
        yield bound
