"""What full gradient descent chooses where nothing is given, what was published, and which settings mean nothing when.

A kind of run is "none" (not private, and quick), "published" (the steps of the paper without their noise), "paper" or
"certified".

>>> PUBLISHED["eps_i"] in SWEEPS["eps_i"], defaults_for("paper")["centering"]
(True, 'raw')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PUBLISHED: Mapping[str, Any] = {
    "n_factors": 20, "eps_i": 0.30, "delta_i": 0.01, "delta_r": 1e-5, "learning_rate": 0.0005, "regularization": 0.01,
    "clip": 1.0, "centering": "raw",
}  # fmt: skip
"""The settings of Mugdho and Imtiaz (2023)."""

SWEEPS: Mapping[str, tuple[float, ...]] = {
    "n_factors": (20, 50, 100, 200, 320, 500),
    "eps_i": (0.15, 0.20, 0.30, 0.50, 0.75, 0.90),
    "learning_rate": (0.0005, 0.0008, 0.0010, 0.0013),
}
"""What they vary, one at a time, the others being as in `PUBLISHED`."""

MEANINGLESS: Mapping[str, tuple[str, ...]] = {
    "none": ("clip", "eps_i", "delta_i", "delta_r", "noise_seed"),
    "published": ("eps_i", "delta_i", "delta_r", "noise_seed"),
    "paper": (),
    "certified": ("clip", "eps_i", "delta_i", "delta_r", "tolerance"),
}
_SAME_AS_PUBLISHED = ("n_factors", "learning_rate", "regularization", "clip", "centering")
_STEPS = {"n_epochs": 500, **{name: PUBLISHED[name] for name in _SAME_AS_PUBLISHED}}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "none": {
        "n_factors": PUBLISHED["n_factors"], "n_epochs": 100, "learning_rate": 1.0, "regularization": 1.5,
        "centering": "mean",
    },
    "published": _STEPS,
    # What an iteration costs is not among them: it follows from epsilon.
    "paper": {**_STEPS, "delta_i": PUBLISHED["delta_i"], "delta_r": PUBLISHED["delta_r"]},
    "certified": {
        "n_factors": 8, "n_epochs": 40, "learning_rate": 0.5, "regularization": 1.0, "centering": "mean",
    },
}  # fmt: skip


def defaults_for(kind: str) -> Mapping[str, Any]:
    """Return the usual settings of a kind of run."""
    return _DEFAULTS[kind]


@dataclass(frozen=True)
class Settings:
    """What every kind of run is given; attributes as those of `GaussianGD`."""

    n_factors: int
    n_epochs: int
    learning_rate: float
    regularization: float
    centering: str


@dataclass(frozen=True)
class ClaimSettings:
    """What a claim is made of; attributes as those of `GaussianGD`."""

    eps_i: float
    delta_i: float
    delta_r: float
    clip: float
