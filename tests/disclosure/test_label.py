"""Privacy labels: the right words for every kind of guarantee, and no number lower than it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpmf.disclosure.label import Label, label_of, release_label
from dpmf.errors import NotVerified
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.explain import Facts

FACTS = Facts(n_items=6, n_factors=2, scale="1:5", catalogue_declared=True, method="als")


def certified(epsilon: float = 1.0, **budget: str) -> Guarantee:
    event = GaussianEvent("item sums", noise_multiplier=5.0 / epsilon, coordinates=40)
    return Guarantee.certified_by(Budget(2 * epsilon + 10, **budget), [event], releases=["item factors"])  # type: ignore[arg-type]


def words(label: Label) -> str:
    return " ".join(text for _, text in label.rows)


@pytest.mark.parametrize(
    ("unit", "neighbours", "method", "hidden", "question"),
    [
        ("user", "add-remove", "als", "and whether they took part at all", "whether you took part"),
        ("user", "replace", "als", "but not that they took part", "which of two things you contributed"),
        ("user", "add-remove", "federated", "but not that they took part", "your ratings or nothing"),
        ("rating", "replace", "objective", "its value, but not that it was given", "which of two values"),
        ("rating", "add-remove", "objective", "also that it was given", "whether you gave one rating"),
    ],
)
def test_what_is_protected_follows_unit_and_neighbours(
    unit: str, neighbours: str, method: str, hidden: str, question: str
) -> None:
    label = label_of(certified(unit=unit, neighbours=neighbours), replace(FACTS, method=method))
    rows = dict(label.rows)
    assert label.verdict == "certified"
    assert hidden in rows["What is protected"]
    assert question in rows["How strongly"]
    assert ("masked answers" in rows["Who could see the ratings"]) == (method == "federated")


def test_whoever_knows_which_items_were_rated_is_named() -> None:
    label = label_of(certified(unit="rating", neighbours="replace"), replace(FACTS, method="federated"))
    assert "The recommender knows which items each of them rated." in words(label)


def test_a_weak_epsilon_is_called_weak() -> None:
    weak = label_of(certified(30.0), FACTS)
    assert weak.title.startswith("Certified: ε = ")
    assert "hardly a limit" in words(weak)
    assert "hardly a limit" not in words(label_of(certified(3.0), FACTS))


def test_a_limit_is_never_shown_lower_than_it_is() -> None:
    claim = Guarantee.paper(
        epsilon=5.0, delta=0.0, unit="user", neighbours="add-remove", claim="x", releases=["y"], assumptions=["z"]
    )
    for epsilon, shown in ((0.0, "50.0 "), (0.01, "50.3 "), (4.59, "99.0 "), (5.0, "99.4 "), (50.0, "100.0 ")):
        assert f"at most {shown}times out of 100." in words(label_of(replace(claim, epsilon=epsilon), FACTS))


def test_implicit_feedback_is_not_called_ratings() -> None:
    label = label_of(certified(), replace(FACTS, feedback="implicit", scale="0:1"))
    assert dict(label.rows)["Learnt from"] == "Which of 6 items people have, not what they think of them."


def test_seeded_noise_is_not_private() -> None:
    event = GaussianEvent("item sums", 5.0, 1, 40)
    label = label_of(Guarantee.certified_by(Budget(1.0), [event], releases=["item factors"], seeded=True), FACTS)
    assert (label.verdict, label.title) == ("none", "Not private")
    assert "can be taken away again" in words(label)
    assert "ε" not in words(label)


def test_a_label_of_a_wrong_epsilon_is_refused(release: Release) -> None:
    wrong = replace(release, guarantee=replace(certified(), epsilon=0.5))
    with pytest.raises(NotVerified, match=r"epsilon=0\.5 is stated"):
        release_label(wrong)
    assert release_label(release).verdict == "none"
