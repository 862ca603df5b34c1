"""An explanation is true, and claims nothing that is not guaranteed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpmf.privacy import Budget, GaussianEvent, Guarantee, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.explain import Facts, explain_guarantee, guess
from dpmf.privacy.gaussian import gaussian_delta

FACTS = Facts(n_items=60, n_factors=4, scale="1:5", catalogue_declared=True, method="als")
EVENTS = gaussian_events(Budget(1.0), [Part("item biases", 1, 1, 60), Part("item sums", 3, 10, 2400)])


def words(guarantee: Guarantee, facts: Facts = FACTS) -> dict[str, str]:
    return {section.title: " ".join(section.sentences) for section in explain_guarantee(guarantee, facts)}


def certified(budget: Budget, *, seeded: bool = False) -> Guarantee:
    return Guarantee.certified_by(
        budget, EVENTS, releases=["item biases", "item factors"], assumptions=["The ids are public."], seeded=seeded
    )


def test_a_certified_release_is_explained_completely() -> None:
    told = words(certified(Budget(1.0)))
    assert list(told) == [
        "What is released", "What is protected", "What it means for a person", "What was done",
        "What is assumed to be public", "What is not protected",
    ]  # fmt: skip
    for title, needed in {
        "What is released": ["60 items", "4 factors", "no user and no rating", "item biases, item factors"],
        "What is protected": ["All ratings of one person", "are in the data", "computing power", "ChaCha20"],
        "What it means for a person": ["2.72 times", "73.2 %", "epsilon=1, delta=1e-06", "without them"],
        "What was done": ["item biases", "once", "item sums", "10 times", "one user"],
        "What is assumed to be public": ["list of items", "scale", "settings", "rounds", "The ids are public."],
        "What is not protected": ["people in general", "group", "Other releases", "ledger", "device", "error figures"],
    }.items():  # fmt: skip
        for one in needed:
            assert one in told[title]


def test_the_guess_is_that_of_the_best_test() -> None:
    gdp = math.sqrt(sum(event.count / event.noise_multiplier**2 for event in EVENTS))
    best = math.ceil(1000 * (1 + gaussian_delta(gdp, 0.0)) / 2) / 10
    assert f"the limit is {best:g} %" in words(certified(Budget(1.0)))["What it means for a person"]
    assert guess(0.0, 0.0) == 0.5
    assert guess(math.log(3), 0.0) == pytest.approx(0.75)
    assert guess(1000.0, 0.0) == 1.0


def test_units_and_neighbours_change_the_words() -> None:
    told = words(certified(Budget(1.0, unit="rating", neighbours="replace")))
    assert "Each single rating" in told["What is protected"]
    assert "its value, but not that it was given" in told["What is protected"]
    assert "with one of your ratings as it is as it would be with any other value" in told["What it means for a person"]
    assert "which of two values one of your ratings has" in told["What it means for a person"]
    assert "one rating at a time" in told["What is not protected"]
    told = words(certified(Budget(1.0, neighbours="replace")))
    assert "not that somebody took part" in told["What is protected"]
    assert "with any others in their place" in told["What it means for a person"]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_certified_protocol_does_not_hide_who_takes_part(neighbours: str) -> None:
    told = words(certified(Budget(1.0, neighbours=neighbours)), replace(FACTS, method="federated"))
    assert "not that somebody took part" in told["What is protected"]
    assert "do not collude" in told["What is protected"]
    assert "in the data" not in told["What is protected"] + told["What it means for a person"]


def test_the_certified_protocol_for_one_value_does_not_hide_which_items_were_rated() -> None:
    told = words(certified(Budget(1.0, unit="rating", neighbours="replace")), replace(FACTS, method="federated"))
    assert "its value, but not that it was given" in told["What is protected"]
    assert "learns more about values than everybody else" in told["What is protected"]
    assert "which items they are of" not in told["What is protected"]


def test_a_sample_and_a_large_epsilon_are_named() -> None:
    event = PoissonGaussianEvent("gradients", 0.4, 0.01, 300, 100)
    told = words(Guarantee.certified_by(Budget(50.0, 1e-4), [event], releases=["item factors"]))
    assert "random sample (each with probability 0.01), released at most 300 times" in told["What was done"]
    assert "at most 100 %" in told["What it means for a person"]
    assert "e^" in told["What it means for a person"]


def test_noise_of_gamma_distributed_length_is_explained() -> None:
    event = NormNoiseEvent("item noise", 2.5, 2, 800)
    budget = Budget(3.0, unit="rating", neighbours="replace")
    told = words(Guarantee.certified_by(budget, [event], releases=["item factors"]))
    assert "item noise: a table, released at most 2 times, each row with noise in a random" in told["What was done"]
    assert "2.5 times the largest change that one rating can make" in told["What was done"]
    assert "takes 0.8 of epsilon" in told["What was done"]
    assert "the limit is 69 %" in told["What it means for a person"]  # e^0.8 / (1 + e^0.8), as for any pure epsilon
    beside = words(Guarantee.certified_by(budget, [event, GaussianEvent("sums", 9.0, 1, 5)], releases=["x"]))
    assert "item noise: a table" in beside["What was done"]
    assert "sums: a sum over everybody" in beside["What was done"]


def test_without_a_guarantee_nothing_is_said_to_be_protected() -> None:
    paper = Guarantee.paper(
        epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="Theorem 1 says so.", releases=["item factors"],
        assumptions=["The chain has converged."],
    )  # fmt: skip
    for guarantee in (Guarantee.none(), certified(Budget(1.0), seeded=True), paper):
        told = words(guarantee)
        assert "What is protected" not in told
        assert "certified" not in " ".join(told.values()).replace("does not certify", "").replace(
            "certified method", ""
        )
    assert "do not publish it" in words(Guarantee.none())["What is promised"]
    assert "do not publish it" in words(certified(Budget(1.0), seeded=True))["What is promised"]
    assert "Theorem 1 says so." in words(paper)["What is claimed"]
    assert words(paper)["It rests on"] == "The chain has converged."


def test_a_catalogue_learnt_from_the_ratings_is_named() -> None:
    learnt = Facts(n_items=60, n_factors=4, scale="1:5", catalogue_declared=False, method="sgd")
    assert "learnt from the ratings" in words(Guarantee.none(), learnt)["What is released"]
