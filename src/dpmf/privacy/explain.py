"""A guarantee in plain words: pure functions from public facts to text.

`dpmf.disclosure.explain` verifies a release first, and is what the command line and the page call.

>>> facts = Facts(n_items=60, n_factors=4, scale="1:5", catalogue_declared=True, method="sgd")
>>> [part.title for part in explain_guarantee(Guarantee.none(), facts)]
['What is released', 'What is promised']
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dpmf.privacy.accounting import delta_of
from dpmf.privacy.budget import delta_warning
from dpmf.privacy.events import ClaimEvent, Event, GaussianEvent, NormNoiseEvent
from dpmf.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Facts:
    """Public facts about a release.

    Attributes:
        n_items, n_factors: sizes.
        scale: of the ratings, such as "1:5".
        catalogue_declared: whether the list of items was declared, not learnt from the ratings.
        method: how the model was trained.
        feedback: "explicit" if ratings were used, "implicit" if only which items people have.
        n_ranked: the number of items that the ranking part knows pairs of; None without a ranking part.
        predicts: whether there is a rating model.
        weighs_counts: whether it matters how often people had an item.
        users_about: about how many users there are, if that was declared.
    """

    n_items: int
    n_factors: int
    scale: str
    catalogue_declared: bool
    method: str
    feedback: str = "explicit"
    n_ranked: int | None = None
    predicts: bool = True
    weighs_counts: bool = False
    users_about: int | None = None

    @property
    def federated(self) -> bool:
        """Whether nobody held all ratings, in which case it is public who took part."""
        return self.method == "federated"


@dataclass(frozen=True)
class Section:
    """A heading and the sentences under it."""

    title: str
    sentences: tuple[str, ...]


def explain_guarantee(guarantee: Guarantee, facts: Facts) -> tuple[Section, ...]:
    """Return what a release holds and what is guaranteed, for somebody who has never heard of epsilon."""
    released = Section("What is released", _released(guarantee, facts))
    if guarantee.mode == "none":
        return released, Section("What is promised", _NOTHING)
    if guarantee.mode == "paper":
        return released, Section("What is claimed", _claimed(guarantee)), Section("It rests on", guarantee.assumptions)
    if guarantee.seeded:
        return released, Section("What is promised", _SEEDED), Section("Recorded with it", guarantee.assumptions)
    together = (_TOGETHER.format(of_what="" if guarantee.unit == "user" else " about values"),)
    return (
        released,
        Section("What is protected", (_protected(guarantee, facts), _AGAINST, *(together if facts.federated else ()))),
        Section("What it means for a person", _meaning(guarantee, facts)),
        Section("What was done", tuple(_done(event, guarantee.unit) for event in guarantee.events)),
        Section("What is assumed to be public", (_PUBLIC, *guarantee.assumptions)),
        Section("What is not protected", _not_protected(guarantee)),
    )


_NOTHING = (
    "Nothing is guaranteed. Item factors are sums over people's ratings, and whoever has them may be able to find out "
    "who rated what. Treat the release like the ratings: do not publish it.",
)
_SEEDED = (
    "Nothing is guaranteed. The noise in this release came from a seed, for research: whoever knows or guesses the "
    "seed can remove the noise. Treat the release like the ratings: do not publish it.",
)
_AGAINST = (
    "It is protected against everybody who gets the release, now or later, whatever else they know about this "
    "person and about all others, and however much computing power they have, unless they can break the cipher "
    "(ChaCha20) that generates the noise."
)
_TOGETHER = (
    "No party held the ratings: people added up masked answers with the help of a recommender and a third party. That "
    "neither of these learns more{of_what} than everybody else rests on the assumptions below, in particular that they "
    "do not collude, and on the ciphers between them (X25519, ChaCha20-Poly1305)."
)
_PUBLIC = (
    "The list of items with their titles, the rating scale, the method and all of its settings, the number of rounds "
    "and the amount of noise. They must not be chosen by looking at these ratings."
)


def _released(guarantee: Guarantee, facts: Facts) -> tuple[str, ...]:
    source = "declared" if facts.catalogue_declared else "learnt from the ratings"
    model = f"a bias each, a constant that predictions start from, the scale {facts.scale}, titles"
    if facts.feedback == "implicit":
        model = "a popularity each, titles"
    if facts.predicts:
        model = f"{facts.n_factors} factor{'s' if facts.n_factors != 1 else ''} and {model}"
    else:
        model = "titles" if facts.feedback == "implicit" else f"titles, the scale {facts.scale}"
    holds = (
        f"{facts.n_items:,} items, from a list that was {source}, with {model}, and how it was trained (method "
        f"{facts.method}). It holds no user and no rating."
    )
    if facts.n_ranked is not None:
        holds += (
            f" For ranking, it holds how much having one item counts for another, of {facts.n_ranked:,} items, and how "
            "popular all items are."
        )
    if not facts.predicts:
        holds += " It predicts no ratings."
    if facts.feedback == "implicit":
        often = " and how often" if facts.weighs_counts else ""
        holds += f" It was trained on which items people have{often}, not on how they rated them."
    if not guarantee.releases:
        return (holds,)
    return holds, f"Computed from the ratings: {', '.join(guarantee.releases)}. All else is assumed to be public."


def _claimed(guarantee: Guarantee) -> tuple[str, ...]:
    claims = tuple(event.claim for event in guarantee.events if isinstance(event, ClaimEvent))
    return (
        f"A paper claims epsilon={guarantee.epsilon:g} and delta={guarantee.delta:g} per {guarantee.unit} "
        f"({guarantee.neighbours}). dpmf does not certify it: no accountant here can recompute it, and the code does "
        "not enforce what it rests on. For a guarantee that holds, use a certified method.",
        *(() if guarantee.warning is None else (f"Warning: {guarantee.warning}.",)),
        *claims,
    )


def _protected(guarantee: Guarantee, facts: Facts) -> str:
    whose = {
        "user": "All ratings of one person, together",
        "rating": "Each single rating, but not all ratings of a person together",
    }[guarantee.unit or ""]
    hidden = {
        ("user", "add-remove"): "what they are, and whether they are in the data at all",
        ("user", "replace"): "what they are, but not that somebody took part",
        ("rating", "add-remove"): "what it is, and whether it was given at all",
        ("rating", "replace"): "its value, but not that it was given",
    }[guarantee.unit or "", guarantee.neighbours or ""]
    if facts.federated and guarantee.unit == "user":
        hidden = "what they are and which items they are of, but not that somebody took part"
    return f"{whose}: {hidden}. How well is measured by epsilon and delta, below."


class _Words(NamedTuple):
    """How neighbours differ: what a guesser does not know, and the two cases to be told apart."""

    question: str
    present: str
    instead: str


_NEIGHBOURS = {
    ("user", "add-remove"): _Words("whether you are in the data", "with your ratings", "without them"),
    ("user", "replace"): _Words(
        "which of two things you contributed", "with your ratings", "with any others in their place"
    ),
    ("rating", "add-remove"): _Words("whether you gave one rating", "with one of your ratings", "without it"),
    ("rating", "replace"): _Words(
        "which of two values one of your ratings has",
        "with one of your ratings as it is",
        "with any other value in its place",
    ),
}
_NOTHING_CONTRIBUTED = _Words(
    "whether you contributed your ratings or nothing", "with your ratings", "if you had taken part with none"
)


def _meaning(guarantee: Guarantee, facts: Facts) -> tuple[str, ...]:
    assert guarantee.epsilon is not None  # a certified guarantee states all three
    assert guarantee.delta is not None
    assert guarantee.neighbours is not None
    epsilon, delta = guarantee.epsilon, guarantee.delta
    words = _NEIGHBOURS[guarantee.unit or "", guarantee.neighbours]
    if facts.federated and guarantee.neighbours == "add-remove":
        words = _NOTHING_CONTRIBUTED
    exact = (1 + delta_of(guarantee.events, 0.0, neighbours=guarantee.neighbours)) / 2
    warning = delta_warning(delta, facts.users_about)
    return (
        *(() if warning is None else (f"Warning: {warning}.",)),
        f"epsilon={epsilon:g}, delta={delta:g}: whatever somebody might conclude from the release, it is at most "
        f"{_factor(epsilon)} times as likely {words.present} as it would be {words.instead}, give or take a "
        f"probability of {delta:g}.",
        f"Somebody who knows everything except {words.question}, and considers both equally likely, guesses right with "
        f"a probability of at most {_percent(guess(epsilon, delta))}, instead of 50 %. For the noise that was actually "
        f"added the limit is {_percent(exact)}.",
    )


def guess(epsilon: float, delta: float) -> float:
    """Return the greatest probability of telling two equally likely neighbours apart: (e^ε + δ) / (e^ε + 1).

    >>> round(guess(1.0, 0.0), 3)
    0.731
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def _factor(epsilon: float) -> str:
    """Return e^ε, rounded up: a limit must not look lower than it is."""
    if epsilon >= 10:
        return f"e^{epsilon:g}"
    return f"{math.ceil(100 * math.exp(epsilon)) / 100:g}"


