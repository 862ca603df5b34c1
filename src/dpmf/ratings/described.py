"""What is said about items beyond titles and genres, as numbers: further columns of a list, or a matrix of features.

A column holds numbers, categories, several categories an item (with "|" between them), or text; what it holds is told
from all of its values, which are public. Each column becomes numbers of mean 0 whose squares add up to 1 for an item on
average, so that a long text counts for no more than a number; many of them become the directions in which items differ
most. An item of which a column says nothing has zeros there.

>>> authors, pages = ["Le Guin"] * 5 + ["Lem"] * 5, [str(number) for number in range(100, 200, 10)]
>>> group = description("a list", "", {"author": authors, "pages": pages})
>>> group.columns.shape, group.what
((10, 4), 'author and pages of a list')
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
LEAST_ITEMS = 5  # that share a category or a word: of fewer, nothing can be learnt
MOST_NUMBERS = 64  # of an item, of all its columns together
_MOST_OF_COLUMN = 32  # of an item, of one column
_MOST_CATEGORIES, _MOST_WORDS = 100, 200  # the most frequent ones
_TEXT_WORDS = 3.0  # on average, from which on values that items hardly share are text
_SHARED = 0.5  # of the values: fewer that items share are no categories
_FARTHEST = 3.0  # standard deviations: a few odd numbers do not bend the rest
_CHUNK = 1 << 16  # items, of which products are added up at once
_MOST_NAMED = 6
_MISSING = ("", "na", "n/a", "nan", "none", "null")


class Description(NamedTuple):
    """Numbers that describe items.

    Attributes:
        what: what they were made of, as assumptions and messages call it.
        digest: the SHA-256 of the file that they were made of.
        columns: shape (n_items, C); of mean 0, and squared lengths have mean 1.
    """

    what: str
    digest: str
    columns: Floats


def description(of: str, digest: str, columns: Mapping[str, Sequence[str]]) -> Description | None:
    """Return what columns of texts say about items, in their order; None if they say nothing.

    Args:
        of: what they are columns of, in words.
        digest: of the file.
        columns: their values by name, one of each item, "" where unknown.
    """
    telling = {name: found for name, values in columns.items() if (found := encoded(values)).shape[1]}
    if not telling:
        return None
    return Description(f"{_listed(list(telling))} of {of}", digest, reduced(np.hstack(list(telling.values()))))


def matrix_description(what: str, digest: str, matrix: NDArray[Any]) -> Description | None:
    """Return what the rows of a matrix of numbers say, one of each item, NaN where unknown; None if it is nothing.

    Its columns may be in units of their own: each counts as its values differ, in standard deviations.
    """
    columns = matrix.astype(np.float64)
    known = np.isfinite(columns)
    counts = np.maximum(known.sum(axis=0), 1)
    columns = np.where(known, columns, 0.0)
    _, exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))
    columns = np.ldexp(columns, -exponents)  # numbers may be as large or small as there are, and no bit is lost
    columns -= np.where(known, columns.sum(axis=0) / counts, 0.0)
    spreads = np.sqrt(np.square(columns).sum(axis=0) / counts)
    differ = spreads > 0
    if not differ.any():
        return None
    cut = np.clip(columns[:, differ] / spreads[differ], -_FARTHEST, _FARTHEST)
    return Description(what, digest, reduced(cut.astype(np.float32)))


def encoded(values: Sequence[str]) -> Floats:
    """Return what one column of texts says, shape (n_items, C), as in `Description`; C is 0 if it says nothing."""
    texts = ["" if value.strip().lower() in _MISSING else value.strip() for value in values]
    numbers = _numbers(texts)
    found = _of_numbers(numbers) if numbers is not None else _of_texts(texts)
    return reduced(found, _MOST_OF_COLUMN)


def reduced(columns: NDArray[Any], most: int = MOST_NUMBERS) -> Floats:
    """Return columns as in `Description`; if there are too many, the directions in which items differ most."""
    columns = np.asarray(columns, np.float32)
    if not columns.size:
        return np.zeros((len(columns), 0), np.float32)
    columns = columns - columns.mean(axis=0, dtype=np.float64).astype(np.float32)
    if columns.shape[1] > most:
        columns = columns @ principal(columns, most).astype(np.float32)
    size = math.sqrt(float(np.square(columns, dtype=np.float64).sum()) / len(columns))
    return np.asarray(columns / size, np.float32) if size > 0 else columns[:, :0]


def principal(columns: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Return the directions in which rows differ most, shape (C, most), the first first; of mean 0 as they are given.

    A direction and its opposite are the same: the largest number of each is above 0.
    """
    width = columns.shape[1]
    gramian = np.zeros((width, width))
    for first in range(0, len(columns), _CHUNK):
        part = columns[first : first + _CHUNK].astype(np.float64)
        gramian += part.T @ part
    _, basis = np.linalg.eigh(gramian)  # ascending
    chosen = basis[:, : -most - 1 : -1]
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])])
    return np.asarray(chosen * np.where(signs == 0, 1.0, signs))


