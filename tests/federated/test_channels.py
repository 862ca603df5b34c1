"""Sealed channels: read by the other end alone, once, in order."""

from __future__ import annotations

import copy
import os
import pickle

import pytest

from dpmf.errors import InvalidArgument
from dpmf.federated.wire.channels import OVERHEAD, Channel, KeyPair
from dpmf.federated.wire.refusals import Refused


def pair() -> tuple[Channel, Channel]:
    one, other = KeyPair(), KeyPair()
    return Channel(one, other.public), Channel(other, one.public)


def test_both_directions_work_and_have_keys_of_their_own() -> None:
    here, there = pair()
    assert there.open(here.seal(b"ping")) == b"ping"
    assert here.open(there.seal(b"pong")) == b"pong"
    with pytest.raises(Refused, match="seal is broken"):
        here.open(here.seal(b"sent back to the sender"))


def test_a_sealed_message_tells_its_length_and_nothing_else() -> None:
    here, _ = pair()
    first, second = here.seal(b"the same"), here.seal(b"the same")
    assert len(first) == len(second) == len(b"the same") + OVERHEAD
    assert first[8:] != second[8:]
    assert b"the same" not in first


def test_messages_may_be_lost_but_not_repeated_or_overtaken() -> None:
    here, there = pair()
    first, second, third = (here.seal(bytes([number])) for number in range(3))
    assert there.open(first) == b"\0"
    assert there.open(third) == b"\2"
    for old in (first, second, third):
        with pytest.raises(Refused, match="received before"):
            there.open(old)


@pytest.mark.parametrize("place", [0, 7, 8, 20, -1])
def test_a_changed_message_is_refused_and_the_channel_goes_on(place: int) -> None:
    here, there = pair()
    sealed = bytearray(here.seal(b"some content that matters"))
    sealed[place] ^= 64
    with pytest.raises(Refused):
        there.open(bytes(sealed))
    assert there.open(here.seal(b"next")) == b"next"


def test_a_relay_with_keys_of_its_own_reads_nothing() -> None:
    one, other, relay = KeyPair(), KeyPair(), KeyPair()
    sealed = Channel(one, other.public).seal(b"secret")
    for listener in (Channel(relay, one.public), Channel(relay, other.public)):
        with pytest.raises(Refused):
            listener.open(sealed)


@pytest.mark.parametrize("public", [b"", b"short", bytes(32), bytes(33)])
def test_what_is_no_public_key_is_refused(public: bytes) -> None:
    with pytest.raises(Refused, match="public key"):
        Channel(KeyPair(), public)


def test_a_party_has_no_channel_with_itself() -> None:
    keys = KeyPair()
    with pytest.raises(Refused, match="our own"):
        Channel(keys, keys.public)


def test_another_process_seals_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    here, _ = pair()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidArgument, match="another process"):
        here.seal(b"twice under one number")


def test_keys_cannot_be_copied_or_shown() -> None:
    keys, (channel, _) = KeyPair(), pair()
    for secret in (keys, channel):
        assert repr(secret) == f"{type(secret).__name__}(…)"
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(InvalidArgument, match="cannot be copied"):
                take(secret)
