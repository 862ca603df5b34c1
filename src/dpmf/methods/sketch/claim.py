"""What Balu and Furon claim of factors in a count sketch, and what the claim rests on.

They ("Differentially private matrix factorization using sketching techniques", 2016) skip every rating whose loss is
above a threshold, call the threshold ε, and lean on a theorem about draws from a posterior distribution. Their update
is no such draw, and no noise is added to it.

>>> guarantee = claim_of(4.0, exact_means=True, data_sized=False, assumptions=["The scale is public."])
>>> guarantee.unit, guarantee.certified
('rating', False)
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmf.methods.sgld.claim import LOCAL, RELEASES
from dpmf.privacy import Guarantee

_DETERMINISTIC = (
    "Noise is thought to come from ids that share cells. But with hash functions that are fixed, what is released "
    "is a function of the ratings without any chance in it, and its epsilon, by definition, is infinite."
)
_NO_DRAW = (
    "The theorem that is leant on is about draws from a posterior distribution. Gradient descent in a sketch is not "
    "one: what collisions add has another size and another distribution than the noise of Langevin dynamics."
)
_NO_LIKELIHOOD = "The clipped loss does not belong to any valid likelihood, as the authors say themselves."
_TWO_READINGS = (
    "A rating is skipped if e²/2 is above epsilon, as in the paper's section 3.2. Its section 4.3 bounds e² instead; "
    "by the theorem that it leans on, the first would cost twice as much as claimed."
)
_OTHERS = "A rating that is skipped at one visit counts at another, and what was learnt from it before stays."
_MEANS = "The means of users, items and all ratings are subtracted as they are, without noise."
_SIZED = "The size of the table, the learning rate or the penalty was chosen from the number of users or ratings."


def claim_of(epsilon: float, *, exact_means: bool, data_sized: bool, assumptions: Sequence[str]) -> Guarantee:
    """Return the claim.

    Args:
        epsilon: the threshold of the loss.
        exact_means: whether means were subtracted.
        data_sized: whether anything was chosen from the number of users or ratings.
        assumptions: what else is taken to be public.
    """
    claim = (
        f"Balu and Furon (2016), section 4.3: epsilon={epsilon:g} for one rating that is added, because ratings with a "
        "loss above it are skipped. No noise is calibrated to anything."
    )
    return Guarantee.paper(
        epsilon=epsilon, delta=0.0, unit="rating", neighbours="add-remove", claim=claim, releases=RELEASES,
        assumptions=[
            _DETERMINISTIC, _NO_DRAW, _NO_LIKELIHOOD, _TWO_READINGS, _OTHERS, *([_MEANS] if exact_means else []),
            *([_SIZED] if data_sized else []), *assumptions, LOCAL,
        ],
    )  # fmt: skip
