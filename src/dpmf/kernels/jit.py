"""How kernels are compiled: when they are first called, so that a program which calls none never loads the compiler.

>>> @kernel
... def double(x):
...     return x + x
>>> double(21)
42
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a loop whose floating-point order is exactly as written."""
    return cast(Function, Kernel(function, fastmath=False))


def fast_kernel(function: Function) -> Function:
    """Compile a loop in which the compiler may reorder sums; its inputs must be finite."""
    return cast(Function, Kernel(function, fastmath=True))


class Kernel:
    """A loop that is compiled when it is called, or when another that calls it is."""

    _preparing = threading.RLock()

    def __init__(self, function: Callable[..., Any], *, fastmath: bool) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._fastmath = fastmath
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for arguments of these types."""
        return (self._compiled or self.compiled)(*arguments)

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
