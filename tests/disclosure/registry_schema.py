"""What OpenDP's registry of deployments accepts: fields, types and words of its schema, without its explanations.

Written after schemas/deployments-schema.yaml of github.com/opendp/deployments-registry-data at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b. That repository names no licence, so the schema itself is not copied here.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
ANY: dict[str, Any] = {}
TEXT_OR_NUMBER = {"type": ["string", "number"]}
ENTRIES = (
    *("article", "book", "booklet", "conference", "inbook", "incollection", "inproceedings", "manual", "mastersthesis"),
    *("misc", "phdthesis", "proceedings", "techreport", "unpublished"),
)
BIBTEX = (
    *("address", "annote", "author", "booktitle", "doi", "editor", "email", "howpublished", "institution", "journal"),
    *("note", "organization", "publisher", "school", "type", "series", "title", "url"),
)
NUMBERED = ("chapter", "edition", "issn", "isbn", "month", "number", "pages", "volume", "year")


def one_of(*words: Any) -> dict[str, Any]:
    return {"enum": list(words)}


def closed(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": fields}


def texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, TEXT)


SOURCE_TYPE = one_of(
    "Peer-reviewed publication", "Formal publication by the deploying organization",
    "Authorized organizational attestation", "Other public source",
)  # fmt: skip
CURATOR = {
    "type": "object",
    "required": ["data_curator_name", "data_curator_type"],
    "properties": {"data_curator_name": TEXT, "data_curator_type": one_of("Government", "Industry", "Nonprofit")},
}
FIELDS = closed(**texts(*BIBTEX), **dict.fromkeys(NUMBERED, TEXT_OR_NUMBER))
SOURCE = {"oneOf": [closed(evidence_source_type=SOURCE_TYPE, **{entry: FIELDS}) for entry in ENTRIES]}
STATUS = one_of(
    "Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)", "Approved (Pending)"
)  # fmt: skip

BASIC = closed(
    "name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region",
    "publication_date",
    **texts("name", "description", "intended_use", "data_product_region"),
    data_curators={"type": "array", "items": CURATOR, "minItems": 1},
    data_product_type=one_of(
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
    ),
    data_product_sector=one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    publication_date={"type": "string", "format": "date"},
)  # fmt: skip
VARIANT = closed(
    variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
    **texts("data_domain", "unprotected_quantities"),
)
PRIVACY_LOSS = closed(
    **texts("privacy_unit", "privacy_unit_details"),
    number_of_privacy_units={"type": "integer"},
    privacy_parameters=closed(epsilon={"type": "number"}, delta=TEXT_OR_NUMBER, rho={"type": "number"}),
    privacy_parameters_details=ANY,
)
MODEL = closed(
    model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
    actors=ANY,
    release_type=one_of("One release", "Many releases"),
    data_source_type=one_of("Static", "Dynamic"),
    access_type=one_of("Interactive", "Non-interactive"),
    **texts("model_name_details", "trust_assumptions"),
    **texts("release_type_details", "data_source_type_details", "access_type_details"),
)
IMPLEMENTATION = closed(
    **texts("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification"),
    utility=ANY,
    additional_information=ANY,
)
ADMINISTRATIVE = closed(
    "status", "registry_authors", "tier",
    evidence_sources={"type": "object", "patternProperties": {r"^\w+$": SOURCE}},
    status=STATUS,
    registry_authors={"type": "array", "items": TEXT, "minItems": 1},
    tier=one_of(1, 2, 3),
)  # fmt: skip
SCHEMA = closed(
    "url_slug", "deployment",
    url_slug=TEXT,
    deployment=closed(
        "basic", "administrative", basic=BASIC, dp_variant=VARIANT, privacy_loss=PRIVACY_LOSS, deployment_model=MODEL,
        implementation=IMPLEMENTATION, administrative=ADMINISTRATIVE,
    ),
)  # fmt: skip


def leaves(schema: dict[str, Any], path: str = "") -> list[str]:
    """Return the paths of all fields that hold no further fields."""
    if "properties" not in schema or path.endswith("privacy_parameters"):
        return [path]
    return [leaf for name, below in schema["properties"].items() for leaf in leaves(below, f"{path}/{name}")]
