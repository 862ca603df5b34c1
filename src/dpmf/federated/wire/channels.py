"""Sealed channels between two parties: no relay can read, change, replay or reflect a message.

Each party has its own X25519 key pair, generated in every process and never stored. Two parties derive two keys, one
for each direction (HKDF-SHA256 of their shared secret, bound to both public keys and to the version), and seal messages
with the authenticated cipher of their version: see `dpmf.federated.wire.suites`. The nonce is a counter that precedes
the sealed message; a message whose counter does not exceed that of the last message opened is refused.

>>> ann, bob = KeyPair(), KeyPair()
>>> there, here = Channel(ann, bob.public), Channel(bob, ann.public)
>>> sealed = there.seal(b"hello")
>>> here.open(sealed)
b'hello'
>>> here.open(sealed)
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the message was received before, or is older than one that was
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dpmf.errors import InvalidArgument
from dpmf.federated.wire.refusals import Refused
from dpmf.federated.wire.suites import suite_of

_COUNTER_BYTES = 8
_TAG_BYTES = 16
OVERHEAD = _COUNTER_BYTES + _TAG_BYTES
"""How many bytes longer a message is once sealed."""


class KeyPair:
    """The keys of a party. The private one cannot be read, copied or pickled."""

    __slots__ = ("_private", "public")

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def shared_with(self, public: bytes) -> bytes:
        """Return the secret that only the two parties can compute."""
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise Refused("the public key is not valid") from None

    def __repr__(self) -> str:
        return "KeyPair(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("keys cannot be copied or pickled: make a new KeyPair()")


class Channel:
    """One end of a channel.

    Args:
        own: our keys.
        other: their public key.
        version: of the wire.
    """

    __slots__ = ("_incoming", "_opened", "_outgoing", "_process", "_sealed")

    def __init__(self, own: KeyPair, other: bytes, version: int = 1) -> None:
        suite = suite_of(version)
        if own.public == other:
            raise Refused("the public key is our own")
        ends = b"".join(sorted((own.public, other)))
        keys = HKDF(SHA256(), 64, salt=None, info=suite.channel_info + ends).derive(own.shared_with(other))
        first, second = (suite.seal_of(key) for key in (keys[:32], keys[32:]))
        self._outgoing, self._incoming = (first, second) if own.public < other else (second, first)
        self._sealed = self._opened = 0
        self._process = os.getpid()

    def seal(self, content: bytes) -> bytes:
        """Return content sealed, preceded by the counter."""
        if os.getpid() != self._process:
            raise InvalidArgument("the channel was made in another process: make a new one, or nonces would repeat")
        self._sealed += 1
        counter = self._sealed.to_bytes(_COUNTER_BYTES, "little")
        return counter + self._outgoing.encrypt(b"\0\0\0\0" + counter, content, None)

    def open(self, message: bytes) -> bytes:
        """Return the content of a sealed message, which has to be newer than all opened before.

        Raises:
            Refused: it is not from the other end, was tampered with, or is not new.
        """
        if len(message) < OVERHEAD:
            raise Refused("the message is too short to be sealed")
        counter = message[:_COUNTER_BYTES]
        number = int.from_bytes(counter, "little")
        if number <= self._opened:
            raise Refused("the message was received before, or is older than one that was")
        try:
            content = self._incoming.decrypt(b"\0\0\0\0" + counter, message[_COUNTER_BYTES:], None)
        except InvalidTag:
            raise Refused("the seal is broken") from None
        self._opened = number
        return content

    def __repr__(self) -> str:
        return "Channel(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("channels cannot be copied or pickled: their keys would be used twice")
