"""Who is online: users come and go as often as they should, and nobody waits forever."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.federated.simulate.population import STAYS, Population


@pytest.mark.parametrize(("come", "leave", "wanted"), [(0.01, 0.02, 60), (1e-9, 0.0, 1), (0.5, 0.5, 100)])
def test_nobody_waits_for_what_hardly_ever_is(come: float, leave: float, wanted: int) -> None:
    people = Population(np.arange(100), come, leave, seed=4)
    with pytest.raises(InvalidArgument, match="hardly ever online"):
        people.wait_for(wanted)


def test_waiting_ends_when_enough_people_are_there() -> None:
    people = Population(np.arange(1000), come=0.01, leave=0.02, seed=4)
    people.wait_for(300)
    assert people.online.sum() >= 300


def test_people_come_and_go_as_often_as_they_should() -> None:
    people = Population(np.arange(20_000), come=0.01, leave=0.02, seed=4)
    for _ in range(300):
        people.tick()
    assert abs(people.online.mean() - 1 / 3) < 0.02
    assert people.usual == 6666
    departures = people.departures(20_000)
    assert abs((departures != STAYS).mean() - 0.02) < 0.005
    chosen = people.choose(100)
    assert len(chosen) == 100
    assert people.online[chosen].all()
    assert (np.diff(chosen) > 0).all()
    people.disconnect(chosen.tolist())
    assert not people.online[chosen].any()
