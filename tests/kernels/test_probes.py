"""The loops that measure a machine do all the work that is counted."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.probes import (
    AHEAD,
    CHAINS,
    multiply_adds,
    multiply_adds_reference,
    read_lines,
    read_lines_reference,
    rewrite_lines,
    rewrite_lines_reference,
    write_lines,
    write_lines_reference,
)


@pytest.mark.parametrize("chains", CHAINS)
def test_every_chain_takes_every_round(chains: int) -> None:
    found = np.zeros(16, np.float32)
    for n_rounds in (1, 3):
        multiply_adds(chains, n_rounds, found)
        np.testing.assert_allclose(found, multiply_adds_reference(chains, n_rounds), rtol=1e-6)


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("n_lines", [1, 4, 23])
def test_every_line_is_visited_in_every_round(n_lines: int, ahead: int) -> None:
    lines = np.random.default_rng(n_lines).normal(size=16 * n_lines).astype(np.float32)
    found, expected = np.zeros(16, np.float32), lines.copy()
    read_lines(lines, ahead, 2, found)
    np.testing.assert_array_equal(found.view(np.uint32), read_lines_reference(lines).view(np.uint32))
    for n_rounds in (2, 3):
        rewrite_lines(lines, ahead, n_rounds)
        rewrite_lines_reference(expected, n_rounds)
        np.testing.assert_array_equal(lines, expected)
    write_lines(lines, ahead, 5)
    write_lines_reference(expected, 5)
    np.testing.assert_array_equal(lines, expected)
