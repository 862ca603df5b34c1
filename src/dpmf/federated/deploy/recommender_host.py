"""The recommender as a server: its state machine, who is connected, and how one round goes.

It knows neither network nor clock. Whatever holds connections calls it, with the time; whatever runs the method calls
`ask`, and looks at `answer` until it is there. Keys and seeds are never stored: a round that is open when either
server's process ends is asked for again, under other ones, and people give the same answers. What is learnt is stored
by whatever runs the method (`dpmf.methods.certified`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.deploy.admission import Admits
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.door import Door, Limits, Peer, admission_to
from dpmf.federated.deploy.frames import (
    Close,
    Malformed,
    decoded,
    encoded,
    link_request,
    public_in_hello,
    take_bytes,
    take_number,
)
from dpmf.federated.deploy.metrics import Metrics, log
from dpmf.federated.wire.parties import THIRD_PARTY as FROM_THIRD_PARTY
from dpmf.methods.certified.conversation import StageLost
from dpmf.methods.certified.questions import Noisy, Question

_NONCE_BYTES = 32
_SLACK_SECONDS = 30.0  # after the third party should have closed a round
_random = secrets.SystemRandom()


class _Phase(Enum):
    """Where a round is."""

    IDLE = "no round"
    GATHERING = "waiting for people"
    OPENING = "waiting for the third party"
    ASKING = "waiting for answers"


class RecommenderHost:
    """The recommender's side of a deployment.

    Args:
        file: the agreement, signed by both servers.
        agreement: made of it.
        identity: the recommender's private key.
        admits: who may take part.
        limits: see there.
        gather_seconds: how long to wait until as many are connected as a round has people; after that, a round begins
            with some of them missing, if it can still succeed.

    Attributes:
        answer: of the last round that was asked for: noisy sums, or why there are none; None until it is there.
        on_answer: called when it is there.
        is_refused: whether the third party ever refused to open a round.
    """

    def __init__(
        self,
        file: AgreementFile,
        agreement: Agreement,
        identity: Ed25519PrivateKey,
        admits: Admits,
        limits: Limits = Limits(),  # noqa: B008
        gather_seconds: float = 30.0,
    ) -> None:
        self.metrics = Metrics(RECOMMENDER)
        self.door = Door(file, RECOMMENDER, identity, admits, limits, self.metrics)
        self.machine = Recommender(agreement)
        self.answer: tuple[Noisy, ...] | Exception | None = None
        self.on_answer: Callable[[], None] = lambda: None
        self.is_refused = False
        self._file, self._agreement, self._identity = file, agreement, identity
        self._admit = admission_to(self.machine)  # which outlives sessions of the third party
        self._gather_seconds = gather_seconds
        self._link: Peer | None = None
        self._third_party = b""  # the key of its session
        self._there: set[int] = set()  # whoever is connected to the third party
        self._known_there: set[int] = set()  # whoever was, in this session
        self._phase, self._since = _Phase.IDLE, 0.0
        self._questions: tuple[Question, ...] = ()
        self._expected = b""  # the message that opens the round
        self._chosen: frozenset[int] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether a round is open: people may have answered it."""
        return self._phase in (_Phase.OPENING, _Phase.ASKING)

    # Participants

    def opened(self, peer: Peer, now: float) -> None:
        """Take a new connection of a participant."""
        self.door.opened(peer, now)

    def text(self, peer: Peer, message: str, now: float) -> None:
        """Take a control message of a participant."""
        handle = self.door.join(peer, message, now)
        if handle is not None:
            self._put(handle)
            self._advance(now)

    def binary(self, peer: Peer, message: bytes, now: float) -> None:
        """Refuse what no participant sends."""
        self.door.expel(peer, Close.MALFORMED)

    def closed(self, peer: Peer, now: float) -> None:
        """Note that a connection of a participant has ended."""
        self.door.closed(peer)

    # The third party

    def link_opened(self, peer: Peer, now: float) -> None:
        """Take a connection to the third party, which speaks first."""
        self._link = peer

    def link_text(self, peer: Peer, message: str, now: float) -> None:
        """Take a control message of the third party."""
        try:
            fields, most = decoded(message), self._file.admission.most
            kind = fields["type"]
            if kind == "challenge":
                nonce = take_bytes(fields, "nonce", _NONCE_BYTES)
                peer.send(link_request(self._identity, self._file.id, nonce, self.machine.public))
            elif kind == "hello":
                key = self._file.servers[THIRD_PARTY].key
                self._meet(public_in_hello(fields, THIRD_PARTY, self._file.id, key), now)
            elif kind == "opened":
                if self._phase is _Phase.OPENING and take_number(fields, "round") == self.machine.round:
                    self._ask_all(now)
            elif kind == "unopened":
                self.is_refused = True
                self._lose("the third party did not open its round: a sum that has left it does not leave again")
            elif kind == "present":
                self._came(take_number({"handle": one}, "handle", most) for one in fields.get("handles") or ())
            elif kind == "came":
                self._came([take_number(fields, "handle", most)])
            elif kind == "left":
                self._there.discard(take_number(fields, "handle", most))
        except Malformed as error:
            log("link refused", reason=str(error))
            peer.close(Close.MALFORMED)
            return
        self._advance(now)

    def link_binary(self, peer: Peer, message: bytes, now: float) -> None:
        """Take the third party's total."""
        self.metrics.count("bytes_in", len(message))
        refused = self.machine.refusals.by_reason.total()
        self.machine.receive(FROM_THIRD_PARTY, message)
        self.metrics.count("answers_refused", self.machine.refusals.by_reason.total() - refused)
        if self.is_open and self.machine.has_total:
            self.metrics.set("last_round_seconds", now - self._since)
            self._take()

    def link_closed(self, peer: Peer) -> None:
        """Note that the connection to the third party has ended: nobody is known to be there."""
        if peer is self._link:
            self._link = None
            self._there.clear()
            self.metrics.set("linked", 0)

    # Rounds

    def can_begin(self, since: float, now: float) -> bool:
        """Whether there are enough people for a round, where they were waited for since some time.

        To be asked before a stage is entered as started: then a server that is stopped while it waits has lost nothing.
        """
        return bool(self._enough(since, now))

    def ask(self, questions: Sequence[Question], now: float) -> None:
        """Begin the next round; `answer` is there once it has ended."""
        self._phase, self._questions, self._since, self.answer = _Phase.GATHERING, tuple(questions), now, None
        self._advance(now)

    def tick(self, now: float) -> None:
        """Do what is due."""
        self.door.tick(now)
        self._advance(now)

    def finish(self, outcome: str) -> None:
        """Tell everybody that the run is over."""
        if self._link is not None:
            self._link.send(encoded("over", outcome=outcome))
        self.door.finish(outcome)

    def stop(self) -> None:
        """Disconnect everybody because the server stops."""
        self.door.stop()
        if self._link is not None:
            self._link.close(Close.STOPPING)

    def _meet(self, third_party: bytes, now: float) -> None:
        """Continue the session with the third party, or begin a new one if its key is new."""
        self._there.clear()
        self.metrics.set("linked", 1)
        if third_party != self._third_party:
            if self.is_open:
                log("round taken back", round=self.machine.round, reason="the third party has started again")
                self.machine.withdraw()
                self._phase, self._since, self._chosen, self._expected = _Phase.GATHERING, now, frozenset(), b""
            self.machine.meet(third_party)
            self._third_party = third_party
            self._known_there.clear()
            self.door.start_session((self.machine.public, third_party), self._admit)
        elif self._phase is _Phase.OPENING and self._link is not None:
            self._link.send(self._expected)

    def _came(self, handles: Iterable[int]) -> None:
        for handle in handles:
            self._there.add(handle)
            self._known_there.add(handle)

    def _advance(self, now: float) -> None:
        if self._phase is _Phase.GATHERING:
            self._gather(now)
        elif self.is_open:
            timing = self._file.timing
            if now - self._since >= timing.round_seconds + timing.grace_seconds + _SLACK_SECONDS:
                self._lose("the third party did not say what became of it")

    def _enough(self, since: float, now: float) -> list[int]:
        """Return who can take part in a round, if there are enough, or enough after a time of waiting; else nobody.

        People are chosen at random, so that nobody can count on it; of those who are away, no more than have to be.
        """
        wanted, least = self._agreement.n_users, self._agreement.least
        if self._link is None or min(len(self.door), len(self._there)) < least:
            return []  # asked for everybody who comes: no list is made before it can be long enough
        ready = [handle for handle in self.door if handle in self._there]
        if len(ready) < least:
            return []
        if len(ready) >= wanted:
            return _random.sample(ready, wanted)
        there = set(ready)
        away = [one for one in self.door.known if one in self._known_there and one not in there]
        if now - since < self._gather_seconds or len(ready) + len(away) < wanted:
            return []
        return ready + _random.sample(away, wanted - len(ready))

    def _gather(self, now: float) -> None:
        """Open the round as soon as there are enough people."""
        chosen = self._enough(self._since, now)
        if not chosen or self._link is None:
            return
        try:
            self._expected = self.machine.open(chosen, self._questions).message
        except Exception as error:
            self._end(error)
            return
        self._chosen, self._phase, self._since = frozenset(chosen), _Phase.OPENING, now
        self.metrics.count("rounds_opened")
        self.metrics.set("round", self.machine.round)
        log("round opened", round=self.machine.round, away=sum(one not in self.door for one in chosen))
        self._link.send(self._expected)

    def _ask_all(self, now: float) -> None:
        self._phase, self._since = _Phase.ASKING, now
        for handle in self._chosen:
            self._put(handle)

    def _put(self, handle: int) -> None:
        """Send the question of the open round to a participant in it, made when there is room to send it."""
        peer, number = self.door.peer(handle), self.machine.round
        if self._phase is not _Phase.ASKING or handle not in self._chosen or peer is None:
            return

        def question() -> bytes | None:
            if self._phase is not _Phase.ASKING or self.machine.round != number:
                return None  # it took too long to get through
            message = self.machine.question(handle).message
            self.metrics.count("questions_sent")
            self.metrics.count("bytes_out", len(message))
            return message

        peer.send(question)

    def _lose(self, why: str) -> None:
        if self.is_open:
            log("round lost", round=self.machine.round, reason=why)
            self._take(why)

    def _take(self, why: str = "too few people answered") -> None:
        """End the round with the total, or without."""
        number = self.machine.round
        try:
            answer = self.machine.take(why)
        except StageLost as error:
            self.metrics.count("rounds_discarded")
            log("round discarded", round=number)
            self._end(error)
        else:
            self.metrics.count("rounds_closed")
            log("round closed", round=number)
            self._end(answer)

    def _end(self, answer: tuple[Noisy, ...] | Exception) -> None:
        self._phase, self._questions, self._chosen, self._expected = _Phase.IDLE, (), frozenset(), b""
        self.answer = answer
        self.on_answer()
