"""Masks: ring elements that hide others, the key stream of a cipher that anyone with its 32-byte seed can compute.

>>> seed = new_seed()
>>> bool((mask_elements(seed, Ring(4), 5) == mask_elements(seed, Ring(4), 3, 3).ravel()[:5]).all())
True
"""

from __future__ import annotations

import math
import secrets

import numpy as np

from dpmf.federated.wire.ring import Elements, Ring
from dpmf.federated.wire.suites import suite_of

SEED_BYTES = 32
_ZEROS = memoryview(bytes(1 << 16))


def new_seed() -> bytes:
    """Return a seed from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def mask_elements(seed: bytes, ring: Ring, *shape: int, version: int = 1) -> Elements:
    """Return elements that are uniform for anyone without the seed: the key stream of the version's cipher.

    A seed serves one purpose. For two masks, draw both in one call and split the elements.
    """
    n_bytes = math.prod(shape) * ring.dtype.itemsize
    stream = suite_of(version).key_stream_of(seed)
    zeros = _ZEROS[:n_bytes] if n_bytes <= len(_ZEROS) else bytes(n_bytes)
    return np.frombuffer(stream.update(zeros), ring.dtype).reshape(shape)
