"""Words that hide others: the key stream of a cipher, made from a seed of 32 bytes by whoever has it.

>>> seed = new_seed()
>>> bool((mask_words(seed, Ring(4), 5) == mask_words(seed, Ring(4), 3, 3).ravel()[:5]).all())
True
"""

from __future__ import annotations

import math
import secrets
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from dpmf.federated.wire.ring import Ring

SEED_BYTES = 32
_ZEROS = memoryview(bytes(1 << 16))
_NONCE = bytes(16)


def new_seed() -> bytes:
    """Return a seed from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def mask_words(seed: bytes, ring: Ring, *shape: int) -> NDArray[Any]:
    """Return words that are uniform for whoever does not have the seed: the key stream of ChaCha20.

    A seed is used for one purpose: whoever needs words for two takes the first for one and the others for the other.
    """
    n_bytes = math.prod(shape) * ring.dtype.itemsize
    stream = Cipher(algorithms.ChaCha20(seed, _NONCE), mode=None).encryptor()
    zeros = _ZEROS[:n_bytes] if n_bytes <= len(_ZEROS) else bytes(n_bytes)
    return np.frombuffer(stream.update(zeros), ring.dtype).reshape(shape)
