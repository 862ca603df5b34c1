"""Which items may be recommended, and the best of them: selection, whatever the scores mean.

>>> import numpy as np
>>> items = Items.of([1, 2, 3, 4], ["Heat", "Ronin", "Alien", "Up"], ["Crime", "Crime", "Horror", ""])
>>> scores = np.array([4, 3, 2, 1], np.float32)
>>> select_best(scores, 2).tolist()
[0, 1]
>>> select_best(scores, 2, find_filters(items, most_per_genre=1)).tolist()
[0, 2]
>>> select_best(scores, 9, find_filters(items, exclude=["Alien"], exclude_genres=["Crime"])).tolist()
[3]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, UnknownId
from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.scores import NEVER, skip_full_groups
from dpmf.ratings import Items

_GROWTH = 4  # the ranking is extended by this factor for as long as limits leave a list too short
_MOST_NAMED = 20  # genres in a message


class Wanted(TypedDict, total=False):
    """What `find_filters` takes."""

    only: Iterable[object] | None
    exclude: Iterable[object]
    only_genres: Iterable[str] | None
    exclude_genres: Iterable[str]
    most_per_genre: int | None


class Choice(Wanted, total=False):
    """What `Person.recommend` takes beside the length of a list."""

    include_rated: bool


class GenreLimit(NamedTuple):
    """How many items of a list may have the same genre.

    Attributes:
        most: the number of items per genre, at most.
        n_genres: the number of genres.
        of_items: a row per item: the numbers of its genres.
    """

    most: int
    n_genres: int
    of_items: CsrPattern

    def walk(self, ranking: NDArray[np.int32], k: int) -> NDArray[np.int32]:
        """Return the first k items of a ranking, without those that come when one of their genres is full."""
        chosen = np.empty(k, np.int32)
        n_chosen = skip_full_groups(ranking, self.of_items, self.most, np.zeros(self.n_genres, np.int64), chosen)
        return chosen[:n_chosen]


class Filters(NamedTuple):
    """What may be in a list of recommendations; by default, anything.

    Attributes:
        allowed: shape (n_items,), whether an item may be in it; None for all items.
        limit: on items of the same genre; None for no limit.
    """

    allowed: NDArray[np.bool_] | None = None
    limit: GenreLimit | None = None


NO_FILTERS = Filters()


def find_filters(
    items: Items,
    *,
    only: Iterable[object] | None = None,
    exclude: Iterable[object] = (),
    only_genres: Iterable[str] | None = None,
    exclude_genres: Iterable[str] = (),
    most_per_genre: int | None = None,
) -> Filters:
    """Look up what `Person.recommend` takes in a catalogue.

    Raises:
        UnknownId: there is no such item or genre.
        InvalidArgument: a title belongs to several items, the limit is less than 1, or no item has a genre.
    """
    allowed = np.ones(len(items), np.bool_)
    if only is not None:
        allowed &= _mark(items, "only", only)
    if only_genres is not None:
        allowed &= _mark_genres(items, "only_genres", only_genres)
    allowed &= ~_mark(items, "exclude", exclude)
    allowed &= ~_mark_genres(items, "exclude_genres", exclude_genres)
    limit = None if most_per_genre is None else _limit(items, most_per_genre)
    return Filters(None if allowed.all() else allowed, limit)


def select_best(
    scores: NDArray[np.float32], k: int, filters: Filters = NO_FILTERS, order: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Return the positions of the k best items that pass the filters, best first; fewer if fewer pass.

    Args:
        scores: shape (n_items,), float32; NEVER or less for items that are no candidates.
        k: the length of the list, at most.
        filters: what may be in the list. A limit on genres is applied on the way down the ranking, which is sorted
            only as far as needed.
        order: all positions, in the order of items of equal score; ascending by default.
    """
    if filters.allowed is not None:
        scores = np.where(filters.allowed, scores, NEVER)
    if filters.limit is None:
        return _rank(scores, k, order)
    n_ranked = k = min(k, len(scores))
    while True:
        n_ranked = min(_GROWTH * n_ranked, len(scores))
        ranking = _rank(scores, n_ranked, order)
        chosen = filters.limit.walk(ranking, k)
        if len(chosen) == k or len(ranking) < n_ranked or n_ranked == len(scores):
            return chosen


def _rank(scores: NDArray[np.float32], k: int, order: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Return the positions of the k best candidates, or of all, best first."""
    ordered = scores if order is None else scores[order]
    found = np.flatnonzero(ordered > NEVER).astype(np.int32)
    if len(found) > k:  # only the scores that can be among the best are sorted
        candidates = ordered[found]
        found = found[candidates >= np.partition(candidates, -k)[-k]]
    found = found[np.argsort(-ordered[found], kind="stable")[:k]]
    return found if order is None else order[found]


def position_of(items: Items, item: object) -> int:
    """Return an item's position, or raise `UnknownId` with a suggestion."""
    position = items.find(item)
    if position is None:
        close = items.close_titles(str(item))
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "use an id or an exact title"
        raise UnknownId(f"item {item!r} is not in the catalogue: {hint}")
    return position


def check_k(k: int) -> None:
    """Refuse to recommend fewer than one item."""
    if k < 1:
        raise InvalidArgument(f"k={k}: ask for at least 1 item")


def _mark(items: Items, name: str, wanted: Iterable[object]) -> NDArray[np.bool_]:
    """Return for every item whether it is among those wanted."""
    marked = np.zeros(len(items), np.bool_)
    marked[[position_of(items, item) for item in _listed(name, wanted)]] = True
    return marked


def _mark_genres(items: Items, name: str, wanted: Iterable[str]) -> NDArray[np.bool_]:
    """Return for every item whether it has one of the genres."""
    marked = np.zeros(len(items), np.bool_)
    numbers = [_number_of(items, genre) for genre in _listed(name, wanted)]
    if numbers:
        indptr, genres = items.genre_table.of_items
        marked[np.repeat(np.arange(len(items)), np.diff(indptr))[np.isin(genres, numbers)]] = True
    return marked


def _listed(name: str, wanted: Iterable[object]) -> Iterable[object]:
    """Refuse a text in place of a list: its letters are neither items nor genres."""
    if isinstance(wanted, str | bytes):
        raise InvalidArgument(f"{name}={wanted!r} is not a list: give [{wanted!r}]")
    return wanted


def _number_of(items: Items, genre: object) -> int:
    """Return a genre's number, or raise `UnknownId` with a suggestion."""
    numbers = items.genre_table.numbers
    if not isinstance(genre, str) or genre not in numbers:
        close = [name for name in numbers if str(genre).casefold() in name.casefold()]
        names, rest = ", ".join(list(numbers)[:_MOST_NAMED]), ", …" if len(numbers) > _MOST_NAMED else ""
        hint = f"did you mean {' or '.join(map(repr, close[:3]))}?" if close else f"there are {names}{rest}"
        raise UnknownId(f"no item has the genre {genre!r}: {hint if numbers else 'this catalogue has no genres'}")
    return numbers[genre]


def _limit(items: Items, most: int) -> GenreLimit:
    """Return the limit, or refuse one that cannot be applied."""
    if most < 1:
        raise InvalidArgument(f"most_per_genre={most}: allow at least 1 item of a genre")
    numbers, of_items = items.genre_table
    if not numbers:
        raise InvalidArgument(
            f"most_per_genre={most} needs genres, and this catalogue has none: train with a catalogue item,title,genres"
        )
    return GenreLimit(most, len(numbers), of_items)
