"""What noise on the gradient of user factors is claimed to cost, and what that claim does not cover.

Mugdho and Imtiaz ("Privacy-preserving matrix factorization for recommendation systems using Gaussian mechanism",
2023) add N(0, σ²) to every coordinate of the gradient with respect to user factors, with
σ = (D C / ε_i) sqrt(2 ln(1.25/δ_i)), D being the width of the scale and C the length to which item factors are clipped
in that gradient. With item factors held fixed, the value of one rating moves the gradient by D C at most. They add up J
iterations by Rényi privacy to

    ε = A + 2 sqrt(A ln(1/δ_r)),   A = J ε_i² / (4 ln(1.25/δ_i)).

That is a valid bound for J releases of noise multiplier σ / D C, if everything it rests on were true; the accountant of
`dpmf.privacy` gives the exact figure for the same releases, which is a little smaller.

>>> claim = Claim(eps_i=0.3, delta_i=0.01, delta_r=1e-5, width=4.0, clip=1.0, n_iterations=100)
>>> round(claim.sigma, 2), round(claim.by_renyi, 2), round(claim.by_accountant, 2)
(41.43, 5.1, 4.2)
>>> round(eps_i_for(claim.by_renyi, claim.n_iterations, claim.delta_i, claim.delta_r), 12)
0.3
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpmf.methods.base import Section
from dpmf.privacy import GaussianEvent, Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.guarantee import rounded_up

_HAIR = 1e-12  # so that the formula does not give a little more than was asked for
RELEASES = ("item factors (which the claim does not cover)", "the configuration")
_NOT_COVERED = (
    "Item factors, which are what is published here, carry no guarantee at all: they are made from the ratings without "
    "noise, and the claim is about user factors."
)
_HELD_FIXED = (
    "The proof holds item factors fixed while a rating changes. They are computed from the ratings without noise in "
    "every iteration, so from the second iteration on nothing is proven, for user factors either."
)
_ONE_VALUE = (
    "What is claimed is about the value of one rating: not about whether it was given, and not about all ratings of a "
    "person together."
)
_PER_USER = "User factors, which the paper releases, are one row per person; here they stay in the model."
_FLOATING = "Noise is added to sums in floating-point arithmetic, which the proof takes for exact."
_SETTLED = (
    "The number of iterations follows from the training error ({rule}), and so from the ratings; the claim takes it "
    "for a constant."
)
_MEAN = "The mean of the training ratings is subtracted from them and published, without noise."
_LARGE = "The Gaussian mechanism that the claim builds on is proven for eps_i up to 1 only, and it is {eps_i:g} here."


@dataclass(frozen=True)
class Claim:
    """What is claimed of a run.

    Attributes:
        eps_i, delta_i: of one iteration.
        delta_r: of all of them together.
        width: D, of the rating scale.
        clip: C.
        n_iterations: J.
    """

    eps_i: float
    delta_i: float
    delta_r: float
    width: float
    clip: float
    n_iterations: int

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on every coordinate of the user gradient."""
        return self.width * self.clip * self._multiplier

    @property
    def _multiplier(self) -> float:
        return math.sqrt(2 * math.log(1.25 / self.delta_i)) / self.eps_i

    @property
    def by_renyi(self) -> float:
        """The overall ε at δ_r as the paper computes it."""
        loss = self.n_iterations / 2 * (1 / self._multiplier) ** 2
        return loss + 2 * math.sqrt(loss * math.log(1 / self.delta_r))

    @property
    def by_accountant(self) -> float:
        """The overall ε at δ_r of the same Gaussian releases, computed exactly."""
        return epsilon_of([GaussianEvent("user gradients", self._multiplier, self.n_iterations)], self.delta_r)

    def to_json(self) -> dict[str, float]:
        """Return what is reported of it."""
        return {
            "iterations": self.n_iterations, "eps_i": self.eps_i, "delta_i": self.delta_i, "sigma": self.sigma,
            "delta_r": self.delta_r, "epsilon_by_renyi": self.by_renyi, "epsilon_by_accountant": self.by_accountant,
        }  # fmt: skip

    def guarantee(
        self, *, seeded: bool, settled_by: str | None, mean_published: bool, assumptions: Sequence[str]
    ) -> Guarantee:
        """Return the claim as a claim, with everything that it does not cover.

        Args:
            seeded: whether the noise came from a seed.
            settled_by: by what rule the number of iterations followed from the ratings; None if it was declared.
            mean_published: whether the mean of the ratings was subtracted.
            assumptions: what else it rests on.
        """
        claim = (
            f"Mugdho and Imtiaz (2023), theorem 2: epsilon={self.by_renyi:.6g} at delta={self.delta_r:g} for the value "
            f"of one rating, given user factors after {self.n_iterations} iterations of eps_i={self.eps_i:.6g} and "
            f"delta={self.delta_i:g} each (sigma={self.sigma:.6g}), by their Rényi formula; the accountant of dpmf "
            f"says {self.by_accountant:.6g} for the same noise. Both figures hold for item factors that do not depend "
            "on the ratings, and here they do."
        )
        gaps = [_NOT_COVERED, _HELD_FIXED, _ONE_VALUE, _PER_USER]
        if settled_by is not None:
            gaps.append(_SETTLED.format(rule=settled_by))
        if mean_published:
            gaps.append(_MEAN)
        if self.eps_i > 1:
            gaps.append(_LARGE.format(eps_i=self.eps_i))
        return Guarantee.paper(
            epsilon=rounded_up(self.by_renyi), delta=self.delta_r, unit="rating", neighbours="replace", claim=claim,
            releases=RELEASES, assumptions=[*gaps, _FLOATING, *assumptions], seeded=seeded,
        )  # fmt: skip


def eps_i_for(epsilon: float, n_iterations: int, delta_i: float, delta_r: float) -> float:
    """Return ε_i for which the Rényi formula gives this overall ε after `n_iterations` iterations."""
    spread = math.log(1 / delta_r)
    root = epsilon / (math.sqrt(spread + epsilon) + math.sqrt(spread))  # of A, without cancellation
    return 2 * root * math.sqrt(math.log(1.25 / delta_i) / n_iterations) * (1 - _HAIR)


def claim_section(claim: Mapping[str, float]) -> Section:
    """Return what people are told about a claim, as `Claim.to_json` has it."""
    rows = (
        ("by the paper's Rényi formula", claim["epsilon_by_renyi"]),
        ("by the accountant, for the same noise", claim["epsilon_by_accountant"]),
    )
    note = (
        f"{claim['iterations']} iterations of eps_i {claim['eps_i']:.4g} each, with noise of {claim['sigma']:.4g} on "
        "the gradient of user factors. Neither figure covers item factors, which are what a release holds."
    )
    return Section(
        f"Claimed for one rating's value: epsilon at delta {claim['delta_r']:g}", ("", "epsilon"), rows, note
    )
