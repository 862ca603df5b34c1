"""A deployment without network or clock: hosts and devices, connected by queues; time passes when a test says so."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.deploy.admission import Invitation, admission_of, invite_many
from dpmf.federated.deploy.agreement_file import AgreementFile, draft
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY, Admission, Server, Timing
from dpmf.federated.deploy.catalogue_file import catalogue_bytes
from dpmf.federated.deploy.device import Device
from dpmf.federated.deploy.door import Content, Limits
from dpmf.federated.deploy.frames import Close, decoded
from dpmf.federated.deploy.identity import public_of
from dpmf.federated.deploy.recommender_host import RecommenderHost
from dpmf.federated.deploy.round_log import opened_log
from dpmf.federated.deploy.run import Run
from dpmf.federated.deploy.third_party_host import ThirdPartyHost
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings

SEED = 5
TIMING = Timing(datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC), 60.0, 5.0)
KEYS = {role: Ed25519PrivateKey.generate() for role in (RECOMMENDER, THIRD_PARTY, "inviter")}


def signed_file(
    agreement: Agreement,
    urls: tuple[str, str] = ("wss://a.example:1", "wss://b.example:1"),
    most: int | None = None,
    timing: Timing = TIMING,
    roots: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> AgreementFile:
    servers = [
        Server(name, url, public_of(KEYS[role]), tuple(some))
        for name, url, role, some in zip(
            ("Ann's shop", "Bob's office"), urls, (RECOMMENDER, THIRD_PARTY), roots, strict=True
        )
    ]
    people = Admission("Bob's office", agreement.n_users if most is None else most, public_of(KEYS["inviter"]))
    file = draft(
        agreement, name="Films", recommender=servers[0], third_party=servers[1], admission=people, timing=timing
    )
    return file.signed_by(KEYS[RECOMMENDER]).signed_by(KEYS[THIRD_PARTY])


class End:
    """One end of a connection: what is sent arrives at the other end's `on_…` when the world delivers it."""

    def __init__(self, world: World) -> None:
        self.world, self.other = world, self
        self.on_text: Callable[[str], None] = lambda text: None
        self.on_binary: Callable[[bytes], None] = lambda content: None
        self.on_closed: Callable[[int], None] = lambda code: None
        self.is_open = True
        self.sent: list[str | bytes] = []

    def send(self, message: Content) -> None:
        self.world.queue.append(lambda: self._deliver(message))

    def close(self, code: Close, reason: str = "") -> None:
        self.world.queue.append(lambda: self.cut(code))

    def cut(self, code: int = 1006) -> None:
        """End the connection, for both."""
        if self.is_open:
            self.is_open = self.other.is_open = False
            self.on_closed(code)
            self.other.on_closed(code)

    def _deliver(self, message: Content) -> None:
        if not self.is_open:
            return
        content = message() if callable(message) else message
        if content is None:
            return
        self.sent.append(content)
        if isinstance(content, str):
            self.other.on_text(content)
        else:
            self.other.on_binary(content)


class Participant:
    """A device and its connections; it does what `dpmf federate join` does, without waiting."""

    def __init__(self, world: World, device: Device) -> None:
        self.world, self.device = world, device
        self.ends: dict[str, End] = {}
        self.welcomed: set[str] = set()
        self.closes: list[int] = []
        self.said: list[str] = []
        self.silent = self.away = False

    def connect(self) -> None:
        self.device.disconnected()
        self.welcomed.clear()
        self.closes.clear()
        for role, host in ((THIRD_PARTY, self.world.third_party), (RECOMMENDER, self.world.recommender)):
            mine = self.world.connected(host)
            mine.on_text = lambda text, role=role: self._text(role, text)  # type: ignore[misc]
            mine.on_binary = self._question
            mine.on_closed = self.closes.append
            self.ends[role] = mine

    @property
    def is_in(self) -> bool:
        return len(self.welcomed) == 2 and all(end.is_open for end in self.ends.values())

    def cut(self) -> None:
        for end in self.ends.values():
            end.cut()

    def _text(self, role: str, text: str) -> None:
        message = decoded(text)
        self.said.append(message["type"])
        if message["type"] == "hello":
            self.device.hello(role, message)
            if len(self.device._hellos) == 2:
                joining = self.device.join()
                for end in self.ends.values():
                    end.send(joining)
        elif message["type"] == "welcome":
            self.welcomed.add(role)
            if role == THIRD_PARTY:
                for answer in self.device.unconfirmed():
                    self.ends[THIRD_PARTY].send(answer)
        elif message["type"] == "received":
            self.device.received()

    def _question(self, message: bytes) -> None:
        if self.silent:
            return
        answer = self.device.question(message)
        if answer is not None:
            self.ends[THIRD_PARTY].send(answer)


