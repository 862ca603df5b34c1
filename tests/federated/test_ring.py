"""Arithmetic modulo P: exact for sums that fit, whatever happens on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument
from dpmf.federated.wire.ring import Ring

sizes = st.integers(1, 8)


@given(sizes, st.data())
def test_numbers_below_half_of_p_survive_packing(n_bytes: int, data: st.DataObject) -> None:
    ring = Ring(n_bytes)
    numbers = data.draw(st.lists(st.integers(-ring.half, ring.half - 1), max_size=20))
    elements = ring.elements(np.array(numbers, np.int64))
    content = ring.packed(elements)
    assert len(content) == n_bytes * len(numbers)
    assert ring.signed(ring.unpacked(content)).tolist() == numbers


@given(sizes, st.data())
def test_masked_sums_are_plain_sums(n_bytes: int, data: st.DataObject) -> None:
    ring = Ring(n_bytes)
    few = st.integers(-(ring.half // 8), ring.half // 8 - 1)
    numbers = np.array(data.draw(st.lists(few, min_size=1, max_size=8)), np.int64)
    masks = np.random.default_rng(1).integers(0, 1 << 63, len(numbers)).astype(ring.dtype)
    sent = [
        ring.unpacked(ring.packed(ring.elements(one[None]) + mask)) for one, mask in zip(numbers, masks, strict=True)
    ]
    total = sum(sent, np.zeros(1, ring.dtype))
    for mask in masks:
        total = total - mask
    assert ring.signed(total).tolist() == [numbers.sum()]


@pytest.mark.parametrize(("largest", "n_bytes"), [(127, 1), (128, 2), (2**31 - 1, 4), (2**31, 5), (2**39 + 1, 6)])
def test_a_ring_holds_what_it_says(largest: int, n_bytes: int) -> None:
    assert Ring.holding(largest) == Ring(n_bytes)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="do not fit"):
        Ring.holding(2.0**63)
    for wrong in (0, 9):
        with pytest.raises(InvalidArgument, match="n_bytes"):
            Ring(wrong)
