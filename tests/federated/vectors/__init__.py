"""Test vectors of version 2 of the wire: what Python computes, for other implementations to compare with.

`python -m tests.federated.vectors` writes wire2.json again. A test demands that it is what Python computes now, and
`tests/serve/test_join_maths.py` that the page computes the same. Bytes are hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_elements
from dpmf.federated.wire.ring import Ring
from dpmf.privacy import GaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.discrete import LEVELS, Scratch, Table, columns_of, table_of
from dpmf.privacy.noise import STEPS_PER_SD

FILE = Path(__file__).parent / "wire2.json"
NUMBERS = (
    0,
    1,
    -1,
    255,
    -256,
    2**31,
    -(2**31),
    2**32 - 1,
    2**32,
    -(2**32) - 1,
    2**38 + 3,
    -(2**45),
    2**53 - 1,
    1 - 2**53,
)
SHARES = (1, 2, 7, 943, 1 << 20)
N_DRAWN = 40


def vectors() -> dict[str, Any]:
    """Return all vectors, in plain JSON types."""
    return {
        "channel": channel(),
        "masks": [masked(n_bytes) for n_bytes in range(1, 9)],
        "noise": [noise(n_shares) for n_shares in SHARES],
        "epsilons": epsilons(),
    }


def channel() -> dict[str, Any]:
    """Return what two parties with known keys seal for each other."""
    one, other = keys_of(bytes(range(32))), keys_of(bytes(range(32, 64)))
    there, back = Channel(one, other.public, 2), Channel(other, one.public, 2)
    contents = [b"", b"hello", bytes(100)]
    return {
        "private": [bytes(range(32)).hex(), bytes(range(32, 64)).hex()],
        "public": [one.public.hex(), other.public.hex()],
        "contents": [content.hex() for content in contents],
        "there": [there.seal(content).hex() for content in contents],
        "back": [back.seal(content).hex() for content in contents],
    }


def keys_of(private: bytes) -> KeyPair:
    """Return keys that are known, for tests alone."""
    keys = KeyPair()
    keys._private = X25519PrivateKey.from_private_bytes(private)
    keys.public = keys._private.public_key().public_bytes_raw()
    return keys


def masked(n_bytes: int) -> dict[str, Any]:
    """Return numbers behind a mask, packed."""
    ring, seed = Ring(n_bytes), hashlib.sha256(b"mask %d" % n_bytes).digest()
    elements = ring.elements(np.array(NUMBERS, np.int64)) + mask_elements(seed, ring, len(NUMBERS), version=2)
    return {
        "numbers": list(NUMBERS),
        "seed": seed.hex(),
        "bytes": n_bytes,
        "packed": ring.packed(elements).hex(),
    }


def noise(n_shares: int) -> dict[str, Any]:
    """Return a table of the sampler as a digest, and what it makes of known bits: some on the very edge of a column."""
    table = table_of(Fraction(STEPS_PER_SD**2, n_shares))
    generator = hashlib.shake_256(b"noise %d" % n_shares).digest(LEVELS * N_DRAWN * 4 + 1024)
    words = np.frombuffer(generator, "<u4", LEVELS * N_DRAWN).reshape(LEVELS, N_DRAWN).copy()
    edges = np.flatnonzero(table.moves)[:: max(1, len(table.moves) // 8)][:6]
    words[:, : len(edges)] = table.thresholds[edges]
    refining = [generator[-512 + 16 * place :][:16] for place in range(30)]
    return {
        "shares": n_shares,
        "table": digest_of(table),
        "words": [level.tobytes().hex() for level in words],
        "refining": [one.hex() for one in refining],
        "drawn": drawn(table, words, iter(refining)),
    }


def digest_of(table: Table) -> str:
    """Return the SHA-256 of thresholds, of the distances of columns, and of the further bits of thresholds."""
    further = b"".join(one.to_bytes(16, "little") for one in table.refined)
    return hashlib.sha256(table.thresholds.tobytes() + table.moves.tobytes() + further).hexdigest()


def drawn(table: Table, words: np.ndarray[Any, Any], refining: Any) -> list[int]:
    """Return what `Noise.shares` makes of these bits."""
    refine: Callable[[memoryview], bytes] = lambda _: next(refining)  # noqa: E731
    numbers = np.zeros(N_DRAWN, np.int64)
    for level in words:
        scratch = Scratch.of(N_DRAWN)
        scratch.words[:] = level
        numbers = numbers * table.stretch + columns_of(table, scratch, refine)
    found: list[int] = (numbers - table.centre * (table.stretch**2 + table.stretch + 1)).tolist()
    return found


def epsilons() -> list[dict[str, Any]]:
    """Return what some releases cost together."""
    some = [
        (4.0, 16, 0, 1e-6),
        (0.3, 1, 10**6, 1e-6),
        (50.0, 3, 10**9, 1e-9),
        (1.7, 9, 10**12, 1e-5),
        (0.9, 1, 10, 0.5),
    ]
    found = []
    for multiplier, count, coordinates, delta in some:
        event = GaussianEvent("sums", multiplier, count, coordinates)
        found.append({"events": [event.to_json()], "delta": delta, "epsilon": round(epsilon_of([event], delta), 9)})
    return found


def text() -> str:
    """Return the file."""
    return json.dumps(vectors(), indent=1) + "\n"
