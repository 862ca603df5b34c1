"""The protocol of an untrusted recommender with a proof: a certified method whose noise people add themselves.

Everybody answers the questions of a certified method for themselves, adds a share of noise and a mask, and sends it to
the third party; so neither it nor the recommender sees anybody's answer. See docs/proofs/federated.md. `agreement` is
what everybody knows beforehand, `messages` pass between `user`, `recommender` and `third_party`, which are state
machines without network or clock; `simulation` runs all of them in one process.
"""

from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.certified.scenario import CertifiedScenario
from dpmf.federated.certified.simulation import CertifiedOutcome, simulate_certified
from dpmf.federated.certified.third_party import ThirdParty
from dpmf.federated.certified.user import User

__all__ = [
    "Agreement",
    "CertifiedOutcome",
    "CertifiedScenario",
    "Recommender",
    "ThirdParty",
    "User",
    "simulate_certified",
]
