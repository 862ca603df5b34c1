"""A release along NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees (2025).

The publication orders what a guarantee depends on as a pyramid: on top the guarantee itself, below it what can
undermine it, at the bottom what all of it rests on. Each row here says what holds for a release, what shows it, and
what is not covered.

>>> from dpmf.privacy import Guarantee
>>> facts = Facts(n_items=60, n_factors=4, scale="1:5", catalogue_declared=True, method="sgd")
>>> evaluation(Guarantee.none(), facts)[0].status
'not covered'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpmf.disclosure.evidence import proof_of
from dpmf.disclosure.explain import verified_facts
from dpmf.disclosure.markdown import escaped, table
from dpmf.model.release import Release
from dpmf.privacy import ClaimEvent, GaussianEvent, Guarantee, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.explain import Facts, guess

FORMAT = "nist"
LEVELS = ("Guarantee", "What can undermine it", "What it rests on")
ENFORCED, STATED, NOT_COVERED = "enforced", "stated", "not covered"
_LEGEND = "Enforced: by the software. Stated: on somebody's word. Paths are those of the repository of dpmf."
COLUMNS = ("Level", "Aspect", "Status", "What holds", "Evidence", "Not covered")


@dataclass(frozen=True)
class Row:
    """One aspect of a guarantee.

    Attributes:
        level: of the pyramid, one of `LEVELS`.
        aspect: what the row is about.
        status: "enforced" by the software, "stated" by the release but on somebody's word, or "not covered".
        finding: what holds for this release.
        evidence: pages, tests and commands that show it.
        not_covered: what does not follow from it.
    """

    level: str
    aspect: str
    status: str
    finding: str
    evidence: tuple[str, ...]
    not_covered: str

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {**asdict(self), "evidence": list(self.evidence)}

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table, one for each of `COLUMNS`."""
        return self.level, self.aspect, self.status, self.finding, "; ".join(self.evidence), self.not_covered


def release_evaluation(release: Release, name: str = "the release") -> tuple[Row, ...]:
    """Return the rows about a release; raise `NotVerified` if its epsilon does not follow from its events."""
    return evaluation(release.guarantee, verified_facts(release, name))


def evaluation(guarantee: Guarantee, facts: Facts) -> tuple[Row, ...]:
    """Return the rows about a release with this guarantee and these public facts."""
    top, middle, bottom = LEVELS
    return (
        *_level(top, _parameters(guarantee), _unit(guarantee, facts), _neighbours(guarantee, facts)),
        *_level(
            middle,
            _algorithms(guarantee, facts),
            _budget(guarantee),
            _REPEATED,
            _numbers(guarantee),
            _public(guarantee),
            _UTILITY,
            _BIAS,
            _SIDE_CHANNELS,
        ),
        *_level(bottom, _trust(guarantee, facts), _INTEGRITY, _ACCESS, _collection(facts)),
    )


def to_markdown(rows: Sequence[Row], title: str) -> str:
    """Return the rows as a page in Markdown."""
    lines = table(COLUMNS, [row.cells() for row in rows])
    return "\n".join([f"# {escaped(title)}", "", _LEGEND, "", *lines, ""])


_Cells = tuple[str, str, str, tuple[str, ...], str]


def _level(level: str, *rows: _Cells) -> tuple[Row, ...]:
    return tuple(Row(level, *cells) for cells in rows)


def _kind(guarantee: Guarantee) -> str:
    """Return how much a statement of this guarantee is worth."""
    return ENFORCED if guarantee.certified else STATED if _is_claim(guarantee) else NOT_COVERED


def _is_claim(guarantee: Guarantee) -> bool:
    return guarantee.mode == "paper" and not guarantee.seeded


_NO_GUARANTEE = "There is no guarantee: whoever has the release may find out who rated what."


def _parameters(guarantee: Guarantee) -> _Cells:
    aspect, evidence = "Privacy parameters ε, δ", ("dpmf verify RELEASE", "docs/guarantees.md")
    if _kind(guarantee) == NOT_COVERED:
        seeded = " The noise came from a seed, and can be taken away again." if guarantee.seeded else ""
        return aspect, NOT_COVERED, f"None.{seeded}", evidence, _NO_GUARANTEE
    assert guarantee.epsilon is not None  # both are stated
    assert guarantee.delta is not None
    stated = f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}"
    if not guarantee.certified:
        claims = tuple(event.claim for event in guarantee.events if isinstance(event, ClaimEvent))
        return aspect, STATED, f"{stated}, as a paper claims.", claims, "Nothing here proves or recomputes the claim."
    right = min(100.0, math.ceil(1000 * guess(guarantee.epsilon, guarantee.delta) - 1e-9) / 10)  # a limit: rounded up
    finding = f"{stated}: a guess between two neighbours is right at most {right:g} times of 100; a coin is 50 times."
    tests = ("tests/privacy/test_accounting.py", "tests/privacy/test_verify.py")
    return aspect, ENFORCED, finding, (*evidence, *tests), "Whether this ε is small enough for these data and people."


