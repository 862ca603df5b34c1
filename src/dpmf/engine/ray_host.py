"""What runs in the process of a worker on a Ray cluster: objects, their methods, and what they send each other.

Ray is not imported here: a worker is handed the handles of all others when they do something together. What is sent
goes from worker to worker, as the argument of a call that another thread of the receiving process answers.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from dpmf.engine.checkpoints import machine_identity
from dpmf.engine.cluster import Abandoned
from dpmf.engine.threads import WAKE_SECONDS

Meeting = tuple[int, int]  # of which team, and which one: what is left over from an earlier one is not read
Tag = tuple[str, int, int]
POST = "post"  # the concurrency group of calls that are answered while another is under way


class Host:
    """What runs in the process of a worker: objects by key, and their methods."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._mail = Mail()

    def about(self) -> dict[str, str]:
        """Return what results depend on here."""
        return about()

    def node(self) -> str:
        """Return the name of this machine."""
        return platform.node()

    def process(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def make(self, key: int, make: Callable[..., Any], *arguments: Any) -> None:
        """Make an object."""
        self._objects[key] = make(*arguments)

    def drop(self, key: int) -> None:
        """Drop an object."""
        self._objects.pop(key, None)

    def call(self, key: int, method: str, *arguments: Any) -> Any:
        """Return what a method of an object returns."""
        return getattr(self._objects[key], method)(*arguments)

    def meet(self, meeting: Meeting, method: str, hosts: Sequence[Any], *arguments: Any) -> Any:
        """Return what a method of an object returns that exchanges post with those of other hosts."""
        self._mail.open(meeting)
        return getattr(self._objects[meeting[0]], method)(HostPost(self._mail, meeting, hosts), *arguments)

    def deliver(self, meeting: Meeting, tag: Tag, content: Any) -> None:
        """Take what another host sends."""
        self._mail.put(meeting, tag, content)

    def abandon(self, meeting: Meeting) -> None:
        """Let whoever waits for post of a meeting wait no longer."""
        self._mail.abandon(meeting)


class Mail:
    """What has arrived on a host and has not been read."""

    def __init__(self) -> None:
        self._arrived: dict[tuple[Meeting, Tag], Any] = {}
        self._abandoned: dict[Meeting, BaseException] = {}
        self._changed = threading.Condition()

    def open(self, meeting: Meeting) -> None:
        """Forget what earlier meetings of the same team have left over."""
        with self._changed:
            self._arrived = {key: one for key, one in self._arrived.items() if not _is_before(key[0], meeting)}
            self._abandoned = {one: why for one, why in self._abandoned.items() if not _is_before(one, meeting)}

    def put(self, meeting: Meeting, tag: Tag, content: Any) -> None:
        """Note what has arrived."""
        with self._changed:
            self._arrived[meeting, tag] = content
            self._changed.notify_all()

    def take(self, meeting: Meeting, tag: Tag) -> Any:
        """Wait for something, and return it."""
        with self._changed:
            while (meeting, tag) not in self._arrived:
                if meeting in self._abandoned:
                    raise self._abandoned[meeting]
                self._changed.wait(WAKE_SECONDS)
            return self._arrived.pop((meeting, tag))

    def abandon(self, meeting: Meeting, why: BaseException | None = None) -> None:
        """Let nobody wait for a meeting any longer."""
        with self._changed:
            self._abandoned.setdefault(meeting, why or Abandoned("another worker failed or was lost"))
            self._changed.notify_all()


class HostPost:
    """Post between hosts, as `dpmf.engine.cluster.Post` says."""

    def __init__(self, mail: Mail, meeting: Meeting, hosts: Sequence[Any]) -> None:
        self._mail, self._meeting = mail, meeting
        self._deliver = [host.deliver.options(concurrency_group=POST) for host in hosts]

    def send(self, worker: int, tag: Tag, content: Any) -> None:
        """Send something to a worker."""
        self._deliver[worker].remote(self._meeting, tag, content).future().add_done_callback(self._noticed)

    def receive(self, tag: Tag) -> Any:
        """Wait for what has this tag, and return it."""
        return self._mail.take(self._meeting, tag)

    def _noticed(self, delivery: Future[None]) -> None:
        """Give up once something could not be delivered: whoever waits for it would wait for ever."""
        why = delivery.exception()
        if why is not None:
            self._mail.abandon(self._meeting, why)


def about() -> dict[str, str]:
    """Return what results depend on in this process."""
    return {**machine_identity(), "numpy": np.__version__, "python": ".".join(platform.python_version_tuple()[:2])}


def _is_before(one: Meeting, other: Meeting) -> bool:
    return one[0] == other[0] and one[1] < other[1]
