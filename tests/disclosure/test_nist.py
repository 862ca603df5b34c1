"""A release along NIST SP 800-226: every aspect, evidence that exists, and nothing enforced that is only claimed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.disclosure.nist import (
    COLUMNS,
    ENFORCED,
    LEVELS,
    NOT_COVERED,
    STATED,
    Row,
    evaluation,
    release_evaluation,
    to_markdown,
)
from dpmf.errors import NotVerified
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee, NormNoiseEvent
from dpmf.privacy.explain import Facts

ROOT = Path(__file__).parents[2]
EVENT = GaussianEvent("item sums", 5.0, 1, 40)
GUARANTEES = {
    "user": Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], assumptions=["A | b."]),
    "rating": Guarantee.certified_by(
        Budget(3.0, unit="rating", neighbours="replace"),
        [EVENT, NormNoiseEvent("rows", 2.0, 1, 40)],
        releases=["items"],
    ),
    "seeded": Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], seeded=True),
    "paper": Guarantee.paper(
        epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="A theorem.", releases=["item factors"],
        assumptions=["The chain has converged."],
    ),
    "none": Guarantee.none(),
}  # fmt: skip


def rows_of(kind: str, method: str = "als") -> dict[str, Row]:
    facts = Facts(n_items=6, n_factors=2, scale="1:5", catalogue_declared=True, method=method)
    return {row.aspect: row for row in evaluation(GUARANTEES[kind], facts)}


def all_rows() -> Iterator[Row]:
    for kind in GUARANTEES:
        for method in ("als", "federated", "objective"):
            yield from rows_of(kind, method).values()


@pytest.mark.parametrize("kind", GUARANTEES)
def test_every_aspect_is_there_and_says_what_is_not_covered(kind: str) -> None:
    rows = rows_of(kind)
    for word in ("ε", "Unit", "Neighbouring", "repeated", "Floating point", "Side channels", "Trust", "access", "Bias",
                 "Utility", "collection"):  # fmt: skip
        assert any(word in aspect for aspect in rows), word
    for row in rows.values():
        assert row.status in (ENFORCED, STATED, NOT_COVERED)
        assert all((row.level in LEVELS, row.finding, row.evidence, row.not_covered)), row


def test_pages_and_tests_named_as_evidence_exist() -> None:
    named = {one.split()[0] for row in all_rows() for one in row.evidence if one.startswith(("docs/", "tests/"))}
    assert "docs/proofs/federated.md" in named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_commands_named_as_evidence_exist() -> None:
    from dpmf.cli import _COMMANDS

    named = {one.split()[1] for row in all_rows() for one in row.evidence if one.startswith("dpmf ")}
    assert named <= set(_COMMANDS)
    assert "verify" in named


def test_only_what_is_certified_is_enforced() -> None:
    for kind in ("seeded", "paper", "none"):
        assert not [row for row in rows_of(kind).values() if row.status == ENFORCED]
    certified = rows_of("user")
    for aspect in ("Privacy parameters ε, δ", "Unit of privacy", "Floating point and randomness"):
        assert certified[aspect].status == ENFORCED
    assert rows_of("user", "unheard-of")["Algorithms and their correctness"].status == STATED
    for aspect in ("Side channels", "Privacy budget over repeated releases", "Data collection exposure"):
        assert certified[aspect].status == NOT_COVERED


def test_rows_follow_the_guarantee() -> None:
    assert "ε = 0.834118, δ = 1e-06" in rows_of("user")["Privacy parameters ε, δ"].finding
    assert "at most 69.8 times of 100" in rows_of("user")["Privacy parameters ε, δ"].finding
    assert rows_of("rating")["Unit of privacy"].finding == "One rating."
    assert "(bounded)" in rows_of("rating")["Neighbouring data sets"].finding
    assert "gamma-distributed" in rows_of("rating")["Algorithms and their correctness"].finding
    assert rows_of("paper")["Privacy parameters ε, δ"].evidence == ("A theorem.",)
    assert "seed" in rows_of("seeded")["Privacy parameters ε, δ"].finding
    assert rows_of("user")["Trust model"].finding.startswith("Central")
    assert rows_of("user", "federated")["Trust model"].finding.startswith("Distributed")
    assert "In a simulation" in rows_of("user", "federated")["Trust model"].not_covered


def test_markdown_is_one_table() -> None:
    lines = to_markdown(list(rows_of("user").values()), "A [b] <c>").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert lines[0] == r"# A \[b\] \<c>"
    assert len(table) == len(rows_of("user")) + 2
    assert {line.replace(r"\|", "").count("|") for line in table} == {len(COLUMNS) + 1}
    assert any(r"A \| b." in line for line in table)


def test_a_wrong_epsilon_is_not_evaluated(release: Release) -> None:
    with pytest.raises(NotVerified, match=r"epsilon=0\.5 is stated"):
        release_evaluation(replace(release, guarantee=replace(GUARANTEES["user"], epsilon=0.5)))
