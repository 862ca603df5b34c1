"""What is reported about a trial: errors, traffic, and what is guaranteed or claimed against whom."""

from __future__ import annotations

from typing import Any

from dpmf.federated.certified.simulation import CertifiedOutcome
from dpmf.federated.published.outcome import Outcome
from dpmf.federated.simulate.trial import RANKING, Trial, is_ranked

PUBLISHED = {"client_seconds": 5.7e-7, "third_party_seconds": 0.4}
"""Computing times per round that Hua, Xia and Zhong (2015) report for Netflix."""


def report_of(trial: Trial, scenario: str, seconds: float) -> dict[str, Any]:
    """Return the figures of a trial as plain data.

    Args:
        trial: what to report on.
        scenario: its name.
        seconds: the time that it took, from reading the ratings on.
    """
    guarantee, accuracy = trial.model.guarantee, trial.accuracy
    return {
        "scenario": scenario,
        "method": trial.method,
        "mode": guarantee.mode,
        "rmse": accuracy.get("rmse"),
        "mae": accuracy.get("mae"),
        "baseline_rmse": accuracy.get("baseline_rmse"),
        "mean_error": accuracy.get("mean_error"),
        "train_rmse": accuracy.get("train_rmse"),
        **_ranking(trial),
        "rounds": trial.rounds,
        "seconds": seconds,
        **_traffic(trial.outcome),
        "factors": trial.model.release.n_factors,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "certified": guarantee.certified,
        **({} if guarantee.warning is None else {"warning": guarantee.warning}),
        "guarantee": guarantee.to_json(),
        **_protection(trial),
    }


def _ranking(trial: Trial) -> dict[str, Any]:
    """Return how well a release ranks, if that is what it is for."""
    if not is_ranked(trial.model.release):
        return {}
    return {
        f"{prefix}{name}": trial.accuracy.get(f"{prefix}{name}") for prefix in ("", "popularity_") for name in RANKING
    }


def _traffic(outcome: Outcome | CertifiedOutcome | None) -> dict[str, Any]:
    """Return what the protocol sent, refused and took."""
    if outcome is None:
        return {"bytes_down": 0, "bytes_up": 0}
    return {
        **outcome.traffic.to_json(),
        "discarded": outcome.discarded,
        "took_part": outcome.took_part or None,
        "refused": outcome.refused,
        "round_seconds": outcome.seconds / max(outcome.rounds, 1),
        "published": PUBLISHED,
    }


def _protection(trial: Trial) -> dict[str, Any]:
    """Return the guarantee against each party, or what all rounds of the paper's claim add up to."""
    outcome, guarantee = trial.outcome, trial.model.guarantee
    if isinstance(outcome, CertifiedOutcome):
        agreement = outcome.agreement
        sizes = {agreement.ring(number).n_bytes for number in range(len(agreement.rounds))}
        return {
            "against_recommender": str(guarantee),
            "against_third_party": outcome.against_third_party,
            "bytes_per_number": sorted(sizes),
        }
    if outcome is None or guarantee.mode != "paper":
        return {}
    return {"composed_epsilon": outcome.claim.composed, "proven_epsilon": None}