def _unit(guarantee: Guarantee, facts: Facts) -> _Cells:
    aspect = "Unit of privacy"
    if _kind(guarantee) == NOT_COVERED:
        return aspect, NOT_COVERED, "None.", ("docs/guarantees.md",), _NO_GUARANTEE
    if guarantee.unit == "user":
        finding, beyond = (
            "All ratings of one user id, together.",
            "Several accounts of one person; groups who act alike.",
        )
    else:
        finding, beyond = "One rating.", "All ratings of a person together."
    if not guarantee.certified:
        return aspect, STATED, f"As claimed: {finding}", ("docs/sharp-edges.md",), beyond
    evidence = (*_proof(facts), "tests/methods/test_contract_bounds.py", "docs/sharp-edges.md")
    return aspect, ENFORCED, finding, evidence, beyond


def _neighbours(guarantee: Guarantee, facts: Facts) -> _Cells:
    aspect, evidence = "Neighbouring data sets", ("docs/guarantees.md", "docs/sharp-edges.md")
    kind = _kind(guarantee)
    if kind == NOT_COVERED:
        return aspect, NOT_COVERED, "None.", evidence, _NO_GUARANTEE
    if guarantee.neighbours == "replace":
        return aspect, kind, "Replace one unit by another (bounded).", evidence, "That somebody, or a rating, is there."
    beyond = (
        "That somebody takes part, which is public here." if facts.federated else "Nothing: presence is hidden, too."
    )
    return aspect, kind, "Add or remove one unit (unbounded).", evidence, beyond


def _algorithms(guarantee: Guarantee, facts: Facts) -> _Cells:
    aspect = "Algorithms and their correctness"
    if not guarantee.certified:
        finding = f"The method {facts.method}, without certified noise."
        return aspect, NOT_COVERED, finding, (f"dpmf explain RELEASE (method {facts.method})",), "Bounds and noise."
    names = {
        GaussianEvent: "Gaussian noise on sums",
        PoissonGaussianEvent: "Gaussian noise on sums over Poisson samples",
        NormNoiseEvent: "noise of gamma-distributed length on tables",
    }
    kinds = {type(event) for event in guarantee.events}
    used = ", ".join(name for kind, name in names.items() if kind in kinds)
    tests = ("tests/methods/test_contract_bounds.py", "tests/privacy/test_mechanism.py")
    finding = f"The method {facts.method}: contributions are bounded in code, then {used}."
    if not _proof(facts):
        return aspect, STATED, finding, tests, "dpmf has no proof of a method of this name."
    return aspect, ENFORCED, finding, (*_proof(facts), *tests), "Errors in proofs or code that review and tests missed."


def _budget(guarantee: Guarantee) -> _Cells:
    aspect = "Privacy budget within the release"
    if not guarantee.certified:
        return aspect, NOT_COVERED, "Nothing is accounted for.", ("dpmf verify RELEASE",), "Composition."
    events = ", ".join(event.what for event in guarantee.events)
    finding = f"All of these are composed: {events}. Noise that would cost more is refused before it is drawn."
    tests = ("tests/privacy/test_accounting.py", "tests/privacy/test_guarantee.py")
    return (
        aspect,
        ENFORCED,
        finding,
        ("dpmf verify RELEASE", *tests),
        "Runs whose result was not saved, without a ledger.",
    )


_REPEATED: _Cells = (
    "Privacy budget over repeated releases",
    NOT_COVERED,
    "A release does not say what else was made from the same ratings. A ledger, where one is kept, composes all "
    "releases and refuses to exceed its cap.",
    ("dpmf train --ledger FILE --cap E", "dpmf ledger FILE", "tests/privacy/test_ledger.py"),
    "Releases without a ledger, or in another one; whether one was kept is not recorded.",
)


