"""The outcome of a simulation of the published protocol, and how the model in it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.published.claim import Claim
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.user import User
from dpmf.federated.simulate.traffic import Traffic
from dpmf.methods.centre import NO_BIAS, on_scale
from dpmf.model import Model, Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

_CHUNK = 1 << 20  # ratings


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a simulation.

    Attributes:
        model: item profiles as the recommender has them, and user profiles as each user has theirs.
        rounds: the number of rounds played …
        discarded: … and the number of those that were discarded.
        claim: what the paper claims.
        traffic: bytes and seconds.
        seconds: of all rounds together.
        took_part: the number of users who took part at least once.
        refused: the number of refused messages.
    """

    model: Model
    rounds: int
    discarded: int
    claim: Claim
    traffic: Traffic
    seconds: float
    took_part: int
    refused: int


def release_of(of: Ratings, scenario: Scenario, V: NDArray[np.float64], guarantee: Guarantee) -> Release:
    """Return item profiles as a release; predictions have neither a mean nor biases."""
    mean, biases = on_scale(0.0, np.zeros(of.n_items, np.float32), of.scale)
    facts = {name: value for name, value in asdict(scenario).items() if name not in ("noise_seed", "epsilon")}
    return Release(
        items=of.catalogue,
        scale=of.scale,
        mean=mean,
        item_factors=V.astype(np.float32),
        item_biases=biases,
        ridge=Ridge(NO_BIAS, scenario.regularization, 0.0),
        configuration={"method": "federated", "mode": "paper", **facts},
        guarantee=guarantee,
    )


def profiles_of(of: Ratings, release: Release, users: Mapping[int, User], n_threads: int) -> NDArray[np.float32]:
    """Return all users' profiles; users who never took part fit theirs to the current item profiles."""
    missing = np.ones(of.n_users, np.bool_)
    missing[list(users)] = False
    U = np.zeros((of.n_users, release.n_factors), np.float32)
    if missing.any():
        rest = of.select(np.repeat(missing, np.diff(of.indptr)))
        _, U = fold_in_many(release, rest.indptr, rest.items, rest.values, n_threads)
    for number, user in users.items():
        U[number] = user.profile
    return U


def training_errors(of: Ratings, U: NDArray[np.float32], V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the errors of all training predictions, without clamping."""
    errors, users = np.empty(len(of)), of.users
    for first in range(0, len(errors), _CHUNK):
        part = slice(first, first + _CHUNK)
        errors[part] = of.values[part] - np.einsum("nk,nk->n", U[users[part]], V[of.items[part]])
    return errors
