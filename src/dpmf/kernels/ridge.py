"""Ridge regression for many people at once: bias and factors from one's own ratings, by Cholesky.

For one person with ratings r_j of items j, minimise over (b, u)

    Σ_j (r_j - mean - c_j - b - u·v_j)² + ridge_b b² + ridge_u ‖u‖²,

with both ridges multiplied by n^exponent, n being the number of the person's ratings.

>>> import numpy as np
>>> V, c = np.eye(2), np.zeros(2)
>>> solve_person(np.array([0]), np.array([4.0]), V, c, 3.0, Penalties(1e-9, 1.0, 0.0)).round(3).tolist()
[1.0, 0.0, 0.0]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.dense import solve_plainly
from dpmf.kernels.jit import fast_kernel

RESOLUTION = 1e-6  # a ridge below this part of the mean of the diagonal would be lost in single precision
ERROR_STEP = 2.0**-16  # of squared errors: 2^53 of them, more than there ever are, add up exactly in a float64
_RATINGS_AT_ONCE = 4  # ratings per pass: a matrix entry is loaded and stored once for four products


class Penalties(NamedTuple):
    """The weights of the ridge penalties.

    Attributes:
        bias: ridge_b, on a squared bias.
        factors: ridge_u, on the squared length of factors.
        exponent: both are multiplied by the number of ratings to this power.
    """

    bias: float
    factors: float
    exponent: float


@fast_kernel
def cholesky_solve(A: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Overwrite y (out) with A⁻¹y; A (out, lower triangle) is symmetric and positive definite."""
    n = len(y)
    for a in range(n):
        for b in range(a):
            total = A[a, b]
            for k in range(b):
                total -= A[a, k] * A[b, k]
            A[a, b] = total / A[b, b]
        total = A[a, a]
        for k in range(a):
            total -= A[a, k] * A[a, k]
        A[a, a] = np.sqrt(max(total, 1e-30))
    for a in range(n):
        total = y[a]
        for k in range(a):
            total -= A[a, k] * y[k]
        y[a] = total / A[a, a]
    for a in range(n - 1, -1, -1):
        y[a] /= A[a, a]
        for k in range(a):
            y[k] -= A[a, k] * y[a]


def cholesky_solve_reference(A: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return what `cholesky_solve` writes to y."""
    return np.asarray(np.linalg.solve(A, y))


@fast_kernel
def solve_people(
    rated: Csr,
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
    penalties: Penalties,
    b: NDArray[np.float32],  # out
    U: NDArray[np.float32],  # out
) -> None:
    """Fit bias and factors of people start..stop-1; a person without ratings gets zeros.

    The equivalent for one person, without a compiler, is `solve_person`.
    """
    indptr, items, values = rated
    ridge_b, ridge_u, exponent = penalties
    width = V.shape[1]
    A = np.empty((width + 1, width + 1))
    y = np.empty(width + 1)
    Z = np.zeros((_RATINGS_AT_ONCE, width + 1))
    e = np.zeros(_RATINGS_AT_ONCE)
    for i in range(start, stop):
        count = indptr[i + 1] - indptr[i]
        scale = np.float64(max(count, 1)) ** exponent
        A[:] = 0.0
        y[:] = 0.0
        for first in range(indptr[i], indptr[i + 1], _RATINGS_AT_ONCE):
            for r in range(_RATINGS_AT_ONCE):
                if first + r < indptr[i + 1]:
                    j = items[first + r]
                    for k in range(width):
                        Z[r, k] = V[j, k]
                    Z[r, width] = 1.0
                    e[r] = values[first + r] - mean - c[j]
                else:
                    Z[r] = 0.0
                    e[r] = 0.0
            z0, z1, z2, z3 = Z[0], Z[1], Z[2], Z[3]
            for a in range(width + 1):
                y[a] += e[0] * z0[a] + e[1] * z1[a] + e[2] * z2[a] + e[3] * z3[a]
                a0, a1, a2, a3 = z0[a], z1[a], z2[a], z3[a]
                row = A[a]
                for k in range(a + 1):
                    row[k] += a0 * z0[k] + a1 * z1[k] + a2 * z2[k] + a3 * z3[k]
        for k in range(width):
            A[k, k] += ridge_u * scale
        A[width, width] += ridge_b * scale
        if count:
            cholesky_solve(A, y)
        b[i] = np.float32(y[width])
        for k in range(width):
            U[i, k] = np.float32(y[k])


@fast_kernel
def squared_errors(
    rated: Csr,
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
    b: NDArray[np.float32],
    U: NDArray[np.float32],
) -> float:
    """Return Σ (r_j - mean - c_j - b_i - u_i·v_j)² over the ratings of people start..stop-1.

    What a person adds is rounded to a whole number of `ERROR_STEP`, so that parts add up to the same in any order.
    """
    indptr, items, values = rated
    steps = 0.0
    for i in range(start, stop):
        own = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            e = values[p] - mean - b[i] - c[j]
            for k in range(V.shape[1]):
                e -= U[i, k] * V[j, k]
            own += e * e
        steps += np.rint(own / ERROR_STEP)
    return steps * ERROR_STEP


def solve_person(
    items: NDArray[Any],
    values: NDArray[Any],
    V: NDArray[Any],
    c: NDArray[Any],
    mean: float,
    penalties: Penalties,
) -> NDArray[np.float64]:
    """Return (b, u) of one person, shape (K + 1,), by NumPy's solver; zeros without ratings."""
    if not len(items):
        return np.zeros(V.shape[1] + 1)
    Z, A = equations_of_person(items, V, penalties)
    return solve_plainly(A, Z.T @ (values.astype(np.float64) - mean - c[items]))


def equations_of_person(
    items: NDArray[Any], V: NDArray[Any], penalties: Penalties
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Z, shape (n, K + 1), a row (1, v_j) for each item; and the matrix Z'Z + penalty that (b, u) solve."""
    Z = np.c_[np.ones(len(items)), V[items].astype(np.float64)]
    penalty = np.diag([penalties.bias] + [penalties.factors] * V.shape[1]) * len(items) ** penalties.exponent
    return Z, Z.T @ Z + penalty


def squared_errors_reference(
    rated: Csr,
    V: NDArray[Any],
    c: NDArray[Any],
    mean: float,
    b: NDArray[Any],
    U: NDArray[Any],
) -> float:
    """Return what `squared_errors` returns for everybody."""
    people = np.repeat(np.arange(len(b)), np.diff(rated.indptr))
    products = np.einsum("nk,nk->n", U[people], V[rated.items], dtype=np.float64)
    return float(np.square(rated.values - mean - b[people] - c[rated.items] - products).sum())
