"""What a count sketch chooses where nothing is given, from public facts alone, and which settings mean nothing when.

A kind of run is "none" (not private), "paper" or "certified"; "paper" without a finite epsilon is the published method
without its threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpmf.methods.sgd.defaults import LAST_RATE

MEANINGLESS: Mapping[str, tuple[str, ...]] = {
    "none": ("sampling_rate", "n_samples", "cap", "noise_seed"),
    "paper": ("sampling_rate", "n_samples", "cap", "noise_seed"),
    "certified": ("decay", "biases"),
}
STREAM: Mapping[str, Any] = {"biases": "sketch", "learning_rate": 0.02, "regularization": 0.03}
"""Of a stream: no ratings are there yet to choose by."""

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "none": {"n_factors": 16, "n_epochs": 60, "decay": "linear", "biases": "sketch"},
    "paper": {"n_factors": 16, "n_epochs": 100, "decay": "linear", "biases": "means"},
    "certified": {"n_factors": 8, "n_epochs": 50, "sampling_rate": 0.2, "learning_rate": 0.5, "regularization": 1.0},
}


def defaults_for(kind: str, n_epochs: int | None) -> Mapping[str, Any]:
    """Return the usual settings of a kind of run, given the number of epochs if it is."""
    usual = _DEFAULTS[kind]
    if kind != "certified":
        return usual
    return {**usual, "n_samples": -(-(n_epochs or usual["n_epochs"]) // 2)}


@dataclass(frozen=True)
class EpochSettings:
    """What epochs of learning are given; attributes as those of `Sketch`."""

    n_factors: int
    n_epochs: int
    learning_rate: float
    regularization: float
    decay: float | Literal["linear"]

    def rate(self, epoch: int) -> float:
        """Return eta in an epoch, counted from 1."""
        passed = (epoch - 1) / self.n_epochs
        if isinstance(self.decay, int | float):
            return self.learning_rate / (1 + self.decay * passed)
        return self.learning_rate * max(1 - passed, LAST_RATE)
