"""A user of the published protocol: ratings and profile stay here, and everything that leaves is masked.

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
from dpmf.federated.published.laplace import VarianceTest, noise_shares, own_noise
from dpmf.federated.published.messages import Answer, SetUp, Sizes, Task, Wanted
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.terms import Terms
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.codec import kind_of
from dpmf.federated.wire.masks import mask_elements
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refusals, Refused
from dpmf.federated.wire.ring import Elements
from dpmf.kernels.protocol import RoundSettings, add_rows, compute_answer, variance_roots


class User:
    """One person's side.

    Args:
        items: the items rated, as positions in the catalogue, ascending.
        values: the ratings.
        terms: the public settings.
        recommender, third_party: their public keys; None where there is no third party.
        draws: the user's randomness; from the operating system by default.
    """

    __slots__ = (
        "_draws",
        "_items",
        "_recommender",
        "_round",
        "_settings",
        "_terms",
        "_test",
        "_third_party",
        "_values",
        "fixed",
        "profile",
        "public",
        "refusals",
    )

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
            raise InvalidArgument("a user needs ratings of items in the catalogue, in ascending order, each item once")
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
        self._round = -1  # the last round answered
        self._test, self.fixed = VarianceTest(), np.zeros((0, terms.n_factors), np.int64)
        self.profile = self._draws.normals(terms.n_factors).astype(np.float64)
        self.profile *= terms.radius / np.linalg.norm(self.profile)
        self._settings = RoundSettings(
            rate=terms.rate,
            penalty=terms.user_penalty,
            radius=terms.radius,
            amplitude=terms.amplitude if terms.third_party else 0.0,
            steps=terms.steps,
            limit=terms.limit,
        )
        self.refusals = Refusals("a user")

    def join(self) -> Outgoing:
        """Tell the recommender which items' profiles are needed: on coming online, and whenever they change."""
        return Outgoing(RECOMMENDER, self._recommender.seal(Wanted(self._items).encoded()))

    def receive(self, message: bytes) -> list[Outgoing]:
        """Handle a message from the recommender, and return the messages to send."""
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

    def restore(self, profile: NDArray[np.float64], fixed: NDArray[np.int64], number: int) -> None:
        """Resume after this round with an earlier profile and share of the fixed noise."""
        self.profile[:], self.fixed = profile, np.array(fixed)
        self._round = number

    def _answer(self, task: Task) -> list[Outgoing]:
        if task.round <= self._round:
            raise Refused("the round is not a new one")
        terms, shape = self._terms, (len(self._items), self._terms.n_factors)
        self._test.check(task.variances)
        if task.fixed_variances is not None and not len(self.fixed):  # else an answer was lost, not the noise
            self._draw_fixed(task.fixed_variances, task.counts)
        self._round = task.round
        if terms.third_party:
            elements = _mask_and_shares(task, terms)
            normals = self._draws.normals(task.variances.size)
        else:
            scale = 2 * terms.width / terms.epsilon
            elements = terms.ring.elements(own_noise(self._draws, *shape, scale, terms.steps))
            normals = np.zeros(task.variances.size, np.float32)
        if len(self.fixed):
            elements += terms.ring.elements(self.fixed)
        codes, roots, settings = task.variances, variance_roots(), self._settings
        compute_answer(task.rows, self._values, task.counts, codes, roots, normals, settings, self.profile, elements)
        content = Answer(task.round, self._items, elements).encoded(terms.ring)
        if self._third_party is None:
            return [Outgoing(RECOMMENDER, self._recommender.seal(content))]
        return [Outgoing(THIRD_PARTY, self._third_party.seal(content))]

    def _draw_fixed(self, variances: NDArray[np.uint16], counts: NDArray[np.uint32]) -> None:
        """Draw, once, the share of the noise that stays the same in all rounds."""
        self._test.check(variances)
        self.fixed = noise_shares(self._draws, variances, counts, self._terms.amplitude, self._terms.steps)

    def _set_up(self, message: SetUp) -> list[Outgoing]:
        """Draw a share of the fixed noise of every item, which reveals nothing about this user's ratings."""
        terms = self._terms
        if message.round != 0 or self._round >= 0 or self._third_party is None:
            raise Refused("the round is not a new one")
        variances = message.variances
        self._test.check(variances)
        self._round = 0
        counts = np.full(terms.n_items, message.n_users, np.uint32)
        noise = noise_shares(self._draws, variances, counts, terms.amplitude, terms.steps)
        elements = mask_elements(message.seed, terms.ring, *variances.shape) + terms.ring.elements(noise)
        everything = np.arange(terms.n_items, dtype=np.uint32)
        return [Outgoing(THIRD_PARTY, self._third_party.seal(Answer(0, everything, elements).encoded(terms.ring)))]

    def __repr__(self) -> str:
        return "User(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("a user cannot be copied or pickled: profile and keys stay where they are")


def _mask_and_shares(task: Task, terms: Terms) -> Elements:
    """Return the mask of the answer, plus the user's shares of the fixed noise, if there are any."""
    shape = task.rows.shape
    if not task.shared:
        return mask_elements(task.seed, terms.ring, *shape).copy()
    mask, shares = mask_elements(task.seed, terms.ring, 2, *shape)
    elements: Elements = mask + shares
    if task.corrected is not None and task.corrections is not None:
        add_rows(elements, task.corrected, task.corrections)
    return elements
