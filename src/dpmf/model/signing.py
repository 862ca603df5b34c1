"""Ed25519 signatures of releases.

A checksum reveals damage, a signature reveals tampering. Keys are PEM files, as created by
`openssl genpkey -algorithm ed25519 -out private.pem` and `openssl pkey -in private.pem -pubout -out public.pem`.
The digest of a release is signed, which covers all of it.

>>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
>>> key = Ed25519PrivateKey.generate()
>>> check_signature("5feceb66", sign("5feceb66", key), key.public_key())
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument, NotVerified

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_PURPOSE = b"dpmf-release:"  # so that a signature of something else never matches


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Return the key in a PEM file, or raise `InvalidArgument`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _content(path)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise InvalidArgument(f"the private key in {path} is encrypted: decrypt it first, with openssl pkey") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(
            f"{path} holds no private key in PEM form: {_how('genpkey -algorithm ed25519')}"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument(f"the private key in {path} is not an Ed25519 key: {_how('genpkey -algorithm ed25519')}")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the key in a PEM file, or raise `InvalidArgument`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _content(path)
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(f"{path} holds no public key in PEM form: {_how('pkey -pubout')}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument(f"the public key in {path} is not an Ed25519 key: {_how('pkey -pubout')}")
    return key


def sign(digest: str, key: Ed25519PrivateKey) -> str:
    """Return the signature of a digest, in hexadecimal digits."""
    return key.sign(_PURPOSE + digest.encode("ascii")).hex()


def check_signature(digest: object, signature: object, key: Ed25519PublicKey) -> None:
    """Raise `NotVerified` unless the owner of the key has signed the digest."""
    from cryptography.exceptions import InvalidSignature

    if not isinstance(digest, str) or signature is None:
        raise NotVerified("the release is not signed, and a public key was given: ask its publisher for a signed one")
    try:
        key.verify(bytes.fromhex(signature if isinstance(signature, str) else ""), _PURPOSE + digest.encode("ascii"))
    except (InvalidSignature, ValueError):
        raise NotVerified("the signature of the release does not match the public key: do not trust it") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"cannot read the key {path}: {error.strerror}") from None


def _how(command: str) -> str:
    return f"create one with openssl {command}"
