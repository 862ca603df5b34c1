"""Learning from ratings as they come, in a count sketch whose memory does not grow.

Users and items may be new at any time: their cells exist already. Ratings are visited once, in the order of arrival,
with a constant learning rate. A stream that was saved and loaded continues as if uninterrupted.

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

import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import (
    dump_json,
    is_sealed,
    load_tensors,
    new_folder,
    read_json,
    save_tensors,
    sealed,
    sha256_of,
    write_text,
)
from dpmf.kernels.sketch import SketchStep
from dpmf.methods.checks import public_facts
from dpmf.methods.sketch.run import ridge_of
from dpmf.methods.sketch.table import ITEMS, USERS, Keys
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.kinds import array_of

if TYPE_CHECKING:
    from dpmf.methods.sketch import Sketch

FORMAT_VERSION = 1
_TENSOR_FILE, _FACTS_FILE, _WARNING_FILE = "stream.safetensors", "stream.json", "SENSITIVE"
_WARNING = "This folder holds profiles of people, needed to continue learning. Do not publish it.\n"


_NOT_SAVED = ("budget", "n_epochs", "decay")  # the first by itself; the others mean nothing here


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
        """The bytes of the table: k·w cells of four bytes, however many ratings were learnt."""
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
            numbers = _numbers(values)
            if not len(user_keys) == len(item_keys) == len(numbers):
                counts = f"{len(user_keys)} users, {len(item_keys)} items and {len(numbers)} values"
                raise InvalidArgument(f"{counts}: give the same number of each")
            places = (np.arange(len(numbers)), np.arange(len(numbers)))
        if not ((numbers >= self.scale.lo) & (numbers <= self.scale.hi)).all():
            raise InvalidArgument(f"a rating of the batch is not on the scale {self.scale}: nothing was learnt from it")
        numbers = (numbers / self.table.unit).astype(np.float32)
        squared = self.table.learn((*places, np.arange(len(numbers))), numbers, user_keys, item_keys, self._step)
        if not (math.isfinite(squared) and np.isfinite(self.table.cells).all()):
            raise DpmfError(
                f"the stream diverged at learning rate {self._step.eta:g} and is lost: start again with a smaller "
                "learning_rate, from the last state that was saved"
            )
        return self

    def predict(self, users: Any, items: Any) -> NDArray[np.float64]:
        """Return expected ratings of pairs, within the scale; for ids that never came, by what others left in cells."""
        user_keys, item_keys = _keys("users", users), _keys("items", items)
        if len(user_keys) != len(item_keys):
            raise InvalidArgument(f"{len(user_keys)} users and {len(item_keys)} items: give the same number of each")
        (U, b), (V, c) = self.table.read(USERS, user_keys), self.table.read(ITEMS, item_keys)
        scores = self.scale.middle + b.astype(np.float64) + c + np.einsum("nk,nk->n", U, V)
        return np.asarray(np.clip(scores, self.scale.lo, self.scale.hi), np.float64)

    def release(self, catalogue: Items | Sequence[Any]) -> Release:
        """Return the items of a catalogue as they are read now, to fold people in, recommend or save."""
        items = catalogue if isinstance(catalogue, Items) else Items.of(catalogue)
        factors, biases = self.table.read(ITEMS, items.ids.keys)
        return Release(
            items=items,
            scale=self.scale,
            mean=self.scale.middle,
            item_factors=factors,
            item_biases=biases,
            ridge=ridge_of(self.method.resolve().regularization, self.table.unit),
            configuration=self.method.configuration(),
            guarantee=self.method.guarantee(public_facts(items)),
        )

    def save(self, folder: str | Path) -> None:
        """Write everything needed to continue to a folder that only its owner can read; replaces an earlier one.

        It holds profiles of people: what may leave the building is `release`, as far as its guarantee goes.
        """
        with new_folder(Path(folder), may_replace=(_TENSOR_FILE, _FACTS_FILE, _WARNING_FILE), mode=0o700) as work:
            save_tensors(work / _TENSOR_FILE, {"cells": self.table.cells})
            facts = {
                "format": "dpmf-sketch-stream",
                "version": FORMAT_VERSION,
                "method": {name: value for name, value in asdict(self.method).items() if name not in _NOT_SAVED},
                "budget": {**asdict(self.method.budget), "epsilon": str(self.method.budget.epsilon)},
                "scale": [self.scale.lo, self.scale.hi],
                "hash_functions": self._hash_functions(),
                "sha256": sha256_of(work / _TENSOR_FILE),
            }
            write_text(work / _FACTS_FILE, dump_json(sealed(facts)))
            write_text(work / _WARNING_FILE, _WARNING)

    @classmethod
    def load(cls, folder: str | Path) -> SketchStream:
        """Read a stream that `save` wrote."""
        from dpmf.methods.sketch import Sketch

        folder = Path(folder)
        if not folder.is_dir():
            raise InvalidArgument(f"no stream at {folder}: name the folder that SketchStream.save wrote")
        facts = read_json(folder / _FACTS_FILE)
        kind = (facts.get("format"), facts.get("version")) if isinstance(facts, dict) else None
        if kind != ("dpmf-sketch-stream", FORMAT_VERSION):
            raise DamagedFile(f"{folder} is not a stream of format {FORMAT_VERSION}")
        if "digest" in facts and not is_sealed(facts):  # streams of earlier versions have none
            raise DamagedFile(f"{folder / _FACTS_FILE} is damaged: its content is not what its digest says")
        cells = load_tensors(folder / _TENSOR_FILE, ("cells",))["cells"]
        if sha256_of(folder / _TENSOR_FILE) != facts.get("sha256"):
            raise DamagedFile(f"{folder / _TENSOR_FILE} is damaged: it is not the file that {_FACTS_FILE} describes")
        try:
            budget = Budget(**{**facts["budget"], "epsilon": float(facts["budget"]["epsilon"])})
            stream = Sketch(**facts["method"], budget=budget).stream(facts["scale"])
            if (cells.shape, cells.dtype) != (stream.table.cells.shape, stream.table.cells.dtype):
                raise ValueError(f"cells of shape {cells.shape}")
            functions = facts["hash_functions"]
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{folder / _FACTS_FILE} is damaged: {error}") from None
        if functions != stream._hash_functions():
            raise DamagedFile(
                f"{folder} has other hash functions than this NumPy draws: load it with the one that saved it"
            )
        stream.table.cells[:] = cells
        return stream

    def _hash_functions(self) -> int:
        """Return a checksum of the hash functions: NumPy may one day draw others from the same seed."""
        return zlib.crc32(self.table.family.numbers.tobytes())


def _numbers(values: Any) -> NDArray[np.float32]:
    try:
        numbers = np.atleast_1d(np.asarray(values, np.float32))
    except (TypeError, ValueError):
        raise InvalidArgument("values should be a list of ratings, one per user") from None
    if numbers.ndim != 1:
        raise InvalidArgument(f"values has the shape {numbers.shape}: give a list of ratings, one per user")
    return numbers


def _keys(name: str, ids: Any) -> Keys:
    if ids is None or isinstance(ids, str | bytes):
        raise InvalidArgument(f"{name}={ids!r} should be a list of ids, one per rating")
    return Ids(array_of(ids)).keys
