"""Ids as people wrote them, and the positions dpmf computes with.

Ids are integers or strings, and two that print the same are the same. UUIDs are kept as their text.

>>> ids, codes = Ids.factorize(np.array(["b", "a", "b"], object))
>>> list(ids), codes.tolist()
(['a', 'b'], [1, 0, 1])
>>> ids.position("b"), ids.position("z")
(1, None)
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.sort import look_up, mark_present
from dpmf.ratings.kinds import ids_of
from dpmf.streams import as_integer, id_keys, mix, stream_key

Id = int | str
_WIDEST_TABLE = 1 << 26  # integer ids that span more than this are looked up by sorting, not in a table


class Ids:
    """An immutable list of distinct ids: position → id, and back.

    Attributes:
        array: shape (n,), int64 or object (str).
    """

    def __init__(self, array: NDArray[Any]) -> None:
        array = ids_of(np.asarray(array))
        self.array = array.astype(np.int64) if array.dtype.kind == "i" else array

    @classmethod
    def factorize(cls, values: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
        """Return the distinct values in ascending order, and for every value its position among them."""
        values = ids_of(np.asarray(values))
        if values.dtype.kind != "i":
            distinct = np.array(sorted(set(values.tolist())), dtype=object)
            ids = cls(distinct)
            return ids, ids.encode(values)
        if len(values) and _span(values) <= _WIDEST_TABLE:
            lowest = int(values.min())
            present = np.zeros(_span(values), np.bool_)
            mark_present(values, lowest, present)
            ids = cls(np.flatnonzero(present) + lowest)
            return ids, ids.encode(values)
        distinct, codes = np.unique(values, return_inverse=True)
        return cls(distinct), codes.astype(np.int32)

    def encode(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Return the position of every value, -1 for values that are not among these ids."""
        values = ids_of(np.asarray(values))
        codes = np.empty(len(values), np.int32)
        if (
            values.dtype.kind == "i"
            and self.array.dtype.kind == "i"
            and len(self)
            and _span(self.array) <= _WIDEST_TABLE
        ):
            lowest = int(self.array.min())
            table = np.full(_span(self.array), -1, np.int32)
            table[self.array - lowest] = np.arange(len(self), dtype=np.int32)
            look_up(values, lowest, table, codes)
            return codes
        positions = self._positions
        if values.dtype.kind == self.array.dtype.kind:
            codes[:] = [positions.get(value, -1) for value in values.tolist()]
        else:  # integers on one side, texts on the other: "7" and 7 are the same id
            texts = {str(one): place for one, place in positions.items()}
            codes[:] = [texts.get(str(value), -1) for value in values.tolist()]
        return codes

    def position(self, one: object) -> int | None:
        """Return the position of an id, or None. The text of an integer id is found too."""
        if isinstance(one, np.integer):
            one = int(one)
        found = self._positions.get(one)
        if found is None and isinstance(one, str) and self.array.dtype.kind == "i":
            number = as_integer(one)
            return None if number is None else self._positions.get(number)
        if found is None and not isinstance(one, str) and self.array.dtype.kind != "i":
            return self._positions.get(str(one))
        return found

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """One 64-bit key per id, a function of the id alone; see `dpmf.streams`."""
        return id_keys(self.array)

    @cached_property
    def hash_order(self) -> NDArray[np.int64]:
        """The positions, in the order of a hash of the ids. It has no seed: one stored order serves every run."""
        return np.argsort(mix(stream_key(0, "strips") ^ self.keys), kind="stable")

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {one: place for place, one in enumerate(self.array.tolist())}

    def spelt(self) -> Ids:
        """Return these ids as texts, in the same order."""
        return Ids(np.fromiter(map(str, self), object, len(self)))

    def first_repeated(self) -> Id | None:
        """Return an id that occurs twice, if any does."""
        last_places = self._positions
        return next((one for place, one in enumerate(self) if last_places[one] != place), None)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, position: int) -> Id:
        one: Id = self.array[position]
        return one if isinstance(one, str) else int(one)

    def __iter__(self) -> Iterator[Id]:
        return iter(self.array.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids) or len(self) != len(other):
            return False
        if self.array.dtype == other.array.dtype:
            return np.array_equal(self.array, other.array)
        return all(map(operator.eq, map(str, self), map(str, other)))

    __hash__ = None  # type: ignore[assignment]


def _span(integers: NDArray[Any]) -> int:
    return int(integers.max()) - int(integers.min()) + 1


def parse_ids(texts: Sequence[str]) -> NDArray[Any]:
    """Return ids read from text: integers if every one is spelt as an integer, else the texts themselves.

    >>> parse_ids(["7", "8"]), parse_ids(["7", "008"])
    (array([7, 8]), array(['7', '008'], dtype=object))
    """
    numbers = [as_integer(text) for text in texts]
    if None in numbers:
        return np.array(texts, object)
    return np.array(numbers, np.int64)
