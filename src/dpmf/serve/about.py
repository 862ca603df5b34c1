"""What the page says about a release: its guarantee, as data and in words. Public facts only.

>>> import numpy as np
>>> from dpmf.model import Ridge
>>> from dpmf.privacy import Guarantee
>>> from dpmf.ratings import Items, Scale
>>> release = Release(
...     items=Items.of([1, 2]), scale=Scale(1, 5), mean=3.0, item_factors=np.ones((2, 2), np.float32),
...     item_biases=np.zeros(2, np.float32), ridge=Ridge(1.0, 1.0), configuration={"method": "sgd"},
...     guarantee=Guarantee.none())
>>> about = about_release(release)
>>> about["certified"], about["guess"], about["sections"][1]["title"]
(False, None, 'What is promised')
"""

from __future__ import annotations

from typing import Any

from dpmf.disclosure.explain import verified_facts
from dpmf.disclosure.label import label_of
from dpmf.errors import NotCertified
from dpmf.model import Release
from dpmf.privacy import Guarantee
from dpmf.privacy.accounting import delta_of
from dpmf.privacy.explain import explain_guarantee, guess
from dpmf.serve.map import map_of


def check_certified(release: Release, *, accept_unproven: bool, name: str = "the release") -> None:
    """Raise `NotCertified` if a release is not certified, unless that is accepted."""
    if not release.guarantee.certified and not accept_unproven:
        raise NotCertified(
            f"{name} is not certified (mode {release.guarantee.mode}): showing it to others may show them people's "
            "ratings; train a certified release, or set accept_unproven=True and the page will carry a red banner"
        )


def about_release(release: Release, name: str = "the release") -> dict[str, Any]:
    """Return the content of about.json that depends on the release, in plain JSON types.

    Args:
        release: the release that the page shows.
        name: its name in an error message.

    Raises:
        NotVerified: its epsilon does not follow from its events.
    """
    guarantee, facts = release.guarantee, verified_facts(release, name)
    return {
        "format": "dpmf-site",
        "version": 1,
        "items": len(release.items),
        "factors": release.n_used_factors,
        "feedback": release.feedback,
        "method": facts.method,
        "summary": str(guarantee),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "mode": guarantee.mode,
        "certified": guarantee.certified,
        "assumptions": list(guarantee.assumptions),
        "label": label_of(guarantee, facts).to_json(),
        "guess": _guess(guarantee) if guarantee.certified else None,
        "map": map_of(release),
        "sections": [
            {"title": one.title, "sentences": list(one.sentences)} for one in explain_guarantee(guarantee, facts)
        ],
    }


def _guess(guarantee: Guarantee) -> dict[str, float]:
    """Return how often an attacker who knows all else can tell two neighbours apart: by (ε, δ), and exactly."""
    assert guarantee.epsilon is not None  # a certified guarantee has all of them
    assert guarantee.delta is not None
    assert guarantee.neighbours is not None
    exact = (1 + delta_of(guarantee.events, 0.0, neighbours=guarantee.neighbours)) / 2
    return {"promised": guess(guarantee.epsilon, guarantee.delta), "exact": exact}
