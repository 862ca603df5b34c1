"""What a release has learnt beyond noise: of how many items, and whether of anybody's taste.

A certified run writes down how much of what it found stands out from the noise that it added. That is made of released
numbers alone, so it costs nothing, and it says how good a release is to those who cannot look at the ratings.

>>> found = Learnt(n_items=1682, factors=0, pairs=0, rated=0, popular=210)
>>> print(found)
no factors, no pairs of items, the ratings of none of 1,682 items, the popularity of 210 of 1,682 items (12 %)
>>> found.lack
'nothing beyond the popularity of items: lists are the same for everybody, and predictions each person’s own mean'
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpmf.model.release import Release

LEARNT = "learnt"
"""The name of the record in the configuration of a release."""
BEYOND = 3.0
"""Standard deviations of its noise above which a count is known to be more than noise."""
_BY_CHANCE = 0.1
_NUMBERS = ("factors", "rated", "popular")
_MASKS = ("with_factors", "with_ratings")
_BESIDE = ("leanings", "traits")


@dataclass(frozen=True)
class Learnt:
    """How much of a release is more than noise.

    Attributes:
        n_items: the size of the catalogue.
        factors: directions of taste that stand out from the noise for some item.
        pairs: items of which it is known what goes with them.
        rated: items of which it is known how they are rated; None if there is no rating model, or nobody knows.
        popular: items whose popularity is known; None as before.
        with_factors: shape (n_items,), the items whose factors are known; None for all that have any.
        with_ratings: shape (n_items,), the items of which it is known how they are rated, hardly any of them by chance;
            None for all. A list by expected ratings has the others last.
        leanings: how many factors, before the traits, are how popular and how well liked items are: everybody's leaning
            towards these is their own.
        traits: how many factors, the last ones, are public traits of the items, such as genres, rather than learnt:
            everybody's taste for them is their own.
        is_recorded: whether the run that made the release compared it with its noise. If not, everything that is not 0
            counts: without noise that is right, and else it is not known better.
    """

    n_items: int
    factors: int
    pairs: int
    rated: int | None = None
    popular: int | None = None
    with_factors: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)
    with_ratings: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)
    leanings: int = 0
    traits: int = 0
    is_recorded: bool = True

    @classmethod
    def of(cls, release: Release) -> Learnt:
        """Return what a release records, or else what can be told without a record."""
        n_items, ranking = len(release.items), release.ranking
        pairs = 0 if ranking is None else sum(map(ranking.knows, ranking.items.tolist()))
        record = release.configuration.get(LEARNT)
        if record is not None:
            return cls.from_json(record, n_items, pairs)
        exact = release.guarantee.mode == "none"
        return cls(
            n_items,
            release.n_used_factors,
            pairs,
            n_items if exact and release.predicts_ratings else None,
            n_items if exact and (release.ranks or release.is_implicit) else None,
            is_recorded=False,
        )

    @classmethod
    def from_json(cls, record: Any, n_items: int, pairs: int) -> Learnt:
        """Return what `record` returned, or raise ValueError."""
        if not isinstance(record, Mapping) or not set(record) <= {*_NUMBERS, *_MASKS, *_BESIDE}:
            raise ValueError("the record of what was learnt is damaged")
        numbers = {name: record.get(name) for name in _NUMBERS} | {name: record.get(name, 0) for name in _BESIDE}
        for name, number in numbers.items():
            if not (type(number) is int and number >= 0) and (number is not None or name in ("factors", *_BESIDE)):
                raise ValueError(f"{name}={number!r} in the record of what was learnt should be a whole number")
        masks = {name: _unpacked(record[name], n_items) for name in _MASKS if name in record}
        return cls(n_items, pairs=pairs, **numbers, **masks)  # type: ignore[arg-type]

    def record(self) -> dict[str, Any]:
        """Return what is written down: all but what tensors show."""
        found: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        found |= {name: number for name in _BESIDE if (number := getattr(self, name))}
        for name in _MASKS:
            if (mask := getattr(self, name)) is not None:
                found[name] = base64.b64encode(np.packbits(mask).tobytes()).decode()
        return found

    def to_json(self) -> dict[str, Any]:
        """Return what a report has."""
        numbers = {name: getattr(self, name) for name in ("n_items", "pairs", *_NUMBERS, *_BESIDE)}
        return {**numbers, "lack": self.lack}

    def knows(self, item: int) -> bool:
        """Whether it is known how an item (a position) is rated, or nobody says: else only descriptions tell of it."""
        return self.with_ratings is None or bool(self.with_ratings[item])

    @property
    def beside(self) -> int:
        """How many factors, the last ones, nobody measured."""
        return self.leanings + self.traits

    @property
    def is_personal(self) -> bool:
        """Whether anything is known of how tastes differ, or of items that one's own may go by."""
        return self.factors > 0 or self.pairs > 0 or self.beside > 0

    @property
    def lack(self) -> str | None:
        """What is missing, in words; None if nothing is that matters to lists."""
        if self.is_personal:
            return None
        known = {"the popularity of items": self.popular, "how well items are rated": self.rated}
        some = [what for what, number in known.items() if number]
        if not some and self.rated is None and self.popular is None:  # an older release, or one of another method
            return "nothing about how tastes differ: lists are the same for everybody"
        alike = "lists are the same for everybody"
        if self.rated == 0:
            alike += ", and predictions each person’s own mean"
        if not some:
            return "nothing beyond noise: its order of items is that of chance"
        return f"nothing beyond {' and '.join(some)}: {alike}"

    def __str__(self) -> str:
        said = [_number(self.factors, "factor"), f"{_number(self.pairs, 'item')} in pairs" if self.pairs else ""]
        said[1] = said[1] or "no pairs of items"
        for what, number in {"ratings": self.rated, "popularity": self.popular}.items():
            if number is not None:
                share = f" ({number / self.n_items:.0%})".replace("%", " %") if number else ""
                said.append(
                    f"the {what} of {number or 'none':{',' if number else ''}} of {self.n_items:,} items{share}"
                )
        if self.traits:
            said.append(f"and tastes go by {_number(self.traits, 'public trait')} of items")
        return ", ".join(said)


def beyond_chance(counts: NDArray[np.float64], noise: float | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which noisy counts stand out, of which a tenth at most do so by chance: a false discovery rate.

    Of many items that nobody has, some counts are more than `BEYOND` standard deviations of their noise. Where few
    others are, these would be among the first of every list.

    >>> counts = np.array([3.1, *[9.0] * 8, *[0.0] * 991])
    >>> int(beyond_chance(counts, 1.0).sum()), int(beyond_chance(counts[:30], 1.0).sum())
    (8, 9)
    """
    from scipy.special import ndtr

    deviations = counts / noise
    order = np.argsort(-deviations, kind="stable")
    by_chance = len(counts) * ndtr(-deviations[order])
    enough = np.flatnonzero(by_chance <= _BY_CHANCE * np.arange(1, len(counts) + 1))
    found = np.zeros(len(counts), np.bool_)
    found[order[: enough[-1] + 1 if len(enough) else 0]] = True
    return found & (deviations > BEYOND)


def _unpacked(packed: str, n_items: int) -> NDArray[np.bool_]:
    bits = np.frombuffer(base64.b64decode(packed, validate=True), np.uint8)
    if len(bits) != -(-n_items // 8):
        raise ValueError("the record of what was learnt is of another number of items")
    return np.unpackbits(bits, count=n_items).astype(np.bool_)


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}{'s' if count != 1 else ''}" if count else f"no {of}s"
