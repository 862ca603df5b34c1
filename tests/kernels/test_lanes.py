"""The order in which ratings are visited one at a time."""

from __future__ import annotations

from dpmf.kernels.lanes import visiting_order


def test_every_rating_is_visited_once_and_lanes_are_apart() -> None:
    order = list(visiting_order(401, 4))
    assert sorted(order) == list(range(401))
    assert order[:5] == [0, 100, 200, 300, 1]
