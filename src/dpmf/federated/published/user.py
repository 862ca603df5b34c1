"""A user of the published protocol: ratings and profile stay here, and what leaves is masked.

>>> from dpmf.federated.wire.channels import KeyPair
>>> terms = Terms(n_items=3, scale=(1.0, 5.0), epsilon=1.0, most_users=9, n_factors=2)
>>> user = User(np.array([0, 2]), np.array([5.0, 1.0]), terms, KeyPair().public, KeyPair().public)
>>> user
User(…)
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.published.laplace import Watch, pieces, whole_noise
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.terms import Terms
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_words
from dpmf.federated.wire.messages import Answer, SetUp, Sizes, Task, Wanted, kind_of
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.kernels.protocol import Pace, add_rows, answer_round, spread_roots


class User:
    """One person's side.

    Args:
        items: what was rated: places in the catalogue, ascending.
        values: the ratings.
        terms: what everybody knows.
        recommender, third_party: their public keys; no third party, no key.
        draws: where the user's randomness comes from; the operating system unless given.
    """

    __slots__ = (
        "_draws", "_items", "_pace", "_recommender", "_round", "_terms", "_third_party", "_values",
        "_watch", "fixed", "profile", "public", "refusals",
    )  # fmt: skip

    def __init__(
        self,
        items: NDArray[Any],
        values: NDArray[Any],
        terms: Terms,
        recommender: bytes,
        third_party: bytes | None,
        draws: Draws | None = None,
    ) -> None:
        self._items, self._values = np.array(items, np.uint32), np.array(values, np.float32)
        ascending = bool((self._items[1:] > self._items[:-1]).all())
        if not (len(items) and len(items) == len(values) and ascending and self._items[-1] < terms.n_items):
            raise InvalidArgument("a user needs ratings of items of the catalogue, in ascending order and once each")
        lo, hi = terms.scale
        if not bool(((self._values >= lo) & (self._values <= hi)).all()):
            raise InvalidArgument(f"a rating is off the scale {lo:g}:{hi:g}")
        if (third_party is not None) != terms.third_party:
            raise InvalidArgument("the terms and the keys differ on whether there is a third party")
        self._terms, self._draws = terms, Draws() if draws is None else draws
        keys = KeyPair()
        self.public = keys.public
        self._recommender = Channel(keys, recommender)
        self._third_party = None if third_party is None else Channel(keys, third_party)
        self._round = -1  # the last that was answered
        self._watch, self.fixed = Watch(), np.zeros((0, terms.n_factors), np.int64)
        self.profile = self._draws.normals(terms.n_factors).astype(np.float64)
        self.profile *= terms.radius / np.linalg.norm(self.profile)
        self._pace = Pace(
            terms.rate, terms.user_penalty, terms.radius, terms.amplitude if terms.third_party else 0.0, terms.steps,
            terms.limit,
        )  # fmt: skip
        self.refusals = Refusals("a user")

    def join(self) -> Outgoing:
        """Say which items' profiles are needed, on coming and whenever there are others."""
        return Outgoing(RECOMMENDER, self._recommender.seal(Wanted(self._items).encoded()))

    def receive(self, message: bytes) -> list[Outgoing]:
        """Take a message from the recommender, and return what there is to send."""
        try:
            content = self._recommender.open(message)
            kind, _ = kind_of(content)
            if kind == Task.kind:
                task = Task.decoded(content, len(self._items), self._terms.n_factors, self._terms.ring)
                return self._answer(task)
            if kind == SetUp.kind:
                return self._set_up(SetUp.decoded(content, Sizes(self._terms.n_items, self._terms.n_factors)))
            raise Refused("the message is of another kind")
        except Refused as refusal:
            self.refusals.note(refusal)
            return []

    def take_up(self, profile: NDArray[np.float64], fixed: NDArray[np.int64], number: int) -> None:
        """Go on after this round with an earlier profile and piece of the fixed noise."""
        self.profile[:], self.fixed = profile, np.array(fixed)
        self._round = number

    def _answer(self, task: Task) -> list[Outgoing]:
        if task.round <= self._round:
            raise Refused("the round is not a new one")
        terms, shape = self._terms, (len(self._items), self._terms.n_factors)
        self._watch.look(task.spread)
        if task.fixed_spread is not None and not len(self.fixed):  # else an answer was lost, not the noise
            self._draw_fixed(task.fixed_spread, task.counts)
        self._round = task.round
        if terms.third_party:
            words = _hiding(task, terms)
            normals = self._draws.normals(task.spread.size)
        else:
            scale = 2 * terms.width / terms.epsilon
            words = terms.ring.words(whole_noise(self._draws, *shape, scale, terms.steps))
            normals = np.zeros(task.spread.size, np.float32)
        if len(self.fixed):
            words += terms.ring.words(self.fixed)
        answer_round(
            task.rows, self._values, task.counts, task.spread, spread_roots(), normals, self._pace, self.profile, words
        )
        content = Answer(task.round, self._items, words).encoded(terms.ring)
        if self._third_party is None:
            return [Outgoing(RECOMMENDER, self._recommender.seal(content))]
        return [Outgoing(THIRD_PARTY, self._third_party.seal(content))]

    def _draw_fixed(self, spread: NDArray[np.uint16], counts: NDArray[np.uint32]) -> None:
        """Draw the piece of the noise that stays the same in all rounds, once."""
        self._watch.look(spread)
        self.fixed = pieces(self._draws, spread, counts, self._terms.amplitude, self._terms.steps)

    def _set_up(self, message: SetUp) -> list[Outgoing]:
        """Draw a piece of the fixed noise of every item, which says nothing of one's own ratings."""
        terms = self._terms
        if message.round != 0 or self._round >= 0 or self._third_party is None:
            raise Refused("the round is not a new one")
        spread = message.spread
        self._watch.look(spread)
        self._round = 0
        counts = np.full(terms.n_items, message.n_users, np.uint32)
        words = mask_words(message.seed, terms.ring, *spread.shape) + terms.ring.words(
            pieces(self._draws, spread, counts, terms.amplitude, terms.steps)
        )
        everything = np.arange(terms.n_items, dtype=np.uint32)
        return [Outgoing(THIRD_PARTY, self._third_party.seal(Answer(0, everything, words).encoded(terms.ring)))]

    def __repr__(self) -> str:
        return "User(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("a user cannot be copied or pickled: profile and keys stay where they are")


def _hiding(task: Task, terms: Terms) -> NDArray[Any]:
    """Return the words that hide the answer, with the pieces of the fixed noise that were dealt to the user."""
    shape = task.rows.shape
    if not task.dealt:
        return mask_words(task.seed, terms.ring, *shape).copy()
    mask, dealt = mask_words(task.seed, terms.ring, 2, *shape)
    words: NDArray[Any] = mask + dealt
    if task.corrected is not None and task.corrections is not None:
        add_rows(words, task.corrected, task.corrections)
    return words
