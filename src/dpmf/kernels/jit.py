"""How kernels are compiled: when they are first called, so that a program which calls none never loads the compiler.

>>> @kernel
... def double(x):
...     return x + x
>>> double(21)
42
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_SHORT = 1 << 18  # entries: NumPy is done with them before the compiler would be loaded


def kernel(function: Function) -> Function:
    """Compile a loop whose floating-point order is exactly as written."""
    return cast(Function, Kernel(function, fastmath=False))


def fast_kernel(function: Function) -> Function:
    """Compile a loop in which the compiler may reorder sums; its inputs must be finite."""
    return cast(Function, Kernel(function, fastmath=True))


def has_many_registers() -> bool:
    """Return whether kernels are compiled for 32 registers of sixteen floats each (AVX-512).

    It may decide how much a kernel does at a time, never in which order it adds up.
    """
    import numba
    from llvmlite import binding

    asked_for: str | None = numba.config.CPU_FEATURES  # type: ignore[attr-defined]  # NUMBA_CPU_FEATURES
    if asked_for is not None:
        return "+avx512f" in asked_for.split(",")
    return bool(binding.get_host_cpu_features().get("avx512f"))


def short_form(of: Callable[..., Any]) -> Callable[[Function], Function]:
    """Declare a function with the arguments of a kernel, and exactly its results, for little data.

    It is called in place of the kernel as long as no other has loaded the compiler.
    """

    def declare(function: Function) -> Function:
        cast(Kernel, of).short = function
        return function

    return declare


class Kernel:
    """A loop that is compiled when it is called, or when another that calls it is."""

    _preparing = threading.RLock()

    def __init__(self, function: Callable[..., Any], *, fastmath: bool) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._fastmath = fastmath
        self._compiled: Any = None
        self.short: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for arguments of these types."""
        if self._compiled is not None:
            return self._compiled(*arguments)
        if self.short is not None and "numba" not in sys.modules and _entries(arguments) <= _SHORT:
            return self.short(*arguments)
        return self.compiled(*arguments)

    def __reduce__(self) -> str:
        """Pickle it by name, as functions are."""
        return self._function.__qualname__

    @property
    def compiled(self) -> Any:
        """The function as Numba knows it, with a cache on disk if it lives in a file and there is a place for one."""
        with self._preparing:
            if self._compiled is None:
                self._compiled = self._prepare()
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """What other kernels take this one for when they call it."""
        return self.compiled._numba_type_

    def _prepare(self) -> Any:
        import numba

        in_file = not self._function.__code__.co_filename.startswith("<")
        try:
            return numba.njit(nogil=True, cache=in_file, fastmath=self._fastmath)(self._function)
        except RuntimeError:  # a read-only installation and no home: every process compiles
            return numba.njit(nogil=True, cache=False, fastmath=self._fastmath)(self._function)


def _entries(arguments: tuple[Any, ...]) -> int:
    """Return the size of the largest array, also of those in tuples."""
    sizes = (_entries(one) if isinstance(one, tuple) else getattr(one, "size", 1) for one in arguments)
    return max(sizes, default=0)
