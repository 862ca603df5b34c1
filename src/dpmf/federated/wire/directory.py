"""The users that a party knows, one key for each number at a time, and one number for each key for good.

If one key had two numbers, somebody could relay one person's answer twice, and it would count twice.

>>> directory = Directory(KeyPair(), Refusals("the third party"))
>>> ann = KeyPair()
>>> directory.admit(7, ann.public), directory.admit(8, ann.public)
(True, False)
>>> 7 in directory, 8 in directory
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection

from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.refusals import Refusals, Refused


class Directory:
    """Users by number, with a sealed channel to each.

    Args:
        own: the party's keys.
        refusals: where refusals are recorded.
        reserved: public keys of other parties, which no user may have.
        version: of the wire.
    """

    def __init__(self, own: KeyPair, refusals: Refusals, reserved: Collection[bytes] = (), version: int = 1) -> None:
        self._own, self._refusals, self._version = own, refusals, version
        self._channels: dict[int, Channel] = {}
        self._reserved = set(reserved)

    def reserve(self, public: bytes) -> None:
        """Reserve the public key of another party."""
        self._reserved.add(public)

    def admit(self, user: int, public: bytes) -> bool:
        """Register a user, or refuse to; return whether they are registered now."""
        return self._register(user, public, is_known=False)

    def renew(self, user: int, public: bytes) -> bool:
        """Replace the key of a user, whose device has started again; messages under the old one open no more."""
        return self._register(user, public, is_known=True)

    def _register(self, user: int, public: bytes, *, is_known: bool) -> bool:
        try:
            if (user in self._channels) != is_known:
                raise Refused(f"the user is {'not known' if is_known else 'known already'}")
            if public in self._reserved:
                raise Refused("the key is known already")
            self._channels[user] = Channel(self._own, public, self._version)
            self._reserved.add(public)
        except Refused as refusal:
            self._refusals.note(refusal)
            return False
        return True

    def open(self, user: int, message: bytes) -> bytes:
        """Return the content of a user's message, or refuse it."""
        if user not in self._channels:
            raise Refused("the sender is not known")
        return self._channels[user].open(message)

    def seal(self, user: int, content: bytes) -> bytes:
        """Return content sealed for a user."""
        return self._channels[user].seal(content)

    def __contains__(self, user: object) -> bool:
        return user in self._channels

    def __repr__(self) -> str:
        return "Directory(…)"
