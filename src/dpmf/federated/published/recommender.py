"""The recommender of the published protocol: learns item profiles, from sums alone.

Users say on coming which items they rated. `deal` opens a round: it sends everybody who is to take part their task, and
tells the third party whom to expect; the third party's total ends it. Users may come and leave at any moment: who comes
takes part from the next round on; masks are taken off for exactly those whose answers are in the sum, and pieces of
the fixed noise that were dealt to others are put back.

>>> terms = Terms(n_items=3, scale=(1.0, 5.0), epsilon=1.0, most_users=9, n_factors=2)
>>> Recommender(terms, dealt=True)
Recommender(round 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.published.laplace import drawn_spread
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.terms import Terms
from dpmf.federated.published.third_party import SETUP_ROUND
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.masks import mask_words, new_seed
from dpmf.federated.wire.messages import Answer, Roster, SetUp, Sizes, Task, Total, Wanted, digest_of_items, kind_of
from dpmf.federated.wire.parties import THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.kernels.protocol import add_rows, subtract_rows

Words = NDArray[Any]


class _Listed(NamedTuple):
    """What a user rated."""

    items: NDArray[np.uint32]
    digest: int


@dataclass(eq=False, repr=False)
class _Guest:
    """A user in a round: for which items, behind which mask, and with which pieces of the fixed noise."""

    wanted: _Listed
    mask: Words
    dealt: Words | None = None


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
        self._sizes = Sizes(terms.n_items, terms.n_factors)
        self._keys = KeyPair()
        self.public = self._keys.public
        self._third_party: Channel | None = None
        self._wanted: dict[int, _Listed] = {}
        self._met: set[int] = set()  # users who have drawn their piece of the fixed noise
        self.V = self._draws.normals(terms.n_items * terms.n_factors).reshape(self._sizes).astype(np.float64)
        self.V /= np.linalg.norm(self.V, axis=1, keepdims=True)
        self._fixed = np.zeros(self._sizes, terms.ring.dtype)  # fixed noise and the third party's secret, together
        self._fixed_spread = np.zeros(self._sizes, np.uint16)
        if terms.third_party:
            self._fixed_spread = drawn_spread(self._draws, self._sizes).copy()
        self._sums = np.zeros(self._sizes, terms.ring.dtype)
        self._is_set_up = False
        self.round = 0
        self._open = False
        self._guests: dict[int, _Guest] = {}
        self._arrived: set[int] = set()
        self.discarded = 0
        self.refusals = Refusals("the recommender")
        self._users = Directory(self._keys, self.refusals, [self.public])

    def meet(self, third_party: bytes) -> None:
        """Get to know the third party."""
        self._third_party = Channel(self._keys, third_party)
        self._users.take(third_party)

    def admit(self, user: int, public: bytes) -> None:
        """Get to know a user, as `Directory` does."""
        self._users.admit(user, public)

    def set_up(self, users: Sequence[int]) -> list[Outgoing]:
        """Begin the set-up phase: these users draw the fixed noise of all items together."""
        terms = self._terms
        if not self._dealt or self._is_set_up or self.round or self._open or not len(users):
            raise InvalidArgument("the set-up is made once, before the first round, by at least one user")
        everything = np.arange(terms.n_items, dtype=np.uint32)
        wanted = _Listed(everything, digest_of_items(everything))
        out = []
        for user in users:
            seed = new_seed()
            self._guests[user] = _Guest(wanted, mask_words(seed, terms.ring, *self._sizes))
            message = SetUp(SETUP_ROUND, len(users), self._fixed_spread, seed)
            out.append(Outgoing(user, self._users.seal(user, message.encoded())))
        self._open = True
        # With fewer than all of them there would be less noise than is claimed, for good.
        return [self._roster(SETUP_ROUND, least=len(users)), *out]

    def deal(self, users: Sequence[int]) -> list[Outgoing]:
        """Open the next round: return tasks for these users, and to the third party whom to expect.

        Users who have not said what they rated are left out.
        """
        if self._dealt and not self._is_set_up:
            raise InvalidArgument("no round can be dealt before the fixed noise is set up: begin anew")
        if self._open:
            raise InvalidArgument("a round is open already: wait for its total, or give it up")
        terms, wanted = self._terms, {user: self._wanted[user] for user in users if user in self._wanted}
        if len(wanted) > terms.most_users:
            raise InvalidArgument(f"{len(wanted)} users are more than the {terms.most_users} of the terms")
        self.round += 1
        if not wanted:
            self._discard()
            return []
        counts, last = self._counts(wanted.values()), np.full(terms.n_items, -1)
        for user, listed in wanted.items():
            last[listed.items] = user
        spread, touched = np.zeros(self._sizes, np.uint16), counts > 0
        spread[touched] = drawn_spread(self._draws, (int(touched.sum()), terms.n_factors))
        rows, left = self.V.astype(np.float32), self._fixed.copy()
        out = []
        for user, listed in wanted.items():
            items, seed = listed.items, new_seed()
            corrected = np.flatnonzero(last[items] == user).astype(np.uint32) if self._dealt else None
            corrections = self._seat(user, listed, seed, left, corrected)
            first = terms.third_party and not self._dealt and user not in self._met
            task = Task(
                self.round, counts[items], rows[items], spread[items], seed, self._dealt, corrected, corrections,
                self._fixed_spread[items] if first else None,
            )  # fmt: skip
            out.append(Outgoing(user, self._users.seal(user, task.encoded(terms.ring))))
        self._open, self._arrived = True, set()
        return [self._roster(self.round, least=1), *out] if terms.third_party else out

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Take a message: what a user rated, the total, or, where there is no third party, an answer."""
        try:
            if sender == THIRD_PARTY and self._third_party is not None:
                content = self._third_party.open(message)
                self._finish(Total.decoded(content, self._sizes, self._terms.ring))
            else:
                content = self._users.open(sender, message)
                if not self._terms.third_party and kind_of(content)[0] == Answer.kind:
                    self._add(sender, Answer.decoded(content, self._sizes, self._terms.ring))
                else:
                    items = Wanted.decoded(content, self._sizes).items
                    self._wanted[sender] = _Listed(items, digest_of_items(items))
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    def close(self) -> None:
        """End a round without a third party: all that arrived counts."""
        if self._open and self._arrived and not self._terms.third_party:
            self._update(self._arrived)

    def give_up(self) -> None:
        """End a round whose total does not come, or was refused: it is discarded whole."""
        if self._open:
            self._discard()

    def kept(self) -> dict[str, NDArray[Any]]:
        """Return what a simulation needs to go on."""
        return {"V": self.V, "fixed": self._fixed, "fixed_spread": self._fixed_spread}

    def take_up(self, tensors: Mapping[str, NDArray[Any]], number: int, discarded: int) -> None:
        """Go on after this round, from what `kept` returned."""
        self.V[:], self._fixed[:], self._fixed_spread[:] = (tensors[name] for name in self.kept())
        self.round, self.discarded, self._is_set_up = number, discarded, True

    def _seat(
        self, user: int, wanted: _Listed, seed: bytes, left: Words, corrected: NDArray[np.uint32] | None
    ) -> Words | None:
        """Note a user's mask and pieces; what is dealt is taken from `left` (out), and the last gets all that is left.

        Returned is what is to be added to the pieces from the seed, for that.
        """
        ring, shape = self._terms.ring, (len(wanted.items), self._terms.n_factors)
        if corrected is None:
            self._guests[user] = _Guest(wanted, mask_words(seed, ring, *shape))
            return None
        mask, dealt = mask_words(seed, ring, 2, *shape)
        corrections: Words = left[wanted.items[corrected]] - dealt[corrected]
        if len(corrected):
            dealt = dealt.copy()
            add_rows(dealt, corrected, corrections)
        subtract_rows(left, wanted.items, dealt)
        self._guests[user] = _Guest(wanted, mask, dealt)
        return corrections

    def _roster(self, number: int, least: int) -> Outgoing:
        assert self._third_party is not None
        users = sorted(self._guests)
        digests = np.array([self._guests[user].wanted.digest for user in users], np.uint64)
        content = Roster(number, np.array(users, np.uint32), digests, least).encoded()
        return Outgoing(THIRD_PARTY, self._third_party.seal(content))

    def _counts(self, wanted: Iterable[_Listed]) -> NDArray[np.uint32]:
        """Return how many of these users rated each item."""
        items = np.concatenate([one.items for one in wanted])
        return np.bincount(items, minlength=self._terms.n_items).astype(np.uint32)

    def _add(self, sender: int, answer: Answer) -> None:
        if not self._open or answer.round != self.round or sender not in self._guests:
            raise Refused("the answer is of another round")
        if sender in self._arrived:
            raise Refused("the sender has answered already")
        if digest_of_items(answer.items) != self._guests[sender].wanted.digest:
            raise Refused("the answer is not for the items that were asked for")
        self._arrived.add(sender)
        add_rows(self._sums, answer.items, answer.words)

    def _finish(self, total: Total) -> None:
        if not self._open or total.round != self.round:
            raise Refused("the total is of another round")
        present = set(total.users.tolist())
        if not present:
            self._discard()
            return
        if not present <= self._guests.keys():
            raise Refused("the total has users who were not asked")
        counts = self._counts(self._guests[user].wanted for user in present)
        if not np.array_equal(np.flatnonzero(counts), total.items):
            raise Refused("the total is not for the items of its users")
        self._sums[total.items] = total.words
        for user, guest in self._guests.items():
            if user in present:
                subtract_rows(self._sums, guest.wanted.items, guest.mask)
            elif guest.dealt is not None:
                add_rows(self._sums, guest.wanted.items, guest.dealt)
        if total.round == SETUP_ROUND:
            self._fixed[:], self._is_set_up = self._sums, True
            self._reset()
        else:
            self._update(present)

    def _update(self, present: set[int]) -> None:
        """Take a step along the mean of the gradients of those who are in the sums."""
        counts = self._counts(self._guests[user].wanted for user in present)
        items, terms = np.flatnonzero(counts), self._terms
        gradients = terms.ring.signed(self._sums[items]) / (terms.steps * counts[items, None])
        self.V[items] -= terms.rate * (gradients + 2 * terms.item_penalty * self.V[items])
        self._met |= present
        self._reset()

    def _discard(self) -> None:
        self.discarded += 1
        self._reset()

    def _reset(self) -> None:
        self._sums[:] = 0
        self._guests, self._open = {}, False

    def __repr__(self) -> str:
        return f"Recommender(round {self.round})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the recommender cannot be copied or pickled: masks would be used twice")
