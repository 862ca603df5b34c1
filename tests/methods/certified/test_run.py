"""What a certified run says before it begins."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from dpmf.methods import ALS
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make


@pytest.mark.parametrize(
    ("delta", "about", "said"), [(1e-6, 50, None), (1e-5, 200_000, "about 200,000 users"), (1e-3, None, "in 1,000")]
)
def test_a_delta_that_is_too_large_is_warned_about(
    delta: float, about: int | None, said: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    ratings = replace(make(30, 20), users_about=about)
    with caplog.at_level(logging.WARNING, logger="dpmf"):
        ALS(n_factors=0, budget=Budget(5.0, delta)).fit(ratings, n_threads=1)
    assert len(caplog.messages) == (said is not None)
    assert (said or "") in "".join(caplog.messages)
