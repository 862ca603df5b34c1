"""Writing YAML: what a reader of YAML finds is what was written."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpmf.disclosure.yaml import Remark, to_yaml

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.text("ab :#-'\"\\\n\t\x85\u2028\x00\U0001f3ac|>&*%@"),
    st.sampled_from(["no", "1e3", "2026-01-01", "null", "~", "", "a\nb\n", " a\nb\n", "a\n\nb\n", "a \nb\n", "\n\n"]),
)
KEYS = st.one_of(st.sampled_from(["a", "no", "y", "key_1", "1", "a b"]), TEXTS.filter(bool))
SCALARS = st.one_of(TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False))
LISTS = st.lists(st.one_of(SCALARS, st.dictionaries(KEYS, SCALARS, min_size=1)), min_size=1)
RECORDS = st.dictionaries(KEYS, st.one_of(SCALARS, LISTS, st.dictionaries(KEYS, SCALARS, min_size=1)), min_size=1)


@given(RECORDS)
def test_what_is_written_is_read(record: dict[str, Any]) -> None:
    assert yaml.safe_load(to_yaml(record)) == record


@pytest.mark.parametrize("value", [1e-06, 1e22, 0.5, 3, -1e-10])
def test_numbers_stay_numbers(value: float) -> None:
    assert yaml.safe_load(to_yaml({"delta": value}))["delta"] == value


def test_remarks_are_comments() -> None:
    record = {"a": Remark("x # y", "why?"), "b": Remark(None, "what?"), "c": [Remark(3, "how many?")]}
    assert yaml.safe_load(to_yaml(record)) == {"a": "x # y", "c": [3]}
    assert to_yaml(record).count("?") == 3
