"""The page's own files, under names that change with their content.

A host that sends no cache headers leaves it to browsers how long they keep a file. Every file of the page except
index.html is therefore named after its content, and every reference to it is rewritten: a cached copy can never be out
of date, and index.html names exactly the files it was built with. Names are assigned from the leaves of the import
graph upward, so the name of a module changes with everything it imports.

>>> page = fingerprinted_page()
>>> re.sub("[0-9a-f]{16}", "<digest>", page.paths["js/main.js"])
'js/main.<digest>.js'
>>> page.paths["index.html"]
'index.html'
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType

INDEX_FILE = "index.html"
JOIN_FILE = "join.html"
RECOVERY_FILE = "js/recovery.js"  # has to be there for every index.html, however old
WORKER_FILE = "sw.js"  # a service worker of another name would be another one
_FIXED_NAMES = (INDEX_FILE, RECOVERY_FILE, WORKER_FILE, JOIN_FILE)
_DIGITS = 16
_REFERENCES: Mapping[str, re.Pattern[str]] = MappingProxyType({
    ".html": re.compile(r'((?:src|href)=")([^"#:][^":]*)"'),
    ".js": re.compile(r'(\bfrom "|\bnew URL\(")(\.?[^":]+)"'),
})  # fmt: skip
_VERSION = '<meta name="page-version" content="{}">'


@dataclass(frozen=True, eq=False)
class Page:
    """The page as it is sent to browsers.

    Attributes:
        files: path → content.
        paths: name in the source tree → path.
        version: digest of index.html, and through the names in it, of all other files.
    """

    files: Mapping[str, bytes]
    paths: Mapping[str, str]
    version: str


@cache
def page_files() -> Mapping[str, bytes]:
    """Return the sources of the page: relative path → content, the same for every release."""
    return MappingProxyType(_read(resources.files("dpmf.serve") / "page", ""))


@cache
def join_files() -> Mapping[str, bytes]:
    """Return the sources of the page on which people take part in an agreement; only sites that offer one have it."""
    return MappingProxyType(_read(resources.files("dpmf.serve") / "join", ""))


@cache
def fingerprinted_page() -> Page:
    """Return the page with a digest in every name but those of index.html, recovery script and service worker."""
    return fingerprint_page(page_files())


@cache
def offering_page(addresses: tuple[str, ...]) -> Page:
    """Return the same page with the one on which people join an agreement, which alone may connect to these addresses.

    All other files are those of `fingerprinted_page`.
    """
    sources = {**page_files(), **join_files()}
    own, allowed = b"connect-src 'self'", " ".join(("connect-src 'self'", *addresses)).encode()
    return fingerprint_page({**sources, JOIN_FILE: sources[JOIN_FILE].replace(own, allowed)})


def fingerprint_page(sources: Mapping[str, bytes]) -> Page:
    """Rename the files of a page after their content, and rewrite the references between them.

    Args:
        sources: relative path → content. References must not form a cycle.
    """
    files: dict[str, bytes] = {}
    paths: dict[str, str] = {}

    def path_of(name: str) -> str:
        if name not in paths:
            content = _rewrite(name, sources[name])
            paths[name] = name if name in _FIXED_NAMES else fingerprinted(name, content)
            files[paths[name]] = content
        return paths[name]

    def _rewrite(name: str, content: bytes) -> bytes:
        pattern = _REFERENCES.get(posixpath.splitext(name)[1])
        if pattern is None:
            return content

        def renamed(match: re.Match[str]) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
            return f'{match[1]}{posixpath.join(posixpath.dirname(match[2]), posixpath.basename(path_of(target)))}"'

        return pattern.sub(renamed, content.decode()).encode()

    for name in sources:
        path_of(name)
    version = digest_of_content(files[INDEX_FILE])
    blank, filled = (_VERSION.format(content).encode() for content in ("", version))
    if blank not in files[INDEX_FILE]:
        raise ValueError(f"{INDEX_FILE} has no {blank.decode()}")
    files[INDEX_FILE] = files[INDEX_FILE].replace(blank, filled)
    return Page(MappingProxyType(files), MappingProxyType(paths), version)


def fingerprinted(name: str, content: bytes) -> str:
    """Return a name with a digest of the content before its suffix.

    >>> fingerprinted("release/release.json", b"{}")
    'release/release.44136fa355b3678a.json'
    """
    stem, suffix = posixpath.splitext(name)
    return f"{stem}.{digest_of_content(content)}{suffix}"


def digest_of_content(content: bytes) -> str:
    """Return the first digits of a SHA-256."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _read(folder: Traversable, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found |= _read(entry, f"{prefix}{entry.name}/")
        else:
            found[f"{prefix}{entry.name}"] = entry.read_bytes()
    return found
