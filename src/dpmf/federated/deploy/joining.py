"""Taking part in a run: a device's two connections, opened again as long as it makes sense.

Nothing here decides what is answered: the device does, whose ledger is on the disk first.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpmf.errors import DpmfError
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, ROLES, THIRD_PARTY
from dpmf.federated.deploy.device import Device, check_not_over
from dpmf.federated.deploy.frames import JOIN_PATH, MOST_CONTROL_BYTES, Close, Malformed, decoded
from dpmf.federated.deploy.transport import Connection, Unreachable, connected

_HELLO_SECONDS = 20.0
_LEAST_WAIT, _MOST_WAIT = 1.0, 60.0
_FINAL = (Close.MALFORMED, Close.REFUSED, Close.REPLACED)


class NotAdmitted(DpmfError):
    """A server refused the participant for good."""


class _Lost(Exception):
    """A connection ended, or a server asked to come later; trying again may help.

    Attributes:
        seconds: after which to try again; None for the usual time.
    """

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass
class Progress:
    """What a device tells whoever watches it.

    Attributes:
        outcome: of the run, once it is over: "finished" or "failed".
        connects: how often it connected.
        joins: how often both servers welcomed it.
    """

    outcome: str = ""
    connects: int = 0
    joins: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the run is over."""
        return bool(self.outcome)


async def take_part(
    file: AgreementFile,
    device: Device,
    *,
    on_answer: Callable[[int], None] = lambda number: None,
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    patience: int | None = None,
    answering: Callable[[bytes], Awaitable[bytes | None]] | None = None,
    gate: contextlib.AbstractAsyncContextManager[Any] | None = None,
) -> Progress:
    """Take part in a run until it is over.

    Args:
        file: the agreement.
        device: of the participant.
        on_answer: called with the number of a round when its answer is sent.
        sleep: waits before another attempt.
        patience: after this many attempts in vain, one after the other, give up; None does so when the agreement ends.
        answering: answers questions in place of the device's own `question`, such as in a thread.
        gate: held while the device connects and joins: of many devices in one process, only some do so at a time.

    Raises:
        NotAdmitted: a server refused the participant for good.
        Unreachable: patience ran out.
        BudgetExceeded: the device's ledger does not allow for the agreement.
        InvalidArgument: the agreement's time is over.
    """
    progress, wait, vain = Progress(), _LEAST_WAIT, 0
    while True:
        why: DpmfError | None = None
        asked_for: float | None = None
        joins = progress.joins
        try:
            await _session(file, device, progress, on_answer, answering, gate or contextlib.nullcontext())
            return progress
        except _Lost as lost:
            asked_for = lost.seconds
        except Unreachable as error:
            why = error
        vain = 0 if progress.joins > joins else vain + 1
        if patience is not None and vain >= patience:
            raise why or Unreachable("the servers are not ready: try again later")
        check_not_over(file, datetime.now(UTC))
        wait = _LEAST_WAIT if vain == 0 else wait
        await sleep((wait if asked_for is None else asked_for) * random.uniform(0.5, 1.5))
        wait = wait if asked_for is not None else min(2 * wait, _MOST_WAIT)


async def _session(
    file: AgreementFile,
    device: Device,
    progress: Progress,
    on_answer: Callable[[int], None],
    answering: Callable[[bytes], Awaitable[bytes | None]] | None,
    gate: contextlib.AbstractAsyncContextManager[Any],
) -> None:
    """Connect to both servers, join, and answer until the run is over."""
    device.disconnected()
    longest = max(file.lengths("bytes_down")) + MOST_CONTROL_BYTES
    async with contextlib.AsyncExitStack() as stack:
        async with gate:
            connections: dict[str, Connection] = {}
            for role in ROLES:
                connection = connected(
                    file.servers[role], JOIN_PATH, longest if role == RECOMMENDER else MOST_CONTROL_BYTES
                )
                connections[role] = await stack.enter_async_context(connection)
            progress.connects += 1
            streams = {role: connection.messages() for role, connection in connections.items()}
            talks = {
                role: _Talk(role, connections, streams[role], device, progress, on_answer, answering) for role in ROLES
            }
            for role in ROLES:
                await talks[role].greeting()
            if progress.is_over:
                return
            joining = device.join()
            for role in ROLES:
                connections[role].send(joining)
            await talks[THIRD_PARTY].welcome()
            for answer in device.unconfirmed():
                connections[THIRD_PARTY].send(answer)
            await talks[RECOMMENDER].welcome()
            progress.joins += 1
        tasks = [asyncio.create_task(talk.listen()) for talk in talks.values()]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        if None in ends:  # one has heard that the run is over
            return
        for end in ends:
            if isinstance(end, DpmfError):
                raise end
        raise _Lost


@dataclass
class _Talk:
    """What is said on one of the connections."""

    role: str
    connections: dict[str, Connection]
    stream: Any
    device: Device
    progress: Progress
    on_answer: Callable[[int], None]
    answering: Callable[[bytes], Awaitable[bytes | None]] | None

    async def greeting(self) -> None:
        await self._until("hello")

    async def welcome(self) -> None:
        await self._until("welcome")

    async def _until(self, kind: str) -> None:
        """Listen until a message of a kind has come, or the run is over."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                async for message in self.stream:
                    if await self._take(message) == kind or self.progress.is_over:
                        return
        except TimeoutError:
            raise _Lost from None
        self._ended()

    async def listen(self) -> None:
        async for message in self.stream:
            await self._take(message)
            if self.progress.is_over:
                return
        self._ended()

    def _ended(self) -> None:
        code = self.connections[self.role].code
        if code == Close.REPLACED:
            raise NotAdmitted("somebody else has joined with this invitation: an invitation is for one device")
        if code in _FINAL:
            raise NotAdmitted(f"the {self.role.replace('_', ' ')} refuses this program: update dpmf, or ask for help")
        raise _Lost

    async def _take(self, message: str | bytes) -> str:
        """Take a message, and return its kind."""
        if isinstance(message, bytes):
            await self._question(message)
            return ""
        try:
            fields = decoded(message)
            kind = str(fields["type"])
            if kind == "hello":
                self.device.hello(self.role, fields)
        except Malformed as error:
            raise NotAdmitted(str(error)) from None
        if kind == "busy":
            seconds = fields.get("seconds")
            raise _Lost(min(max(float(seconds), 0.1), _MOST_WAIT) if isinstance(seconds, int | float) else None)
        if kind == "refused":
            raise NotAdmitted(f"the {self.role.replace('_', ' ')} refuses: {str(fields.get('reason'))[:200]}")
        if kind == "over":
            self.progress.outcome = "finished" if fields.get("outcome") == "finished" else "failed"
        if kind == "received" and self.role == THIRD_PARTY:
            self.device.received()
        if kind == "closed" and self.role == THIRD_PARTY and isinstance(fields.get("round"), int):
            self.device.closed(fields["round"])
        return kind

    async def _question(self, message: bytes) -> None:
        if self.role != RECOMMENDER:
            return
        answer = self.device.question(message) if self.answering is None else await self.answering(message)
        if answer is not None:
            self.connections[THIRD_PARTY].send(answer)
            self.on_answer(self.device.last_round)
