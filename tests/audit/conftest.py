"""What the tests of the audit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpmf.methods.sgld import certified
from dpmf.privacy import Budget, PoissonGaussianEvent


@pytest.fixture(autouse=True, scope="module")
def _no_calibration() -> Iterator[None]:
    """Give sampled steps more noise than they need: to find out how much is enough takes seconds."""

    def event(budget: Budget, what: str, rate: float, count: int, coordinates: int) -> PoissonGaussianEvent:
        return PoissonGaussianEvent(what, 8.0, rate, count, coordinates)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certified, "_calibrated", event)
        yield
