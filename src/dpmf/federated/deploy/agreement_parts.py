"""Parts of an agreement: who the two servers are, who may take part, and when."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from dpmf.errors import InvalidArgument
from dpmf.federated.deploy.identity import KEY_BYTES

RECOMMENDER, THIRD_PARTY = "recommender", "third_party"
ROLES = (RECOMMENDER, THIRD_PARTY)
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Server:
    """One of the two servers, as the agreement states it.

    Attributes:
        name: of whoever operates it, for people.
        url: where it is, wss://host:port; ws:// on loopback only.
        key: its Ed25519 identity.
        roots: certificates in PEM; if there are any, only these, and what they signed, are accepted for this server.
    """

    name: str
    url: str
    key: bytes
    roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise InvalidArgument(f"{self.url!r} is no address of a server: write it as wss://host:port")
        if parts.scheme == "ws" and not is_loopback(parts.hostname):
            raise InvalidArgument(f"{self.url} would not be encrypted: write wss://, ws:// is for this machine alone")
        if len(self.key) != KEY_BYTES:
            raise InvalidArgument(f"the key of {self.name} has {len(self.key)} bytes instead of {KEY_BYTES}")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"name": self.name, "url": self.url, "key": self.key.hex(), "roots": list(self.roots)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Server:
        """Read what `to_json` wrote."""
        roots = tuple(str(one) for one in content["roots"])
        return cls(str(content["name"]), str(content["url"]).rstrip("/"), bytes.fromhex(content["key"]), roots)


@dataclass(frozen=True)
class Admission:
    """Who may take part.

    Attributes:
        by: who decides that, for people.
        most: handles are below this number.
        key: of the inviter, who certifies participants; None with a list.
        list_sha256: of the file that lists participants' public keys; "" with invitations.
    """

    by: str
    most: int
    key: bytes | None = None
    list_sha256: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 1 << 20:
            raise InvalidArgument(f"{self.most} people may be invited: give a number from 1 to {1 << 20}")
        if (self.key is None) != bool(self.list_sha256):
            raise InvalidArgument("people are either invited or listed: give an inviter's key, or a list of keys")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        common = {"by": self.by, "most": self.most}
        if self.key is not None:
            return {"kind": "invitations", "key": self.key.hex(), **common}
        return {"kind": "list", "sha256": self.list_sha256, **common}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Admission:
        """Read what `to_json` wrote."""
        if content["kind"] == "invitations":
            return cls(str(content["by"]), int(content["most"]), bytes.fromhex(content["key"]))
        if content["kind"] == "list":
            return cls(str(content["by"]), int(content["most"]), None, str(content["sha256"]))
        raise ValueError(f"admission by {content['kind']!r} is not known")


@dataclass(frozen=True)
class Timing:
    """When the run is, and how long a round may take.

    Attributes:
        begins, ends: people join in between.
        round_seconds: how long the third party waits for answers.
        grace_seconds: how long it waits for people whose connection was lost.
    """

    begins: datetime
    ends: datetime
    round_seconds: float = 60.0
    grace_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not self.begins < self.ends:
            raise InvalidArgument(f"the run ends at {self.ends:{_TIME}}, before it begins: give a later date")
        for name, value in (("round", self.round_seconds), ("grace", self.grace_seconds)):
            if not 0 < value <= 86400:
                raise InvalidArgument(f"{value:g} seconds of {name} are out of range: give a number up to 86400")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        dates = {name: getattr(self, name).astimezone(UTC).strftime(_TIME) for name in ("begins", "ends")}
        return {**dates, "round_seconds": self.round_seconds, "grace_seconds": self.grace_seconds}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Timing:
        """Read what `to_json` wrote."""
        begins, ends = (datetime.strptime(str(content[one]), _TIME).replace(tzinfo=UTC) for one in ("begins", "ends"))
        return cls(begins, ends, float(content["round_seconds"]), float(content["grace_seconds"]))


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
