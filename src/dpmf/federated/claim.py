"""What Hua, Xia and Zhong (2015) claim of their protocol, and what the claim does not cover.

>>> terms = Terms(n_items=100, scale=(1.0, 5.0), epsilon=0.8, most_users=1000)
>>> claim = Claim(terms, rounds=10_000, dealt=True, seeded=False)
>>> claim.composed
8000.8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpmf.federated.terms import Terms
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED, rounded_up

RELEASES = ("item factors", "the configuration")
_MOVING = (
    "The proof holds profiles of users fixed while a rating changes. They move with the ratings in every round, so no "
    "finite bound is proven for what the recommender sees, or for the items that come out."
)
_SPREAD = (
    "The recommender draws H, the spread of the noise. Given H, which it knows, the noise is Gaussian and not Laplace, "
    "and where H is small there is little of it: against the recommender the claimed epsilon does not hold."
)
_ROWS = (
    "Users fetch the profiles of exactly the items they rated and answer for these, so recommender and third party "
    "learn which items each of them rated, and when they take part."
)
_VALUE = "What is claimed is about the value of one rating: not about whether it was given, and not about a person."
_DROPPED = "Users who leave in the middle of a round take their part of the noise of that round along."
_APART = "Recommender and third party do not collude; both follow the protocol."
_CIPHER = "Masks are a key stream: they hide from whoever cannot break ChaCha20 and X25519."
_FAST = "Noise has single precision, and is rounded to a grid; the claim takes it for exact."
_ALONE = "There is no third party: every user's answer carries noise of its own, and the recommender sees each of them."


@dataclass(frozen=True)
class Claim:
    """What is claimed of a run.

    Attributes:
        terms: of the run.
        rounds: how many there were.
        dealt: whether the fixed noise was set up once and dealt out (S3), or drawn by every user for good (S2).
        seeded: whether randomness came from a seed.
    """

    terms: Terms
    rounds: int
    dealt: bool
    seeded: bool

    @property
    def composed(self) -> float:
        """(T + 1)·ε: what all rounds and the fixed noise would cost together if profiles never moved."""
        return rounded_up((self.rounds + 1) * self.terms.epsilon)

    def guarantee(self, assumptions: Sequence[str]) -> Guarantee:
        """Return the claim as a claim, with everything that it does not cover."""
        epsilon = self.terms.epsilon
        claim = (
            f"Hua, Xia and Zhong (2015), section 4: epsilon={epsilon:g} for the value of one rating, by Laplace noise "
            f"of scale {self.terms.amplitude:.6g} on every coordinate of an item's gradient, once for good and once "
            f"more in every round. Each of the {self.rounds} rounds shows another sum: together they would cost "
            f"epsilon={self.composed:g} if profiles of users never moved. They do, so the proven figure is none."
        )
        kind = [_CIPHER, _APART] if self.terms.third_party else [_ALONE]
        return Guarantee.paper(
            epsilon=epsilon, delta=0.0, unit="rating", neighbours="replace", claim=claim, releases=RELEASES,
            assumptions=[
                *([SEEDED] if self.seeded else []), _MOVING, *([_SPREAD] if self.terms.third_party else []), _ROWS,
                _VALUE, *([_DROPPED] if self.dealt else []), *kind, _FAST, *assumptions,
            ],
        )  # fmt: skip
