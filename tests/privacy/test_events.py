"""Events survive JSON, and what is not understood is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.privacy import ClaimEvent, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.events import event_from_json

EVENTS: list[Event] = [
    GaussianEvent("item sums", 4.5, 3, 600),
    PoissonGaussianEvent("gradients", 1.0, 0.01, 1000, 5000),
    NormNoiseEvent("item noise", 2.5, 2, 800),
    ClaimEvent("item factors", "ε-DP if the chain has converged"),
]


@pytest.mark.parametrize("event", EVENTS)
def test_events_survive_json(event: Event) -> None:
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize("event", EVENTS)
def test_unknown_kinds_and_fields_are_refused(event: Event) -> None:
    content = event.to_json()
    wrongs: list[Any] = [{**content, "kind": "laplace"}, {**content, "extra": 1}, {"kind": content["kind"]}, [], None]
    for wrong in wrongs:
        with pytest.raises(DamagedFile):
            event_from_json(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"noise_multiplier": 0}, {"noise_multiplier": -1.0}, {"noise_multiplier": math.inf}, {"noise_multiplier": "1"},
        {"noise_multiplier": math.nan}, {"noise_multiplier": True},
        {"noise_multiplier": 1e-200}, {"noise_multiplier": 10**400}, {"count": 10**400}, {"count": 0},
        {"count": 1.0}, {"count": True},
        {"coordinates": -1}, {"coordinates": 2.5}, {"sampling_rate": 0}, {"sampling_rate": 1},
        {"sampling_rate": math.nan}, {"what": ""}, {"what": None},
    ],
)  # fmt: skip
def test_impossible_values_are_refused(change: dict[str, Any]) -> None:
    (name,) = change
    content: dict[str, Any] = {"what": "x", "noise_multiplier": 1.0, "sampling_rate": 0.1, **change}
    with pytest.raises(InvalidArgument, match=name):
        PoissonGaussianEvent(**content)
    with pytest.raises(DamagedFile, match=name):
        event_from_json({"kind": PoissonGaussianEvent.kind, "count": 1, "coordinates": 0, **content})
    if name != "sampling_rate":
        for kind in (GaussianEvent, NormNoiseEvent):
            with pytest.raises(InvalidArgument, match=name):
                kind(**{key: value for key, value in content.items() if key != "sampling_rate"})


def test_a_claim_says_what_is_claimed() -> None:
    with pytest.raises(InvalidArgument, match="claim"):
        ClaimEvent("item factors", " ")
