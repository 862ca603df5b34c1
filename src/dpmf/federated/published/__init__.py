"""The protocol of Hua, Xia and Zhong (2015), as published.

>>> Scenario("s2", rounds=10, epsilon=1.0).third_party
True
"""

from dpmf.federated.published.claim import Claim
from dpmf.federated.published.outcome import Outcome
from dpmf.federated.published.recommender import Recommender
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.simulation import Simulation, simulate
from dpmf.federated.published.terms import Terms
from dpmf.federated.published.third_party import ThirdParty
from dpmf.federated.published.user import User

__all__ = [
    "Claim",
    "Outcome",
    "Recommender",
    "Scenario",
    "Simulation",
    "Terms",
    "ThirdParty",
    "User",
    "simulate",
]
