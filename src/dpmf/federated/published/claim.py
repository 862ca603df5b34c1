"""What Hua, Xia and Zhong (2015) claim about their protocol, and what the claim does not cover.

>>> terms = Terms(n_items=100, scale=(1.0, 5.0), epsilon=0.8, most_users=1000)
>>> claim = Claim(terms, rounds=10_000, seeded=False)
>>> claim.composed
8000.8
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpmf.federated.published.terms import Terms
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import rounded_up

RELEASES = ("item factors", "the configuration")
_MOVING = (
    "The proof holds profiles of users fixed while a rating changes. They move with the ratings in every round, so no "
    "finite bound is proven for what the recommender sees, or for the items that come out."
)
_VARIANCE = (
    "The recommender draws H, the spread of the noise. Given H, which it knows, the noise is Gaussian and not Laplace, "
    "and where H is small there is little of it: against the recommender the claimed epsilon does not hold."
)
_ROWS = (
    "Users fetch the profiles of exactly the items they rated and answer for these, so whoever they talk to learns "
    "which items each of them rated, and when they take part."
)
_VALUE = "What is claimed is about the value of one rating: not about whether it was given, and not about a person."
_DROPPED = (
    "Users who leave in the middle of a round take their part of its noise along; a sum may even be of a single user."
)
_RESUMED = (
    "The run was stopped and resumed: rounds after its last snapshot were played again, with other noise, and "
    "what they showed the first time comes on top."
)
_APART = "Recommender and third party do not collude; both follow the protocol."
_CIPHER = "Masks are a key stream: they hide from whoever cannot break ChaCha20 and X25519."
_FAST = "Noise has single precision, and is rounded to a grid; the claim takes it for exact."
_ALONE = "There is no third party: every user's answer carries noise of its own, and the recommender sees each of them."


@dataclass(frozen=True)
class Claim:
    """What is claimed about a run.

    Attributes:
        terms: of the run.
        rounds: the number of rounds.
        seeded: whether randomness came from a seed.
        resumed: whether the run was interrupted and resumed.
    """

    terms: Terms
    rounds: int
    seeded: bool
    resumed: bool = False

    @property
    def composed(self) -> float:
        """What all rounds would cost if profiles never moved: T·ε, plus ε for the fixed noise if there is any."""
        return rounded_up((self.rounds + self.terms.third_party) * self.terms.epsilon)

    def guarantee(self, assumptions: Sequence[str]) -> Guarantee:
        """Return a guarantee that states the claim, and everything it does not cover."""
        epsilon = self.terms.epsilon
        noise = (
            f"noise of uniform direction and a length that is Gamma(K, {2 * self.terms.width / epsilon:.6g}) on every "
            "answer of every user, in every round"
        )
        if self.terms.third_party:
            noise = (
                f"Laplace noise of scale {self.terms.amplitude:.6g} on every coordinate of an item's gradient, once "
                "for good and once more in every round"
            )
        claim = (
            f"Hua, Xia and Zhong (2015), section 4: epsilon={epsilon:g} for the value of one rating, by {noise}. Each "
            f"of the {self.rounds} rounds shows other sums: together they would cost epsilon={self.composed:g} if "
            "profiles of users never moved. They do, so the proven figure is none."
        )
        kind = [_VARIANCE, _DROPPED, _CIPHER, _APART] if self.terms.third_party else [_ALONE]
        resumed = [_RESUMED] if self.resumed else []
        return Guarantee.paper(
            epsilon=epsilon,
            delta=0.0,
            unit="rating",
            neighbours="replace",
            claim=claim,
            releases=RELEASES,
            assumptions=[_MOVING, _ROWS, _VALUE, *kind, *resumed, _FAST, *assumptions],
            seeded=self.seeded,
        )
