"""A guarantee is data: what it says, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpmf.errors import DamagedFile
from dpmf.privacy import Guarantee


def test_no_guarantee_promises_nothing() -> None:
    none = Guarantee.none()
    assert (none.epsilon, none.delta, none.unit, none.neighbours) == (None, None, None, None)
    assert none.mode == "none"
    assert not none.certified
    assert not none.is_private
    assert "not private" in str(none)


def test_it_survives_json() -> None:
    none = Guarantee.none()
    assert Guarantee.from_json(json.loads(json.dumps(none.to_json()))) == none


@pytest.mark.parametrize(
    "content",
    [
        None, [], "none", {}, {**Guarantee.none().to_json(), "mode": "certified"},
        {**Guarantee.none().to_json(), "epsilon": 1.0}, {**Guarantee.none().to_json(), "extra": 1},
        replace(Guarantee.none(), certified=True).to_json(),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_not_guessed(content: object) -> None:
    with pytest.raises(DamagedFile, match="guarantee"):
        Guarantee.from_json(content)
