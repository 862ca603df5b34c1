"""Files as they go over the wire: with a type, an entity tag, and compressed beforehand.

>>> page = Content.of("index.html", b"<p>hello</p>" * 100)
>>> page.media_type, len(page.compressed) < len(page.plain), page.tag[:1]
('text/html; charset=utf-8', True, '"')
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from dpmf.serve.site import CONTENT_TYPES, Site

_LEVEL = 6
_WORTH = 0.95  # of the plain size: less is not worth the trouble


@dataclass(frozen=True, repr=False)
class Content:
    """A file.

    Attributes:
        media_type: what it is.
        plain: its bytes.
        compressed: the same with gzip; None if that is hardly smaller.
        tag: names these very bytes.
    """

    media_type: str
    plain: bytes
    compressed: bytes | None
    tag: str

    @classmethod
    def of(cls, path: str, plain: bytes) -> Content:
        """Prepare a file."""
        kind = CONTENT_TYPES.get(Path(path).suffix, "application/octet-stream")
        compressed = gzip.compress(plain, _LEVEL, mtime=0)
        smaller = compressed if len(compressed) < _WORTH * len(plain) else None
        return cls(kind, plain, smaller, f'"{hashlib.sha256(plain).hexdigest()[:32]}"')


def content_of(site: Site) -> dict[str, Content]:
    """Return all files of a site, by path; the first page stands under "" too."""
    files = {path: Content.of(path, content) for path, content in site.files.items()}
    return {**files, "": files["index.html"]}
