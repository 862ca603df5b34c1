"""Errors are one line, whatever they quote."""

from __future__ import annotations

import pytest

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument, UnknownId


@pytest.mark.parametrize("kind", [DpmfError, InvalidArgument, DamagedFile, UnknownId])
def test_an_error_is_one_line(kind: type[DpmfError]) -> None:
    assert str(kind("no column\r\nuser\x85in \u2028it")) == "no column user in  it"
