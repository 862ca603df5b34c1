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

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a loop whose floating-point order is exactly as written."""
    return cast(Function, numba.njit(nogil=True, cache=_has_source(function))(function))


def fast_kernel(function: Function) -> Function:
    """Compile a loop in which the compiler may reorder sums; its inputs must be finite."""
    return cast(Function, numba.njit(nogil=True, cache=_has_source(function), fastmath=True)(function))


def _has_source(function: Callable[..., Any]) -> bool:
    """Only functions that live in a file can be cached beside it."""
    return not function.__code__.co_filename.startswith("<")
