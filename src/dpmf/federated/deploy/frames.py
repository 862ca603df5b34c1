"""Control messages: one JSON object each, refused unless it is what it should be; and what parties sign in them.

>>> decoded(encoded("welcome"))
{'type': 'welcome'}
>>> decoded("[1]")
Traceback (most recent call last):
dpmf.federated.deploy.frames.Malformed: a control message is no JSON object with a type
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.errors import DpmfError
from dpmf.federated.deploy.identity import KEY_BYTES, SIGNATURE_BYTES, is_signed, signed

MOST_CONTROL_BYTES = 4096
JOIN_PATH, LINK_PATH = "/v1/join", "/v1/recommender"
_HANDLE = struct.Struct("<I")


class Close(IntEnum):
    """Why a connection is closed, as WebSocket close codes."""

    STOPPING = 1001
    NEW_SESSION = 1012
    MALFORMED = 4400
    REFUSED = 4401
    TOO_SLOW = 4408
    REPLACED = 4409
    TOO_LONG = 4413
    TOO_OFTEN = 4429


class Malformed(DpmfError):
    """A control message is not what it should be. The text reveals nothing of the content."""


def encoded(kind: str, **fields: Any) -> str:
    """Return a control message; bytes are written in hexadecimal digits."""
    written = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    return json.dumps({"type": kind, **written}, separators=(",", ":"))


def decoded(text: str) -> dict[str, Any]:
    """Return the fields of a control message."""
    try:
        found = json.loads(text)
    except (RecursionError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise Malformed("a control message is no JSON object with a type")
    return found


def take_bytes(message: Mapping[str, Any], name: str, length: int) -> bytes:
    """Return a field of bytes of a certain length."""
    try:
        found = bytes.fromhex(message[name])
    except (KeyError, TypeError, ValueError):
        found = b""
    if len(found) != length:
        raise Malformed(f"a control message lacks {name}, or has it in another form")
    return found


def take_number(message: Mapping[str, Any], name: str, below: int = 1 << 32) -> int:
    """Return a field that is a whole number from 0."""
    found = message.get(name)
    if type(found) is not int or not 0 <= found < below:
        raise Malformed(f"a control message lacks {name}, or has it in another form")
    return found


def hello(identity: Ed25519PrivateKey, role: str, agreement_id: bytes, public: bytes) -> str:
    """Return what a server says first: the key of its session, signed."""
    signature = signed(identity, "session", _session(role, agreement_id, public))
    return encoded("hello", role=role, agreement=agreement_id, public=public, signature=signature)


def public_in_hello(message: Mapping[str, Any], role: str, agreement_id: bytes, key: bytes) -> bytes:
    """Return the key of a server's session, or refuse it."""
    public, signature = (take_bytes(message, "public", KEY_BYTES), take_bytes(message, "signature", SIGNATURE_BYTES))
    if take_bytes(message, "agreement", len(agreement_id)) != agreement_id or message.get("role") != role:
        raise Malformed("the server is of another agreement, or plays another part in it")
    if not is_signed(key, "session", _session(role, agreement_id, public), signature):
        raise Malformed("the server is not the one of the agreement: its signature is wrong")
    return public


@dataclass(frozen=True)
class Join:
    """What a participant says first, to both servers alike.

    Attributes:
        handle: the participant's number.
        public: the X25519 key of the participant's session.
        sessions: those of the recommender and the third party.
        key: the participant's Ed25519 identity.
        certificate: of the inviter; empty with a list of keys.
        signature: over all of that, and the agreement.
    """

    handle: int
    public: bytes
    sessions: tuple[bytes, bytes]
    key: bytes
    certificate: bytes
    signature: bytes = b""

    def signed_with(self, key: Ed25519PrivateKey, agreement_id: bytes) -> str:
        """Return the message, signed."""
        signature = signed(key, "join", self._content(agreement_id))
        return encoded(
            "join", handle=self.handle, public=self.public, sessions=[one.hex() for one in self.sessions],
            key=self.key, certificate=self.certificate, signature=signature,
        )  # fmt: skip

    def is_signed(self, agreement_id: bytes) -> bool:
        """Return whether the owner of the key says so."""
        return is_signed(self.key, "join", self._content(agreement_id), self.signature)

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Join:
        """Read a message, or refuse it; the signature is not checked here."""
        sessions = message.get("sessions")
        if not isinstance(sessions, list) or len(sessions) != 2:
            raise Malformed("a control message lacks sessions, or has it in another form")
        both = [take_bytes({"sessions": one}, "sessions", KEY_BYTES) for one in sessions]
        certificate = take_bytes(message, "certificate", SIGNATURE_BYTES) if message.get("certificate") else b""
        return cls(
            take_number(message, "handle"),
            take_bytes(message, "public", KEY_BYTES),
            (both[0], both[1]),
            take_bytes(message, "key", KEY_BYTES),
            certificate,
            take_bytes(message, "signature", SIGNATURE_BYTES),
        )

    def _content(self, agreement_id: bytes) -> bytes:
        return agreement_id + _HANDLE.pack(self.handle) + self.public + b"".join(self.sessions)


def link_request(identity: Ed25519PrivateKey, agreement_id: bytes, nonce: bytes, public: bytes) -> str:
    """Return what the recommender answers to the third party's challenge."""
    signature = signed(identity, "link", agreement_id + nonce + public)
    return encoded("recommender", public=public, signature=signature)


def public_in_link(message: Mapping[str, Any], agreement_id: bytes, nonce: bytes, key: bytes) -> bytes:
    """Return the key of the recommender's session, or refuse it."""
    public, signature = (take_bytes(message, "public", KEY_BYTES), take_bytes(message, "signature", SIGNATURE_BYTES))
    if not is_signed(key, "link", agreement_id + nonce + public, signature):
        raise Malformed("whoever connects is not the recommender of the agreement")
    return public


def _session(role: str, agreement_id: bytes, public: bytes) -> bytes:
    return role.encode("ascii") + b":" + agreement_id + public
