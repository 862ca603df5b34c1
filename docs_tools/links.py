"""Make links of the pages work in the repository and in the site alike.

Pages are written for whoever reads them in the repository. What they link to outside `docs/` is in the site as well
(the files of `PAGES`, and pictures under `PICTURES`), or is not (code, rows of experiments, folders): links to the
former are turned to where it is in the site, and of links to the latter the text stays. What does not exist is left as
it is, so that a strict build fails on it. A link whose text is the name of a page's file gets the page's title as its
text: in the site there are no files to see.

>>> rewrite("See [the picture](../experiments/results/liu2015/figure7-netflix.png).", "docs/sgld.md", "sgld.md")
'See [the picture](experiments/results/liu2015/figure7-netflix.png).'
>>> rewrite("See [als.md](als.md).", "docs/sgld.md", "sgld.md")
'See [Private alternating least squares](als.md).'
>>> rewrite("[Limits](../README.md#limits), [code](../src/dpmf/errors.py)", "docs/sgld.md", "sgld.md")
'[Limits](readme.md#limits), code'
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "experiments/README.md": "reproduction.md",
}
PICTURES = "experiments/results"
_LINK_OR_CODE = re.compile(
    r"^```.*?^```|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"  # code is not looked into
    r"|(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
_FILE_NAME = re.compile(r"[\w./-]+\.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside `docs/`."""
    from mkdocs.structure.files import File

    for source, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
    for picture in sorted((ROOT / PICTURES).rglob("*.png")):
        uri = picture.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page."""
    uri = page.file.src_uri
    source = next((source for source, place in PAGES.items() if place == uri), f"docs/{uri}")
    return rewrite(markdown, source, uri)


def rewrite(markdown: str, source: str, uri: str) -> str:
    """Return a page with links as the site needs them.

    Args:
        markdown: the page as it is in the repository.
        source: where that is, from the root of the repository.
        uri: where it is in the site, as the path of a source file.
    """

    def one(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or re.match(r"[a-z]+:|[#/]", target):
            return found[0]
        path, hash_sign, anchor = target.partition("#")
        located = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = _place(located)
        if place is not None:
            there = posixpath.relpath(place, posixpath.dirname(uri) or ".")
            text = _title(located) if _FILE_NAME.fullmatch(found["text"]) and not found["image"] else found["text"]
            return f"{found['image']}[{text}]({there}{hash_sign}{anchor})"
        is_here = not located.startswith("..") and (ROOT / located).exists()
        return found["text"] if is_here and not found["image"] else found[0]

    return _LINK_OR_CODE.sub(one, markdown)


def _title(located: str) -> str:
    """Return the first heading of a page; its path if there is none, or no page."""
    page = ROOT / located
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) if page.is_file() else None
    return located if found is None else found[1]


def _place(located: str) -> str | None:
    """Return where the site has a file of the repository, None if it has not."""
    if located in PAGES:
        return PAGES[located]
    if located.startswith("docs/"):
        return located.removeprefix("docs/")
    is_picture = located.startswith(f"{PICTURES}/") and located.endswith(".png")
    return located if is_picture and (ROOT / located).exists() else None
