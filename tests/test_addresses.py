"""Limits on addresses: how many are asked for, and what is said where there are fewer."""

from __future__ import annotations

import mmap
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dpmf.addresses import check_addresses
from dpmf.errors import TooFewAddresses

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on addresses to set")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes that are asked for, on a machine of 64 processors that has up to 10,000 addresses left."""
    sizes: list[int] = []

    def reserve(_: int, size: int, *others: Any) -> Any:
        sizes.append(size)
        if size > 10_000:
            raise OSError
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr("resource.getrlimit", lambda _: (20_000, 20_000))
    monkeypatch.setattr(mmap, "mmap", reserve)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    return sizes


def test_every_thread_counts(asked: list[int]) -> None:
    check_addresses(1000, per_thread=100)
    check_addresses(1000, per_thread=100, n_threads=2)
    assert asked == [1000 + 64 * 100, 1000 + 2 * 100]


def test_too_few_are_refused(asked: list[int]) -> None:
    with pytest.raises(TooFewAddresses, match="ulimit -v"):
        check_addresses(10_001)


def test_without_a_limit_nothing_is_asked_for(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr("resource.getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    check_addresses(10_001)
    assert not asked


def test_the_command_line_counts_the_processors_that_it_may_use(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmf import cli

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    monkeypatch.setattr(cli, "_ROOM", 1000)
    monkeypatch.setattr(cli, "_ROOM_OF_THREAD", 100)
    assert cli.dpmf.callback is not None
    cli.dpmf.callback()
    assert asked == [1000 + 2 * 100]
