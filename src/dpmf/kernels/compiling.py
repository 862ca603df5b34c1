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
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

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


@intrinsic
def prefetch_row(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of the flat array's element `index`, soon to be written."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function: Any = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0"
        )
        write, medium_locality, data_cache = i32(1), i32(2), i32(1)
        builder.call(function, [pointer, write, medium_locality, data_cache])
        return context.get_dummy_value()

    return types.void(array, index), codegen
