"""A record of a release for OpenDP's registry of deployments, complete at its highest tier but for open questions.

The registry is github.com/opendp/deployments-registry-data; its schema is schemas/deployments-schema.yaml there, and
records have the layout of its commit 057e5d8. What a release cannot know is left as a question that starts with TODO:
in the text itself, or, where only a date or one of a few words is allowed, in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf.disclosure import registry_words as words
from dpmf.disclosure.answers import CURATOR_TYPES, QUESTIONS
from dpmf.disclosure.explain import verified_facts
from dpmf.disclosure.yaml import Remark, to_yaml
from dpmf.errors import InvalidArgument
from dpmf.model.release import Release

FORMAT = "opendp-registry"
_TIER = 3
_NO_DATE = "1900-01-01"  # as in the template of the registry
_TODO = "TODO: "


@dataclass(frozen=True)
class Record:
    """A record, and what is still to be answered in it.

    Attributes:
        fields: the record; values may be a `Remark`, which is a placeholder or missing.
        questions: what is open, by the name of the answer.
    """

    fields: Mapping[str, Any]
    questions: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the record in plain JSON types, without comments."""
        plain: dict[str, Any] = _plain(self.fields)
        return plain

    def to_yaml(self) -> str:
        """Return the record as the registry stores it, with what is open at the top."""
        if not self.questions:
            return to_yaml(self.fields)
        head = [f"# Open questions: {len(self.questions)}. Search for TODO, or answer them with --answers FILE."]
        listed = [f"#   {name}: {question}" for name, question in self.questions.items()]
        return "\n".join([*head, *listed, ""]) + to_yaml(self.fields)


def registry_record(release: Release, answers: Mapping[str, Any] | None = None, name: str = "the release") -> Record:
    """Return the record of a release.

    Args:
        release: the release to describe.
        answers: what the release does not know, as `dpmf.disclosure.answers.check_answers` returns it.
        name: how to refer to it in an error.

    Raises:
        InvalidArgument: nothing is guaranteed about it, so that there is nothing to register.
        NotVerified: its epsilon does not follow from its events.
    """
    facts, guarantee = verified_facts(release, name), release.guarantee
    if guarantee.mode == "none" or guarantee.seeded:
        raise InvalidArgument(f"{name} is not private: a registry of differential privacy has no place for it")
    form, known = _Form(answers or {}), words.Known.of(guarantee, facts)
    deployment = {
        "basic": _basic(form, known),
        "dp_variant": {
            "variant_name": "Approximate DP" if guarantee.delta else "Pure DP",
            "data_domain": words.domain(known),
            "unprotected_quantities": _listed(*words.unprotected(known), form.text("other_unprotected_quantities")),
        },
        "privacy_loss": _privacy_loss(form, known),
        "deployment_model": _deployment_model(form, known),
        "implementation": _implementation(form, known),
        "administrative": {
            "evidence_sources": form.value("evidence_sources"),
            "status": "Draft",
            "registry_authors": form.value("registry_authors", [form.todo("registry_authors")]),
            "tier": _TIER,
        },
    }
    return Record({"url_slug": form.slug(), "deployment": deployment}, form.questions)


class _Form:
    """Answers, and the questions that had none."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.questions = {name: one.text for name, one in QUESTIONS.items() if name not in answers}

    def todo(self, name: str) -> str:
        """Return the question as it is left in a text."""
        return _TODO + QUESTIONS[name].text

    def text(self, name: str) -> str:
        """Return the answer, or the question in its place."""
        return str(self._answers.get(name, self.todo(name)))

    def value(self, name: str, instead: Any = None) -> Any:
        """Return the answer, or something in its place that the schema allows: a list, or a value with a comment."""
        if name in self._answers:
            return self._answers[name]
        return instead if isinstance(instead, list) else Remark(instead, self.todo(name))

    def slug(self) -> Any:
        """Return the end of the record's address, from name, first curator and year."""
        if not {"name", "data_curators", "publication_date"} <= set(self._answers):
            return Remark(
                "todo", f"{_TODO}name-curator-year, once name, data_curators and publication_date are answered"
            )
        curator = self._answers["data_curators"][0]["data_curator_name"]
        year = self._answers["publication_date"][:4]
        return re.sub(r"[^a-z0-9]+", "-", f"{self._answers['name']} {curator} {year}".lower()).strip("-")


def _basic(form: _Form, known: words.Known) -> dict[str, Any]:
    unknown = {
        "data_curator_name": form.todo("data_curators"),
        "data_curator_type": Remark(CURATOR_TYPES[1], form.todo("data_curators")),
    }
    return {
        "name": form.text("name"),
        "data_curators": form.value("data_curators", [unknown]),
        "description": words.described(known),
        "intended_use": form.text("intended_use"),
        "data_product_type": "Machine learning model",
        "data_product_region": form.text("data_product_region"),
        "data_product_sector": form.value("data_product_sector"),
        "publication_date": form.value("publication_date", _NO_DATE),
    }


def _privacy_loss(form: _Form, known: words.Known) -> dict[str, Any]:
    return {
        "privacy_unit": words.unit(known),
        "privacy_unit_details": words.adjacency(known),
        "number_of_privacy_units": form.value("number_of_privacy_units"),
        "privacy_parameters": {"epsilon": known.guarantee.epsilon, "delta": known.guarantee.delta},
        "privacy_parameters_details": _listed(*words.meaning(known)),
    }


def _deployment_model(form: _Form, known: words.Known) -> dict[str, Any]:
    held = "Nobody holds all ratings: people answer from their own devices, with masks; not so in a simulation."
    if not known.facts.federated:
        held = "Whoever holds the ratings runs the mechanism; only the release leaves their control."
    return {
        "model_name": "Federated" if known.facts.federated else "Central",
        "model_name_details": held,
        "trust_assumptions": _listed(*words.trust(known)),
        "actors": form.text("actors"),
        "release_type": form.value("release_type"),
        "release_type_details": form.text("release_type_details"),
        "data_source_type": form.value("data_source_type"),
        "data_source_type_details": form.text("data_source_type_details"),
        "access_type": "Non-interactive",
        "access_type_details": "The release is a pair of files. Whoever uses it cannot query the ratings.",
    }


def _implementation(form: _Form, known: words.Known) -> dict[str, Any]:
    limits = words.limits(known)
    further = {"additional_information": _listed(*(f"Not protected: {one}" for one in limits))} if limits else {}
    return {
        "preprocessing_and_hyperparameter_tuning": _listed(*words.preprocessing(known), form.text("tuning")),
        "mechanisms": _listed(*words.mechanisms(known), form.text("safeguards")),
        "composition": _listed(*words.composition(known)),
        "post_processing": words.post_processing(known),
        "justification": _listed(*words.reasons(known), form.text("justification")),
        "utility": form.text("utility"),
        **further,
    }


def _listed(*sentences: str) -> str:
    """Return sentences as a list in Markdown, which is what the registry shows texts as."""
    if len(sentences) == 1:
        return sentences[0]
    return "".join(f"- {' '.join(sentence.split())}\n" for sentence in sentences)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if not _is_missing(one)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value.value if isinstance(value, Remark) else value


def _is_missing(value: Any) -> bool:
    return isinstance(value, Remark) and value.value is None
