"""A participant's device: joins what its own ledger allows, and answers every question of a run once.

It knows neither network nor clock. The ledger has the agreement, with all that it may cost, before the first message is
sent, and every round before its answer is; so a device that crashed, or whose state was copied, answers nothing twice.
A server that crashed may ask for a round again that it had not closed: it gets the answer that was made, masked and
sealed again, from memory alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, NotVerified
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.user import User
from dpmf.federated.deploy.admission import Invitation, Invited
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.frames import Join, public_in_hello
from dpmf.federated.deploy.identity import public_of
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.ratings import Items

_SKEW = timedelta(hours=24)  # by which a device's clock may be wrong about the agreement's dates


class Device:
    """One participant.

    Args:
        file: the agreement; refused unless both servers have signed it.
        agreement: made of it.
        invitation: of this person.
        items, values: positions in the catalogue, and ratings.
        ledger: of this person, over all agreements.
        share: what part of the full weight the person wants to have.
        noise: where the person's noise comes from; the operating system unless given.
    """

    def __init__(
        self,
        file: AgreementFile,
        agreement: Agreement,
        invitation: Invitation,
        items: NDArray[Any],
        values: NDArray[Any],
        ledger: Ledger,
        share: float = 1.0,
        noise: Noise | None = None,
    ) -> None:
        file.check_signed()
        self._file, self._agreement, self._invitation = file, agreement, invitation
        self._ratings, self._ledger, self._share, self._noise = (items, values), ledger, share, noise
        self._hellos: dict[str, bytes] = {}
        self._sessions: tuple[bytes, bytes] | None = None
        self._user: User | None = None
        self._unconfirmed: deque[bytes] = deque()  # answers of this session that may not have arrived
        self.answered = self.said_again = self.bytes_in = self.bytes_out = 0

    def disconnected(self) -> None:
        """Forget what servers said on connections that have ended."""
        self._hellos.clear()

    def hello(self, role: str, message: Mapping[str, Any]) -> None:
        """Take what a server says first, or refuse it."""
        self._hellos[role] = public_in_hello(message, role, self._file.id, self._file.servers[role].key)

    def join(self) -> str:
        """Return what to say to both servers, once both have said hello.

        Raises:
            BudgetExceeded: the ledger's cap does not allow for this agreement.
        """
        sessions = (self._hellos[RECOMMENDER], self._hellos[THIRD_PARTY])
        if self._user is None or sessions != self._sessions:
            self._user = User(
                *self._ratings, self._agreement, *sessions, self._share, self._noise,
                ledger=self._ledger, run=self._file.run, earlier=self._user,
            )  # fmt: skip
            self._sessions = sessions
            self._unconfirmed.clear()
        key = self._invitation.key
        message = Join(
            self._invitation.handle, self._user.public, sessions, public_of(key), self._invitation.certificate
        )
        return message.signed_with(key, self._file.id)

    def unconfirmed(self) -> list[bytes]:
        """Return answers to send again after the third party's welcome: the same bytes, so nothing more is told."""
        return list(self._unconfirmed)

    def question(self, message: bytes) -> bytes | None:
        """Return the answer to a question, for the third party; None if it is not answered."""
        assert self._user is not None
        self.bytes_in += len(message)
        before = self._user.round
        for outgoing in self._user.receive(message):
            self.answered += self._user.round > before
            self.said_again += self._user.round == before
            self.bytes_out += len(outgoing.message)
            self._unconfirmed.append(outgoing.message)
            return outgoing.message
        return None

    def received(self) -> None:
        """Note that the third party has an answer, the oldest one that was sent."""
        if self._unconfirmed:
            self._unconfirmed.popleft()

    def closed(self, number: int) -> None:
        """Note that a round is closed: its answer is needed no more."""
        if self._user is not None:
            self._user.forget(number)

    @property
    def last_round(self) -> int:
        """The last round that was answered, by this process or an earlier one; -1 for none."""
        return -1 if self._user is None else self._user.round

    @property
    def refused(self) -> int:
        """How many messages the device refused."""
        return 0 if self._user is None else self._user.refusals.by_reason.total()

    def __repr__(self) -> str:
        return "Device(…)"


def check_dates(file: AgreementFile, now: datetime) -> None:
    """Refuse a run that is over, or begins later, by more than a clock may be wrong."""
    timing = file.timing
    check_not_over(file, now)
    if now < timing.begins - _SKEW:
        raise InvalidArgument(f"the run begins on {timing.begins:%Y-%m-%d %H:%M} UTC: join then")


def check_not_over(file: AgreementFile, now: datetime) -> None:
    """Refuse a run that is over, by more than a clock may be wrong."""
    ends = file.timing.ends
    if now > ends + _SKEW:
        raise InvalidArgument(f"the run ended on {ends:%Y-%m-%d %H:%M} UTC: ask for a newer agreement")


def own_places(catalogue: Items, ratings: Mapping[Any, float]) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return positions in the catalogue and values of a person's ratings, and how many are of other items."""
    found = {item: catalogue.find(item) for item in ratings}
    places = [place for place in found.values() if place is not None]
    values = [ratings[item] for item, place in found.items() if place is not None]
    if len(set(places)) != len(places):
        raise InvalidArgument("an item is rated twice, by its id and by its title: keep one")
    return np.array(places, np.int64), np.array(values, np.float64), len(ratings) - len(places)


def check_invitation(file: AgreementFile, invitation: Invitation) -> None:
    """Refuse an invitation to another agreement, before anything is sent or charged."""
    admission = file.admission
    if admission.key is None:
        return  # the servers have the list
    admits = Invited(admission.key, file.id, admission.most)
    if not admits(invitation.handle, public_of(invitation.key), invitation.certificate):
        raise NotVerified("the invitation is to another agreement: use the one that came with this agreement")
