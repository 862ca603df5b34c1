"""Releases of seeded configurations are the same to the last bit, where bits are known."""

from __future__ import annotations

import json

import pytest

from .configurations import METHODS, RELEASES, STORED, digest, left_open, machine


@pytest.mark.parametrize("name", RELEASES)
def test_a_seeded_release_is_the_same_as_ever(name: str) -> None:
    stored = json.loads(STORED.read_text())
    if machine() not in stored:
        pytest.skip(f"no digests are recorded for {machine()}: CONTRIBUTING.md says how to record them")
    assert digest(RELEASES[name]()) == stored[machine()][name]


@pytest.mark.parametrize("name", METHODS)
def test_a_configuration_leaves_nothing_open(name: str) -> None:
    assert not left_open(METHODS[name])
