"""Differentially private matrix factorization: train on ratings, publish item factors, recommend on the device.

>>> import dpmf
>>> ratings = dpmf.Ratings.of(["ann", "ann", "bob"], ["Heat", "Up", "Up"], [5, 4, 2], scale=(1, 5))
>>> model = dpmf.SGD(n_factors=2, n_epochs=5).fit(ratings, n_threads=1)
>>> model.guarantee.mode
'none'

Names are imported when they are first used, so `import dpmf` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpmf.version import __version__

if TYPE_CHECKING:
    from dpmf.engine.checkpoints import Checkpoint
    from dpmf.engine.cluster import Ray
    from dpmf.engine.store import StoredRatings
    from dpmf.errors import DpmfError
    from dpmf.evaluation import evaluate
    from dpmf.methods import ALS, EASE, SGD, SGLD, GaussianGD, Joint, ObjectivePerturbation, Sketch
    from dpmf.methods.objective.profiles import Profiles
    from dpmf.model import Explanation, Model, Person, Recommendation, Recommender, Release
    from dpmf.privacy import Budget, Guarantee
    from dpmf.privacy.ledger import Ledger
    from dpmf.ratings import Items, Ratings, Scale
    from dpmf.runs.estimator import Estimator
    from dpmf.runs.ingesting import ingest

_HOMES = {
    "ALS": "dpmf.methods",
    "EASE": "dpmf.methods",
    "Budget": "dpmf.privacy",
    "Checkpoint": "dpmf.engine.checkpoints",
    "DpmfError": "dpmf.errors",
    "Estimator": "dpmf.runs.estimator",
    "Explanation": "dpmf.model",
    "GaussianGD": "dpmf.methods",
    "Guarantee": "dpmf.privacy",
    "Items": "dpmf.ratings",
    "Joint": "dpmf.methods",
    "Ledger": "dpmf.privacy.ledger",
    "Model": "dpmf.model",
    "ObjectivePerturbation": "dpmf.methods",
    "Person": "dpmf.model",
    "Profiles": "dpmf.methods.objective.profiles",
    "Ratings": "dpmf.ratings",
    "Ray": "dpmf.engine.cluster",
    "Recommendation": "dpmf.model",
    "Recommender": "dpmf.model",
    "Release": "dpmf.model",
    "SGD": "dpmf.methods",
    "SGLD": "dpmf.methods",
    "Scale": "dpmf.ratings",
    "Sketch": "dpmf.methods",
    "StoredRatings": "dpmf.engine.store",
    "evaluate": "dpmf.evaluation",
    "ingest": "dpmf.runs.ingesting",
}

__all__ = [
    "ALS",
    "EASE",
    "SGD",
    "SGLD",
    "Budget",
    "Checkpoint",
    "DpmfError",
    "Estimator",
    "Explanation",
    "GaussianGD",
    "Guarantee",
    "Items",
    "Joint",
    "Ledger",
    "Model",
    "ObjectivePerturbation",
    "Person",
    "Profiles",
    "Ratings",
    "Ray",
    "Recommendation",
    "Recommender",
    "Release",
    "Scale",
    "Sketch",
    "StoredRatings",
    "__version__",
    "evaluate",
    "ingest",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpmf' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
