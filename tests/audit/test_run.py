"""Whole audits: of methods, of releases, and what they report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.audit import attacks, release
from dpmf.audit.findings import Audit, Finding
from dpmf.audit.report.page import report, write_report
from dpmf.audit.run import Plan, audit
from dpmf.errors import InvalidArgument
from dpmf.methods import ALS, EASE, SGD, ObjectivePerturbation, configure
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.guarantee import rounded_up
from dpmf.ratings.synthetic import make

from .faults import SMALL, VALUE, LargerClip, seeded, smaller

PEOPLE = make(60, 40, mean_ratings=8, seed=2)


@pytest.fixture(scope="module")
def whole() -> Audit:
    """Return an audit with all parts."""
    plan = Plan(EASE(budget=Budget(1.0)), ratings=SMALL, runs=20, canaries=12, machinery={"mechanism": seeded()})
    return audit(plan)


def test_an_honest_method_passes_with_every_number(whole: Audit) -> None:
    assert whole.ok
    assert whole.verdict == "no violation found"
    content = whole.to_json()
    assert list(content["parts"]) == ["sensitivity", "noise", "two_worlds", "one_run", "attacks"]
    assert content["parts"]["two_worlds"]["runs_per_world"] == 20
    json.dumps(content)


def test_a_report_is_one_page_that_needs_nothing_else(whole: Audit, tmp_path: Path) -> None:
    write_report(whole, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert page.count("<svg") == 2
    assert "default-src 'none'" in page
    assert not any(f'{name}="http' in page.replace("xmlns", "") for name in ("src", "href"))
    assert "no violation found" in page


def test_what_is_violated_is_said_first() -> None:
    bad = Finding("noise", "Noise", False, "too <little> noise")
    for mode, words in (("certified", "guarantee violated"), ("paper", "claim violated")):
        found = Audit({"method": "als", "configuration": {}}, (bad,), mode)
        assert (found.ok, found.verdict) == (False, words)
    assert "too &lt;little&gt; noise" in report(found)


@pytest.mark.parametrize(
    ("machinery", "part"),
    [({"mechanism": seeded(smaller)}, "noise"), ({"mechanism": seeded(), "answerer": LargerClip}, "sensitivity")],
    ids=["noise a tenth too small", "clip a tenth too large"],
)
def test_a_fault_that_is_given_to_an_audit_is_found(machinery: dict[str, object], part: str) -> None:
    found = audit(Plan(EASE(budget=Budget(1.0)), ratings=SMALL, parts=(part,), machinery=machinery))
    assert found.verdict == "guarantee violated"


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="part 'luck' is not known"):
        audit(Plan(EASE(budget=Budget(1.0)), parts=("luck",)))
    with pytest.raises(InvalidArgument, match="sgd guarantees nothing"):
        audit(Plan(SGD()))


def test_who_took_part_shows_without_a_guarantee_and_not_with_one() -> None:
    subject = Plan(EASE(budget=Budget(0.5), noise_seed=3), ratings=PEOPLE).subject("attacks")
    found = attacks.examine(subject, splits=1).figures
    assert found["without a guarantee"]["membership_auc"] > 0.8
    assert found["without a guarantee"]["recall_took_part"] > found["without a guarantee"]["recall_others"] + 0.2
    assert abs(found["as audited"]["membership_auc"] - 0.5) < 0.2
    assert found["popularity"]["membership_auc"] == pytest.approx(0.5, abs=0.1)


METHODS = {
    "als": ALS(n_factors=2, n_epochs=2, budget=Budget(5.0)),
    "als-implicit": ALS(n_factors=2, n_epochs=2, feedback="implicit", budget=Budget(5.0)),
    "ease": EASE(head=5, budget=Budget(5.0, neighbours="replace")),
    "joint": configure("joint", {"budget": Budget(5.0)}),
    "gaussian": configure("gaussian", {"n_epochs": 3, "budget": Budget(5.0)}),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_method_of_a_release_is_the_one_that_made_it(name: str, tmp_path: Path) -> None:
    method = METHODS[name]
    method.fit(SMALL, n_threads=1).release.save(tmp_path / "release")
    loaded = Release.load(tmp_path / "release")
    found = release.method_of(loaded)
    assert type(found) is type(method)
    assert found.facts()["budget"] == method.facts()["budget"]
    subject = Plan(found, ratings=SMALL, release=loaded).subject("people")
    about = release.examine(loaded, subject.events)
    assert about.ok
    assert about.figures["not_planned"] == []


def test_the_budget_of_perturbed_objectives_is_what_is_paid_for_items(tmp_path: Path) -> None:
    method = ObjectivePerturbation(budget=VALUE)
    profiles = Profiles.public(SMALL.user_ids.array, [[0.5, 0.5]] * SMALL.n_users)
    method.fit(SMALL, n_threads=1, profiles=profiles).release.save(tmp_path / "release")
    found = release.method_of(Release.load(tmp_path / "release"))
    assert (found.name, found.facts()["budget"]) == ("objective", VALUE)


def test_the_method_of_a_protocol_is_that_which_the_parties_ran() -> None:
    from dpmf.federated.certified.scenario import CertifiedScenario
    from dpmf.federated.certified.simulation import simulate_certified

    scenario = CertifiedScenario(Budget(5.0), n_factors=1, n_epochs=1)
    found = release.method_of(simulate_certified(SMALL, scenario, n_threads=1).model.release)
    assert (found.name, found.facts()["n_factors"]) == ("als", 1)


def test_a_release_whose_events_cost_something_else_fails() -> None:
    made = EASE(budget=Budget(5.0)).fit(SMALL, n_threads=1).release
    forged = replace(made, guarantee=replace(made.guarantee, epsilon=1.0))
    found = release.examine(forged, {})
    assert found.ok is False
    assert "epsilon=1 is stated" in found.sentence


def test_a_release_that_contradicts_itself_fails() -> None:
    made = EASE(budget=Budget(5.0)).fit(SMALL, n_threads=1).release
    events = (GaussianEvent("item popularity", noise_multiplier=100.0, coordinates=1),)
    epsilon = rounded_up(epsilon_of(events, 1e-6, neighbours="add-remove"))
    forged = replace(made, guarantee=replace(made.guarantee, events=events, epsilon=epsilon))
    found = release.examine(forged, {event.what: event for event in events})
    assert found.ok is False
    assert "there is no event for it" in found.sentence


def test_a_release_without_a_guarantee_is_refused(release: Release) -> None:
    from dpmf.audit.release import method_of

    with pytest.raises(InvalidArgument, match="guarantees nothing"):
        method_of(release)
    odd = replace(release, guarantee=Guarantee.paper(
        epsilon=1.0, delta=0.0, unit="user", neighbours="replace", claim="x", releases=["y"], assumptions=["z"]
    ), configuration={"method": "oracle"})  # fmt: skip
    with pytest.raises(InvalidArgument, match="'oracle', which no audit here knows"):
        method_of(odd)
