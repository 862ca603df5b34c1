"""The third party as a server: its state machine, who is connected, when a round closes, and what survives a crash.

It knows neither network nor clock. Whatever holds connections calls it, with the time. A session lasts as long as both
servers' processes; its keys are never stored. What is stored is the number of the last round that was opened and
closed, before anybody hears of it: so one sum of a round leaves at most, however often the process is killed. A sum
that was being added up is lost with the process; its round may be opened again, for the same answers.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.deploy.admission import Admits
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.door import Door, Limits, Peer, admission_to
from dpmf.federated.deploy.frames import Close, Malformed, decoded, encoded, hello, public_in_link
from dpmf.federated.deploy.metrics import Metrics, log
from dpmf.federated.deploy.round_log import RoundLog
from dpmf.federated.wire.parties import RECOMMENDER as FROM_RECOMMENDER

MESSAGES_PER_ROUND = 4
"""How many messages of one participant are opened from one round to the next; more are an attack."""
_NONCE_BYTES = 32


class ThirdPartyHost:
    """The third party's side of a deployment.

    Args:
        file: the agreement, signed by both servers.
        agreement: made of it.
        identity: the third party's private key.
        admits: who may take part.
        rounds: the rounds that earlier processes opened.
        limits: see there.
        on_over: called when the recommender says that the run is over.
    """

    def __init__(
        self,
        file: AgreementFile,
        agreement: Agreement,
        identity: Ed25519PrivateKey,
        admits: Admits,
        rounds: RoundLog,
        limits: Limits = Limits(),  # noqa: B008
        on_over: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        self.metrics = Metrics(THIRD_PARTY)
        self.door = Door(file, THIRD_PARTY, identity, admits, limits, self.metrics)
        self._file, self._agreement, self._identity, self._rounds = file, agreement, identity, rounds
        self._limits, self._on_over = limits, on_over
        self._machine: ThirdParty | None = None
        self._recommender = b""  # the key of its session
        self._link: Peer | None = None
        self._challenged: dict[Peer, tuple[bytes, float]] = {}
        self._total: bytes | None = None  # of the round that was closed last
        self._expected: frozenset[int] = frozenset()  # in the round that was opened last
        self._missing: set[int] = set()  # of those, whoever has not answered
        self._absent: set[int] = set()  # of those, whoever is not connected
        self._opened_at, self._quiet_since = 0.0, 0.0
        self._messages: Counter[int] = Counter()  # of participants, since the last round was opened

    @property
    def is_open(self) -> bool:
        """Whether a round is open, whose sum would be lost with the process."""
        return self._machine is not None and self._machine.is_open

    # Participants

    def opened(self, peer: Peer, now: float) -> None:
        """Take a new connection of a participant."""
        self.door.opened(peer, now)

    def text(self, peer: Peer, message: str, now: float) -> None:
        """Take a control message of a participant."""
        handle = self.door.join(peer, message, now)
        if handle is not None:
            self._absent.discard(handle)
            self._tell("came", handle=handle)

    def binary(self, peer: Peer, message: bytes, now: float) -> None:
        """Take an answer of a participant."""
        handle = self.door.handle(peer)
        if handle is None or self._machine is None:
            self.door.expel(peer, Close.MALFORMED)
            return
        self._messages[handle] += 1
        if self._messages[handle] > MESSAGES_PER_ROUND:
            self.door.expel(peer, Close.TOO_OFTEN)
            return
        self.metrics.count("bytes_in", len(message))
        refused = self._machine.refusals.by_reason.total()
        self._machine.receive(handle, message)
        if self._machine.refusals.by_reason.total() > refused:
            self.metrics.count("answers_refused")
        else:
            self.metrics.count("answers")
            self._missing.discard(handle)
            self._absent.discard(handle)
        peer.send(encoded("received"))
        self._close_if_due(now)

    def closed(self, peer: Peer, now: float) -> None:
        """Note that a connection of a participant has ended."""
        handle = self.door.closed(peer)
        if handle is None:
            return
        if handle in self._missing:
            self._absent.add(handle)
            self._quiet_since = now
        self._tell("left", handle=handle)

    # The recommender

    def link_opened(self, peer: Peer, now: float) -> None:
        """Take a new connection of whoever may be the recommender."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        if len(self._challenged) >= self._limits.most_waiting:
            self._challenged.pop(oldest := next(iter(self._challenged)))
            oldest.close(Close.TOO_SLOW)
        self._challenged[peer] = (nonce, now)
        peer.send(encoded("challenge", agreement=self._file.id, nonce=nonce))

    def link_text(self, peer: Peer, message: str, now: float) -> None:
        """Take a control message of the recommender."""
        try:
            fields = decoded(message)
            if peer is not self._link:
                nonce, _ = self._challenged.pop(peer, (b"", 0.0))
                if not nonce or fields["type"] != "recommender":
                    raise Malformed("whoever connects does not begin as the recommender would")
                key = self._file.servers[RECOMMENDER].key
                self._begin(peer, public_in_link(fields, self._file.id, nonce, key))
            elif fields["type"] == "over":
                outcome = "finished" if fields.get("outcome") == "finished" else "failed"
                self.door.finish(outcome)
                log("over", outcome=outcome)
                self._on_over(outcome)
        except Malformed:
            peer.close(Close.MALFORMED)

    def link_binary(self, peer: Peer, message: bytes, now: float) -> None:
        """Take a sealed message of the recommender: it opens a round."""
        machine = self._machine
        if peer is not self._link or machine is None:
            peer.close(Close.MALFORMED)
            return
        self.metrics.count("bytes_in", len(message))
        self._close_if_due(now)  # a round that was over while the recommender was away
        before = machine.round
        machine.receive(FROM_RECOMMENDER, message)
        if machine.round == before:
            if machine.is_open:  # it asks again because a connection was lost, not because it wants another round
                peer.send(encoded("opened", round=machine.round))
            else:
                self.metrics.count("answers_refused")
                peer.send(encoded("unopened", reason="the third party refused the round"))
            return
        self._rounds.opened(machine.round)
        self._expected, self._missing = machine.missing, set(machine.missing)
        self._absent = {handle for handle in self._missing if handle not in self.door}
        self._messages.clear()
        self._opened_at = self._quiet_since = now
        self._total = None
        self.metrics.count("rounds_opened")
        self.metrics.set("round", machine.round)
        peer.send(encoded("opened", round=machine.round))

    def link_closed(self, peer: Peer) -> None:
        """Note that a connection of the recommender has ended; it may open another one in the same session."""
        self._challenged.pop(peer, None)
        if peer is self._link:
            self._link = None
            self.metrics.set("linked", 0)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.door.tick(now)
        for peer in [one for one, (_, since) in self._challenged.items() if now - since >= self._limits.join_seconds]:
            del self._challenged[peer]
            peer.close(Close.TOO_SLOW)
        self._close_if_due(now)

    def stop(self) -> None:
        """Disconnect everybody. The open round, if there is one, is lost."""
        self.door.stop()
        if self._link is not None:
            self._link.close(Close.STOPPING)

    def _begin(self, peer: Peer, public: bytes) -> None:
        """Continue the session with the recommender, or begin a new one if its key is new."""
        if self._link is not None:
            self._link.close(Close.REPLACED)
        if self._machine is None or public != self._recommender:
            if self._machine is not None and self._machine.is_open:
                self._discarded()
            machine = ThirdParty(self._agreement, public, after=self._rounds.next - 1)
            self._machine, self._recommender, self._total = machine, public, None
            self._missing, self._absent = set(), set()
            self._messages.clear()
            self.door.start_session((public, machine.public), admission_to(machine))
            log("session", round=self._machine.round)
        self._link = peer
        self.metrics.set("linked", 1)
        peer.send(hello(self._identity, THIRD_PARTY, self._file.id, self._machine.public))
        for some in _parts(sorted(self.door)):
            peer.send(encoded("present", handles=some))
        if self._machine.is_open:
            peer.send(encoded("opened", round=self._machine.round))
        elif self._total is not None:
            peer.send(self._total)

    def _close_if_due(self, now: float) -> None:
        machine, timing = self._machine, self._file.timing
        if machine is None or not machine.is_open or self._link is None:
            return  # without a recommender there is nobody to take the sum: one that was killed asks again
        answered = self._agreement.n_users - len(self._missing)
        enough = answered >= self._agreement.least
        late = now - self._opened_at >= timing.round_seconds
        quiet = len(self._absent) == len(self._missing) and now - self._quiet_since >= timing.grace_seconds
        if self._missing and not late and not (quiet and enough):  # else whoever is away is needed, and may come back
            return
        for outgoing in machine.close():
            self._rounds.closed(machine.round)
            self._total = outgoing.message
            if self._link is not None:
                self._link.send(outgoing.message)
                self.metrics.count("bytes_out", len(outgoing.message))
        closed = encoded("closed", round=machine.round)
        for handle in self._expected:
            if (participant := self.door.peer(handle)) is not None:
                participant.send(closed)
        self._missing, self._absent = set(), set()
        self.metrics.set("last_round_seconds", now - self._opened_at)
        if enough:
            self.metrics.count("rounds_closed")
        else:
            self._discarded()
        log("round closed", round=machine.round, answered=answered, enough=enough)

    def _discarded(self) -> None:
        self.metrics.count("rounds_discarded")

    def _tell(self, kind: str, handle: int) -> None:
        if self._link is not None:
            self._link.send(encoded(kind, handle=handle))


def _parts(handles: list[int], size: int = 256) -> list[list[int]]:
    return [handles[start : start + size] for start in range(0, len(handles), size)]
