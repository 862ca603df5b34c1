"""Writing YAML, as little of it as records for a registry need: mappings, lists, texts, numbers and comments.

Texts are quoted, or literal blocks if they have several lines, so that no word is read as a number, a date or a yes.

>>> print(to_yaml({"name": "no", "delta": 1e-06, "day": Remark("1900-01-01", "which day?")}), end="")
name: "no"
delta: 1.0e-06
day: "1900-01-01"  # which day?
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z][a-z0-9_]*")
_STEP = "  "


@dataclass(frozen=True)
class Remark:
    """A value with a comment after it; without a value, its whole line is a comment."""

    value: str | int | float | None
    comment: str


def to_yaml(content: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text that ends in a newline."""
    return "".join(f"{line}\n" for line in _mapping(content, ""))


def _mapping(content: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in content.items():
        name = key if _PLAIN_KEY.fullmatch(key) else _quoted(key)
        if isinstance(value, Remark) and value.value is None:
            yield f"{indent}# {name}: {value.comment}"
        elif isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _mapping(value, indent + _STEP)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield f"{indent}{name}:"
            for one in value:
                yield from _item(one, indent + _STEP)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{name}: |"
            yield from (f"{indent}{_STEP}{line}".rstrip() for line in value.splitlines())
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{indent}- {_scalar(value)}"
        return
    lines = list(_mapping(value, indent + _STEP))
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _scalar(value: Any) -> str:
    if isinstance(value, Remark):
        return f"{_scalar(value.value)}  # {value.comment}"
    if isinstance(value, str):
        return _quoted(value)
    number = repr(value)
    # Without a point, an exponent would make it a text to YAML 1.1.
    return number if "." in number or "e" not in number else number.replace("e", ".0e")


def _quoted(text: str) -> str:
    """Return a text in double quotes, in which YAML and JSON agree except on signs that cannot be printed."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _is_block(text: str) -> bool:
    """Return whether a text has several lines and is the same as a literal block."""
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return plain and len(lines) > 2 and lines[-1] == "" and lines[-2] != "" and text[0] not in " \n"
