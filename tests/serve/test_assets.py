"""Names that change with content: of a file, of everything that refers to it, and of nothing else."""

from __future__ import annotations

import re

import pytest

from dpmf.serve.assets import Page, fingerprint_page, fingerprinted_page, page_files

FIXED = {"index.html", "js/recovery.js", "sw.js"}


def changed(name: str) -> Page:
    return fingerprint_page({**page_files(), name: page_files()[name] + b"\n"})


def test_all_names_but_two_change_with_content() -> None:
    page = fingerprinted_page()
    assert set(page.paths) == set(page_files())
    assert {name for name, path in page.paths.items() if name == path} == FIXED
    for name, path in page.paths.items():
        if name not in FIXED:
            assert re.fullmatch(re.escape(name).replace(r"\.", r"\.[0-9a-f]{16}\.", 1), path)
    assert set(page.files) == set(page.paths.values())


@pytest.mark.parametrize(
    ("name", "affected"),
    [
        ("style.css", {"style.css"}),
        ("js/linear.js", {"js/linear.js", "js/foldin.js", "js/worker.js", "js/engine.js", "js/main.js"}),
        ("js/main.js", {"js/main.js"}),
        ("index.html", set()),
    ],
)
def test_a_change_renames_whatever_depends_on_it(name: str, affected: set[str]) -> None:
    old, new = fingerprinted_page(), changed(name)
    assert {one for one in old.paths if old.paths[one] != new.paths[one]} == affected
    assert new.version != old.version
    assert f'<meta name="page-version" content="{new.version}">'.encode() in new.files["index.html"]
    unchanged = set(old.paths.values()) & set(new.paths.values()) - {"index.html"}
    assert all(old.files[path] == new.files[path] for path in unchanged)


def test_references_are_rewritten_and_nothing_else() -> None:
    page = fingerprinted_page()
    for name, path in page.paths.items():
        restored = re.sub(r"\.[0-9a-f]{16}(?=\.(?:js|css)\")", "", page.files[path].decode())
        assert restored.replace(f'content="{page.version}"', 'content=""') == page_files()[name].decode()


def test_a_page_without_a_place_for_its_version_is_refused() -> None:
    with pytest.raises(ValueError, match="page-version"):
        fingerprint_page({"index.html": b"<!doctype html>"})
