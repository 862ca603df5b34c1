"""Records for OpenDP's registry: valid, complete, true to the release, and with questions where only people know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft7Validator

from dpmf.disclosure.answers import QUESTIONS, check_answers
from dpmf.disclosure.registry import Record, registry_record
from dpmf.errors import InvalidArgument, NotVerified
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee, NormNoiseEvent, PoissonGaussianEvent

from .registry_schema import SCHEMA, leaves

EVENT = GaussianEvent("item sums", 5.0, 1, 40)
CERTIFIED = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], assumptions=["Nobody peeks."])
VALUES = Guarantee.certified_by(
    Budget(3.0, unit="rating", neighbours="replace"), [EVENT, NormNoiseEvent("a table", 2.0, 1, 40)], releases=["items"]
)
SAMPLED = Guarantee.certified_by(Budget(3.0), [PoissonGaussianEvent("sums", 5.0, 0.2, 3, 40)], releases=["items"])
PAPER = Guarantee.paper(
    epsilon=1, delta=0, unit="user", neighbours="add-remove", claim="A theorem.", releases=["item factors"],
    assumptions=["The chain has converged."],
)  # fmt: skip
ANSWERS: Mapping[str, Any] = {
    **dict.fromkeys(QUESTIONS, "As everybody\nknows."),
    "name": "Films for you",
    "data_curators": [{"data_curator_name": "A Cinéma", "data_curator_type": "Nonprofit"}],
    "data_product_sector": "Technology",
    "publication_date": "2026-02-28",
    "number_of_privacy_units": 60_000,
    "release_type": "One release",
    "data_source_type": "Static",
    "evidence_sources": {
        "no": {"evidence_source_type": "Other public source", "misc": {"title": "1e3", "url": "https://example.org"}}
    },
    "registry_authors": ["Ada", "Blaise: yes"],
}


def recorded(release: Release, **answers: Any) -> Record:
    return registry_record(release, check_answers(answers))


def valid(record: Record) -> dict[str, Any]:
    """Return a record as the registry reads it, once it has accepted it."""
    read: dict[str, Any] = yaml.safe_load(record.to_yaml())
    errors = [error.message for error in Draft7Validator(SCHEMA, validate_formats=True).iter_errors(read)]
    assert errors == []
    assert read == record.to_json()
    return read


def at(record: dict[str, Any], path: str) -> Any:
    found: Any = record
    for name in path.strip("/").split("/"):
        found = found[name]
    return found


@pytest.mark.parametrize("guarantee", [CERTIFIED, VALUES, SAMPLED, PAPER], ids=["user", "rating", "sampled", "paper"])
@pytest.mark.parametrize("method", ["als", "federated"])
def test_records_are_valid_with_and_without_answers(release: Release, guarantee: Guarantee, method: str) -> None:
    release = replace(release, guarantee=guarantee, configuration={"method": method})
    for record in (recorded(release), recorded(release, **ANSWERS)):
        content = valid(record)
        loss = content["deployment"]["privacy_loss"]
        assert loss["privacy_parameters"] == {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
        assert loss["privacy_unit"] == f"{(guarantee.unit or '').capitalize()}-level"
        model = content["deployment"]["deployment_model"]["model_name"]
        assert model == ("Federated" if method == "federated" else "Central")


def test_with_all_answers_every_field_of_the_highest_tier_is_filled(release: Release) -> None:
    record = recorded(replace(release, guarantee=CERTIFIED), **ANSWERS)
    content = valid(record)
    assert record.questions == {}
    assert "TODO" not in record.to_yaml()
    assert "#" not in record.to_yaml()
    for path in leaves(SCHEMA):
        assert at(content, path) not in ("", None, [], {}), path
    assert content["deployment"]["administrative"]["tier"] == 3
    assert content["url_slug"] == "films-for-you-a-cin-ma-2026"
    assert content["deployment"]["administrative"]["evidence_sources"] == ANSWERS["evidence_sources"]
    assert content["deployment"]["implementation"]["utility"] == "As everybody\nknows."


def test_what_the_release_knows_is_not_asked(release: Release) -> None:
    content = valid(recorded(replace(release, guarantee=CERTIFIED, configuration={"method": "als"})))["deployment"]
    assert "6 items" in content["basic"]["description"]
    assert "Nobody peeks." in content["dp_variant"]["unprotected_quantities"]
    assert "item sums: a sum over everybody" in content["implementation"]["mechanisms"]
    assert "docs/proofs/als.md" in content["implementation"]["justification"]
    assert "adaptive composition" in content["implementation"]["composition"]
    unknown = replace(release, guarantee=CERTIFIED, configuration={"method": "mine\x1b[2J"})
    justification = valid(recorded(unknown))["deployment"]["implementation"]["justification"]
    assert "dpmf has no proof of the method mine" in justification


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_open_until_it_is_answered(release: Release, name: str) -> None:
    certified = replace(release, guarantee=CERTIFIED)
    open_record = recorded(certified, **{key: answer for key, answer in ANSWERS.items() if key != name})
    assert list(open_record.questions) == [name]
    body = [line for line in open_record.to_yaml().splitlines() if not line.startswith("#")]
    assert any(f"TODO: {QUESTIONS[name].text}" in line for line in body)
    assert f"#   {name}: {QUESTIONS[name].text}" in open_record.to_yaml()
    valid(open_record)


def test_a_claim_is_recorded_as_a_claim(release: Release) -> None:
    content = valid(recorded(replace(release, guarantee=PAPER)))["deployment"]
    assert content["dp_variant"]["variant_name"] == "Pure DP"
    assert "does not certify" in content["basic"]["description"]
    assert "The chain has converged." in content["privacy_loss"]["privacy_parameters_details"]
    assert "whole numbers" not in content["implementation"]["mechanisms"]


def test_what_is_not_private_has_no_record(release: Release) -> None:
    seeded = Guarantee.certified_by(Budget(1.0), [EVENT], releases=["item factors"], seeded=True)
    for guarantee in (Guarantee.none(), seeded):
        with pytest.raises(InvalidArgument, match="is not private"):
            registry_record(replace(release, guarantee=guarantee))
    with pytest.raises(NotVerified, match=r"epsilon=0\.5 is stated"):
        registry_record(replace(release, guarantee=replace(CERTIFIED, epsilon=0.5)))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"nam": "x"}, "'nam' is not asked: did you mean 'name'?"),
        ({"epsilon": 0.1}, "'epsilon' is not asked: the questions are name, data_curators"),
        (["name"], "answers should be one JSON object"),
        ({"name": " "}, "the answer to 'name' should be a text"),
        ({"publication_date": "2026-02-30"}, 'should be a date such as "2026-01-31"'),
        ({"number_of_privacy_units": True}, "should be a whole number above 0"),
        ({"release_type": "Twice"}, "should be one of One release, Many releases"),
        ({"registry_authors": []}, "should be a list of names"),
        ({"data_curators": [{"data_curator_name": "A", "data_curator_type": "Club"}]}, "should be a list of objects"),
        ({"evidence_sources": {"a b": {}}}, "should be an object such as"),
        ({"data_product_sector": ["Technology"]}, "should be one of Technology"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        check_answers(answers)
    assert message in str(error.value)


def test_pages_named_as_evidence_exist() -> None:
    from dpmf.disclosure.evidence import proof_of
    from dpmf.methods import METHODS

    root = Path(__file__).parents[2]
    for method in (*METHODS, "federated"):
        page = proof_of(method)
        assert (page is None) == (method == "sgd")
        assert page is None or (root / page).is_file()


def test_the_page_about_answers_names_them_all_and_has_an_example_that_fits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "disclosure.md").read_text(encoding="utf-8")
    assert [name for name in QUESTIONS if f"`{name}`" not in page] == []
    assert check_answers(json.loads(page.partition("```json\n")[2].partition("```")[0]))["name"] == "Films for you"
