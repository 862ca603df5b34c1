"""What SGLD chooses where nothing is given, from public facts alone, and which settings mean nothing when.

A kind of run is "none" (not private), "paper" or "certified".

>>> defaults_for("certified", n_factors=None, n_epochs=20)["n_samples"]
10
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmf.methods.sgld.claim import Bound

MEANINGLESS = {
    "none": ("cap", "kappa", "rho", "sampling_rate", "noise_seed"),
    "paper": ("sampling_rate",),
    "certified": ("decay", "kappa", "rho", "table"),
}
_PLAIN: dict[str, Any] = {"n_factors": 16, "n_epochs": 60, "decay": 0.3, "table": 1 << 16}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "none": _PLAIN,
    "paper": {**_PLAIN, "n_samples": 1, "cap": 100, "kappa": 1.0, "rho": 1.0},
    "certified": {
        "n_factors": 8, "n_epochs": 50, "sampling_rate": 0.2, "learning_rate": 0.5, "regularization": 1.0,
    },
}  # fmt: skip
_RATE = 0.04  # of a rating of weight 1
_MOST_RATE = 0.1  # where ratings have less
_PULL = 0.4  # what part of a factor its prior takes away in an epoch at most
_USUAL_SD = 0.5  # of u_i·v_j under the prior, on a scale as wide as 1 to 5


@dataclass(frozen=True)
class ChainSettings:
    """What a chain is given; attributes as those of `SGLD`."""

    n_factors: int
    n_epochs: int
    learning_rate: float
    decay: float
    regularization: float
    temperature: float
    n_samples: int
    table: int

    def rate(self, epoch: int) -> float:
        """Return h in an epoch, counted from 1."""
        return self.learning_rate * math.exp(-self.decay * math.log(epoch))


@dataclass(frozen=True)
class ClaimSettings:
    """What the bound of a claim is made of; attributes as those of `SGLD`."""

    cap: int
    kappa: float
    rho: float
    temperature: float
    n_samples: int


def defaults_for(kind: str, n_factors: int | None, n_epochs: int | None) -> dict[str, Any]:
    """Return the usual settings of a kind of run, all but the learning rate, given factors and epochs if they are."""
    usual = dict(_DEFAULTS[kind])
    usual.setdefault("n_samples", -(-(n_epochs or usual["n_epochs"]) // 2))
    # With this precision of both factors, u·v has the usual standard deviation.
    usual.setdefault("regularization", math.sqrt(n_factors or usual["n_factors"]) / (2 * _USUAL_SD))
    return usual


def gentle_rate(regularization: float, bound: Bound | None) -> float:
    """Return a step size that neither priors nor ratings make too large.

    Args:
        regularization: the precision of the priors.
        bound: of a run of kind "paper", for the widest scale in units.

    >>> gentle_rate(4.0, None), gentle_rate(40.0, None)
    (0.04, 0.01)
    """
    most = _PULL / regularization
    return min(_RATE, most) if bound is None else min(_MOST_RATE, most, _RATE / (bound.scale * bound.rho))
