"""What the two ways to compile guarantee."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numba
import pytest

from dpmf.kernels.blocks import fill_strip
from dpmf.kernels.jit import fast_kernel, has_many_registers, kernel
from dpmf.kernels.sgd import sgd_block


def function(source: str) -> Any:
    return eval(source)


def test_a_kernel_keeps_the_order_of_floating_point_operations() -> None:
    difference = function("lambda a, b: (a + b) - a")
    assert kernel(difference)(1e16, 1.0) == difference(1e16, 1.0) == 0.0


def test_a_fast_kernel_may_reorder_them() -> None:
    """Shows that the test above can fail."""
    assert fast_kernel(function("lambda a, b: (a + b) - a"))(1e16, 1.0) == 1.0


@pytest.mark.parametrize(
    ("features", "many"), [("+avx2,+fma,-avx512f", False), ("+avx2", False), ("+avx2,+avx512f", True), ("", False)]
)
def test_registers_are_those_of_the_cpu_that_is_compiled_for(
    monkeypatch: pytest.MonkeyPatch, features: str, many: bool
) -> None:
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert has_many_registers() == many


def test_kernels_are_pickled_and_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(sgd_block)) is sgd_block
    assert copy.deepcopy({"kernel": fill_strip})["kernel"] is fill_strip


@pytest.mark.parametrize("compiled", [sgd_block, fill_strip])
def test_kernels_release_the_interpreter_lock_and_are_cached(compiled: Any) -> None:
    assert compiled.compiled.targetoptions["nogil"]
    assert compiled.compiled._cache.cache_path


def test_without_a_place_for_a_cache_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_as_usual = numba.njit

    def without_a_place(*, cache: bool, **options: Any) -> Any:
        def decorate(function: Any) -> Any:
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return compile_as_usual(**options)(function)

        return decorate

    monkeypatch.setattr(numba, "njit", without_a_place)
    assert kernel(_double)(21) == 42


def _double(x: int) -> int:
    return x + x
