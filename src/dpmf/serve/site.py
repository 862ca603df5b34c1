"""The page and what it needs, as files: the same for any static host and for dpmf's own service.

All of it is static. The release is there as it was saved, in 32 bits: what the page computes from it is what
`Release.fold_in` computes.

>>> sorted(page_files())[:3]
['index.html', 'js/announce.js', 'js/camera.js']
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import dump_json, new_folder, read_json
from dpmf.model import Release
from dpmf.model.release_json import FACTS_FILE, TENSOR_FILE
from dpmf.serve.about import about_release, check_certified

ABOUT_FILE = "about.json"
_OURS = re.compile(r"about\.json|index\.html|style\.css|js/[\w/-]+\.js|release/release\.(json|safetensors)")
RELEASE_FOLDER = "release"

# What index.html says of itself, for hosts that send no headers. The worker is started from a blob so that it
# inherits the policy of the page, which it would not if it were started from its address.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
# What a host that sends headers should send with every file. Being framed cannot be forbidden from inside a page.
SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": f"{CONTENT_SECURITY_POLICY}; frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)
CONTENT_TYPES: Mapping[str, str] = MappingProxyType({
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".safetensors": "application/octet-stream",
})  # fmt: skip


@cache
def page_files() -> Mapping[str, bytes]:
    """Return the page itself: relative path → content, the same for every release."""
    return MappingProxyType(_read(resources.files("dpmf.serve") / "page", ""))


@dataclass(frozen=True, eq=False)
class Site:
    """A release and the files of its page, made of the same bytes.

    Attributes:
        release: what is shown.
        files: what is sent, by relative path.
    """

    release: Release
    files: Mapping[str, bytes]


def site_files(folder: str | Path, *, accept_unproven: bool = False) -> Mapping[str, bytes]:
    """Return a whole site: the page, a release as it was saved, and what is said about it.

    Args:
        folder: where the release is.
        accept_unproven: whether it may be one that is not certified; the page then carries a red banner.

    Raises:
        NotCertified: it is not certified, and that was not accepted.
        NotVerified: its epsilon does not follow from what was done.
    """
    site = read_site(folder)
    check_certified(site.release, accept_unproven=accept_unproven, name=str(folder))
    return site.files


def read_site(folder: str | Path) -> Site:
    """Read a release once, and return it with its page; whether it may be shown to anybody is not asked here.

    Raises:
        DamagedFile: it is damaged, or was replaced while it was read.
        NotVerified: its epsilon does not follow from what was done.
    """
    folder = Path(folder)
    before = _bytes_of(folder)
    release = Release.load(folder)
    saved = _bytes_of(folder)
    if saved != before or None in saved.values():
        raise DamagedFile(f"{folder} changed while it was read: try again")
    files = {**page_files(), **{f"{RELEASE_FOLDER}/{name}": content or b"" for name, content in saved.items()}}
    about = {**about_release(release, str(folder)), "files": sorted([*files, ABOUT_FILE])}
    # By these the page sees whether what it fetched belongs together.
    about["sha256"] = {
        name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name.startswith("release/")
    }
    files[ABOUT_FILE] = dump_json(about).encode()
    return Site(release, files)


def _bytes_of(folder: Path) -> dict[str, bytes | None]:
    return {
        name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in (FACTS_FILE, TENSOR_FILE)
    }


def export_site(folder: str | Path, out: str | Path, *, accept_unproven: bool = False) -> Mapping[str, bytes]:
    """Write a site for any static host, whole or not at all, and return its files.

    Args:
        folder: where the release is.
        out: a new folder, an empty one, or one that holds nothing but an older site.
        accept_unproven: see `site_files`.
    """
    files = site_files(folder, accept_unproven=accept_unproven)
    out = Path(out)
    if out.resolve().is_relative_to(Path(folder).resolve()):
        raise InvalidArgument(f"{out} lies in the release {folder}: choose a folder that is apart")
    _check_ours(out, files)
    with new_folder(out, may_replace={name.partition("/")[0] for name in (*files, *_older(out))}) as work:
        for name, content in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_bytes(content)
    return files


def _check_ours(out: Path, files: Mapping[str, bytes]) -> None:
    """Refuse to replace a folder that holds anything but a site, deep down too."""
    if not out.is_dir():
        return
    ours = {*files, *_older(out)}
    found = (path.relative_to(out).as_posix() for path in sorted(out.rglob("*")) if not path.is_dir())
    if foreign := next((name for name in found if name not in ours), None):
        raise InvalidArgument(f"{out} holds other files ({foreign}): choose an empty or new folder")


def _older(out: Path) -> list[str]:
    """Return the files of an older site, as it lists them itself."""
    try:
        about = read_json(out / ABOUT_FILE)
    except DamagedFile:
        return []
    if not isinstance(about, dict) or about.get("format") != "dpmf-site" or not isinstance(about.get("files"), list):
        return []
    return [name for name in about["files"] if isinstance(name, str) and _OURS.fullmatch(name)]


def _read(folder: Traversable, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found |= _read(entry, f"{prefix}{entry.name}/")
        else:
            found[f"{prefix}{entry.name}"] = entry.read_bytes()
    return found