def _percent(probability: float) -> str:
    """Return a percentage, rounded up to a tenth."""
    return f"{min(100.0, math.ceil(1000 * probability - 1e-9) / 10):g} %"


def _done(event: Event, unit: str | None) -> str:
    assert not isinstance(event, ClaimEvent)
    times = "once" if event.count == 1 else f"{event.count:,} times"
    if isinstance(event, GaussianEvent):
        return (
            f"{event.what}: a sum over everybody, released at most {times}, with Gaussian noise of "
            f"{event.noise_multiplier:.4g} times the largest change that one {unit} can make."
        )
    if isinstance(event, NormNoiseEvent):
        return (
            f"{event.what}: a table, released at most {times}, each row with noise in a random direction and of a "
            f"random length (gamma-distributed), whose scale is {event.noise_multiplier:.4g} times the largest change "
            f"that one {unit} can make. It takes {event.count / event.noise_multiplier:.4g} of epsilon."
        )
    return (
        f"{event.what}: a sum over a random sample (each with probability {event.sampling_rate:g}), released at most "
        f"{times}, with Gaussian noise of {event.noise_multiplier:.4g} times the most that one {unit} can contribute."
    )


def _not_protected(guarantee: Guarantee) -> tuple[str, ...]:
    groups = (
        "A group of people who act alike: what k of them have in common is protected about k times less.",
        "Several accounts of the same person, which count as several people.",
    )
    ratings = ("A person's ratings taken together: this guarantee is about one rating at a time.",)
    return (
        "What holds for people in general: that those who like one item also like another. This may be concluded about "
        "you, too, whether or not you took part.",
        *(groups if guarantee.unit == "user" else ratings),
        "Other releases of the same ratings: their costs add up. A ledger keeps track of them (dpmf ledger).",
        "The ratings themselves, where they are kept, saved models and checkpoints, and error figures shown to "
        "whoever holds the data.",
        "What a person does with the release on their own device, such as showing others what it recommends.",
    )
