"""What a registry asks that no release can answer, and the file in which somebody answers it.

>>> sorted(check_answers({"name": "Films for you", "number_of_privacy_units": 60000}))
['name', 'number_of_privacy_units']
>>> check_answers({"publication_date": "June"})
Traceback (most recent call last):
dpmf.errors.InvalidArgument: the answer to 'publication_date' should be a date such as "2026-01-31"
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.files import read_json

CURATOR_TYPES = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
RELEASE_TYPES = ("One release", "Many releases")
SOURCE_TYPES = ("Static", "Dynamic")
EVIDENCE_TYPES = (
    "Peer-reviewed publication",
    "Formal publication by the deploying organization",
    "Authorized organizational attestation",
    "Other public source",
)


@dataclass(frozen=True)
class Question:
    """A question to whoever publishes a release.

    Attributes:
        text: the question.
        expected: what an answer should be, to end the sentence "it should be …".
        fits: whether JSON content is such an answer.
    """

    text: str
    expected: str
    fits: Callable[[Any], bool]


def read_answers(path: Path) -> dict[str, Any]:
    """Return the answers in a JSON file.

    Raises:
        DamagedFile: it cannot be read, or is not JSON.
        InvalidArgument: it answers what nobody asked, or an answer is not of the form that is asked for.
    """
    try:
        return check_answers(read_json(path))
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {error}") from None


def check_answers(content: Any) -> dict[str, Any]:
    """Return answers by question, or raise `InvalidArgument` if they do not fit the questions."""
    if not isinstance(content, dict):
        raise InvalidArgument('answers should be one JSON object, such as {"name": "Films for you"}')
    for key, answer in content.items():
        if key not in QUESTIONS:
            near = get_close_matches(key, QUESTIONS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the questions are {', '.join(QUESTIONS)}"
            raise InvalidArgument(f"{key!r} is not asked: {hint}")
        if not QUESTIONS[key].fits(answer):
            raise InvalidArgument(f"the answer to {key!r} should be {QUESTIONS[key].expected}")
    return content


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_date(value: Any) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_curator(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"data_curator_name", "data_curator_type"}
        and _is_text(value["data_curator_name"])
        and value["data_curator_type"] in CURATOR_TYPES
    )


def _is_source(key: str, value: Any) -> bool:
    fields = value.get("misc") if isinstance(value, dict) else None
    return (
        bool(re.fullmatch(r"\w+", key, re.ASCII))
        and isinstance(fields, dict)
        and set(value) == {"evidence_source_type", "misc"}
        and value["evidence_source_type"] in EVIDENCE_TYPES
        and bool(fields)
        and set(fields) <= {"title", "author", "year", "url", "doi", "note"}
        and all(map(_is_text, fields.values()))
    )


def _text(question: str) -> Question:
    return Question(question, "a text", _is_text)


def _choice(question: str, choices: tuple[str, ...]) -> Question:
    return Question(question, f"one of {', '.join(choices)}", lambda value: value in choices)


def _list(question: str, expected: str, fits: Callable[[Any], bool]) -> Question:
    return Question(question, f"a list of {expected}", lambda value: _is_list(value, fits))


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(fits, value))


QUESTIONS: Mapping[str, Question] = {
    "name": _text("What is the release called?"),
    "data_curators": _list(
        f"Who publishes it, and is that {', '.join(CURATOR_TYPES[:-1])} or {CURATOR_TYPES[-1]}?",
        'objects such as {"data_curator_name": "A cinema", "data_curator_type": "Industry"}; types are '
        f"{', '.join(CURATOR_TYPES)}",
        _is_curator,
    ),
    "intended_use": _text("What is it to be used for, and by whom?"),
    "data_product_region": _text("Where do the people live whose ratings these are, and whose laws apply?"),
    "data_product_sector": _choice(f"Which sector is it from: {', '.join(SECTORS)}?", SECTORS),
    "publication_date": Question("When was it published?", 'a date such as "2026-01-31"', _is_date),
    "other_unprotected_quantities": _text(
        "What else was published about these ratings without noise, such as errors or the number of users?"
    ),
    "number_of_privacy_units": Question(
        "About how many users (or ratings, if that is the unit) were there, as a number that may be public?",
        "a whole number above 0",
        lambda value: type(value) is int and value > 0,
    ),
    "actors": _text("Who has access to the ratings and to the release, and why are they trusted?"),
    "release_type": _choice(f"Will these ratings be used once: {' or '.join(RELEASE_TYPES)}?", RELEASE_TYPES),
    "release_type_details": _text(
        "Which other releases of these ratings are planned, and what is the cap of them all?"
    ),
    "data_source_type": _choice(f"Do new ratings come in over time: {' or '.join(SOURCE_TYPES)}?", SOURCE_TYPES),
    "data_source_type_details": _text("Over which period were the ratings collected, and how?"),
    "tuning": _text("How were the method, its settings and the budget chosen, and on which data?"),
    "safeguards": _text("What protects the ratings themselves, where they are kept and while a run reads them?"),
    "justification": _text("Why this epsilon, this delta and this unit, and who decided?"),
    "utility": _text("How useful is the release, and on which data was that measured?"),
    "evidence_sources": Question(
        "Which publications describe the release?",
        'an object such as {"report": {"evidence_source_type": "Other public source", "misc": {"title": "A report", '
        '"url": "https://example.org"}}}, with the types of the registry',
        lambda value: isinstance(value, dict) and bool(value) and all(_is_source(*pair) for pair in value.items()),
    ),
    "registry_authors": _list("Who fills in this record?", "names", _is_text),
}
"""All questions by the name of their answer, in the order of the record."""
