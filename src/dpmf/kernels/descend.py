"""One step of gradient descent, by one, two or four ratings of a user, as `dpmf.kernels.steps` emits it.

>>> import numpy as np
>>> from dpmf.kernels.jit import kernel
>>> users, items, codes = np.zeros(3, np.uint16), np.arange(3, dtype=np.uint16), np.zeros(3, np.uint8)
>>> U, V, state = np.ones(16, np.float32), np.full(48, 0.5, np.float32), np.ones(16, np.uint32)
>>> b, c, table = np.zeros(1, np.float32), np.zeros(3, np.float32), np.array([10], np.float32)
>>> @kernel
... def step(users, items, codes, table, U, V, b, c, state):
...     mean, eta, decay, gain, size = np.float32(0.0), np.float32(0.25), np.float32(0.0), np.float32(0.25), 2
...     return descend(0, size, users, items, codes, table, U, V, b, c, 16, 16, mean, eta, decay, gain, state)
>>> step(users, items, codes, table, U, V, b, c, state), float(U[0]), float(V[16])
(8.0, 1.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types
from numpy.typing import NDArray

from dpmf.kernels.rows import INT64, Row, element, emitted
from dpmf.kernels.steps import SIZES, Block, Move, emit_step


def ratings_in_step(users: Sequence[Any] | NDArray[Any], place: int) -> int:
    """Return how many ratings, from a place on, are one step: four if one user has as many, else two, else one.

    >>> [ratings_in_step([1, 1, 1, 1, 1, 1, 1, 2], place) for place in (0, 4, 6, 7)]
    [4, 2, 1, 1]
    """
    return next(size for size in SIZES if place + size <= len(users) and users[place + size - 1] == users[place])


@emitted
def size_of_step(typingctx: Any, place: Any, users: Any) -> Any:
    """Return what `ratings_in_step` says, for an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, array = args[0], context.make_array(users)(context, builder, args[1])
        user, size = element(builder, array.data, place), INT64(1)
        for count in sorted(SIZES)[1:]:
            last = builder.add(place, INT64(count - 1))
            there = builder.icmp_signed("<", last, array.nitems)
            same = builder.icmp_signed("==", element(builder, array.data, builder.select(there, last, place)), user)
            size = builder.select(builder.and_(there, same), INT64(count), size)
        return size

    return types.int64(types.int64, users), codegen


@emitted
def descend(
    typingctx: Any, place: Any, size: Any, users: Any, items: Any, codes: Any, table: Any, U: Any, V: Any, b: Any,
    c: Any, width: Any, stride: Any, mean: Any, eta: Any, decay: Any, gain: Any, state: Any,
) -> Any:  # fmt: skip
    """Move the rows and biases of a user and of n different items by a rating each; return the sum of e².

    With e_q = r_q - mean - b - c_q - u·v_q for rating q, all from the old values,
    u ← (1 - n·decay)·u + gain·Σ e_q v_q and v_q ← (1 - decay)·v_q + gain·e_q·u, and biases likewise, with eta.

    Args:
        place: of the first rating in users, items and codes.
        size: n, which is what `size_of_step` says.
        users, items, codes, table, b, c: as in `dpmf.kernels.sgd.sgd_block`.
        U, V: flat arrays of rows of `width` and `stride` elements; V is float32, or uint32 for packed rows.
        width: the number of factors, a multiple of 16, or of 32 if V is packed.
        mean, eta, decay, gain: float32.
        state: 16 non-zero uint32 (out), from which random numbers for rounding come; used only if V is packed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        random = Row(context, builder, state, args[16], INT64(0))
        block = Block(context, builder, kinds, args[2:10], args[10:12], random)
        return emit_step(builder, block, args[0], args[1], Move(*args[12:16]))

    kinds, number, index = (users, items, codes, table, U, V, b, c), types.float32, types.int64
    return types.float64(index, index, *kinds, index, index, number, number, number, number, state), codegen
