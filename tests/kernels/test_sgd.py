"""The SGD kernel against its reference in double precision."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.registry import cpu_target
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.kernels.rows import pack, unpack
from dpmf.kernels.sgd import Step, sgd_block, sgd_block_reference
from dpmf.streams import mix


def has_avx512() -> bool:
    return "+avx512f" in str(cpu_target.target_context.codegen().magic_tuple()[2])


N_USERS, N_ITEMS = 40, 23
TABLE = np.arange(1.0, 5.5, 0.5, dtype=np.float32)


class Problem(NamedTuple):
    users: NDArray[np.uint16]
    items: NDArray[np.uint16]
    codes: NDArray[np.uint8]
    U: NDArray[np.float32]
    V: NDArray[np.float32]
    b: NDArray[np.float32]
    c: NDArray[np.float32]

    def visit(self, *, eta: float = 0.05, lam: float = 0.1, unit: float = 2.0) -> float:
        users, items, codes, U, V, b, c = self
        return sgd_block(users, items, codes, TABLE, U, V, b, c, Step.of(3.4, eta, lam, unit), np.uint64(1))

    def copy(self, dtype: type[np.floating]) -> list[NDArray[np.floating]]:
        return [array.astype(dtype) for array in (self.U, self.V, self.b, self.c)]


def problem(n_factors: int, density: float = 0.45, multiple: int = 16) -> Problem:
    rng = np.random.default_rng(n_factors)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < density)
    U, V = factor_rows(N_USERS, n_factors, multiple), factor_rows(N_ITEMS, n_factors, multiple)
    U[:, :n_factors] = rng.normal(0, 0.3 / n_factors**0.25, (N_USERS, n_factors))
    V[:, :n_factors] = rng.normal(0, 0.3 / n_factors**0.25, (N_ITEMS, n_factors))
    return Problem(
        users.astype(np.uint16),
        items.astype(np.uint16),
        rng.integers(0, len(TABLE), len(users)).astype(np.uint8),
        U, V, rng.normal(0, 0.1, N_USERS).astype(np.float32), rng.normal(0, 0.1, N_ITEMS).astype(np.float32),
    )  # fmt: skip


# One width for every way the rows are handled: unrolled (1 to 4 lines) and in loops with and without a rest.
@pytest.mark.parametrize("n_factors", [1, 10, 16, 32, 48, 64, 80, 96, 112, 128, 144, 200, 256, 400, 1024])
def test_kernel_equals_the_reference_in_double_precision(n_factors: int) -> None:
    ours = problem(n_factors)
    U, V, b, c = ours.copy(np.float64)
    step = Step.of(3.4, 0.05, 0.1, 2.0)
    expected = sgd_block_reference(*ours[:3], TABLE, U, V, b, c, step)
    squared = ours.visit()
    assert squared == pytest.approx(expected, rel=1e-4)
    for got, wanted in zip((ours.U, ours.V, ours.b, ours.c), (U, V, b, c), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_factors", [32, 96, 128, 160, 1024])
def test_sixteen_bit_item_rows_stay_near_the_full_ones(n_factors: int) -> None:
    full, half = problem(n_factors, multiple=32), problem(n_factors, multiple=32)
    words = factor_rows(N_ITEMS, half.V.shape[1] // 2).view(np.uint32)
    words[:] = pack(half.V)
    squared = full.visit()
    assert half._replace(V=words).visit() == pytest.approx(squared, rel=0.02)  # type: ignore[arg-type]
    np.testing.assert_allclose(unpack(words), full.V, atol=0.02)
    np.testing.assert_allclose(half.U, full.U, atol=0.02)


def test_sixteen_bit_rows_are_rounded_without_bias() -> None:
    """A step far below the spacing of 16-bit numbers must still move them, by the right amount on average."""
    n_steps = 4000
    U, words = factor_rows(1, 32), factor_rows(1, 16).view(np.uint32)
    U[:] = 1.0
    words[:] = pack(np.ones((1, 32), np.float32))
    start = unpack(words).mean()
    seeds = mix(np.arange(n_steps, dtype=np.uint64))
    # The target is always 1 above the prediction, and user and biases are held still: every step is 2e-5.
    nothing, bias, step = np.zeros(1, np.uint8), np.zeros(1, np.float32), Step.of(0, 2e-5, 0, 1)
    for seed in seeds:
        table = np.array([unpack(words).sum() + 1], np.float32)
        sgd_block(nothing, nothing, nothing, table, U.copy(), words, bias.copy(), bias.copy(), step, seed)
    moved = unpack(words).mean() - start
    assert moved == pytest.approx(n_steps * 2e-5, rel=0.2)


def test_padded_columns_stay_exactly_zero() -> None:
    ours = problem(10)
    ours.visit()
    assert ours.U.shape[1] == 16
    assert not ours.U[:, 10:].any()
    assert not ours.V[:, 10:].any()


def test_an_empty_block_changes_nothing() -> None:
    ours, before = problem(8, density=0.0), problem(8, density=0.0)
    assert ours.visit() == 0.0
    for got, wanted in zip(ours[3:], before[3:], strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_one_step_by_hand() -> None:
    users, items, codes = np.zeros(1, np.uint16), np.zeros(1, np.uint16), np.array([8], np.uint8)
    U, V = factor_rows(1, 1), factor_rows(1, 1)
    U[0, 0], V[0, 0] = 1.0, 2.0
    one = Problem(users, items, codes, U, V, np.zeros(1, np.float32), np.zeros(1, np.float32))
    # e = 5 - 3.4 - 1·2 = -0.4; both factors move from their old values, in units of 2.
    assert one.visit(eta=0.1, lam=0.5) == pytest.approx(0.16, rel=1e-5)
    assert one.U[0, 0] == pytest.approx(1 + 0.1 * (-0.4 * 2 / 2 - 0.5 * 1), rel=1e-6)
    assert one.V[0, 0] == pytest.approx(2 + 0.1 * (-0.4 * 1 / 2 - 0.5 * 2), rel=1e-6)
    assert one.b[0] == pytest.approx(-0.04, rel=1e-5)
    assert one.c[0] == pytest.approx(-0.04, rel=1e-5)


def digest_of_visits() -> str:
    """Return a digest of everything that a few visits change."""
    digest = hashlib.sha256()
    for n_factors, packed in itertools.product((32, 200), (False, True)):
        one = problem(n_factors, multiple=32)
        if packed:
            words = factor_rows(N_ITEMS, one.V.shape[1] // 2).view(np.uint32)
            words[:] = pack(one.V)
            one = one._replace(V=words)  # type: ignore[arg-type]
        one.visit()
        for array in one[3:]:
            digest.update(array.tobytes())
    return digest.hexdigest()


NARROW = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+sse4.2,-avx512f"}


@pytest.mark.skipif(not has_avx512(), reason="this processor has no AVX-512 to do without")
def test_bits_are_those_of_a_processor_without_avx512(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    settings = os.environ | NARROW | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths}
    code = "from kernels.test_sgd import digest_of_visits; print(digest_of_visits())"
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest_of_visits()