def _numbers(guarantee: Guarantee) -> _Cells:
    aspect = "Floating point and randomness"
    if not guarantee.certified:
        finding = "Numbers are floating-point numbers, and noise, if any, is not drawn to keep secrets."
        return aspect, NOT_COVERED, finding, ("docs/sharp-edges.md",), "Attacks on gaps between such numbers."
    finding = (
        "Sums are whole numbers on a public grid, with discrete noise whose difference from ideal noise is part of ε; "
        "randomness is that of the operating system and ChaCha20."
    )
    evidence = ("docs/proofs/noise.md", "tests/privacy/test_discrete.py", "tests/privacy/test_noise.py")
    return aspect, ENFORCED, finding, evidence, "A cipher or an operating system that is broken."


def _public(guarantee: Guarantee) -> _Cells:
    aspect = "Public facts, settings and tuning"
    beyond = "Settings, catalogue, scale or ε chosen by looking at the ratings; figures published beside the release."
    if not guarantee.assumptions:
        return aspect, NOT_COVERED, "No assumption is recorded.", ("docs/sharp-edges.md",), beyond
    finding = " ".join(guarantee.assumptions)
    return aspect, STATED, finding, ("dpmf explain RELEASE", "docs/sharp-edges.md"), beyond


_UTILITY: _Cells = (
    "Utility",
    NOT_COVERED,
    "A release holds no error figure. Its holder can measure it; the figures are outside the guarantee.",
    ("dpmf evaluate RELEASE DATA", "dpmf train --holdout F", "docs/compare.md"),
    "How useful it is; publishing such a figure is a release of its own.",
)
_BIAS: _Cells = (
    "Bias",
    NOT_COVERED,
    "Noise hides what few people say: in a private release rare items end up near the mean, and popular ones are "
    "recommended more.",
    ("dpmf train --holdout F (error by popularity)", "docs/sharp-edges.md"),
    "Who is missing from the ratings, and what the ratings themselves are biased by.",
)
_SIDE_CHANNELS: _Cells = (
    "Side channels",
    NOT_COVERED,
    "The release has a fixed list of fields. The duration, memory, failures and output of a run depend on the ratings.",
    ("tests/model/test_discretion.py", "docs/sharp-edges.md"),
    "Whoever can watch a run, or its machine.",
)
_SIMULATED = "In a simulation one process plays all parties, and whoever runs it holds all ratings."


def _trust(guarantee: Guarantee, facts: Facts) -> _Cells:
    aspect = "Trust model"
    if not facts.federated:
        finding = "Central: whoever holds the ratings is trusted with all of them and to run the software as it is."
        return aspect, STATED, finding, ("docs/guarantees.md",), "What the holder does with the ratings."
    finding = "Distributed: people answer from their own devices; a recommender and a third party see masked answers."
    if guarantee.certified:
        evidence = ("docs/proofs/federated.md", "tests/federated/test_certified_parties.py")
        beyond = f"Recommender and third party who collude; that somebody takes part. {_SIMULATED}"
        return aspect, STATED, finding, evidence, beyond
    beyond = f"The recommender learns which items each person rated. {_SIMULATED}"
    return aspect, STATED, finding, ("docs/federated.md", "tests/federated/test_published_secrecy.py"), beyond


_INTEGRITY: _Cells = (
    "Integrity of the release",
    STATED,
    "Checksums reveal damage, and a signature, where there is one, tampering.",
    ("dpmf verify RELEASE --public-key FILE", "tests/model/test_signing.py"),
    "Without a signature, the events are trusted as written.",
)
_ACCESS: _Cells = (
    "Security and access control",
    NOT_COVERED,
    "A release holds no user and no rating. Models, checkpoints and stores, which do, are made for their owner only.",
    ("tests/model/test_discretion.py", "tests/model/test_model_files.py", "docs/sharp-edges.md"),
    "Where and how the ratings are kept, who has access, backups, logs of other software.",
)


def _collection(facts: Facts) -> _Cells:
    aspect = "Data collection exposure"
    if facts.federated:
        finding = "Ratings stay on the devices of those who gave them; what leaves is masked."
        return aspect, STATED, finding, ("docs/federated.md",), f"Devices, and who can watch them answer. {_SIMULATED}"
    finding = "The ratings were collected before dpmf saw them, without noise."
    return aspect, NOT_COVERED, finding, ("docs/federated.md (without collecting them)",), "The collection itself."


def _proof(facts: Facts) -> tuple[str, ...]:
    page = proof_of(facts.method)
    return () if page is None else (page,)
