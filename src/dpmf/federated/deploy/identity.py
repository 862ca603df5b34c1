"""Ed25519 identities of servers, inviters and participants, and what they sign.

Every signature begins with what it is for, so that none can pass for another.

>>> key = Ed25519PrivateKey.generate()
>>> signature = signed(key, "session", b"what is signed")
>>> is_signed(public_of(key), "session", b"what is signed", signature)
True
>>> is_signed(public_of(key), "join", b"what is signed", signature)
False
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpmf.errors import InvalidArgument
from dpmf.files import new_file
from dpmf.model.signing import read_private_key, read_public_key

KEY_BYTES = 32
SIGNATURE_BYTES = 64


def signed(key: Ed25519PrivateKey, purpose: str, content: bytes) -> bytes:
    """Return the signature of content for one purpose."""
    return key.sign(_marked(purpose, content))


def is_signed(public: bytes, purpose: str, content: bytes, signature: bytes) -> bool:
    """Return whether the owner of a public key signed content for a purpose."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _marked(purpose, content))
    except (InvalidSignature, ValueError):
        return False
    return True


def public_of(key: Ed25519PrivateKey) -> bytes:
    """Return the public key of a private one."""
    return key.public_key().public_bytes_raw()


def from_seed(seed: bytes) -> Ed25519PrivateKey:
    """Return the private key that a seed stands for."""
    return Ed25519PrivateKey.from_private_bytes(seed)


def write_identity(path: Path) -> Ed25519PrivateKey:
    """Write a new private key to a file for its owner alone, and the public one beside it."""
    public = path.with_suffix(".pub")
    for file in (path, public):
        if file.exists():
            raise InvalidArgument(f"{file} is there already: keys are not replaced; choose another folder")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with new_file(path, mode=0o600) as temporary:
        temporary.write_bytes(private)
    with new_file(public) as temporary:
        temporary.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
    return key


def read_identity(path: Path) -> Ed25519PrivateKey:
    """Return the private key in a file, which nobody else may be able to read."""
    key = read_private_key(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InvalidArgument(f"others can read the private key in {path}: run chmod 600 {path}")
    return key


def read_public(path: Path) -> bytes:
    """Return the public key in a PEM file."""
    return read_public_key(path).public_bytes_raw()


def _marked(purpose: str, content: bytes) -> bytes:
    return b"dpmf-" + purpose.encode("ascii") + b":" + content
