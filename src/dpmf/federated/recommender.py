"""The recommender of the published protocol: learns item profiles, from sums alone.

A round goes through three states. `invite` opens it; users who want to take part say which items they rated; `deal`
closes the list, sends everybody their task and tells the third party whom to expect; the third party's total ends it.
Users may leave at any moment: masks are taken off for exactly those whose answers are in the sum, and pieces of the
fixed noise that were dealt to others are put back.

>>> terms = Terms(n_items=3, scale=(1.0, 5.0), epsilon=1.0, most_users=9, n_factors=2)
>>> Recommender(terms, dealt=True)
Recommender(round 0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.channels import Channel, KeyPair
from dpmf.federated.drawing import Draws
from dpmf.federated.masks import DEALT, MASK, mask_words, new_seed
from dpmf.federated.messages import Answer, Invitation, Roster, SetUp, Sizes, Task, Total, Wanted, digest_of_items
from dpmf.federated.parties import THIRD_PARTY, Outgoing
from dpmf.federated.refusals import Refusals, Refused
from dpmf.federated.spreading import drawn_spread
from dpmf.federated.terms import Terms
from dpmf.federated.third_party import SETUP_ROUND
from dpmf.kernels.answering import add_rows, subtract_rows

Words = NDArray[Any]


@dataclass(eq=False)
class _Guest:
    """A user in a round: what was wanted, and what was sent. Seeds and pieces are secrets of the two."""

    items: NDArray[np.uint32]
    digest: int
    mask_seed: bytes = b""
    dealt: Words | None = None

    def __repr__(self) -> str:
        return "_Guest(…)"


class Recommender:
    """The recommender's side.

    Args:
        terms: what everybody knows.
        dealt: whether the fixed noise is set up once and dealt out in pieces in every round (users come and go), not
            drawn by every user for good (users stay).
        draws: where randomness comes from; the operating system unless given.
    """

    def __init__(self, terms: Terms, *, dealt: bool, draws: Draws | None = None) -> None:
        if dealt and not terms.third_party:
            raise InvalidArgument("without a third party there is no fixed noise to be dealt out")
        self._terms, self._dealt, self._draws = terms, dealt, Draws() if draws is None else draws
        self._keys = KeyPair()
        self.public = self._keys.public
        self._channels: dict[int, Channel] = {}
        self._third_party: Channel | None = None
        self._met: set[int] = set()  # users who have drawn their piece of the fixed noise
        shape = (terms.n_items, terms.n_factors)
        self.V = self._draws.normals(shape[0] * shape[1]).reshape(shape).astype(np.float64)
        self.V /= np.linalg.norm(self.V, axis=1, keepdims=True)
        self._fixed = np.zeros(shape, terms.ring.dtype)  # fixed noise and the third party's secret, together
        self._fixed_spread = drawn_spread(self._draws, shape) if terms.third_party else np.zeros(shape, np.uint16)
        self._sums = np.zeros(shape, terms.ring.dtype)
        self.round = 0
        self._state = "idle"  # then "inviting", then "waiting"
        self._invited: set[int] = set()
        self._guests: dict[int, _Guest] = {}
        self._arrived: set[int] = set()
        self.discarded = 0
        self.refusals = Refusals("the recommender")

    def meet(self, third_party: bytes) -> None:
        """Get to know the third party."""
        self._third_party = Channel(self._keys, third_party)

    def admit(self, user: int, public: bytes) -> None:
        """Get to know a user; a number keeps the key it has first."""
        try:
            if user in self._channels:
                raise Refused("the user is known already")
            self._channels[user] = Channel(self._keys, public)
        except Refused as refusal:
            self.refusals.note(refusal)

    def set_up(self, users: Sequence[int]) -> list[Outgoing]:
        """Begin the set-up phase: these users draw the fixed noise of all items together."""
        terms = self._terms
        if not self._dealt or self.round or self._state != "idle" or not len(users):
            raise InvalidArgument("the set-up is made once, before the first round, by at least one user")
        everything = np.arange(terms.n_items, dtype=np.uint32)
        digest = digest_of_items(everything)
        out = []
        for user in users:
            guest = self._guests[int(user)] = _Guest(everything, digest, new_seed())
            message = SetUp(SETUP_ROUND, len(users), self._fixed_spread, guest.mask_seed)
            out.append(Outgoing(int(user), self._channels[user].seal(message.encoded())))
        self._state = "waiting"
        # With fewer than all of them there would be less noise than is claimed, for good.
        return [self._roster(SETUP_ROUND, least=len(users)), *out]

    def invite(self, users: Sequence[int]) -> list[Outgoing]:
        """Open the next round."""
        if self._state != "idle":
            raise InvalidArgument("a round is open already: deal, or wait for its total")
        if len(users) > self._terms.most_users:
            raise InvalidArgument(f"{len(users)} users are more than the {self._terms.most_users} of the terms")
        self.round += 1
        self._state, self._invited, self._guests = "inviting", {int(user) for user in users}, {}
        content = Invitation(self.round).encoded()
        return [Outgoing(int(user), self._channels[user].seal(content)) for user in users]

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Take a message: what a user wants, or the total."""
        try:
            if sender == THIRD_PARTY and self._third_party is not None:
                content = self._third_party.open(message)
                self._finish(Total.decoded(content, self._sizes, self._terms.ring))
            elif sender not in self._channels:
                raise Refused("the sender is not known")
            else:
                content = self._channels[sender].open(message)
                if self._state == "waiting" and not self._terms.third_party:
                    self._add(sender, Answer.decoded(content, self._sizes, self._terms.ring))
                else:
                    self._note(sender, Wanted.decoded(content, self._sizes))
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    def deal(self) -> list[Outgoing]:
        """Close the list of those who take part: send tasks, and to the third party whom to expect."""
        if self._state != "inviting":
            raise InvalidArgument("there is no round to be dealt: invite first")
        if not self._guests:
            self._discard()
            return []
        terms = self._terms
        counts, last = self._counts(), np.zeros(terms.n_items, np.int64)
        for user, guest in self._guests.items():
            last[guest.items] = user
        spread = np.zeros((terms.n_items, terms.n_factors), np.uint16)
        touched = counts > 0
        spread[touched] = drawn_spread(self._draws, (int(touched.sum()), terms.n_factors))
        rows, left = self.V.astype(np.float32), self._fixed.copy()
        out = [self._roster(self.round, least=1)] if terms.third_party else []
        for user, guest in self._guests.items():
            task = self._task(user, guest, counts, rows, spread, left, last)
            out.append(Outgoing(user, self._channels[user].seal(task.encoded(terms.ring))))
        self._state, self._arrived = "waiting", set()
        return out

    def close(self) -> None:
        """End a round without a third party: all that arrived counts."""
        if self._state == "waiting" and not self._terms.third_party:
            self._update(self._arrived)

    def kept(self) -> dict[str, NDArray[Any]]:
        """Return what a simulation needs to go on."""
        return {"V": self.V, "fixed": self._fixed, "fixed_spread": self._fixed_spread}

    def take_up(self, tensors: Mapping[str, NDArray[Any]], number: int, discarded: int) -> None:
        """Go on after this round, from what `kept` returned."""
        self.V[:], self._fixed[:], self._fixed_spread[:] = (tensors[name] for name in self.kept())
        self.round, self.discarded = number, discarded

    def give_up(self) -> None:
        """End a round whose total does not come, or was refused: it is discarded whole."""
        if self._state != "idle":
            self._discard()

    def _task(
        self, user: int, guest: _Guest, counts: NDArray[np.uint32], rows: NDArray[np.float32],
        spread: NDArray[np.uint16], left: Words, last: NDArray[np.int64],
    ) -> Task:  # fmt: skip
        """Return a user's task; what is dealt is taken from `left`, and the last user of an item gets all of it."""
        items, ring = guest.items, self._terms.ring
        guest.mask_seed = new_seed()
        dealt_seed = corrected = corrections = fixed = None
        if self._dealt:
            dealt_seed = new_seed()
            guest.dealt = mask_words(dealt_seed, DEALT, items.size * self._terms.n_factors, ring).reshape(
                items.size, -1
            )
            corrected = np.flatnonzero(last[items] == user).astype(np.uint32)
            if len(corrected):
                corrections = left[items[corrected]]
                guest.dealt = guest.dealt.copy()
                guest.dealt[corrected] = corrections
            subtract_rows(left, items, guest.dealt)
        elif self._terms.third_party and user not in self._met:
            fixed = self._fixed_spread[items]
        return Task(
            self.round, counts[items], rows[items], spread[items], guest.mask_seed, dealt_seed, corrected, corrections,
            fixed,
        )  # fmt: skip

    def _roster(self, number: int, least: int) -> Outgoing:
        assert self._third_party is not None
        users = np.array(sorted(self._guests), np.uint32)
        digests = np.array([self._guests[int(user)].digest for user in users], np.uint64)
        content = Roster(number, users, digests, least).encoded()
        return Outgoing(THIRD_PARTY, self._third_party.seal(content))

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self._terms.n_items, self._terms.n_factors)

    def _counts(self) -> NDArray[np.uint32]:
        """Return how many users of the round rated each item."""
        wanted = [guest.items for guest in self._guests.values()]
        return np.bincount(np.concatenate(wanted), minlength=self._terms.n_items).astype(np.uint32)

    def _note(self, sender: int, wanted: Wanted) -> None:
        if self._state != "inviting" or wanted.round != self.round:
            raise Refused("the round is another one")
        if sender not in self._invited:
            raise Refused("the sender was not invited")
        if sender in self._guests:
            raise Refused("the sender has said already what is wanted")
        self._guests[sender] = _Guest(wanted.items, digest_of_items(wanted.items))

    def _add(self, sender: int, answer: Answer) -> None:
        if answer.round != self.round or sender not in self._guests:
            raise Refused("the answer is of another round")
        if sender in self._arrived:
            raise Refused("the sender has answered already")
        if digest_of_items(answer.items) != self._guests[sender].digest:
            raise Refused("the answer is not for the items that were asked for")
        self._arrived.add(sender)
        add_rows(self._sums, answer.items, answer.words)

    def _finish(self, total: Total) -> None:
        if self._state != "waiting" or total.round != self.round:
            raise Refused("the total is of another round")
        present = {int(user) for user in total.users}
        if not present:
            self._discard()
            return
        if not present <= self._guests.keys():
            raise Refused("the total has users who were not asked")
        touched = np.zeros(self._terms.n_items, np.bool_)
        for user in present:
            touched[self._guests[user].items] = True
        if not np.array_equal(np.flatnonzero(touched), total.items):
            raise Refused("the total is not for the items of its users")
        self._sums[total.items] = total.words
        self._take_off(present)
        if total.round == SETUP_ROUND:
            self._fixed[:] = self._sums
            self._reset()
        else:
            self._update(present)

    def _take_off(self, present: set[int]) -> None:
        """Take masks off the sums, and put back pieces of the fixed noise of those who are not in them."""
        ring, width = self._terms.ring, self._terms.n_factors
        for user, guest in self._guests.items():
            if user in present:
                mask = mask_words(guest.mask_seed, MASK, guest.items.size * width, ring)
                subtract_rows(self._sums, guest.items, mask.reshape(-1, width))
            elif guest.dealt is not None:
                add_rows(self._sums, guest.items, guest.dealt)

    def _update(self, present: set[int]) -> None:
        """Take a step along the mean of the gradients of those who are in the sums."""
        self._guests = {user: guest for user, guest in self._guests.items() if user in present}
        counts = self._counts()
        items = np.flatnonzero(counts)
        terms = self._terms
        gradients = terms.ring.signed(self._sums[items]) / (terms.steps * counts[items, None])
        self.V[items] -= terms.rate * (gradients + 2 * terms.item_penalty * self.V[items])
        self._met |= present
        self._reset()

    def _discard(self) -> None:
        self.discarded += 1
        self._reset()

    def _reset(self) -> None:
        self._sums[:] = 0
        self._guests, self._invited, self._state = {}, set(), "idle"

    def __repr__(self) -> str:
        return f"Recommender(round {self.round})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the recommender cannot be copied or pickled: masks would be used twice")
