"""Privacy: budgets, events, accounting, calibration, guarantees."""

from dpmf.privacy.budget import Budget
from dpmf.privacy.events import ClaimEvent, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.guarantee import Guarantee

__all__ = ["Budget", "ClaimEvent", "Event", "GaussianEvent", "Guarantee", "NormNoiseEvent", "PoissonGaussianEvent"]
