"""Seeded configurations that name every setting, and the digests of what they release.

`python -m tests.digests.configurations` stores the digests of this machine after a deliberate change of bits.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpmf import ALS, EASE, SGD, SGLD, Budget, GaussianGD, Joint, ObjectivePerturbation, Profiles, Release, Sketch
from dpmf.engine.checkpoints import machine_identity
from dpmf.engine.store import StoredRatings
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.methods import Method
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.planned import PLAN
from dpmf.methods.certified.run import Terms, certify
from dpmf.model.learnt import LEARNT
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

Settings = dict[str, Any]
STORED = Path(__file__).with_name("digests.json")
_PUBLIC: Settings = {"items_public": False, "seed": 3}
_NOT_PRIVATE, _USER = Budget(math.inf, 1e-6, "user", "add-remove"), Budget(4.0, 1e-6, "user", "add-remove")
_REPLACED, _RATING = Budget(4.0, 1e-6, "user", "replace"), Budget(4.0, 1e-6, "rating", "replace")
_ADDED = Budget(4.0, 1e-6, "rating", "add-remove")
_SEEDED: Settings = {**_PUBLIC, "noise_seed": 7}
_UNSEEDED: Settings = {**_PUBLIC, "noise_seed": None}

_ALS: Settings = {"n_factors": 3, "n_epochs": 2, "regularization": 0.5, "feedback": "explicit", "alpha": None}
_ALS |= {"moments": "shared", "cap": None}
_IMPLICIT: Settings = {**_ALS, "feedback": "implicit", "alpha": 1.0, "regularization": 1.0}
_EASE: Settings = {"head": 12, "n_users": None, "feedback": "explicit", "links": False}
_JOINT: Settings = {"n_factors": 3, "n_epochs": 2, "regularization": 0.5, "share": 0.4, "head": 12, "n_users": None}
_JOINT |= {"links": False}
_SGD: Settings = {"n_factors": 5, "n_epochs": 3, "learning_rate": 0.02, "regularization": 0.04, "decay": "linear"}
_SGD |= {"initial_sd": 0.01, "storage": "float32", "validation": 0.0, "patience": 3, "seed": 3}
_CHAIN: Settings = {
    "n_factors": 3,
    "n_epochs": 4,
    "mode": "paper",
    "learning_rate": 0.02,
    "decay": 0.3,
    "regularization": 2.0,
}
_CHAIN |= {"temperature": 1.0, "n_samples": 2, "table": 4096, "cap": None, "kappa": None, "rho": None}
_CHAIN |= {"sampling_rate": None}
_STEPS: Settings = {"n_factors": 2, "n_epochs": 3, "mode": "certified", "learning_rate": 0.5, "regularization": 1.0}
_SAMPLED: Settings = {**_STEPS, "n_samples": 2, "cap": 9, "sampling_rate": 0.4}
_CERTIFIED_CHAIN: Settings = {**_SAMPLED, "decay": None, "temperature": 1.0, "table": None, "kappa": None, "rho": None}
_GAUSSIAN: Settings = {**_STEPS, "centering": "mean", "clip": None, "eps_i": None, "delta_i": None, "delta_r": None}
_GAUSSIAN |= {"tolerance": None}
_CLAIMED: Settings = {
    **_GAUSSIAN,
    "mode": "paper",
    "centering": "raw",
    "learning_rate": 0.0005,
    "clip": 1.0,
    "eps_i": 0.3,
}
_CLAIMED |= {"delta_i": 0.01, "delta_r": 1e-5}
_SKETCH: Settings = {
    "n_factors": 3,
    "n_epochs": 3,
    "mode": "paper",
    "depth": 4,
    "gain": 1.0,
    "width": 60,
    "query": "mean",
}
_SKETCH |= {"biases": "sketch", "learning_rate": 0.02, "decay": "linear", "regularization": 0.04}
_SKETCH |= {"sampling_rate": None, "n_samples": None, "cap": None}
_CELLS: Settings = {**_SAMPLED, "depth": 4, "gain": 1.0, "width": 60, "query": "median", "biases": None, "decay": None}
_OBJECTIVE: Settings = {"n_factors": 3, "n_epochs": 4, "mode": "paper", "solver": "exact", "learning_rate": 0.03}
_OBJECTIVE |= {"regularization": 0.001}
_VALUES: Settings = {**_OBJECTIVE, "mode": "certified", "n_factors": None, "n_epochs": None, "learning_rate": None}
_VALUES |= {"noise": "norm"}

METHODS: dict[str, Method] = {
    "als": ALS(**_ALS, **_UNSEEDED, budget=_NOT_PRIVATE),
    "als implicit": ALS(**_IMPLICIT, **_UNSEEDED, budget=_NOT_PRIVATE),
    "als certified": ALS(**_ALS, **_SEEDED, budget=_USER),
    "als certified, replaced": ALS(**{**_ALS, "cap": 12}, **_SEEDED, budget=_REPLACED),
    "als certified per item": ALS(**{**_ALS, "moments": "per-item"}, **_SEEDED, budget=_USER),
    "als certified implicit": ALS(**_IMPLICIT, **_SEEDED, budget=_USER),
    "ease by popularity": EASE(**{**_EASE, "head": 0}, **_UNSEEDED, budget=_NOT_PRIVATE),
    "ease certified by popularity": EASE(**{**_EASE, "head": 0}, **_SEEDED, budget=_USER),
    "joint certified by popularity": Joint(**{**_JOINT, "head": 0}, **_SEEDED, budget=_USER),
    "sgd": SGD(**_SGD),
    "sgd in 16 bits": SGD(**{**_SGD, "storage": "bfloat16"}),
    "sgld": SGLD(**_CHAIN, **_UNSEEDED, budget=_NOT_PRIVATE),
    "sgld paper": SGLD(**{**_CHAIN, "cap": 20, "kappa": 1.0, "rho": 1.0}, **_SEEDED, budget=_USER),
    "sgld certified": SGLD(**_CERTIFIED_CHAIN, **_SEEDED, budget=_USER),
    "gaussian": GaussianGD(**_GAUSSIAN, **_UNSEEDED, budget=_NOT_PRIVATE),
    "gaussian paper": GaussianGD(**_CLAIMED, **_SEEDED, budget=_USER),
    "gaussian certified": GaussianGD(**_GAUSSIAN, **_SEEDED, budget=_USER),
    "sketch": Sketch(**_SKETCH, **_UNSEEDED, budget=_NOT_PRIVATE),
    "sketch paper": Sketch(**{**_SKETCH, "biases": "means"}, **_UNSEEDED, budget=_ADDED),
    "sketch certified": Sketch(**_CELLS, **_SEEDED, budget=_USER),
    "objective paper": ObjectivePerturbation(**_OBJECTIVE, **_SEEDED, budget=_RATING),
    "objective certified": ObjectivePerturbation(**_VALUES, **_SEEDED, budget=_RATING),
}
SCENARIO: Settings = {"per_round": None, "dropouts": 0.0, "colluders": 0.0, "come": 1.0, "leave": 0.0, "n_factors": 2}
SCENARIO |= {"n_epochs": 2, "regularization": 0.5, "per_item": False, "items_public": False, "seed": 3}
SCENARIO |= {"noise_seed": 7, "method": None}


def ratings() -> Ratings:
    """Return the ratings that all configurations learn from."""
    return make(90, 40, mean_ratings=15, seed=5)


def _trained(name: str) -> Release:
    method, data = METHODS[name], ratings()
    more: dict[str, Any] = {}
    if name == "objective certified":
        more["profiles"] = Profiles.public(data.user_ids.array, np.linspace(-1, 1, 3 * data.n_users).reshape(-1, 3))
    return method.fit(data, n_threads=2, **more).release


def _streamed() -> Release:
    with TemporaryDirectory() as folder:
        stored = StoredRatings.build(MemorySource(ratings()), Path(folder) / "store", memory=1 << 16)
        return METHODS["als certified"].fit(stored, n_threads=2).release


def _personal() -> Release:
    data = ratings()
    budgets = {data.user_ids[place]: epsilon for place, epsilon in ((0, 0.0), (1, 0.5), (2, 2.0))}
    return METHODS["als certified"].fit(data, n_threads=2, user_budgets=budgets).release


def _federated() -> Release:
    return simulate_certified(ratings(), CertifiedScenario(_USER, **SCENARIO)).model.release


def _sums(method: EASE | Joint) -> bytes:
    """Return the noisy sums of a certified ranking: what is made of them has other bits for other threads of BLAS."""
    data = ratings()
    public = method.public_half(data.catalogue, data.scale)
    certify(public, data, Terms.of(method.label, method.facts(), ()), RunOptions(2))
    stated = {name: one for name, one in public.state().items() if not name.endswith("noise of totals")}  # no sum
    return b"".join(one.tobytes() for one in stated.values())


RELEASES: dict[str, Callable[[], Release | bytes]] = {name: partial(_trained, name) for name in METHODS}
RELEASES["als certified, streamed"] = _streamed
RELEASES["als certified, personal budgets"] = _personal
RELEASES["federated certified"] = _federated
_CROWDED: Settings = {**_EASE, "n_users": 90, "feedback": "implicit"}
RELEASES["ease certified, noisy sums"] = partial(_sums, EASE(**_EASE, **_SEEDED, budget=_USER))
RELEASES["ease certified implicit, noisy sums"] = partial(_sums, EASE(**_CROWDED, **_SEEDED, budget=_USER))
RELEASES["joint certified, noisy sums"] = partial(_sums, Joint(**_JOINT, **_SEEDED, budget=_USER))


def digest(release: Release | bytes) -> str:
    """Return a digest of the two files of a release, or of whatever stands for one.

    What the plan was made from, and how much stands out from the noise, are left out: they are about how a release is
    checked and judged, and what was learnt is in the tensors.
    """
    if isinstance(release, bytes):
        return sha256(release).hexdigest()[:32]
    configuration = {name: value for name, value in release.configuration.items() if name not in (PLAN, LEARNT)}
    release = replace(release, configuration=configuration)
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release")
        files = sorted((Path(folder) / "release").iterdir())
        return sha256(b"".join(sha256(file.read_bytes()).digest() for file in files)).hexdigest()[:32]


def machine() -> str:
    """Return what bits depend on besides the code: CPU features, and the versions of what computes."""
    identity = machine_identity()
    return f"{identity['cpu']}, numba {identity['numba']}, numpy {np.__version__}"


def left_open(method: Method) -> list[str]:
    """Return the fields of a configuration that are None without having to be: a default may choose them."""
    usual = {name for name, value in method.usual().items() if value is not None}
    return [field.name for field in fields(method) if field.name in usual and getattr(method, field.name) is None]


def main() -> None:
    """Store the digests of this machine."""
    logging.disable(logging.WARNING)  # noise is seeded on purpose
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    stored[machine()] = {name: digest(make_release()) for name, make_release in RELEASES.items()}
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
