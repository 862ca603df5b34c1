"""Where participants come in: hello, join, welcome; who is there, and who has to leave. Both servers have one.

It knows neither network nor clock: whatever holds the connections calls it, with the time. A connection that has not
joined is nobody's: there are only so many of them, and the one that has waited longest makes room. Nothing of a
participant is stored before their signature is verified.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.federated.deploy.admission import Admits
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import ROLES
from dpmf.federated.deploy.frames import Close, Join, Malformed, decoded, encoded, hello
from dpmf.federated.deploy.metrics import Metrics

Content = str | bytes | Callable[[], bytes | None]
"""A message, or what makes it when there is room to send it; None then sends nothing."""


Admit = Callable[[int, bytes], bool]
"""Takes a handle and its key; says whether the state machine took it, perhaps in the place of another key."""


class Peer(Protocol):
    """The other end of a connection."""

    def send(self, message: Content) -> None:
        """Send a message, in order, as soon as there is room."""

    def close(self, code: Close, reason: str = "") -> None:
        """Send what is left, and close."""


@dataclass(frozen=True)
class Limits:
    """How much of a server others may occupy.

    Attributes:
        join_seconds: from hello to join.
        most_waiting: connections without join.
        joins, join_window: how often a participant may join, in how many seconds.
        retry_seconds: what is said to whoever comes too early.
    """

    join_seconds: float = 10.0
    most_waiting: int = 512
    joins: int = 10
    join_window: float = 60.0
    retry_seconds: float = 2.0


class Door:
    """Participants and their connections.

    Args:
        file: the agreement.
        role: of the server.
        identity: its private key.
        admits: who may take part.
        limits: see there.
        metrics: where to count.
    """

    def __init__(
        self,
        file: AgreementFile,
        role: str,
        identity: Ed25519PrivateKey,
        admits: Admits,
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self._file, self._role, self._identity, self._admits = file, role, identity, admits
        self._limits, self._metrics = limits, metrics
        self._sessions: tuple[bytes, bytes] | None = None  # of the recommender and the third party
        self._admit: Admit = lambda handle, public: False
        self._waiting: OrderedDict[Peer, float] = OrderedDict()  # since when, longest first
        self._peers: dict[int, Peer] = {}
        self._handles: dict[Peer, int] = {}
        self._keys: dict[int, bytes] = {}  # of this session
        self._joined: dict[int, tuple[float, float]] = {}  # how many joins are left, at what time
        self._over = ""

    @property
    def known(self) -> Set[int]:
        """Everybody who joined in this session, whether or not they are there."""
        return self._keys.keys()

    def __contains__(self, handle: object) -> bool:
        return handle in self._peers

    def __iter__(self) -> Iterator[int]:
        return iter(self._peers)

    def __len__(self) -> int:
        return len(self._peers)

    def peer(self, handle: int) -> Peer | None:
        """Return the connection of a participant who is there."""
        return self._peers.get(handle)

    def handle(self, peer: Peer) -> int | None:
        """Return whose connection it is, if they have joined."""
        return self._handles.get(peer)

    def start_session(self, sessions: tuple[bytes, bytes], admit: Admit) -> None:
        """Begin a session under new keys: everybody has to join again."""
        self.end_session()
        self._sessions, self._admit = sessions, admit
        self._metrics.count("sessions")

    def end_session(self) -> None:
        """Disconnect everybody; until a new session starts, nobody can join."""
        self._sessions = None
        self._close_all(Close.NEW_SESSION)
        self._keys.clear()

    def finish(self, outcome: str) -> None:
        """Tell everybody, now and later, that the run is over."""
        self._over = outcome
        for peer in (*self._waiting, *self._handles):
            peer.send(encoded("over", outcome=outcome))
        self._close_all(Close.STOPPING)

    def stop(self) -> None:
        """Disconnect everybody because the server stops."""
        self._sessions = None
        self._close_all(Close.STOPPING)

    def opened(self, peer: Peer, now: float) -> None:
        """Greet a new connection."""
        self._metrics.count("connections_opened")
        if self._over:
            peer.send(encoded("over", outcome=self._over))
            peer.close(Close.STOPPING)
        elif self._sessions is None:
            self._put_off(peer, "the servers are not connected yet")
        else:
            peer.send(hello(self._identity, self._role, self._file.id, self._sessions[ROLES.index(self._role)]))
            self._waiting[peer] = now
            if len(self._waiting) > self._limits.most_waiting:
                self._expel(next(iter(self._waiting)), Close.TOO_SLOW)

    def join(self, peer: Peer, text: str, now: float) -> int | None:
        """Take a join message: return the handle of a participant who is there from now on, or None."""
        if peer not in self._waiting:
            self._expel(peer, Close.MALFORMED)  # one who has joined has nothing more to say in text
            return None
        try:
            fields = decoded(text)
            if fields["type"] != "join":
                raise Malformed("the first message is no join")
            message = Join.of(fields)
        except Malformed:
            self._expel(peer, Close.MALFORMED)
            return None
        if not message.is_signed(self._file.id) or not self._admits(message.handle, message.key, message.certificate):
            self._refuse(peer, "the agreement does not admit this participant")
            return None
        if message.sessions != self._sessions:
            self._put_off(peer, "the servers have other keys by now")
            return None
        if not self._may_join(message.handle, now):
            self._expel(peer, Close.TOO_OFTEN)
            return None
        handle, before = message.handle, self._keys.get(message.handle)
        if message.public != before and not self._admit(handle, message.public):
            self._refuse(peer, "the key of the session is not valid, or was used before")
            return None
        self._replace(handle)
        self._keys[handle] = message.public
        del self._waiting[peer]
        self._peers[handle], self._handles[peer] = peer, handle
        self._metrics.count("joins")
        peer.send(encoded("welcome"))
        return handle

    def closed(self, peer: Peer) -> int | None:
        """Note that a connection has ended; return whose it was, if they are gone with it."""
        self._waiting.pop(peer, None)
        handle = self._handles.pop(peer, None)
        if handle is None or self._peers.get(handle) is not peer:
            return None
        del self._peers[handle]
        return handle

    def expel(self, peer: Peer, code: Close) -> None:
        """Close a connection for something that its other end did."""
        self._expel(peer, code)

    def tick(self, now: float) -> None:
        """Close connections that take too long to join."""
        while self._waiting:
            peer, since = next(iter(self._waiting.items()))
            if now - since < self._limits.join_seconds:
                break
            self._expel(peer, Close.TOO_SLOW)
        self._metrics.set("participants", len(self._peers))
        self._metrics.set("waiting", len(self._waiting))

    def _may_join(self, handle: int, now: float) -> bool:
        left, at = self._joined.get(handle, (float(self._limits.joins), now))
        left = min(left + (now - at) * self._limits.joins / self._limits.join_window, float(self._limits.joins))
        may = left >= 1
        self._joined[handle] = (left - may, now)
        return may

    def _replace(self, handle: int) -> None:
        """Close the connection that a participant had before, which may be dead without anybody knowing."""
        old = self._peers.pop(handle, None)
        if old is not None:
            self._expel(old, Close.REPLACED)

    def _put_off(self, peer: Peer, reason: str) -> None:
        peer.send(encoded("busy", reason=reason, seconds=self._limits.retry_seconds))
        self._waiting.pop(peer, None)
        peer.close(Close.NEW_SESSION)

    def _refuse(self, peer: Peer, reason: str) -> None:
        self._metrics.count("joins_refused")
        peer.send(encoded("refused", reason=reason))
        self._expel(peer, Close.REFUSED)

    def _expel(self, peer: Peer, code: Close) -> None:
        self._metrics.count("connections_closed_by_us")
        self._waiting.pop(peer, None)
        peer.close(code)

    def _close_all(self, code: Close) -> None:
        for peer in (*self._waiting, *self._handles):
            peer.close(code)
        self._waiting.clear()
        self._peers.clear()
        self._handles.clear()


class _Machine(Protocol):
    def admit(self, user: int, public: bytes) -> bool: ...

    def renew(self, user: int, public: bytes) -> bool: ...


def admission_to(machine: _Machine) -> Admit:
    """Return how a state machine gets to know participants, as long as it lives."""
    known: set[int] = set()

    def admit(handle: int, public: bytes) -> bool:
        took = (machine.renew if handle in known else machine.admit)(handle, public)
        if took:
            known.add(handle)
        return took

    return admit
