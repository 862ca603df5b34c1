"""A privacy label: what somebody should know about a release who has never heard of epsilon.

>>> from dpmf.privacy import Guarantee
>>> facts = Facts(n_items=60, n_factors=4, scale="1:5", catalogue_declared=True, method="sgd")
>>> label = label_of(Guarantee.none(), facts)
>>> label.verdict, label.title
('none', 'Not private')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmf.disclosure.explain import verified_facts
from dpmf.model.release import Release
from dpmf.privacy import Guarantee
from dpmf.privacy.explain import Facts, guess

_ALMOST_CERTAIN = 99  # guesses of 100; beyond this, epsilon is a limit in name only


@dataclass(frozen=True)
class Label:
    """A privacy label.

    Attributes:
        verdict: "certified", "claimed" (by a paper) or "none".
        title: the verdict, in a few words.
        rows: headings and what is to be said under each, in the order to show them.
    """

    verdict: str
    title: str
    rows: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        rows = [{"heading": heading, "text": text} for heading, text in self.rows]
        return {"verdict": self.verdict, "title": self.title, "rows": rows}


def release_label(release: Release, name: str = "the release") -> Label:
    """Return the label of a release; raise `NotVerified` if its epsilon does not follow from its events."""
    return label_of(release.guarantee, verified_facts(release, name))


def label_of(guarantee: Guarantee, facts: Facts) -> Label:
    """Return the label of a release with this guarantee and these public facts."""
    if guarantee.certified:
        kind = "Certified" if _is_weak(guarantee) else "Private, and certified"
        verdict, title = "certified", f"{kind}: ε = {guarantee.epsilon:.4g} per {guarantee.unit}"
    elif guarantee.mode == "paper" and not guarantee.seeded:
        verdict, title = "claimed", "Claimed to be private, not certified"
    else:
        verdict, title = "none", "Not private"
    rows = (
        ("Learnt from", _source(facts)),
        ("What is protected", _protected(guarantee, facts, verdict)),
        ("How strongly", _strength(guarantee, facts, verdict)),
        ("Who says so", _authority(guarantee, verdict)),
        ("Who could see the ratings", _holders(guarantee, facts)),
        ("What stays with you", _DEVICE),
        ("What is not protected", _unprotected(guarantee, facts, verdict)),
    )
    return Label(verdict, title, rows)


_DEVICE = (
    "What you enter to get recommendations: the page that dpmf makes computes them on your device and sends nothing, "
    "and they do not change what was published."
)
_SIMULATED = "(If this was a simulation, whoever ran it could see all.)"
_GENERAL = "What holds for people in general: that those who like one thing also like another."


def _source(facts: Facts) -> str:
    if facts.feedback == "implicit":
        return f"Which of {facts.n_items:,} items people have, not what they think of them."
    lowest, _, highest = facts.scale.partition(":")
    return f"People's ratings of {facts.n_items:,} items, from {lowest} to {highest}."


def _protected(guarantee: Guarantee, facts: Facts, verdict: str) -> str:
    if verdict == "none":
        return "Nothing. Whoever has what was published may be able to find out who rated what."
    if guarantee.unit == "rating":
        hidden = (
            "its value, but not that it was given" if guarantee.neighbours == "replace" else "also that it was given"
        )
        what = f"Each single rating: {hidden}. Not all ratings of a person together."
    elif guarantee.neighbours == "replace" or facts.federated:
        what = "All that one person contributed, taken together, but not that they took part."
    else:
        what = "All that one person contributed, taken together, and whether they took part at all."
    return what if verdict == "certified" else f"According to the claim: {what[0].lower()}{what[1:]}"


def _strength(guarantee: Guarantee, facts: Facts, verdict: str) -> str:
    if verdict == "none":
        return "Not at all: nothing limits what can be found out."
    assert guarantee.delta is not None  # both are stated by whatever is certified or claimed
    of_hundred = _right_of_hundred(guarantee)
    said = "is right at most" if verdict == "certified" else "would be right at most"
    words = (
        f"Somebody who knows everything else and has to guess {_question(guarantee, facts)} {said} {of_hundred:.1f} "
        "times out of 100. A coin is right 50 times. "
        f"(ε = {guarantee.epsilon:.4g}, δ = {_odds(guarantee.delta)}; smaller is stronger.)"
    )
    return f"{words} By ε alone, that is hardly a limit." if _is_weak(guarantee) else words


def _right_of_hundred(guarantee: Guarantee) -> float:
    """Return how often of 100 times a guess between two neighbours can be right, rounded up to tenths."""
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    return min(100.0, math.ceil(1000 * guess(guarantee.epsilon, guarantee.delta) - 1e-9) / 10)


def _is_weak(guarantee: Guarantee) -> bool:
    return _right_of_hundred(guarantee) >= _ALMOST_CERTAIN


def _odds(delta: float) -> str:
    """Return a probability in words, rounded up.

    >>> _odds(1e-6), _odds(3e-6), _odds(0.0)
    ('one in 1,000,000', 'one in 333,333', '0')
    """
    return f"one in {math.floor(1 / delta + 1e-6):,}" if delta else "0"


def _question(guarantee: Guarantee, facts: Facts) -> str:
    if guarantee.unit == "rating":
        replaced = guarantee.neighbours == "replace"
        return "which of two values one of your ratings has" if replaced else "whether you gave one rating"
    if guarantee.neighbours == "replace":
        return "which of two things you contributed"
    return "whether you contributed your ratings or nothing" if facts.federated else "whether you took part"


def _authority(guarantee: Guarantee, verdict: str) -> str:
    if verdict == "certified":
        return (
            "The limit follows from a proof and from what the software did, and anybody can compute it again. That the "
            "software was run as it is, and only once, is the word of whoever published this."
        )
    if verdict == "claimed":
        return "A scientific paper. Nobody has proven that the claim holds for what was done here: do not rely on it."
    if guarantee.seeded:
        return "Nobody: the noise came from a known starting number, for research, and can be taken away again."
    return "Nobody: no protection was applied."


def _holders(guarantee: Guarantee, facts: Facts) -> str:
    if not facts.federated:
        return "Whoever collected them and made this. How they are kept, and who else has access, is not covered here."
    if guarantee.mode != "certified":
        return f"Each person, of their own. The recommender also learns which items each of them rated. {_SIMULATED}"
    rated = "" if guarantee.unit == "user" else " The recommender knows which items each of them rated."
    return (
        "Nobody but each person, of their own: devices sent masked answers to a recommender and a third party, who "
        f"learn no more of them than everybody else as long as they do not collude.{rated} {_SIMULATED}"
    )


def _unprotected(guarantee: Guarantee, facts: Facts, verdict: str) -> str:
    if verdict == "none":
        return "Everybody whose ratings were used. What was published should be kept as safe as the ratings themselves."
    if guarantee.unit == "rating":
        others = "A person's ratings taken together, and which items they rated."
    else:
        others = "Groups of people who act alike, and people with several accounts: they are protected less."
    return f"{_GENERAL} {others} What other publications from the same ratings reveal on top of this one."
