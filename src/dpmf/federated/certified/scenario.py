"""What a simulation of the certified protocol runs: a method, people who come and go, and who may drop out or collude.

>>> from dpmf.privacy import Budget
>>> CertifiedScenario(Budget(5.0), n_factors=2).learner.name
'als'
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.methods.als import ALS
from dpmf.methods.als.defaults import private_defaults
from dpmf.methods.als.implicit import NO_RATINGS
from dpmf.methods.certified.method import CertifiedMethod, Learner
from dpmf.methods.checks import check_rated, fraction, not_negative, whole
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.methods.objective.certified import ProfiledObjective
from dpmf.methods.objective.profiles import Profiles
from dpmf.privacy import Budget
from dpmf.ratings import Ratings, Scale

_USUAL = private_defaults(Budget(1.0), implicit=False)  # whatever epsilon is
_OF_ALS = ("n_factors", "n_epochs", "regularization", "per_item")
_USUALLY = 0.9  # this fraction of the average number of people online is nearly always online


@dataclass(frozen=True)
class CertifiedScenario:
    """Configuration of a simulation: public facts only.

    Attributes:
        budget: what all rounds together may cost one person.
        per_round: the number of people online who take part in a round. None asks everybody, if people come at once
            (come is 1), and whoever has just left counts as dropped out; else nine tenths of the average number of
            people online. Nothing is gained in privacy by being left out.
        dropouts: the part of them that may leave before they answer; with more, the round is discarded.
        colluders: the part of them that may tell the recommender, or the third party, what they did.
        come, leave: the probabilities of a person getting online and offline in a round.
        n_factors: None lets the number of people decide.
        n_epochs, regularization, per_item: as in certified least squares.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: of the public start, and of who is online when.
        noise_seed: research only; the same noise every time, and no guarantee.
        method: another method that can be certified, with the same budget; its settings are its own. None is `ALS` with
            the settings above. `ObjectivePerturbation` has Gaussian noise here, and needs profiles.
    """

    budget: Budget
    per_round: int | None = None
    dropouts: float = 0.05
    colluders: float = 0.05
    come: float = 1.0
    leave: float = 0.0
    n_factors: int | None = None
    n_epochs: int = _USUAL["n_epochs"]
    regularization: float = _USUAL["regularization"]
    per_item: bool = False
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None
    method: CertifiedMethod | ObjectivePerturbation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget) or not self.budget.is_finite:
            raise InvalidArgument("the certified protocol needs a budget with a finite epsilon")
        if self.per_round is not None:
            whole("per_round", self.per_round)
        if self.n_factors is not None:
            whole("n_factors", self.n_factors, least=0, most=256)
        whole("n_epochs", self.n_epochs, most=10_000)
        for name in ("dropouts", "colluders", "leave"):
            fraction(name, getattr(self, name))
        not_negative("regularization", self.regularization)
        if not 0 < self.come <= 1:
            raise InvalidArgument(f"come={self.come:g} should be a probability above 0")
        if self.method is not None:
            self._check_method(self.method)

    def _check_method(self, method: CertifiedMethod | ObjectivePerturbation) -> None:
        """Refuse a method without a protocol, and settings that stand in two places."""
        if not isinstance(method, CertifiedMethod | ObjectivePerturbation):
            raise InvalidArgument(f"{type(method).__name__} has no protocol in which people answer for themselves")
        if isinstance(method, ObjectivePerturbation) and method.noise == "norm":
            raise InvalidArgument(
                "noise='norm' has no shares that people could draw for themselves: use noise='gaussian'"
            )
        facts = method.facts()
        for name in ("budget", "seed", "noise_seed", "items_public"):
            if facts[name] != getattr(self, name):
                raise InvalidArgument(f"{name} of scenario and method differ: give both the same")
        for field in fields(self):
            if field.name in _OF_ALS and getattr(self, field.name) != field.default:
                raise InvalidArgument(f"{field.name} is a setting of als: set that of {method.name} in the method")

    @property
    def learner(self) -> CertifiedMethod | ObjectivePerturbation:
        """What is computed, with noise that people can draw in shares."""
        if isinstance(self.method, ObjectivePerturbation) and self.method.kind == "certified":
            return replace(self.method, noise="gaussian")
        if self.method is not None:
            return self.method
        return ALS(
            n_factors=self.n_factors,
            n_epochs=self.n_epochs,
            budget=self.budget,
            regularization=self.regularization,
            moments="per-item" if self.per_item else "shared",
            items_public=self.items_public,
            seed=self.seed,
            noise_seed=self.noise_seed,
        )

    def facts(self) -> dict[str, Any]:
        """Return the public facts by name, without the budget; a noise seed is among them."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        del facts["budget"], facts["method"]
        if self.method is None:
            return facts
        return {
            **{name: value for name, value in facts.items() if name not in _OF_ALS},
            "of": self.learner.configuration(),
        }

    @property
    def asks_everybody(self) -> bool:
        """Whether everybody is asked in every round, online or not."""
        return self.per_round is None and self.come == 1

    def learner_of(self, ratings: Ratings, profiles: Profiles | None = None, n_threads: int = 1) -> Learner:
        """Return what is computed, with the profiles that it needs."""
        learner = self.learner
        if isinstance(learner, CertifiedMethod):
            if profiles is not None:
                raise InvalidArgument(f"{learner.name} has no use for profiles: leave them out")
            return learner
        if not isinstance(profiles, Profiles):
            raise InvalidArgument("objective needs profiles: give Profiles.public(…) or Profiles.from_release(…)")
        return ProfiledObjective.of(learner, profiles, ratings, n_threads)

    def agreement(self, ratings: Ratings, learner: Learner | None = None) -> Agreement:
        """Return what everybody knows beforehand; a learner with profiles has to be given."""
        n_users = ratings.n_users
        if self.per_round is not None:
            n_users = min(self.per_round, n_users)
        elif not self.asks_everybody:
            n_users = max(int(_USUALLY * n_users * self.come / (self.come + self.leave)), 1)
        dropouts, colluders = (math.ceil(part * n_users) for part in (self.dropouts, self.colluders))
        self._check_dropouts(n_users, dropouts)
        if n_users <= dropouts + colluders:
            raise InvalidArgument(
                f"{n_users} people in a round are too few to tolerate {dropouts} drop-outs and {colluders} colluders: "
                "take more people, or tolerate fewer"
            )
        scale = ratings.scale
        if self.learner.is_implicit:  # ratings are not used, and their scale, perhaps found in the data, is not told
            scale = Scale.of_counts() if scale.counts else NO_RATINGS
        else:
            check_rated(scale)
        learner = self.learner_of(ratings) if learner is None else learner
        return Agreement(learner, ratings.catalogue, scale, n_users, dropouts, colluders)

    def _check_dropouts(self, n_users: int, dropouts: int) -> None:
        """Refuse to begin what would be lost, and charged, in the first round."""
        missing = self.leave / 2  # of those who leave in a round, half do so before they answer
        if self.asks_everybody:
            missing += self.leave * (1 - missing)  # who is offline when asked does not answer either
        usual, spread = missing * n_users, math.sqrt(missing * (1 - missing) * n_users)
        if usual + 2 * spread > dropouts and self.leave > 0:
            raise InvalidArgument(
                f"about {usual:.0f} of {n_users} people leave a round before they answer, and with more than "
                f"{dropouts} it is discarded: tolerate more drop-outs, or let people stay longer"
            )
