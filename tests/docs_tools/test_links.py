"""Links of the pages work in the repository and in the site."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_tools.links import PAGES, ROOT, rewrite

PICTURE = "experiments/results/liu2015/figure7-netflix.png"


@pytest.mark.parametrize(
    ("source", "uri", "target", "turned"),
    [
        ("docs/sgld.md", "sgld.md", f"../{PICTURE}", PICTURE),
        ("docs/proofs/sgld.md", "proofs/sgld.md", f"../../{PICTURE}", f"../{PICTURE}"),
        ("docs/sgld.md", "sgld.md", "als.md#accuracy", "als.md#accuracy"),
        ("docs/proofs/sgld.md", "proofs/sgld.md", "../sgld.md", "../sgld.md"),
        ("docs/sgld.md", "sgld.md", "../README.md#limits", "readme.md#limits"),
        ("docs/api/index.md", "api/index.md", "../../CHANGELOG.md", "../changelog.md"),
        ("CHANGELOG.md", "changelog.md", "docs/proofs/als.md", "proofs/als.md"),
        ("README.md", "readme.md", "CONTRIBUTING.md", "contributing.md"),
        ("README.md", "readme.md", PICTURE, PICTURE),
        ("experiments/README.md", "reproduction.md", "results/liu2015/figure7-netflix.png", PICTURE),
        ("docs/sgld.md", "sgld.md", "../experiments/README.md#x", "reproduction.md#x"),
        ("docs/sgld.md", "sgld.md", "#figures", "#figures"),
        ("docs/sgld.md", "sgld.md", "https://semver.org", "https://semver.org"),
    ],
)
def test_links_to_what_the_site_has_are_turned_to_it(source: str, uri: str, target: str, turned: str) -> None:
    assert rewrite(f"a [b\nc]({target}) d", source, uri) == f"a [b\nc]({turned}) d"
    assert rewrite(f"![b]({target})", source, uri) == f"![b]({turned})"


@pytest.mark.parametrize("text", ["als.md", "docs/als.md", "../als.md"])
def test_a_link_that_shows_a_file_shows_the_title_of_its_page(text: str) -> None:
    assert rewrite(f"[{text}](als.md#x)", "docs/sgld.md", "sgld.md") == "[Private alternating least squares](als.md#x)"
    assert rewrite("[gone.md](gone.md)", "docs/sgld.md", "sgld.md") == "[docs/gone.md](gone.md)"


@pytest.mark.parametrize("target", ["../src/dpmf/errors.py", "../experiments/results/balu2016", "../pyproject.toml"])
def test_of_links_to_what_the_site_has_not_the_text_stays(target: str) -> None:
    assert rewrite(f"see [`code`]({target}).", "docs/sgld.md", "sgld.md") == "see `code`."


@pytest.mark.parametrize(
    "target", ["../gone.md", "../experiments/results/gone.png", "../../elsewhere/README.md", "../src/gone.py#x"]
)
def test_what_does_not_exist_is_left_for_the_build_to_refuse(target: str) -> None:
    page = f"[text]({target})"
    assert rewrite(page, "docs/sgld.md", "sgld.md") == page


@pytest.mark.parametrize("code", ["`[a](../README.md)`", "```\n[a](../README.md)\n```", "``x ` [a](../README.md)``"])
def test_code_is_left_alone(code: str) -> None:
    assert rewrite(code, "docs/sgld.md", "sgld.md") == code


def test_links_after_code_are_turned_all_the_same() -> None:
    page = "`a[0](b)` and [c](../README.md)\n\n```\nx\n```\n\n[d](../SECURITY.md)"
    turned = "`a[0](b)` and [c](readme.md)\n\n```\nx\n```\n\n[d](security.md)"
    assert rewrite(page, "docs/sgld.md", "sgld.md") == turned


def test_a_site_has_the_pages_and_pictures_outside_docs(tmp_path: Path) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"[a](../{PICTURE}), [b](../CHANGELOG.md), [c](../src/dpmf/errors.py)")
    hook = ROOT / "docs_tools" / "links.py"
    settings = f"site_name: test\nuse_directory_urls: false\nplugins: []\nhooks: ['{hook}']\n"
    (tmp_path / "mkdocs.yml").write_text(settings)
    build(load_config(str(tmp_path / "mkdocs.yml")))
    site = tmp_path / "site"
    assert f'<a href="{PICTURE}">a</a>, <a href="changelog.html">b</a>, c' in (site / "index.html").read_text()
    for page in PAGES.values():
        assert (site / page).with_suffix(".html").is_file()
    pictures = {path.relative_to(ROOT) for path in (ROOT / "experiments" / "results").rglob("*.png")}
    assert Path(PICTURE) in pictures
    assert {path.relative_to(site) for path in (site / "experiments").rglob("*.*")} == pictures
