"""The catalogue as a file: JSON with ids, titles and genres, whose bytes the agreement refers to.

>>> catalogue_bytes(Items.of([3, 1], ["Heat", "Up"]))
b'{"ids":[3,1],"titles":["Heat","Up"],"genres":["",""]}'
"""

from __future__ import annotations

import json
from pathlib import Path

from dpmf.ratings import Items


def catalogue_beside(agreement: Path) -> Path:
    """Return where the catalogue of an agreement is, unless said otherwise."""
    return agreement.with_suffix(".catalogue.json")


def catalogue_bytes(items: Items) -> bytes:
    """Return the file of a catalogue; the same for the same items in the same order."""
    content = {"ids": items.ids.array.tolist(), "titles": list(items.titles), "genres": list(items.genres)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
