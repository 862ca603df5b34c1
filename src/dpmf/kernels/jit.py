"""How kernels are compiled.

>>> @kernel
... def double(x):
...     return x + x
>>> double(21)
42
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a loop whose floating-point order is exactly as written."""
    return _compiled(function, fastmath=False)


def fast_kernel(function: Function) -> Function:
    """Compile a loop in which the compiler may reorder sums; its inputs must be finite."""
    return _compiled(function, fastmath=True)


def has_many_registers() -> bool:
    """Return whether kernels are compiled for 32 registers of sixteen floats each (AVX-512).

    It may decide how much a kernel does at a time, never in which order it adds up.
    """
    asked_for: str | None = numba.config.CPU_FEATURES  # type: ignore[attr-defined]  # NUMBA_CPU_FEATURES
    if asked_for is not None:
        return "+avx512f" in asked_for.split(",")
    return bool(binding.get_host_cpu_features().get("avx512f"))


def _compiled(function: Function, *, fastmath: bool) -> Function:
    """Compile lazily, with a cache on disk for functions that live in a file, where there is a place for one."""
    in_file = not function.__code__.co_filename.startswith("<")
    try:
        return cast(Function, numba.njit(nogil=True, cache=in_file, fastmath=fastmath)(function))
    except RuntimeError:  # a read-only installation and no home: every process compiles
        return cast(Function, numba.njit(nogil=True, cache=False, fastmath=fastmath)(function))
