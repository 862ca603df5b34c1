"""Learning from ratings as they come, in a count sketch whose memory does not grow.

Users and items may be new at any time: their cells are there already. Ratings are visited once, in the order in which
they come, with a learning rate that stays the same.

>>> import math
>>> from dpmf.methods.sketch import Sketch
>>> from dpmf.privacy import Budget
>>> stream = Sketch(n_factors=4, width=500, budget=Budget(math.inf)).stream(scale=(1, 5))
>>> stream.memory
8000
>>> stream.partial_fit(["ann", "bob"], ["Heat", "Up"], [5, 1]).partial_fit(["eve"], ["Alien"], [4]).memory
8000
>>> stream.predict(["ann"], ["Up"]).shape
(1,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.kernels.sketch import SketchStep
from dpmf.methods.checks import public_facts
from dpmf.methods.sketch_run import ridge_of
from dpmf.methods.sketching import ITEMS, USERS, Keys
from dpmf.model import Release
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.frames import array_of
from dpmf.ratings.ids import Ids

if TYPE_CHECKING:
    from dpmf.methods.sketch import Sketch


class SketchStream:
    """A learner that takes ratings batch by batch. Make one with `Sketch.stream`.

    Args:
        method: the configuration, with everything chosen.
        scale: of the ratings. Predictions start from its middle; biases of users and items are learnt.
    """

    def __init__(self, method: Sketch, scale: Scale) -> None:
        self.method, self.scale = method, scale
        self.table = method.table_for(0, 0, scale)
        self._step: SketchStep = method.step(1, scale.middle, scale)

    @property
    def memory(self) -> int:
        """The bytes of the table: k·w cells of four bytes, whatever has come."""
        return self.table.memory

    def partial_fit(self, users: Any, items: Any = None, values: Any = None) -> SketchStream:
        """Learn from a batch, in its order.

        Args:
            users: their ids, one per rating; or `Ratings`, which have everything.
            items: ids.
            values: ratings on the scale.
        """
        if isinstance(users, Ratings):
            batch = users
            user_keys, item_keys = batch.user_ids.keys, batch.catalogue.ids.keys
            places: tuple[NDArray[Any], NDArray[Any]] = (batch.users, batch.items)
            numbers = batch.values
        else:
            user_keys, item_keys = _keys("users", users), _keys("items", items)
            numbers = np.atleast_1d(np.asarray(values, np.float32))
            if not len(user_keys) == len(item_keys) == len(numbers):
                raise InvalidArgument(
                    f"{len(user_keys)} users, {len(item_keys)} items and {len(numbers)} values: give as many of each"
                )
            places = (np.arange(len(numbers)), np.arange(len(numbers)))
        if not ((numbers >= self.scale.lo) & (numbers <= self.scale.hi)).all():
            raise InvalidArgument(f"a rating of the batch is not on the scale {self.scale}: nothing was learnt from it")
        numbers = (numbers / self.table.unit).astype(np.float32)
        self.table.learn((*places, np.arange(len(numbers))), numbers, user_keys, item_keys, self._step)
        return self

    def predict(self, users: Any, items: Any) -> NDArray[np.float64]:
        """Return expected ratings of pairs, within the scale; for ids that never came, by what others left in cells."""
        user_keys, item_keys = _keys("users", users), _keys("items", items)
        if len(user_keys) != len(item_keys):
            raise InvalidArgument(f"{len(user_keys)} users and {len(item_keys)} items: give as many of each")
        (U, b), (V, c) = self.table.read(USERS, user_keys), self.table.read(ITEMS, item_keys)
        scores = self.scale.middle + b.astype(np.float64) + c + np.einsum("nk,nk->n", U, V)
        return np.asarray(np.clip(scores, self.scale.lo, self.scale.hi), np.float64)

    def release(self, catalogue: Items | Sequence[Any]) -> Release:
        """Return the items of a catalogue as they are read now, to fold people in, recommend or save."""
        items = catalogue if isinstance(catalogue, Items) else Items.of(catalogue)
        factors, biases = self.table.read(ITEMS, items.ids.keys)
        assert self.method.regularization is not None
        return Release(
            items=items,
            scale=self.scale,
            mean=self.scale.middle,
            item_factors=factors,
            item_biases=biases,
            ridge=ridge_of(self.method.regularization, self.table.unit),
            configuration=self.method.configuration(),
            guarantee=self.method.guarantee(public_facts(items)),
        )


def _keys(name: str, ids: Any) -> Keys:
    if ids is None or isinstance(ids, str | bytes):
        raise InvalidArgument(f"{name}={ids!r} should be a list of ids, one per rating")
    return Ids(array_of(ids)).keys
