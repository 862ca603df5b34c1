"""The vectors for other implementations are what Python computes."""

from __future__ import annotations

import json

from .vectors import FILE, vectors


def test_the_vectors_are_what_python_computes() -> None:
    stored, now = json.loads(FILE.read_text()), json.loads(json.dumps(vectors()))
    assert stored.keys() == now.keys()
    for name in stored:
        assert stored[name] == now[name], name
