"""The API reference has everything that `dpmf` exports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_tools.method_reference import with_methods

import dpmf

PAGES = Path(__file__).parents[2] / "docs" / "api"
DESCRIBED = {
    name: page.name
    for page in PAGES.glob("*.md")
    for name in re.findall(r"^::: dpmf\.(\w+)$", with_methods(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
}


@pytest.mark.parametrize("name", [name for name in dpmf.__all__ if name != "__version__"])
def test_every_name_is_described_and_listed(name: str) -> None:
    assert name in DESCRIBED
    page = "" if DESCRIBED[name] == "index.md" else DESCRIBED[name]
    assert f"[`{name}`]({page}#dpmf.{name})" in (PAGES / "index.md").read_text(encoding="utf-8")
