"""Links between items by their titles: parts of a series, seasons of a show, sequels.

Titles are public, so links cost no privacy. A title is compared with others in two ways, by the words and pairs of
adjacent words that are rare in the catalogue, and by what names its series: "Name" in "Title (Name, #2)", else the part
before a colon, a semicolon or a dash, without a number at its end. Each way is a cosine of weights log(titles / titles
that have it), and the similarity is the mean of both. Numbers never count. No language is assumed.

>>> found = links_of(["Dune (Dune, #1)", "Dune Messiah (Dune, #2)", "Alien (1979)", "Alien 3 (1992)", "Heat", "Emma"])
>>> found.first.tolist(), found.second.tolist(), found.similarity.round(2).tolist()
([0, 2], [1, 3], [0.59, 1.0])
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmf.ratings.items import Items

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LEAST_SIMILARITY = 0.1
_CLOSE = 0.3  # similar enough to count as covered
_OF_ONE_GROUP = 0.5  # whatever names the series is the same, or nearly everything else is
_MOST_SHARING = 100  # titles: what more of them have in common links none of them
_MOST_PER_ITEM = 10  # links, on average; the closest are kept
_BLOCK = 1_000  # titles that are compared with all others at a time
_DIGITS = 6  # of a similarity: sums that were formed in another order give the same list
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(st|nd|rd|th)?|[ivx]+")
_BRACKETS = re.compile(r"\(([^()]*)\)")
_SUBTITLE = re.compile(r"[:;]|\s[-–—]\s")


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """Pairs of items with similar titles, in ascending order.

    Attributes:
        first, second: catalogue positions, shape (P,); first < second.
        similarity: above 0 and up to 1, shape (P,).
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Links({len(self):,} pairs)"

    def coverage(self, n_items: int) -> float:
        """Return which part of a catalogue has a close link."""
        close = self.similarity >= _CLOSE
        return len(np.union1d(self.first[close], self.second[close])) / max(n_items, 1)

    def groups(self, n_items: int) -> NDArray[np.int32]:
        """Return the group of every item, named by its first member: a series, or the item alone.

        >>> links_of(["Dune (Dune, #1)", "Heat", "Emma", "Dune Messiah (Dune, #2)"]).groups(4).tolist()
        [0, 1, 2, 0]
        """
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        same = self.similarity >= _OF_ONE_GROUP
        edges = np.ones(np.count_nonzero(same), np.int8), (self.first[same], self.second[same])
        _, labels = connected_components(csr_matrix(edges, shape=(n_items, n_items)), directed=False)
        _, firsts, places = np.unique(labels, return_index=True, return_inverse=True)
        return firsts[places].astype(np.int32)


def catalogue_links(catalogue: Items) -> Links:
    """Return the links of a catalogue; an item whose title is its id has none."""
    ids = (str(one) for one in catalogue.ids)
    return links_of(["" if title == name else title for title, name in zip(catalogue.titles, ids, strict=True)])


def links_of(titles: Sequence[str]) -> Links:
    """Return the pairs of similar titles."""
    from scipy.sparse import hstack

    plain = [html.unescape(title) for title in titles]
    both = [_rare([_phrases(one) for one in plain]), _rare([_series(one) for one in plain])]
    features = (hstack(both, format="csr") * math.sqrt(1 / len(both))).tocsr()
    blocks = [_similar(features, start) for start in range(0, max(len(titles), 1), _BLOCK)]
    first, second, similarity = (np.concatenate(one) for one in zip(*blocks, strict=True))
    closest = np.lexsort((second, first, -similarity))[: _MOST_PER_ITEM * len(titles)]
    kept = np.sort(closest)  # pairs are found in ascending order
    return Links(first[kept], second[kept], np.minimum(similarity[kept], 1.0))


def _similar(features: csr_matrix, start: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return the similar pairs whose first title is in a block: all products at once may not fit into memory."""
    product = (features[start : start + _BLOCK] @ features[start:].T).tocoo()
    similarity = np.round(product.data, _DIGITS)
    found = np.flatnonzero((similarity >= LEAST_SIMILARITY) & (product.row < product.col))
    found = found[np.lexsort((product.col[found], product.row[found]))]
    first, second = ((start + one[found]).astype(np.int32) for one in (product.row, product.col))
    return first, second, similarity[found]


def _words(text: str) -> list[str]:
    """Return the words of a text, without accents, apostrophes and capitals.

    >>> _words("Ender's Game, VOL. 2: Pokémon")
    ['enders', 'game', 'vol', '2', 'pokemon']
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(one for one in letters if not unicodedata.combining(one) and one not in "'’")
    return _WORD.findall(bare)


def _is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None


def _phrases(title: str) -> set[str]:
    """Return the words of a title, and pairs of adjacent ones; numbers are left out.

    >>> sorted(_phrases("Star Trek IV: Home"))
    ['home', 'star', 'star trek', 'trek']
    """
    words = _words(title)
    pairs = {f"{one} {other}" for one, other in pairwise(words) if not (_is_number(one) or _is_number(other))}
    return pairs | {word for word in words if not _is_number(word)}


def _series(title: str) -> set[str]:
    """Return what names the series of a title; there may be several.

    >>> sorted(_series("Gemina (The Illuminae Files, #2; Other, #7)")), _series("Alien 3: Home (1992)")
    (['other', 'the illuminae files'], {'alien'})
    """
    numbered = [part for inner in _BRACKETS.findall(title) for part in inner.split(";") if "#" in part]
    names = {" ".join(_words(part.split("#")[0])) for part in numbered} - {""}
    if names:
        return names
    words = _words(_SUBTITLE.split(_BRACKETS.sub(" ", title))[0])
    while len(words) > 1 and _is_number(words[-1]):
        words.pop()
    return {" ".join(words)} - {""}


def _rare(having: Sequence[Collection[str]]) -> csr_matrix:
    """Return rows of length 1, of what each title has weighted by how rare it is; then without what links nothing."""
    from scipy.sparse import csr_matrix

    known = [sorted(one) for one in having]
    counts = Counter(feature for one in known for feature in one)
    columns = {feature: column for column, feature in enumerate(counts)}
    sizes = np.array(list(counts.values()), np.int64)
    places = np.array([columns[feature] for one in known for feature in one], np.int64)
    indptr = np.cumsum([0, *(len(one) for one in known)])
    weights = np.log(len(known) / sizes[places]) if len(places) else np.zeros(0)
    rows = np.repeat(np.arange(len(known)), np.diff(indptr))
    lengths = np.sqrt(np.bincount(rows, weights**2, len(known)))
    matrix = csr_matrix((weights / np.maximum(lengths, 1e-9)[rows], places, indptr), shape=(len(known), len(columns)))
    return matrix[:, np.flatnonzero((sizes >= 2) & (sizes <= _MOST_SHARING))]
