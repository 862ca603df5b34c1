"""BufferPool: used again, never shared by two, and never more of them than were once needed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.engine.buffers import BufferPool, _rounded

SIZES = st.one_of(st.integers(0, 5000), st.sampled_from([1000, 1001, 1010]))


@given(actions=st.lists(st.tuples(st.booleans(), SIZES), max_size=60))
def test_no_two_share_memory_and_no_more_is_held_than_was_in_use(actions: list[tuple[bool, int]]) -> None:
    buffers, out, most = BufferPool(), list[NDArray[np.uint8]](), 0
    for releases, size in actions:
        if releases and out:
            buffers.release(out.pop(size % len(out)))
        else:
            taken = buffers.acquire(size)
            assert len(taken) == size
            assert not any(np.shares_memory(taken, other) for other in out)
            out.append(taken)
        most = max(most, sum(len(one.base) for one in out if one.base is not None))
        assert buffers.n_bytes <= most


@given(size=st.integers(1, 1 << 40))
def test_little_is_added_to_a_size(size: int) -> None:
    assert size <= _rounded(size) <= size * 1.125 + 1


def test_blocks_of_about_one_size_use_the_same_memory_again() -> None:
    buffers = BufferPool()
    first = buffers.acquire(2_000_000)
    where = first.ctypes.data
    buffers.release(first[10:20].view(np.uint16))
    assert buffers.acquire(1_990_000).ctypes.data == where