def _numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Return a column of numbers, NaN where there is none; None if some are no numbers, or there are none."""
    try:
        found = np.array([float(text) if text else math.nan for text in texts])
    except ValueError:
        return None
    return found if np.isfinite(found).any() and not np.isinf(found).any() else None


def _of_numbers(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standardised numbers and their squares, 0 where unknown; and whether they are known, if that differs."""
    known = np.isfinite(numbers)
    if numbers[known].min() == numbers[known].max():
        return _differing([known])
    scale = float(np.abs(numbers[known]).max())  # which may be as large as numbers are
    scaled = np.where(known, numbers, 0.0) / scale
    spread = float(scaled[known].std())
    standard = np.where(known, (scaled - scaled[known].mean()) / spread, 0.0)
    cut = np.clip(standard, -_FARTHEST, _FARTHEST)
    squares = np.where(known, cut**2 - np.square(cut[known]).mean(), 0.0)
    return np.column_stack([cut, squares / max(float(squares.std()), 1e-12), _differing([known])])


def _of_texts(texts: Sequence[str]) -> NDArray[Any]:
    """Return which categories items have, or which words, each item's in proportion to how many they are."""
    if any("|" in text for text in texts):
        return _shares([[one.strip() for one in text.split("|")] for text in texts], _MOST_CATEGORIES)
    given = [text for text in texts if text]
    counts = Counter(given)
    shared = sum(count for count in counts.values() if count >= LEAST_ITEMS)
    words = [re.findall(r"\w+", text.lower()) for text in texts]
    if shared < _SHARED * len(given) and sum(map(len, words)) >= _TEXT_WORDS * len(given):
        return _shares(words, _MOST_WORDS)
    return _shares([[text] for text in texts], _MOST_CATEGORIES)


def _shares(having: Sequence[Sequence[str]], most: int) -> NDArray[Any]:
    """Return a column for each of the most frequent tokens that enough items have, and enough have not."""
    rows = [dict.fromkeys(filter(None, tokens)) for tokens in having]
    counts = Counter(token for tokens in rows for token in tokens)
    telling = [token for token, count in counts.items() if LEAST_ITEMS <= count <= len(rows) - LEAST_ITEMS]
    chosen = sorted(sorted(telling, key=lambda token: (-counts[token], token))[:most])
    numbers = {token: number for number, token in enumerate(chosen)}
    found = np.zeros((len(rows), len(chosen)), np.float32)
    for place, tokens in enumerate(rows):
        mine = [numbers[token] for token in tokens if token in numbers]
        found[place, mine] = 1 / math.sqrt(max(len(mine), 1))
    return found


def _differing(masks: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Return masks as columns, without those that hold for hardly any item, or for nearly all."""
    enough = [mask for mask in masks if LEAST_ITEMS <= mask.sum() <= len(mask) - LEAST_ITEMS]
    return np.stack(enough, axis=1).astype(np.float64) if enough else np.zeros((len(masks[0]), 0))


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        shown = [*shown[:-1], f"{len(names) - _MOST_NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
