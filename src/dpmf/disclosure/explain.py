"""A release in plain words, once it is verified; `dpmf.privacy.explain` has the words.

>>> import numpy as np
>>> from dpmf.model import Ridge
>>> from dpmf.privacy import Guarantee
>>> from dpmf.ratings import Items, Scale
>>> release = Release(
...     items=Items.of([1, 2]), scale=Scale(1, 5), mean=3.0, item_factors=np.ones((2, 2), np.float32),
...     item_biases=np.zeros(2, np.float32), ridge=Ridge(1.0, 1.0), configuration={"method": "sgd"},
...     guarantee=Guarantee.none())
>>> [part.title for part in explain_release(release)]
['What is released', 'What is promised']
"""

from __future__ import annotations

from dpmf.errors import NotVerified
from dpmf.methods.verification import verify_release
from dpmf.model import Release
from dpmf.privacy.explain import Facts, Section, explain_guarantee


def explain_release(release: Release, name: str = "the release") -> tuple[Section, ...]:
    """Return what a release holds and what is guaranteed about it.

    Args:
        release: the release to explain.
        name: how to refer to it in an error.

    Raises:
        NotVerified: its epsilon does not follow from its events, or these are not what its method releases.
    """
    return explain_guarantee(release.guarantee, verified_facts(release, name))


def verified_facts(release: Release, name: str = "the release") -> Facts:
    """Return the public facts about a release; the arguments and errors are those of `explain_release`."""
    verdict = verify_release(release)
    if not verdict.ok:
        raise NotVerified(f"{name} cannot be explained: {verdict.reason}; do not trust it")
    return Facts(
        n_items=len(release.items),
        n_factors=release.n_used_factors,
        scale=str(release.scale),
        catalogue_declared=release.items.declared,
        method=str(release.configuration.get("method", "unknown")),
        feedback=release.feedback,
        n_ranked=None if release.ranking is None else len(release.ranking.items),
        predicts=release.predicts,
        weighs_counts=release.weighs_counts,
        users_about=users_about(release),
    )


def users_about(release: Release) -> int | None:
    """Return about how many users were declared, if the configuration says so."""
    declared = release.configuration.get("n_users")
    return declared if type(declared) is int else None
