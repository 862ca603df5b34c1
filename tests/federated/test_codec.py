"""The encoding that both protocols share: lists ascend, and every byte is accounted for."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.federated.wire.codec import VERSION, Reader, encode_header, encode_list, kind_of
from dpmf.federated.wire.refusals import Refused


@given(st.sets(st.integers(0, 99)), st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_what_is_written_is_read(indices: set[int], kind: int, number: int) -> None:
    content = encode_header(kind, number) + encode_list(np.array(sorted(indices), np.uint32))
    assert kind_of(content) == (kind, number)
    reader = Reader(content, kind)
    assert reader.round == number
    assert reader.indices(below=100).tolist() == sorted(indices)
    reader.end()


def test_the_layout_is_little_endian() -> None:
    content = encode_header(7, 3) + encode_list(np.array([2, 513], np.uint32))
    assert content == bytes([VERSION, 7, 3, 0, 0, 0]) + bytes([2, 0, 0, 0]) + bytes([2, 0, 0, 0, 1, 2, 0, 0])


@pytest.mark.parametrize("indices", [[4, 1], [1, 1], [1, 9], list(range(10))])
def test_a_list_that_does_not_ascend_or_leaves_the_range_is_refused(indices: list[int]) -> None:
    reader = Reader(encode_header(7, 0) + encode_list(np.array(indices, np.uint32)), 7)
    with pytest.raises(Refused, match="a list"):
        reader.indices(below=9)


def test_missing_and_leftover_bytes_are_refused() -> None:
    with pytest.raises(Refused, match="too short"):
        kind_of(encode_header(7, 0)[:-1])
    reader = Reader(encode_header(7, 0) + b"\0\0\0\0", 7)
    with pytest.raises(Refused, match="wrong length"):
        reader.struct(struct.Struct("<Q"))
    with pytest.raises(Refused, match="wrong length"):
        reader.end()
    with pytest.raises(Refused, match="wrong length"):
        reader.array(np.dtype("<f4"), 1 << 40, 1 << 40)