class World:
    """Both servers and everybody's devices."""

    def __init__(
        self, agreement: Agreement, ratings: Ratings, folder: Path, seed: int | None = SEED, most: int | None = None,
        limits: Limits = Limits(),  # noqa: B008
    ) -> None:  # fmt: skip
        self.agreement, self.ratings, self.folder, self.seed, self.limits = agreement, ratings, folder, seed, limits
        self.file = signed_file(agreement, most=most)
        assert self.file.agreement(catalogue_bytes(agreement.catalogue)).digest == agreement.digest
        self.admits = admission_of(self.file)
        n_people = self.file.admission.most
        self.invitations: list[Invitation] = invite_many(self.file, KEYS["inviter"], range(n_people))
        self.queue: deque[Callable[[], None]] = deque()
        self.now = 1000.0
        self.each_second: Callable[[], None] = lambda: None
        self._log: Any = None
        (folder / "ledgers").mkdir(parents=True, exist_ok=True)
        self.start_third_party()
        self.start_recommender()
        self.people = [Participant(self, self.device(handle)) for handle in range(n_people)]

    def device(self, handle: int) -> Device:
        items, values = self.ratings.of_user(handle)
        ledger = Ledger(
            self.folder / "ledgers" / f"{handle}.json",
            Budget(1e6 if self.seed is None else math.inf, neighbours=self.agreement.budget.neighbours),
        )
        noise = None if self.seed is None else noise_of(self.seed, handle)
        return Device(self.file, self.agreement, self.invitations[handle], items, values, ledger, noise=noise)

    def start_third_party(self) -> None:
        """Start the third party, again if it was killed: what it did not store is gone."""
        if self._log is not None:
            self._log.__exit__(None, None, None)
        self._log = opened_log(self.folder / "third party", self.file.id)
        rounds = self._log.__enter__()
        self.overs: list[str] = []
        self.third_party = ThirdPartyHost(
            self.file, self.agreement, KEYS[THIRD_PARTY], self.admits, rounds, self.limits, self.overs.append
        )

    def start_recommender(self) -> None:
        self.recommender = RecommenderHost(
            self.file, self.agreement, KEYS[RECOMMENDER], self.admits, self.limits, gather_seconds=10.0
        )

    def connected(self, host: Any) -> End:
        """Return the other end of a new connection of a participant to a host."""
        mine, theirs = End(self), End(self)
        mine.other, theirs.other = theirs, mine
        theirs.on_text = lambda text: host.text(theirs, text, self.now)
        theirs.on_binary = lambda content: host.binary(theirs, content, self.now)
        theirs.on_closed = lambda code: host.closed(theirs, self.now)
        self.queue.append(lambda: host.opened(theirs, self.now))
        return mine

    def link(self) -> End:
        """Connect the servers; return the recommender's end."""
        ours, theirs = End(self), End(self)
        ours.other, theirs.other = theirs, ours
        asking, adding = self.recommender, self.third_party
        theirs.on_text = lambda text: adding.link_text(theirs, text, self.now)
        theirs.on_binary = lambda content: adding.link_binary(theirs, content, self.now)
        theirs.on_closed = lambda code: adding.link_closed(theirs)
        ours.on_text = lambda text: asking.link_text(ours, text, self.now)
        ours.on_binary = lambda content: asking.link_binary(ours, content, self.now)
        ours.on_closed = lambda code: asking.link_closed(ours)
        asking.link_opened(ours, self.now)
        self.queue.append(lambda: adding.link_opened(theirs, self.now))
        return ours

    def settle(self) -> None:
        """Deliver everything that is under way."""
        while self.queue:
            self.queue.popleft()()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds)):
            self.settle()
            self.now += 1
            self.recommender.tick(self.now)
            self.third_party.tick(self.now)
            self.each_second()
            self.settle()

    def everybody_joins(self) -> None:
        self.link()
        self.settle()
        for person in self.people:
            person.connect()
        self.settle()

    def play(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Play a round to its end."""
        host = self.recommender
        host.ask(questions, self.now)
        self.settle()
        for _ in range(1000):
            if host.answer is not None:
                break
            self.wait(1)
        answer, host.answer = host.answer, None
        assert answer is not None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def carry_out(self, play: Callable[[Sequence[Question]], tuple[Noisy, ...]] | None = None) -> Release:
        run = Run(self.file, self.agreement, self.folder / "recommender")
        return run.carry_out(self.recommender.machine, self.play if play is None else play, self.wait_for_people)

    def wait_for_people(self, place: int) -> None:
        """Let time pass until a stage can begin."""
        since = self.now
        for _ in range(1000):
            self.settle()
            if self.recommender.can_begin(since, self.now):
                return
            self.wait(1)
        raise AssertionError("there are never enough people")


def some_people(n_people: int, n_items: int, seed: int = 4) -> Ratings:
    from dpmf.ratings.synthetic import make

    return make(n_people, n_items, seed=seed)


def factors(release: Release) -> bytes:
    arrays = [release.item_factors, release.item_biases]
    if release.ranking is not None:
        arrays += [one for one in vars(release.ranking).values() if isinstance(one, np.ndarray)]
    return b"".join(one.tobytes() for one in arrays)
