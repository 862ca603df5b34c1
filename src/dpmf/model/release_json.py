"""The file `release.json`: which fields it has, and how they are read back and checked.

>>> list(ids_of_json([7, 12]))
[7, 12]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpmf.errors import DamagedFile, InvalidRatings
from dpmf.files import digest_of, read_json
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale
from dpmf.ratings.ids import Id, Ids
from dpmf.ratings.kinds import array_of

FORMAT_VERSION = 5  # the newest
COUNTS_VERSION = 5  # for factors that go by counts, with a ranking part or without
RANKING_VERSION = 4  # with a ranking part
IMPLICIT_VERSION = 3  # for implicit feedback without one
EXPLICIT_VERSION = 2  # for ratings: older versions of dpmf read it, and could not make sense of anything newer
TENSOR_FILE = "release.safetensors"
FACTS_FILE = "release.json"
FILES = (TENSOR_FILE, FACTS_FILE)
_FACTS = ("format", "version", "mean", "scale", "ridge", "items", "configuration", "guarantee", "sha256")
_IMPLICIT_FACTS = ("feedback", "alpha")  # from format 3 on
_RANKING_FACTS = ("ranking",)  # of format 4, and perhaps of format 5
_COUNTS_FACTS = ("counts",)  # of format 5
_SEAL = ("digest", "signature")  # of all other fields; the signature is optional


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the fields of a release, whose names and digest were checked; raise `DamagedFile` if they are wrong."""
    facts = read_json(folder / FACTS_FILE)
    if not isinstance(facts, dict) or facts.get("format") != "dpmf-release":
        raise DamagedFile(f"{folder / FACTS_FILE} does not describe a dpmf release")
    version = facts.get("version")
    if type(version) is not int or version < 1:
        raise DamagedFile(f"{folder / FACTS_FILE} is damaged: {version!r} is not the number of a format")
    if version > FORMAT_VERSION:
        raise DamagedFile(f"{folder} has format {version}, newer than this dpmf reads ({FORMAT_VERSION}): update dpmf")
    _check_fields(folder, facts)
    if version > 1 and _digest_of(facts) != facts["digest"]:
        raise DamagedFile(f"{folder / FACTS_FILE} is damaged: its content is not what its digest says")
    if not (folder / TENSOR_FILE).is_file():
        raise DamagedFile(f"{folder / TENSOR_FILE} is missing")
    return facts


def is_signed(folder: str | Path) -> bool:
    """Return whether a release carries a signature, no matter whose."""
    return "signature" in read_facts(Path(folder))


def _check_fields(folder: Path, facts: dict[str, Any]) -> None:
    required = {*_FACTS, "digest"} if facts["version"] > 1 else set(_FACTS)
    if facts["version"] > EXPLICIT_VERSION:
        required |= set(_IMPLICIT_FACTS)
    optional = {"signature"} if facts["version"] > 1 else set()
    if facts["version"] == RANKING_VERSION:
        required |= set(_RANKING_FACTS)
    if facts["version"] >= COUNTS_VERSION:
        required |= set(_COUNTS_FACTS)
        optional |= set(_RANKING_FACTS)
    odd = sorted((required - set(facts)) | (set(facts) - required - optional))
    if odd:
        raise DamagedFile(f"{folder / FACTS_FILE} is damaged: field {odd[0]!r} is missing or unknown")


def _digest_of(facts: dict[str, Any]) -> str | None:
    try:
        return digest_of({name: value for name, value in facts.items() if name not in _SEAL})
    except ValueError:  # a number that JSON does not have
        return None


def items_of_json(ids: list[Id], titles: list[str], genres: list[str], declared: bool) -> Items:
    """Return a catalogue, or raise TypeError."""
    if not all(isinstance(texts, list) and all(isinstance(one, str) for one in texts) for texts in (titles, genres)):
        raise TypeError("titles and genres should be lists of texts")
    if not isinstance(declared, bool):
        raise TypeError(f"{declared!r} should say whether the catalogue was declared: true or false")
    return Items(ids_of_json(ids), titles, genres, declared=declared)


def ids_of_json(listed: list[Id]) -> Ids:
    """Return ids, given as a list of integers or one of texts; both in one, as older versions had it, are texts."""
    if not isinstance(listed, list) or any(type(one) not in (int, str) for one in listed):
        raise TypeError("ids should be a list of integers or texts")
    try:
        return Ids(array_of(listed if len(set(map(type, listed))) == 1 else [str(one) for one in listed]))
    except InvalidRatings as error:
        raise TypeError(str(error)) from None


def scale_of_json(lo: float, hi: float, declared: bool = True) -> Scale:
    """Return a rating scale, or raise TypeError."""
    if not isinstance(declared, bool):
        raise TypeError(f"{declared!r} should say whether the scale was declared: true or false")
    return Scale(number_of_json(lo), number_of_json(hi), declared)


def counts_of_json(most: float = 1.0, linear: bool = False) -> dict[str, Any]:
    """Return what a release says about counts, or raise TypeError."""
    if not isinstance(linear, bool):
        raise TypeError(f"{linear!r} should say whether counts weigh as they are: true or false")
    return {"most_count": number_of_json(most), "linear": linear}


def number_of_json(value: object) -> float:
    """Return a float, or raise TypeError or ValueError."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} should be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number has hundreds of digits") from None


def guarantee_of_json(content: Any, version: int) -> Guarantee:
    """Return the guarantee in a release of this format, or raise `DamagedFile`."""
    if version == 1 and isinstance(content, dict):
        content = {"releases": [], **content}  # a field that the first format did not have
    guarantee = Guarantee.from_json(content)
    if version == 1 and guarantee.mode != "none":  # it had no digest, and no such guarantee
        raise DamagedFile("the guarantee of this release is not one that its format knows")
    return guarantee
