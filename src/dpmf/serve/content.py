"""Files as the service sends them: with a type, an entity tag and a lifetime, and compressed in advance.

>>> page = Content.of("index.html", b"<p>hello</p>" * 100)
>>> page.media_type, len(page.compressed) < len(page.plain), page.tag[:1]
('text/html; charset=utf-8', True, '"')
>>> page.cache_control, Content.of("style.css", b"", is_immutable=True).cache_control
('no-cache', 'public, max-age=31536000, immutable')
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from dpmf.serve.assets import INDEX_FILE
from dpmf.serve.site import CONTENT_TYPES, RELEASE_FOLDER, Site

_LEVEL = 6
_WORTH = 0.95  # compressed files are kept if they are smaller than this share
_REVALIDATE = "no-cache"
_IMMUTABLE = "public, max-age=31536000, immutable"


@dataclass(frozen=True, repr=False)
class Content:
    """A file, ready to be sent.

    Attributes:
        media_type: value of Content-Type.
        plain: its bytes.
        compressed: the same with gzip; None if that is hardly smaller.
        tag: value of ETag, a digest of the bytes.
        cache_control: value of Cache-Control.
        policy: value of Content-Security-Policy; None for the one that all answers have.
    """

    media_type: str
    plain: bytes
    compressed: bytes | None
    tag: str
    cache_control: str
    policy: str | None = None

    @classmethod
    def of(cls, path: str, plain: bytes, *, is_immutable: bool = False) -> Content:
        """Prepare a file; an immutable one is never asked for again, since its name changes with its content."""
        kind = CONTENT_TYPES.get(Path(path).suffix, "application/octet-stream")
        compressed = gzip.compress(plain, _LEVEL, mtime=0)
        smaller = compressed if len(compressed) < _WORTH * len(plain) else None
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        return cls(kind, plain, smaller, tag, _IMMUTABLE if is_immutable else _REVALIDATE)


def content_of(site: Site) -> dict[str, Content]:
    """Return the files of a site by path: "" is index.html, and a release has its plain names, too."""
    renamed = {path for name, path in site.paths.items() if path != name}
    files = {path: Content.of(path, plain, is_immutable=path in renamed) for path, plain in site.files.items()}
    for name, path in site.paths.items():
        if name.startswith(f"{RELEASE_FOLDER}/"):  # for those who download the release itself
            files[name] = replace(files[path], cache_control=_REVALIDATE)
    for path, policy in site.policies.items():
        files[path] = replace(files[path], policy=policy)
    return {**files, "": files[INDEX_FILE]}
