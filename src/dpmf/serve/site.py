"""A site: the page, a release and what is said about it, as files for any static host and for dpmf's own service.

All of it is static. The release is sent as it was saved, in 32 bits, so the page computes what `Release.fold_in`
computes. Only the names of index.html, join.html, their recovery script, the service worker and about.json, the
manifest, are fixed. All other files are named after their content (see `dpmf.serve.assets`), so that no cache can mix
two versions of a site. join.html is there if the site offers an agreement (see `dpmf.serve.offer`), and has a content
policy of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import dump_json, new_folder, read_json
from dpmf.model import Release
from dpmf.model.release_json import FACTS_FILE, TENSOR_FILE
from dpmf.serve.about import about_release, check_certified
from dpmf.serve.assets import JOIN_FILE, fingerprinted, fingerprinted_page, offering_page
from dpmf.serve.offer import read_offer

ABOUT_FILE = "about.json"
RELEASE_FOLDER = "release"
# Names that a site may have, with or without digests: older sites had none.
_OURS = re.compile(
    r"about\.json|(index|join)\.html|sw\.js|(style|join)(\.[0-9a-f]{16})?\.css|js/[\w/-]+(\.[0-9a-f]{16})?\.js"
    r"|release/release(\.[0-9a-f]{16})?\.(json|safetensors)"
    r"|join/(agreement|catalogue)(\.[0-9a-f]{16})?\.json"
)

# What index.html says of itself, for hosts that send no headers. The worker is started from a blob so that it
# inherits the policy of the page, which it would not if it were started from its address.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; manifest-src data:; connect-src 'self'; "
    "worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
_NOT_FRAMED = "frame-ancestors 'none'"
# What a host that sends headers should send with every file. Being framed cannot be forbidden from inside a page.
SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": f"{CONTENT_SECURITY_POLICY}; {_NOT_FRAMED}",
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


@dataclass(frozen=True, eq=False)
class Site:
    """A release and its page, read at the same moment.

    Attributes:
        release: the release that the page shows.
        files: path → content.
        paths: name before its digest was added → path, e.g. release/release.json → release/release.<digest>.json.
        policies: path → content policy, where it is not the one in `SECURITY_HEADERS`.
    """

    release: Release
    files: Mapping[str, bytes]
    paths: Mapping[str, str]
    policies: Mapping[str, str]


def site_files(
    folder: str | Path, *, accept_unproven: bool = False, agreement: str | Path | None = None
) -> Mapping[str, bytes]:
    """Return all files of a site: path → content.

    Args:
        folder: the release's folder.
        accept_unproven: accept a release that is not certified; the page then carries a red banner.
        agreement: the file of an agreement that visitors can join; by default there is none, and nothing is ever sent.

    Raises:
        NotCertified: the release is not certified, and `accept_unproven` is false.
        NotVerified: its epsilon does not follow from its events, or the agreement is not signed by both servers.
    """
    site = read_site(folder, agreement)
    check_certified(site.release, accept_unproven=accept_unproven, name=str(folder))
    return site.files


def read_site(folder: str | Path, agreement: str | Path | None = None) -> Site:
    """Read a release once, and return it with its page, certified or not.

    Raises:
        DamagedFile: the release is damaged, or was replaced while it was read.
        NotVerified: its epsilon does not follow from its events.
    """
    folder = Path(folder)
    before = _bytes_of(folder)
    release = Release.load(folder)
    saved = _bytes_of(folder)
    if saved != before or None in saved.values():
        raise DamagedFile(f"{folder} changed while it was read: try again")
    offer = None if agreement is None else read_offer(Path(agreement), release)
    page = fingerprinted_page() if offer is None else offering_page(offer.addresses)
    files, paths = dict(page.files), dict(page.paths)
    digests = {}  # by these the page checks that what it fetched belongs together
    for name, content in ((f"{RELEASE_FOLDER}/{name}", content or b"") for name, content in saved.items()):
        paths[name] = fingerprinted(name, content)
        files[paths[name]] = content
        digests[name] = hashlib.sha256(content).hexdigest()
    for name, content in ({} if offer is None else offer.files).items():
        paths[name] = fingerprinted(name, content)
        files[paths[name]] = content
    about = {
        **about_release(release, str(folder)),
        **({} if offer is None else {"joining": offer.to_json()}),
        "files": sorted([*files, ABOUT_FILE]),
        "page": page.version,
        "paths": paths,
        "sha256": digests,
    }
    files[ABOUT_FILE] = dump_json(about).encode()
    policies = {} if offer is None else {JOIN_FILE: f"{joining_policy(offer.addresses)}; {_NOT_FRAMED}"}
    return Site(release, files, paths, policies)


def joining_policy(addresses: Sequence[str]) -> str:
    """Return the content policy of the page on which people join: it may also connect to these addresses."""
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", " ".join(("connect-src 'self'", *addresses)))


def _bytes_of(folder: Path) -> dict[str, bytes | None]:
    return {
        name: (folder / name).read_bytes() if (folder / name).is_file() else None for name in (FACTS_FILE, TENSOR_FILE)
    }


def export_site(
    folder: str | Path, out: str | Path, *, accept_unproven: bool = False, agreement: str | Path | None = None
) -> Mapping[str, bytes]:
    """Write a site for any static host, whole or not at all, and return its files.

    Args:
        folder: the release's folder.
        out: a new or empty folder, or one that holds nothing but an older site.
        accept_unproven, agreement: see `site_files`.
    """
    files = site_files(folder, accept_unproven=accept_unproven, agreement=agreement)
    out = Path(out)
    if out.resolve().is_relative_to(Path(folder).resolve()):
        raise InvalidArgument(f"{out} lies in the release {folder}: choose a folder outside it")
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
