"""What the two ways to compile promise."""

from __future__ import annotations

from typing import Any

import pytest

from dpmf.kernels.compiling import fast_kernel, kernel
from dpmf.kernels.dealing import deal_strip
from dpmf.kernels.sgd import sgd_block


def function(source: str) -> Any:
    return eval(source)


def test_a_kernel_keeps_the_order_of_floating_point_operations() -> None:
    difference = function("lambda a, b: (a + b) - a")
    assert kernel(difference)(1e16, 1.0) == difference(1e16, 1.0) == 0.0


def test_a_fast_kernel_may_reorder_them() -> None:
    """Shows that the test above can fail."""
    assert fast_kernel(function("lambda a, b: (a + b) - a"))(1e16, 1.0) == 1.0


@pytest.mark.parametrize("compiled", [sgd_block, deal_strip])
def test_kernels_release_the_interpreter_lock_and_are_cached(compiled: Any) -> None:
    assert compiled.targetoptions["nogil"]
    assert compiled._cache.cache_path
