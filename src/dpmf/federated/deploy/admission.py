"""Who may take part: invitations that an inviter signs, or a list of public keys. Both servers check for themselves.

Whoever invites decides who the people are. A recommender that could invent people could fill a round with them but for
one; so a server takes no other server's word for who somebody is, and an invitation is a key that never leaves the
participant: neither server can use it.

>>> inviter = from_seed(bytes(32))
>>> invitation = invite(inviter, agreement_id=bytes(32), handle=7)
>>> Invitation.parse(invitation.text()) == invitation
True
>>> admits, public = Invited(public_of(inviter), bytes(32), most=10), public_of(invitation.key)
>>> [admits(handle, public, invitation.certificate) for handle in (7, 8)]
[True, False]
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.errors import InvalidArgument, NotVerified
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.agreement_parts import Admission
from dpmf.federated.deploy.identity import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    from_seed,
    is_signed,
    public_of,
    signed,
)
from dpmf.files import new_file

_PREFIX = "dpmf-invitation-1:"
_HANDLE = struct.Struct("<I")
_MOST_LIST_BYTES = 1 << 27

Admits = Callable[[int, bytes, bytes], bool]
"""Takes a handle, a participant's public key and a certificate, and says whether they may take part."""


@dataclass(frozen=True, repr=False)
class Invitation:
    """What one person gets, and keeps to themselves.

    Attributes:
        handle: the participant's number.
        seed: of the private key.
        certificate: by the inviter; empty if the public key is on the agreement's list.
    """

    handle: int
    seed: bytes
    certificate: bytes = b""

    @property
    def key(self) -> Ed25519PrivateKey:
        """The private key."""
        return from_seed(self.seed)

    def text(self) -> str:
        """Return the invitation as it is handed over."""
        content = _HANDLE.pack(self.handle) + self.seed + self.certificate
        return _PREFIX + base64.urlsafe_b64encode(content).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Read what `text` wrote."""
        prefix, _, rest = text.strip().partition(":")
        try:
            content = base64.b64decode(rest + "=" * (-len(rest) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            content = b""
        start = _HANDLE.size + KEY_BYTES
        if f"{prefix}:" != _PREFIX or len(content) not in (start, start + SIGNATURE_BYTES):
            raise InvalidArgument(f"this is no invitation, or a part of one: it should begin with {_PREFIX}")
        return cls(_HANDLE.unpack_from(content)[0], content[_HANDLE.size : start], content[start:])

    @classmethod
    def read(cls, path: Path) -> Invitation:
        """Read an invitation from a file that holds nothing else."""
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise InvalidArgument(f"cannot read the invitation {path}: {error.strerror}") from None
        if len(text.split()) != 1:
            raise InvalidArgument(f"{path} should hold one invitation, and nothing else")
        return cls.parse(text)

    def __repr__(self) -> str:
        return f"Invitation({self.handle})"


def invite(inviter: Ed25519PrivateKey, agreement_id: bytes, handle: int) -> Invitation:
    """Return a new invitation."""
    key = Ed25519PrivateKey.generate()
    certificate = signed(inviter, "invitation", _invited(agreement_id, handle, public_of(key)))
    return Invitation(handle, key.private_bytes_raw(), certificate)


def invite_many(file: AgreementFile, inviter: Ed25519PrivateKey, handles: Sequence[int]) -> list[Invitation]:
    """Return invitations to an agreement, whose inviter the key has to be of."""
    admission = file.admission
    if admission.key is None:
        raise InvalidArgument("the agreement admits people by a list of keys: there is nobody to invite")
    if admission.key != public_of(inviter):
        raise InvalidArgument("the key is not the inviter's that the agreement states: use that one")
    if handles and not 0 <= min(handles) <= max(handles) < admission.most:
        raise InvalidArgument(f"invitations are numbered from 0 to {admission.most - 1} in this agreement")
    return [invite(inviter, file.id, handle) for handle in handles]


def write_invitations(invitations: Sequence[Invitation], folder: Path) -> None:
    """Write a file for each invitation, for its owner alone; a file that is there already is not replaced."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    paths = [folder / f"invitation-{one.handle:07d}.txt" for one in invitations]
    for path in paths:
        if path.exists():
            raise InvalidArgument(f"{path} is there already: invite other numbers, or choose another folder")
    for one, path in zip(invitations, paths, strict=True):
        with new_file(path, mode=0o600) as temporary:
            temporary.write_text(one.text() + "\n")


@dataclass(frozen=True)
class Invited:
    """Admits whoever the inviter certified for this agreement."""

    inviter: bytes
    agreement_id: bytes
    most: int

    def __call__(self, handle: int, public: bytes, certificate: bytes) -> bool:
        """Return whether a participant is admitted."""
        content = _invited(self.agreement_id, handle, public) if 0 <= handle < self.most else b""
        return bool(content) and is_signed(self.inviter, "invitation", content, certificate)


@dataclass(frozen=True)
class Listed:
    """Admits whoever is on a list of public keys; the place in it is the handle."""

    keys: Sequence[bytes]

    def __call__(self, handle: int, public: bytes, certificate: bytes) -> bool:
        """Return whether a participant is admitted."""
        return 0 <= handle < len(self.keys) and self.keys[handle] == public


def admission_of(file: AgreementFile, listed: Path | None = None) -> Admits:
    """Return who an agreement admits; if that is by a list, the file is needed."""
    admission = file.admission
    if admission.key is not None:
        if listed is not None:
            raise InvalidArgument("the agreement admits people by invitation: leave the list out")
        return Invited(admission.key, file.id, admission.most)
    if listed is None:
        raise InvalidArgument("the agreement admits people by a list of keys: give that file, too")
    keys, digest = read_list(listed)
    if digest != admission.list_sha256:
        raise NotVerified(f"{listed} is not the list of the agreement: get the one that both operators agreed on")
    return Listed(keys)


def list_admission(by: str, listed: Path) -> Admission:
    """Return admission by a list."""
    keys, digest = read_list(listed)
    return Admission(by, len(keys), None, digest)


def read_list(path: Path) -> tuple[list[bytes], str]:
    """Return the keys in a file, one in hexadecimal digits per line, and the SHA-256 of the file."""
    try:
        if path.stat().st_size > _MOST_LIST_BYTES:
            raise InvalidArgument(f"{path} is too long for a list of keys")
        content = path.read_bytes()
        keys = [bytes.fromhex(line) for line in content.decode("ascii").split()]
    except OSError as error:
        raise InvalidArgument(f"cannot read the list {path}: {error.strerror}") from None
    except ValueError:
        raise InvalidArgument(f"{path} should have a public key of 64 hexadecimal digits in every line") from None
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise InvalidArgument(f"{path} should have a public key of 64 hexadecimal digits in every line")
    if len(set(keys)) != len(keys):
        raise InvalidArgument(f"{path} has a key twice: everybody needs their own")
    return keys, hashlib.sha256(content).hexdigest()


def _invited(agreement_id: bytes, handle: int, public: bytes) -> bytes:
    return agreement_id + _HANDLE.pack(handle) + public
