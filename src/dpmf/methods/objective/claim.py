"""What Hua, Xia and Zhong claim of item factors that minimise a perturbed objective, and what that rests on.

They ("Differentially private matrix factorization", IJCAI 2015, theorem 1) add η_j·v_j to the objective for every
item, with density of η_j proportional to exp(-ε ‖η_j‖ / 2D), D being the width of the scale. With users' factors fixed
and not longer than 1, the value of one rating moves the η_j that leads to a given minimum by 2D at most, so that the
minimum is ε-private for that value. But they fit users' factors to the same ratings.

>>> guarantee = claim_of(1.0, 4.0, 50, n_steps=None, ended_early=False, seeded=False, assumptions=["All is public."])
>>> guarantee.unit, guarantee.neighbours, guarantee.certified
('rating', 'replace', False)
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmf.privacy import Guarantee

RELEASES = ("item factors", "the configuration")
WHICH_RATED = (
    "It does not hide which items were rated: who rated what, and how many ratings there are, is taken to be public, "
    "and is used without noise."
)
ONE_VALUE = (
    "It is about the value of one rating: not about whether it was given, and not about all ratings of a person "
    "together."
)
_FITTED = (
    "The proof holds users' factors fixed while a rating changes. Here they were fitted to the same ratings, so the "
    "proof does not apply, and nothing is proven of what is released. With profiles from elsewhere, mode certified is."
)
_STOPPED = (
    "The theorem is about the minimiser. Item factors were stopped before the minimiser, after {n} steps, a number "
    "that was declared; nothing says that a step before it is private."
)
_ENDED = (
    "Somebody ended the run early, perhaps because of the training error; the claim takes all numbers for constants."
)
_FLOATING = "Noise and the minimum are computed in floating-point arithmetic, which the proof takes for exact."


def claim_of(
    epsilon: float, width: float, n_factors: int, *, n_steps: int | None, ended_early: bool, seeded: bool,
    assumptions: Sequence[str],
) -> Guarantee:  # fmt: skip
    """Return the claim as a claim, with everything that it does not cover.

    Args:
        epsilon: as claimed.
        width: D.
        n_factors: K.
        n_steps: after how many steps item factors were taken; None if they are the exact minimum.
        ended_early: whether a callback ended the run.
        seeded: whether the noise came from a seed.
        assumptions: what else it rests on.
    """
    claim = (
        f"Hua, Xia and Zhong (2015), theorem 1: epsilon={epsilon:g} for the value of one rating, given users' factors "
        f"that do not depend on it, by a noise vector for every item with length Gamma({n_factors}, "
        f"{2 * width / epsilon:.6g}). Here users' factors do depend on it."
    )
    gaps = [_FITTED, ONE_VALUE, WHICH_RATED]
    if n_steps is not None:
        gaps.append(_STOPPED.format(n=n_steps))
    if ended_early:
        gaps.append(_ENDED)
    return Guarantee.paper(
        epsilon=epsilon, delta=0.0, unit="rating", neighbours="replace", claim=claim, releases=RELEASES,
        assumptions=[*gaps, _FLOATING, *assumptions], seeded=seeded,
    )  # fmt: skip
