"""Messages of the published protocol: what was sent is what is read, and nothing else is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.federated.published.messages import Answer, Roster, SetUp, Sizes, Task, Total, Wanted
from dpmf.federated.wire.codec import kind_of
from dpmf.federated.wire.masks import new_seed
from dpmf.federated.wire.refusals import Refused
from dpmf.federated.wire.ring import Ring

SIZES, RING = Sizes(n_items=9, n_factors=4), Ring(4)
ITEMS = np.array([1, 4, 8], np.uint32)
ELEMENTS = np.arange(12, dtype=np.uint32).reshape(3, 4) * np.uint32(0x10000001)
CODES = np.arange(12, dtype=np.uint16).reshape(3, 4)
SEED = new_seed()


def task(**changed: Any) -> Task:
    fields: dict[str, Any] = {
        "round": 7,
        "counts": np.array([1, 2, 3], np.uint32),
        "rows": np.full((3, 4), 0.5, np.float32),
        "variances": CODES,
        "seed": SEED,
        "shared": True,
        "corrected": np.array([0, 2], np.uint32),
        "corrections": ELEMENTS[:2],
        "fixed_variances": CODES,
    }
    return Task(**{**fields, **changed})


MESSAGES: list[tuple[bytes, Callable[[bytes], Any], Any]] = [
    (Wanted(ITEMS).encoded(), lambda content: Wanted.decoded(content, SIZES), Wanted(ITEMS)),
    (task().encoded(RING), lambda content: Task.decoded(content, 3, 4, RING), task()),
    (
        SetUp(0, 5, np.zeros(SIZES, np.uint16), SEED).encoded(),
        lambda content: SetUp.decoded(content, SIZES),
        SetUp(0, 5, np.zeros(SIZES, np.uint16), SEED),
    ),
    (
        Answer(7, ITEMS, ELEMENTS).encoded(RING),
        lambda content: Answer.decoded(content, SIZES, RING),
        Answer(7, ITEMS, ELEMENTS),
    ),
    (
        Roster(7, ITEMS, np.array([1, 2, 1 << 63], np.uint64), 2).encoded(),
        Roster.decoded,
        Roster(7, ITEMS, np.array([1, 2, 1 << 63], np.uint64), 2),
    ),
    (
        Total(7, ITEMS, ITEMS, ELEMENTS).encoded(RING),
        lambda content: Total.decoded(content, SIZES, RING),
        Total(7, ITEMS, ITEMS, ELEMENTS),
    ),
]
every_message = pytest.mark.parametrize(("content", "decode", "message"), MESSAGES, ids=lambda one: type(one).__name__)


@every_message
def test_what_was_sent_is_what_is_read(content: bytes, decode: Callable[[bytes], Any], message: Any) -> None:
    read = decode(content)
    for name in type(message).__dataclass_fields__:
        np.testing.assert_array_equal(getattr(read, name), getattr(message, name))


@every_message
def test_any_other_length_is_refused(content: bytes, decode: Callable[[bytes], Any], message: Any) -> None:
    for length in range(len(content)):
        with pytest.raises(Refused):
            decode(content[:length])
    with pytest.raises(Refused, match="wrong length"):
        decode(content + b"\0")


@every_message
def test_another_kind_or_version_is_refused(content: bytes, decode: Callable[[bytes], Any], message: Any) -> None:
    with pytest.raises(Refused, match="another version"):
        decode(bytes([content[0] + 1]) + content[1:])
    with pytest.raises(Refused, match="another kind"):
        decode(content[:1] + bytes([content[1] + 1]) + content[2:])


@every_message
@given(st.data())
@settings(max_examples=60)
def test_garbage_is_refused_or_read_and_never_anything_else(
    content: bytes, decode: Callable[[bytes], Any], message: Any, data: st.DataObject
) -> None:
    garbage = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        garbage[data.draw(st.integers(2, len(garbage) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Refused):
        decode(bytes(garbage))


@pytest.mark.parametrize("items", [[], [4, 1], [1, 1], [1, 9], list(range(10))])
def test_lists_that_do_not_ascend_or_leave_the_range_are_refused(items: list[int]) -> None:
    with pytest.raises(Refused):
        Wanted.decoded(Wanted(np.array(items, np.uint32)).encoded(), SIZES)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"counts": np.array([1, 0, 3], np.uint32)}, "out of range"),
        ({"counts": np.array([1, 1 << 30, 3], np.uint32)}, "out of range"),
        ({"rows": np.full((3, 4), np.nan, np.float32)}, "out of range"),
        ({"rows": np.full((3, 4), np.inf, np.float32)}, "out of range"),
        ({"rows": np.full((3, 4), -2e6, np.float32)}, "out of range"),
        ({"corrected": np.array([2, 0], np.uint32)}, "corrections"),
        ({"corrected": np.array([0, 3], np.uint32)}, "corrections"),
        ({"shared": False}, "corrections"),
        ({"counts": np.ones(2, np.uint32), "rows": np.zeros((2, 4)), "variances": CODES[:2]}, "not for the items"),
    ],
)
def test_a_task_with_values_out_of_range_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Task.decoded(task(**changed).encoded(RING), 3, 4, RING)


@pytest.mark.parametrize("least", [0, 4])
def test_a_roster_that_nobody_can_meet_is_refused(least: int) -> None:
    with pytest.raises(Refused, match="out of range"):
        Roster.decoded(Roster(7, ITEMS, np.zeros(3, np.uint64), least).encoded())


def test_kind_and_round_can_be_told_before_anything_else() -> None:
    assert kind_of(Answer(7, ITEMS, ELEMENTS).encoded(RING)) == (Answer.kind, 7)


@every_message
def test_nothing_of_a_message_is_shown(content: bytes, decode: Callable[[bytes], Any], message: Any) -> None:
    shown = repr(message)
    assert "array" not in shown
    assert SEED.hex() not in shown
    assert "0x" in shown or shown.endswith("(…)")  # a name and an address, no fields
