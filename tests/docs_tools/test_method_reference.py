"""The reference of methods has every method of the registry, and says what it can do."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_tools.method_reference import CLASSES, TABLE, classes, table

import dpmf
from dpmf.methods import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "api" / "methods.md"


@pytest.mark.parametrize("marker", [TABLE, CLASSES])
def test_the_page_asks_for_each_part_once(marker: str) -> None:
    assert PAGE.read_text(encoding="utf-8").count(marker) == 1


def test_every_method_has_a_row() -> None:
    _, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table().splitlines())
    assert [row[0].strip("`") for row in rows] == list(METHODS)
    found = {row[0].strip("`"): row[2:] for row in rows}
    assert found["als"] == ["user", "–", "explicit, implicit", "certified"]
    assert found["sgd"] == ["–", "–", "explicit", "always"]
    assert found["objective"] == ["rating", "yes", "explicit", "certified"]


def test_every_class_is_part_of_the_python_surface() -> None:
    names = [line.removeprefix("::: dpmf.") for line in classes().splitlines()[::2]]
    assert [getattr(dpmf, name) for name in names] == list(METHODS.values())
