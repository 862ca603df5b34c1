"""Words that hide others: the key stream of a cipher, made from a seed of 32 bytes by whoever has it.

>>> seed = new_seed()
>>> bool((mask_words(seed, MASK, 5, Ring(4)) == mask_words(seed, MASK, 9, Ring(4))[:5]).all())
True
>>> bool((mask_words(seed, MASK, 5, Ring(4)) == mask_words(seed, DEALT, 5, Ring(4))).any())
False
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.words import Ring

SEED_BYTES = 32
MASK, DEALT, SECRET = 1, 2, 3
"""What a stream is for: hiding an answer, dealing a piece of the fixed noise, or the third party's own secret."""

_ZEROS = memoryview(bytes(1 << 16))


def new_seed() -> bytes:
    """Return a seed from the operating system."""
    return secrets.token_bytes(SEED_BYTES)


def mask_words(seed: bytes, purpose: int, count: int, ring: Ring) -> NDArray[Any]:
    """Return words that are uniform for whoever does not have the seed: ChaCha20, the purpose being the nonce."""
    return np.frombuffer(_key_stream(seed, purpose, count * ring.dtype.itemsize), ring.dtype)


def _key_stream(seed: bytes, purpose: int, n_bytes: int) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    stream = Cipher(algorithms.ChaCha20(seed, bytes(8) + purpose.to_bytes(8, "little")), mode=None).encryptor()
    zeros = _ZEROS[:n_bytes] if n_bytes <= len(_ZEROS) else bytes(n_bytes)
    return stream.update(zeros)
