"""What a draw from a posterior distribution costs in privacy, and what a paper claims that it costs.

Liu, Wang and Smola ("Fast differentially private matrix factorization", 2015) draw item factors V from the density
exp(-s Σ_i F_i) times a prior, with F_i = w_i Σ_j (r_ij - p_ij)² over at most `cap` ratings of user i. Predictions p
count as if they ended kappa beyond the scale of width D, so that always 0 ≤ F_i ≤ B_i = m_i w_i (D + kappa)² ≤ B, where
B = cap (D + kappa)² is public and m_i is the number of ratings that count. They take s = ε / 4B and claim ε; and
ε B_i / 2B for user i alone (their theorems 1 and 2).

With everybody's own factors integrated out, user i multiplies the density of V by a factor between exp(-s B_i) and 1,
and the normalization by another such factor. So an *exact* draw costs s B_i when user i comes or goes, ε/4 at most, and
s (B_i + B_i') when their ratings change, ε/2 at most. At temperature T the chain draws from the density to the power
1/T, and all of this is divided by T. For m draws, s is divided by m, and all of them together cost the same.

>>> bound = Bound(epsilon=100.0, width=4.0, cap=100, kappa=1.0, rho=1.0)
>>> bound.most, bound.scale, bound.tight("add-remove"), bound.tight("replace")
(2500.0, 0.01, 25.0, 50.0)
>>> bound.weights(np.array([10, 100]), np.array([100.0, 40.0])).tolist()
[1.0, 0.4]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.base import Section
from dpmf.privacy import Budget, Guarantee

RELEASES = ("item factors", "item biases", "the configuration")
_CONVERGED = (
    "The chain has converged to the distribution that it draws from, for these ratings and for all neighbouring ones. "
    "Nobody can check that: a chain that is delta away from it (in L1) has (epsilon, (1 + e^epsilon) delta) instead, "
    "with a delta that is not known."
)
_EXACT = "Steps of finite size and gradients from single ratings draw from that distribution only approximately."
_TABLE = "Noise is read from a table of {size:,} normal numbers, and what that does to the distribution is not known."
_SEEDABLE = "Noise comes from a generator that is made for sampling, not for keeping secrets."
LOCAL = "User factors are not published; everybody computes their own from the release."

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """How much one user can matter.

    Attributes:
        epsilon: as claimed for all draws together.
        width: D, of the rating scale.
        cap: how many ratings of a user count at most.
        kappa: how far beyond the scale predictions may count.
        rho: the greatest weight of a user.
        temperature: T.
        n_draws: how many draws what is released is made of.
    """

    epsilon: float
    width: float
    cap: int
    kappa: float
    rho: float
    temperature: float = 1.0
    n_draws: int = 1

    @property
    def per_rating(self) -> float:
        """The greatest squared error, (D + kappa)²."""
        return (self.width + self.kappa) ** 2

    @property
    def most(self) -> float:
        """B, the greatest loss of a user."""
        return self.cap * self.per_rating

    @property
    def scale(self) -> float:
        """s = ε / 4B, divided by the number of draws."""
        return self.epsilon / (4 * self.most * self.n_draws)

    def weights(self, counts: NDArray[np.int64], epsilons: Array) -> Array:
        """Return w_i = min(rho, (ε_i / ε) B / (m_i (D + kappa)²)): 0 for whoever wants ε_i = 0.

        Args:
            counts: m_i, after trimming.
            epsilons: ε_i, the most that the claim for a user may be, up to ε.
        """
        return np.minimum(self.rho, epsilons / self.epsilon * self.cap / np.maximum(counts, 1))

    def losses(self, counts: NDArray[np.int64], weights: Array) -> Array:
        """Return B_i, the greatest loss of every user."""
        return np.asarray(counts * weights * self.per_rating)

    def cost(self, loss: Array | float) -> Array | float:
        """Return what exact draws cost a user of this greatest loss who comes or goes."""
        return self.n_draws * self.scale * loss / self.temperature

    def tight(self, neighbours: str) -> float:
        """Return what exact draws cost any user at most."""
        return float(self.cost(self.most)) * (2 if neighbours == "replace" else 1)

    def guarantee(
        self, budget: Budget, *, table_size: int, seeded: bool, personal: bool, assumptions: Sequence[str] = ()
    ) -> Guarantee:
        """Return the paper's claim, with what is really known beside it."""
        draws = "one draw" if self.n_draws == 1 else f"{self.n_draws} draws together, each at a part of it,"
        figures = f"{self.tight('add-remove'):g} under add-remove and {self.tight('replace'):g} under replace"
        claim = (
            f"Liu, Wang and Smola (2015), theorem 1: epsilon={self.epsilon:g} per user for {draws} of item factors "
            f"from the posterior at s = {self.scale:g} = epsilon / 4B with B = {self.n_draws * self.most:g}. "
            f"Exact draws would cost {figures}"
        )
        if self.temperature != 1:
            claim += (
                f": the chain runs at temperature {self.temperature:g}, which multiplies the cost by "
                f"{1 / self.temperature:g}, and which the claim leaves out"
            )
        return Guarantee.paper(
            epsilon=self.epsilon, delta=0.0, unit="user", neighbours=budget.neighbours, claim=claim + ".",
            releases=RELEASES,
            assumptions=[
                _CONVERGED, _EXACT, *([_TABLE.format(size=table_size)] if table_size else []), _SEEDABLE,
                *assumptions, LOCAL,
            ],
            seeded=seeded, personal=personal,
        )  # fmt: skip

    def paid(self, counts: NDArray[np.int64], weights: Array, mean_square: float) -> dict[str, Any]:
        """Return what users pay: a report for the holder of the data, and not to be published.

        Args:
            counts: m_i, after trimming.
            weights: w_i.
            mean_square: the mean squared error of the model on the ratings that count.

        Returns:
            `claimed`, by theorem 2, and `add-remove`, for exact draws: least, median and most over all users.
            `typical`: what the ratings of the median user cost at the errors they really have, which is an average over
            the posterior and guarantees nothing. `rating`: what one rating costs, as claimed (ε / cap) and for exact
            draws, at weight 1 and at most.
        """
        losses, most = self.losses(counts, weights), self.most

        def spread(costs: Array) -> dict[str, float]:
            low, middle, high = np.quantile(costs, (0.0, 0.5, 1.0)).tolist()
            return {"least": low, "median": middle, "most": high}

        one = float(self.cost(self.per_rating))
        return {
            "claimed": spread(self.epsilon * losses / (2 * most)),
            "add-remove": spread(np.asarray(self.cost(losses))),
            "typical": float(self.cost(float(np.median(counts * weights)) * mean_square)),
            # Where a rating takes another's place, or changes the weight of all others, it counts twice.
            "rating": {"claimed": self.epsilon / self.cap, "weight 1": one, "most": 2 * self.rho * one},
        }


def paid_section(paid: Mapping[str, Any]) -> Section:
    """Return what people are told about what users pay, as `Bound.paid` has it."""
    columns = ("least", "median", "most")
    names = {"claimed": "as claimed (theorem 2)", "add-remove": "exact draws, add-remove"}
    rating = paid["rating"]
    note = (
        f"At the errors they really have, the ratings of a typical user cost {paid['typical']:.4g}: an average, "
        f"which guarantees nothing. One rating: {rating['claimed']:.4g} as claimed, and for exact draws "
        f"{rating['weight 1']:.4g} at weight 1 and {rating['most']:.4g} at most."
    )
    rows = [(name, *(paid[key][column] for column in columns)) for key, name in names.items()]
    return Section("What users pay: epsilon", ("", *columns), rows, note, from_ratings=True)
