"""The recommender of the published protocol: learns item profiles from sums alone.

On joining, users tell it which items they rated. `open_round` sends every participant a task, and tells the third party
whom to expect; the third party's total ends the round. Users may come and go at any moment: a newcomer takes part from
the next round on; masks are removed for exactly the users whose answers are in the sum, and shares of the fixed noise
that went to the others are added back.

>>> terms = Terms(n_items=3, scale=(1.0, 5.0), epsilon=1.0, most_users=9, n_factors=2)
>>> Recommender(terms, shared_noise=True)
Recommender(round 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.published.laplace import draw_variances
from dpmf.federated.published.messages import Answer, Roster, SetUp, Sizes, Task, Total, Wanted, digest_of_items
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.terms import Terms
from dpmf.federated.published.third_party import SETUP_ROUND
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.codec import kind_of
from dpmf.federated.wire.directory import Directory
from dpmf.federated.wire.masks import mask_elements, new_seed
from dpmf.federated.wire.parties import THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.federated.wire.ring import Elements
from dpmf.kernels.protocol import add_rows, subtract_rows


class _Rated(NamedTuple):
    """The items that a user rated."""

    items: NDArray[np.uint32]
    digest: int


@dataclass(eq=False, repr=False)
class _Participant:
    """A user in a round: the items, the mask, and the shares of the fixed noise."""

    rated: _Rated
    mask: Elements
    shares: Elements | None = None


class Recommender:
    """The recommender's side.

    Args:
        terms: the public settings.
        shared_noise: whether the fixed noise is set up once and distributed in shares in every round (users come and
            go), instead of being drawn once by every user (users stay).
        draws: the randomness; from the operating system by default.
    """

    def __init__(self, terms: Terms, *, shared_noise: bool, draws: Draws | None = None) -> None:
        if shared_noise and not terms.third_party:
            raise InvalidArgument("without a third party there is no fixed noise to distribute")
        self._terms, self._shared_noise = terms, shared_noise
        self._draws = Draws() if draws is None else draws
        self._sizes = Sizes(terms.n_items, terms.n_factors)
        self._keys = KeyPair()
        self.public = self._keys.public
        self._third_party: Channel | None = None
        self._rated: dict[int, _Rated] = {}
        self._met: set[int] = set()  # users who have drawn their share of the fixed noise
        self.V = self._draws.normals(terms.n_items * terms.n_factors).reshape(self._sizes).astype(np.float64)
        self.V /= np.linalg.norm(self.V, axis=1, keepdims=True)
        self._fixed = np.zeros(self._sizes, terms.ring.dtype)  # the fixed noise plus the third party's secret
        self._fixed_variances = np.zeros(self._sizes, np.uint16)
        if terms.third_party:
            self._fixed_variances = draw_variances(self._draws, self._sizes).copy()
        self._sums = np.zeros(self._sizes, terms.ring.dtype)
        self._is_set_up = False
        self.round = 0
        self._open = False
        self._participants: dict[int, _Participant] = {}
        self._arrived: set[int] = set()
        self.discarded = 0
        self.refusals = Refusals("the recommender")
        self._users = Directory(self._keys, self.refusals, [self.public])

    def meet(self, third_party: bytes) -> None:
        """Open a channel to the third party."""
        self._third_party = Channel(self._keys, third_party)
        self._users.reserve(third_party)

    def admit(self, user: int, public: bytes) -> None:
        """Register a user, or refuse to."""
        self._users.admit(user, public)

    def set_up(self, users: Sequence[int]) -> list[Outgoing]:
        """Start the set-up phase: these users draw the fixed noise of all items together."""
        terms = self._terms
        if not self._shared_noise or self._is_set_up or self.round or self._open or not len(users):
            raise InvalidArgument("the set-up happens once, before the first round, with at least one user")
        everything = np.arange(terms.n_items, dtype=np.uint32)
        rated = _Rated(everything, digest_of_items(everything))
        out = []
        for user in users:
            seed = new_seed()
            self._participants[user] = _Participant(rated, mask_elements(seed, terms.ring, *self._sizes))
            message = SetUp(SETUP_ROUND, len(users), self._fixed_variances, seed)
            out.append(Outgoing(user, self._users.seal(user, message.encoded())))
        self._open = True
        # With fewer than all of them there would be less noise than is claimed, in all rounds.
        return [self._roster(SETUP_ROUND, least=len(users)), *out]

    def open_round(self, users: Sequence[int]) -> list[Outgoing]:
        """Open the next round: return tasks for these users, and a roster for the third party.

        Users who have not joined are left out.
        """
        if self._shared_noise and not self._is_set_up:
            raise InvalidArgument("no round can be opened before the fixed noise is set up: start over")
        if self._open:
            raise InvalidArgument("a round is already open: wait for its total, or give it up")
        terms, rated = self._terms, {user: self._rated[user] for user in users if user in self._rated}
        if len(rated) > terms.most_users:
            raise InvalidArgument(f"{len(rated)} users are more than the {terms.most_users} of the terms")
        self.round += 1
        if not rated:
            self._discard()
            return []
        counts, last = self._counts(rated.values()), np.full(terms.n_items, -1)
        for user, own in rated.items():
            last[own.items] = user
        variances, touched = np.zeros(self._sizes, np.uint16), counts > 0
        variances[touched] = draw_variances(self._draws, (int(touched.sum()), terms.n_factors))
        rows, left = self.V.astype(np.float32), self._fixed.copy()
        out = []
        for user, own in rated.items():
            items, seed = own.items, new_seed()
            corrected = np.flatnonzero(last[items] == user).astype(np.uint32) if self._shared_noise else None
            corrections = self._add_participant(user, own, seed, left, corrected)
            first = terms.third_party and not self._shared_noise and user not in self._met
            task = Task(
                round=self.round,
                counts=counts[items],
                rows=rows[items],
                variances=variances[items],
                seed=seed,
                shared=self._shared_noise,
                corrected=corrected,
                corrections=corrections,
                fixed_variances=self._fixed_variances[items] if first else None,
            )
            out.append(Outgoing(user, self._users.seal(user, task.encoded(terms.ring))))
        self._open, self._arrived = True, set()
        return [self._roster(self.round, least=1), *out] if terms.third_party else out

    def receive(self, sender: int, message: bytes) -> list[Outgoing]:
        """Handle a message: which items a user rated, the total, or, without a third party, an answer."""
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
                    self._rated[sender] = _Rated(items, digest_of_items(items))
        except Refused as refusal:
            self.refusals.note(refusal)
        return []

    def close(self) -> None:
        """End a round without a third party: all answers that arrived count."""
        if self._open and self._arrived and not self._terms.third_party:
            self._update(self._arrived)

    def give_up(self) -> None:
        """End a round whose total did not arrive, or was refused: it is discarded as a whole."""
        if self._open:
            self._discard()

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the state that a resumed simulation needs."""
        return {"V": self.V, "fixed": self._fixed, "fixed_spread": self._fixed_variances}

    def restore(self, tensors: Mapping[str, NDArray[Any]], number: int, discarded: int) -> None:
        """Resume after this round, from a `snapshot`."""
        self.V[:], self._fixed[:], self._fixed_variances[:] = (tensors[name] for name in self.snapshot())
        self.round, self.discarded, self._is_set_up = number, discarded, True

    def _add_participant(
        self, user: int, rated: _Rated, seed: bytes, left: Elements, corrected: NDArray[np.uint32] | None
    ) -> Elements | None:
        """Record a user's mask and shares; shares are subtracted from `left` (out), and the last rater gets the rest.

        Returns the corrections that turn shares from the seed into that rest.
        """
        ring, shape = self._terms.ring, (len(rated.items), self._terms.n_factors)
        if corrected is None:
            self._participants[user] = _Participant(rated, mask_elements(seed, ring, *shape))
            return None
        mask, shares = mask_elements(seed, ring, 2, *shape)
        corrections: Elements = left[rated.items[corrected]] - shares[corrected]
        if len(corrected):
            shares = shares.copy()
            add_rows(shares, corrected, corrections)
        subtract_rows(left, rated.items, shares)
        self._participants[user] = _Participant(rated, mask, shares)
        return corrections

    def _roster(self, number: int, least: int) -> Outgoing:
        assert self._third_party is not None
        users = sorted(self._participants)
        digests = np.array([self._participants[user].rated.digest for user in users], np.uint64)
        content = Roster(number, np.array(users, np.uint32), digests, least).encoded()
        return Outgoing(THIRD_PARTY, self._third_party.seal(content))

    def _counts(self, rated: Iterable[_Rated]) -> NDArray[np.uint32]:
        """Return how many of these users rated each item."""
        items = np.concatenate([one.items for one in rated])
        return np.bincount(items, minlength=self._terms.n_items).astype(np.uint32)

    def _add(self, sender: int, answer: Answer) -> None:
        if not self._open or answer.round != self.round or sender not in self._participants:
            raise Refused("the answer is of another round")
        if sender in self._arrived:
            raise Refused("the sender has answered already")
        if digest_of_items(answer.items) != self._participants[sender].rated.digest:
            raise Refused("the answer is not for the items that were asked for")
        self._arrived.add(sender)
        add_rows(self._sums, answer.items, answer.elements)

    def _finish(self, total: Total) -> None:
        if not self._open or total.round != self.round:
            raise Refused("the total is of another round")
        present = set(total.users.tolist())
        if not present:
            self._discard()
            return
        if not present <= self._participants.keys():
            raise Refused("the total has users who were not asked")
        counts = self._counts(self._participants[user].rated for user in present)
        if not np.array_equal(np.flatnonzero(counts), total.items):
            raise Refused("the total is not for the items of its users")
        self._sums[total.items] = total.elements
        for user, one in self._participants.items():
            if user in present:
                subtract_rows(self._sums, one.rated.items, one.mask)
            elif one.shares is not None:
                add_rows(self._sums, one.rated.items, one.shares)
        if total.round == SETUP_ROUND:
            self._fixed[:], self._is_set_up = self._sums, True
            self._reset()
        else:
            self._update(present)

    def _update(self, present: set[int]) -> None:
        """Take a step along the mean gradient of the users whose answers are in the sums."""
        counts = self._counts(self._participants[user].rated for user in present)
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
        self._participants, self._open = {}, False

    def __repr__(self) -> str:
        return f"Recommender(round {self.round})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("the recommender cannot be copied or pickled: masks would be used twice")
