"""What a release says for itself in a registry of deployments: sentences for each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpmf.disclosure.evidence import proof_of
from dpmf.privacy import GaussianEvent, Guarantee, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.explain import Facts, explain_guarantee
from dpmf.version import __version__


@dataclass(frozen=True)
class Known:
    """What is known about a release.

    Attributes:
        guarantee, facts: what it says about itself.
        sections: the same in plain words, by heading.
    """

    guarantee: Guarantee
    facts: Facts
    sections: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, guarantee: Guarantee, facts: Facts) -> Known:
        """Explain a guarantee once: the cost of sampled steps takes seconds to compute."""
        explained = explain_guarantee(guarantee, facts)
        return cls(guarantee, facts, {section.title: section.sentences for section in explained})


def described(known: Known) -> str:
    """Return what the release is, in a sentence or two."""
    parts = ["item factors and biases"] if known.facts.predicts else []
    if known.facts.n_ranked is not None:
        parts.append("a ranking of items")
    learnt = "which items people have" if known.facts.feedback == "implicit" else "people's ratings"
    claimed = "" if known.guarantee.certified else " Its privacy is a paper's claim, which dpmf does not certify."
    return (
        f"A recommender of {known.facts.n_items:,} items ({' and '.join(parts)}), learnt from {learnt} by the method "
        f"{known.facts.method} of dpmf. It holds no user and no rating; people compute their own recommendations from "
        f"it.{claimed}"
    )


def domain(known: Known) -> str:
    """Return which sets of ratings are eligible for protection."""
    row = "user id, item id" if known.facts.feedback == "implicit" else "user id, item id, rating"
    scale = "" if known.facts.feedback == "implicit" else f", ratings on the scale {known.facts.scale}"
    source = "declared" if known.facts.catalogue_declared else "taken from the data"
    return (
        f"All tables of ({row}) with at most one row for a user and an item, items from a list of "
        f"{known.facts.n_items:,} that was {source}{scale}. A user may have any number of rows."
    )


def unit(known: Known) -> str:
    """Return the unit as registries name it."""
    return {"user": "User-level", "rating": "Rating-level"}[known.guarantee.unit or ""]


def adjacency(known: Known) -> str:
    """Return which data sets are adjacent."""
    whose = "all rows of one user id" if known.guarantee.unit == "user" else "one row"
    if known.guarantee.neighbours == "replace":
        other = "other rows of that user" if known.guarantee.unit == "user" else "the same row with another rating"
        return f"Two tables are adjacent if {whose} of one is replaced by {other} (bounded, change-one distance 1)."
    if known.facts.federated:
        return f"Two tables are adjacent if {whose} of one is missing in the other; who takes part is the same in both."
    return f"Two tables are adjacent if they differ by {whose}, present or absent (unbounded, add or remove)."


def meaning(known: Known) -> list[str]:
    """Return what the parameters mean, and whether they are proven."""
    sections = known.sections
    if not known.guarantee.certified:
        return [*sections["What is claimed"], *sections["It rests on"]]
    personal = ["Users may have chosen a smaller epsilon of their own; the largest is stated."]
    return [
        *sections["What it means for a person"],
        "Certified: epsilon is computed from what was done, and `dpmf verify` computes it again from the release.",
        *(personal if known.guarantee.personal else []),
    ]


def unprotected(known: Known) -> list[str]:
    """Return what is used or published without noise."""
    if known.guarantee.certified:
        return list(known.sections["What is assumed to be public"])
    taking_part = ["Who took part, and which items they rated."] if known.facts.federated else []
    return ["The list of items with their titles, the rating scale, the method and all of its settings.", *taking_part]


def trust(known: Known) -> list[str]:
    """Return whom people have to trust."""
    everybody = (
        "Whoever gets the release is not trusted, whatever else they know and however much they compute, short of "
        "breaking the cipher (ChaCha20) that generates the noise."
    )
    if not known.facts.federated:
        holder = "Whoever holds the ratings is trusted with all of them, and to run the software as it is."
        return [holder, everybody] if known.guarantee.certified else [holder]
    if known.guarantee.certified:
        parties = "The recommender and the third party do not collude, and the third party adds up what it is sent."
        return [parties, everybody]
    return ["The recommender learns which items each user rated; the third party sums masked answers."]


def mechanisms(known: Known) -> list[str]:
    """Return the mechanisms, how they are implemented, and what they are safe from."""
    software = f"Software: dpmf, version {__version__} when this record was written."
    side = (
        "Timing, memory and failures of a run are not protected; nobody but the holder of the ratings should see one."
    )
    if not known.guarantee.certified:
        return ["As published, in floating point, not certified.", software, side]
    return [
        *known.sections["What was done"],
        "Floating point: contributions are bounded and summed as whole numbers on a public grid, with discrete noise; "
        "the difference from ideal noise is part of epsilon (docs/proofs/noise.md).",
        "Randomness: the generator of the operating system, and ChaCha20; never a seed.",
        side,
        software,
    ]


def composition(known: Known) -> list[str]:
    """Return how the costs of all events add up."""
    if not known.guarantee.certified:
        return ["As claimed: no accountant of dpmf can recompute it."]
    words = {
        GaussianEvent: "Gaussian noise on full sums: adaptive composition as one Gaussian mechanism, exactly.",
        PoissonGaussianEvent: "Gaussian noise on Poisson samples: privacy loss distributions, rounded up.",
        NormNoiseEvent: "Noise of gamma-distributed length: a pure epsilon each, which add up.",
    }
    kinds = {type(event) for event in known.guarantee.events}
    return [
        *(text for kind, text in words.items() if kind in kinds),
        "Epsilon is that of everything in this release together. Other releases of the same ratings add to it.",
    ]


def post_processing(known: Known) -> str:
    """Return what happens after the noise."""
    released = ", ".join(known.guarantee.releases)
    if not known.guarantee.certified:
        return f"None that the claim accounts for; released are {released}."
    return (
        f"From the noisy sums {released} are computed without looking at the ratings again. People's own profiles, "
        "predictions and recommendations are computed on their devices from the release and what they enter."
    )


def preprocessing(known: Known) -> list[str]:
    """Return what is done before the noise."""
    if not known.guarantee.certified:
        return ["Nothing bounds what one user contributes unless the claim says so."]
    return [
        "Several ratings of one item by one user become one, and ratings of items outside the list are left out.",
        f"What one {known.guarantee.unit} contributes is bounded in code; nobody else's ratings matter to that bound.",
        "Settings that were not declared follow from public facts or from noisy sums that epsilon accounts for.",
    ]


def reasons(known: Known) -> list[str]:
    """Return why the implementation can be believed, or that it cannot."""
    if not known.guarantee.certified:
        return ["The guarantee is that of a paper. dpmf does not certify it."]
    page = proof_of(known.facts.method)
    proof = "and a test in which an adversary tries to exceed it."
    return [
        f"Every bound has a proof ({page}) {proof}"
        if page
        else f"dpmf has no proof of the method {known.facts.method}.",
        "Epsilon is computed by one accountant and cross-checked by another where both apply.",
    ]


def limits(known: Known) -> list[str]:
    """Return what the guarantee is not about."""
    return list(known.sections.get("What is not protected", ()))
