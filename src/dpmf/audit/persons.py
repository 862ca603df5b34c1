"""People who try to matter: what they rated, and ways to search for those who matter most.

>>> person = Person.of([2, 0], [5.0, 1.0])
>>> person.items.tolist(), person.values.tolist()
([2, 0], [5.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids

_FAR = 1e6  # off any scale
_OFTEN = 1000  # times that somebody rates everything


@dataclass(frozen=True, eq=False)
class Person:
    """Somebody's ratings, as far as they will go: nothing is checked.

    Attributes:
        items: places in the catalogue.
        values: the ratings.
        label: how the person was found.
    """

    items: NDArray[np.int32]
    values: NDArray[np.float32]
    label: str = ""

    @classmethod
    def of(cls, items: Sequence[int] | NDArray[Any], values: Sequence[float] | NDArray[Any], label: str = "") -> Self:
        """Return a person."""
        return cls(np.asarray(items, np.int32), np.asarray(values, np.float32), label)

    @property
    def is_valid(self) -> bool:
        """Whether the ratings would be read from a file as they are: in order, once each, and numbers."""
        return bool((np.diff(self.items) > 0).all() and np.abs(self.values).max(initial=0.0) < _FAR)


def table_of(people: Sequence[Person], catalogue: Items, scale: Scale, ids: Ids) -> Ratings:
    """Return the ratings of some people, in this order, as nobody checked them."""
    return Ratings(
        indptr=np.concatenate([[0], np.cumsum([len(one.items) for one in people])]).astype(np.int64),
        items=np.concatenate([np.zeros(0, np.int32), *(one.items for one in people)]).astype(np.int32),
        values=np.concatenate([np.zeros(0, np.float32), *(one.values for one in people)]).astype(np.float32),
        timestamps=None,
        user_ids=ids,
        catalogue=catalogue,
        scale=scale,
    )


def joined(crowd: Ratings, people: Sequence[Person], ids: Ids) -> Ratings:
    """Return the ratings of a crowd and of some people after it; ids are those of all."""
    more = table_of(people, crowd.catalogue, crowd.scale, ids)
    return replace(
        more,
        indptr=np.concatenate([crowd.indptr, crowd.indptr[-1] + more.indptr[1:]]),
        items=np.concatenate([crowd.items, more.items]),
        values=np.concatenate([crowd.values, more.values]),
    )


def known_worst(n_items: int, scale: Scale) -> list[Person]:
    """Return those who come nearest to bounds, and those who would pass them if anything took ratings on trust."""
    all_items, lo, hi = np.arange(n_items), scale.lo, scale.hi
    split = np.where(all_items % 2, hi, lo)
    return [
        Person.of([0], [hi], "one item, highest"),
        Person.of([n_items - 1], [lo], "one item, lowest"),
        Person.of(all_items[:2], [hi, lo], "two items, opposite"),
        Person.of(all_items, np.full(n_items, hi), "everything, highest"),
        Person.of(all_items, np.full(n_items, lo), "everything, lowest"),
        Person.of(all_items, split, "everything, opposite"),
        Person.of(all_items[: n_items // 2], split[: n_items // 2], "half, opposite"),
        Person.of(np.tile(all_items, _OFTEN), np.tile(split, _OFTEN), "everything a thousand times"),
        Person.of(all_items, _FAR * (split - scale.middle), "off the scale"),
        Person.of(all_items[::-1], split, "out of order"),
    ]


def random_person(n_items: int, scale: Scale, rng: np.random.Generator) -> Person:
    """Return somebody with any number of items, at the ends of the scale or in between."""
    count = int(np.exp(rng.uniform(0, np.log(n_items + 1))))
    items = np.sort(rng.choice(n_items, min(max(count, 1), n_items), replace=False))
    ends = rng.choice([scale.lo, scale.hi], len(items))
    values = ends if rng.random() < 0.7 else rng.uniform(scale.lo, scale.hi, len(items))
    return Person.of(items, values, "random")


def changed(person: Person, n_items: int, scale: Scale, rng: np.random.Generator) -> Person:
    """Return a person with an item more, an item less, or another value: a step of hill climbing."""
    rated = dict(zip(person.items.tolist(), person.values.tolist(), strict=True))
    for _ in range(int(rng.integers(1, 4))):
        item = int(rng.integers(n_items))
        if item in rated and len(rated) > 1 and rng.random() < 0.4:
            del rated[item]
        else:
            rated[item] = float(rng.choice([scale.lo, scale.hi, rng.uniform(scale.lo, scale.hi)]))
    items = sorted(rated)
    return Person.of(items, [rated[item] for item in items], "hill climbing")
