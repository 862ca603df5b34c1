"""State that no run computes is refused when a run resumes from it: loops rely on indices and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.methods.certified.staged_run import _check_state
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.ease.defaults import ramp_of
from dpmf.methods.ease.plan import EasePlan
from dpmf.privacy import Budget
from dpmf.ratings import Scale


@pytest.mark.parametrize(
    ("name", "value"),
    [("V", np.nan), ("als c", 1e30), ("V", -np.inf), ("n_users", 0.0), ("ease n_users", np.inf), ("sums", np.nan)],
)
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    _check_state({name: np.array([1.0])})
    with pytest.raises(ValueError, match=r"not a number|in magnitude|people"):
        _check_state({name: np.array([value])})


def test_a_variance_may_be_infinite() -> None:
    _check_state({"biases": np.array([[0.0], [np.inf]])})


@pytest.mark.parametrize(
    "change",
    [
        {"head": np.array([0, 4], np.int32)},
        {"head": np.array([-1, 2], np.int32)},
        {"head": np.array([2, 0], np.int32)},
        {"head": np.array([0, 2], np.int64)},
        {"pairs": np.zeros(4), "pairs sd": np.ones(1)},
        {"counts": np.zeros(5)},
    ],
)
def test_a_head_outside_the_catalogue_is_refused(change: dict[str, NDArray[Any]]) -> None:
    public = PublicEase(EasePlan(4, 2, 100, Budget(5.0)), ramp_of(Scale(1, 5), implicit=False))
    state = {**public.state(), "head": np.array([0, 2], np.int32)}
    public.restore(state)
    with pytest.raises(ValueError, match=r"ascending positions|has the shape"):
        public.restore({**state, **change})
