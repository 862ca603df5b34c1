"""Seeded randomness: every purpose has a stream of its own, and every id a key of its own.

A shared stream would let one person's ratings shift what is drawn for the next person. So nothing here is drawn "in
turn": a purpose gets a 64-bit key from the seed, an id gets a 64-bit key from itself, and kernels mix the two.

>>> bool(stream_key(7, "split") == stream_key(7, "split"))
True
>>> bool(stream_key(7, "split") == stream_key(7, "order"))
False

Nothing in this module may be used for privacy noise, which is never seeded.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def stream_key(seed: int, purpose: str) -> np.uint64:
    """Return the 64-bit key of one purpose under one seed."""
    key = str(int(seed)).encode()
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        key = hashlib.blake2b(key).digest()
    digest = hashlib.blake2b(purpose.encode(), digest_size=8, key=key).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a NumPy generator for work that touches no person's data, such as making synthetic sets."""
    return np.random.default_rng(int(stream_key(seed, purpose)))


def id_keys(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Return one 64-bit key per id, a function of that id alone; "7" and 7 are the same id.

    Args:
        ids: shape (n,), integers or an object array of strings.

    >>> keys = id_keys(np.array([3, 5]))
    >>> keys[1] == id_keys(np.array([5]))[0]
    np.True_
    """
    if ids.dtype.kind in "iu":
        return mix(ids.astype(np.int64).view(np.uint64))
    named = [str(one) for one in ids]
    numbers = [as_integer(one) for one in named]
    spelt = np.array([number is not None for number in numbers], np.bool_)
    keys = np.empty(len(ids), np.uint64)
    keys[spelt] = mix(np.array([number for number in numbers if number is not None], np.int64).view(np.uint64))
    texts = [one.encode("utf-8", "surrogatepass") for one, number in zip(named, numbers, strict=True) if number is None]
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    keys[~spelt] = np.frombuffer(digests, dtype="<u8")
    return keys


def as_integer(text: str) -> int | None:
    """Return the 64-bit integer that a text spells in the usual way: "7", not "007" or " 7"."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and fits(number) else None


def fits(number: int) -> bool:
    """Tell whether an integer has 64 bits."""
    return -(1 << 63) <= number < 1 << 63


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's output function of each value: a bijection that scatters neighbours far apart."""
    mixed = values + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
