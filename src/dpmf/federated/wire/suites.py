"""The ciphers of the two versions of the wire; all parties of a run use the same one.

Version 1 is ChaCha20 throughout. Version 2 uses only what browsers offer by themselves (WebCrypto), so that a page can
be a party: AES-256 in Galois/counter mode for seals, in counter mode for masks, and SHA-256 for digests. Key agreement
is X25519 with HKDF-SHA-256 in both.

>>> len(suite_of(2).seal_of(bytes(32)).encrypt(bytes(12), b"hello", None))
21
>>> suite_of(3)
Traceback (most recent call last):
dpmf.errors.InvalidArgument: wire=3 is not a version of the wire: choose 1 or 2
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from dpmf.errors import InvalidArgument

Seal: TypeAlias = ChaCha20Poly1305 | AESGCM

_START = bytes(16)  # of a key stream: block counter and nonce, zero because no key is used for two streams


@dataclass(frozen=True)
class Suite:
    """The ciphers of one version.

    Attributes:
        version: the first byte of every message.
        seal_of: makes the authenticated cipher of a channel of a key of 32 bytes; nonces have 12 bytes, tags 16.
        key_stream_of: starts the key stream of a key of 32 bytes; it encrypts zeros.
        digest: maps bytes to a digest of 16.
        stream: what hides masked elements, in words.
        ciphers: what seals, masks, digests and noise rest on beside X25519, in words.
    """

    version: int
    seal_of: Callable[[bytes], Seal]
    key_stream_of: Callable[[bytes], CipherContext]
    digest: Callable[[bytes], bytes]
    stream: str
    ciphers: str

    @property
    def channel_info(self) -> bytes:
        """What keys of channels are derived for, so that no key serves two versions."""
        return b"dpmf federated channel %d" % self.version


def _chacha_stream(key: bytes) -> CipherContext:
    return Cipher(algorithms.ChaCha20(key, _START), mode=None).encryptor()


def _aes_stream(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(_START)).encryptor()


def _blake(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:16]


_SUITES: Mapping[int, Suite] = MappingProxyType({
    1: Suite(1, ChaCha20Poly1305, _chacha_stream, _blake, "ChaCha20", "ChaCha20, Poly1305, X25519 and BLAKE2b"),
    2: Suite(2, AESGCM, _aes_stream, _sha, "AES-256", "AES-256, SHA-256, ChaCha20, X25519 and BLAKE2b"),
})  # fmt: skip


def suite_of(version: int) -> Suite:
    """Return the ciphers of a version."""
    if version not in _SUITES:
        raise InvalidArgument(f"wire={version!r} is not a version of the wire: choose 1 or 2")
    return _SUITES[version]
