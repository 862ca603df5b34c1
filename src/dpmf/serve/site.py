"""Stand-in."""

from __future__ import annotations
from collections.abc import Mapping
from pathlib import Path
from dpmf.model import Release

CONTENT_SECURITY_POLICY = "default-src 'none'; connect-src 'self'"


def site_files(folder: Path, release: Release) -> Mapping[str, bytes]:
    return {"index.html": b"<p>hello</p>", "release/release.json": (folder / "release.json").read_bytes()}
