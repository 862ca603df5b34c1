"""Ids behave like a list with a dict beside it, whatever their type."""

from __future__ import annotations

import re
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.ids import Ids, parse_ids
from dpmf.streams import as_integer

near = st.integers(-50, 50)
wide = st.integers(-(2**63), 2**63 - 1)
integers = st.one_of(st.lists(near, min_size=1), st.lists(st.one_of(near, wide), min_size=1))
texts = st.lists(st.one_of(near.map(str), st.text("0a7é😀", max_size=3)), min_size=1)


def objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@given(values=integers)
def test_integers_are_factorized_as_by_sorting_a_set(values: list[int]) -> None:
    ids, codes = Ids.factorize(np.array(values, np.int64))
    assert list(ids) == sorted(set(values))
    assert [ids[code] for code in codes.tolist()] == values


@given(values=texts)
def test_texts_are_factorized_as_by_sorting_a_set(values: list[str]) -> None:
    ids, codes = Ids.factorize(objects(values))
    assert list(ids) == sorted(set(values))
    assert [ids[code] for code in codes.tolist()] == values


@given(known=st.one_of(integers, texts), asked=st.one_of(integers, texts))
def test_encode_and_position_agree_with_a_dict_of_the_texts(known: list[Any], asked: list[Any]) -> None:
    """Two ids are the same if they print the same, so the texts are the model for every mix of types."""
    ids, _ = Ids.factorize(np.array(known, np.int64) if isinstance(known[0], int) else objects(known))
    model = {str(one): place for place, one in enumerate(ids)}
    expected = [model.get(str(one), -1) for one in asked]
    assert ids.encode(objects(asked)).tolist() == expected
    assert [-1 if (place := ids.position(one)) is None else place for one in asked] == expected


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.float32])
def test_every_kind_of_number_gives_the_same_ids(kind: type[Any]) -> None:
    ids, codes = Ids.factorize(np.array([100, 3, 100], kind))
    assert ids == Ids(np.array([3, 100]))
    assert codes.tolist() == [1, 0, 1]


def test_ids_too_far_apart_for_a_table_are_found_all_the_same() -> None:
    ids, codes = Ids.factorize(np.array([2**63 - 1, -(2**63), 0]))
    assert codes.tolist() == [2, 0, 1]
    assert ids.encode(np.array([0, 5, 2**63 - 1])).tolist() == [1, -1, 2]


def test_looking_up_the_ends_of_the_integers_does_not_wrap_round() -> None:
    assert Ids(np.array([2**63 - 2, 2**63 - 1])).encode(np.array([-(2**63), 2**63 - 1])).tolist() == [-1, 1]
    assert Ids(np.array([-(2**63)])).encode(np.array([2**63 - 1, -(2**63)])).tolist() == [-1, 0]


def test_a_position_is_found_by_numpy_integers_and_exact_texts_only() -> None:
    ids = Ids(np.array([7, 8]))
    assert ids.position(np.int16(8)) == 1
    assert ids.position("8") == 1
    assert [ids.position(one) for one in ("08", " 8", "8.0", "eight", None)] == [None] * 5


@given(values=st.lists(wide, min_size=1, unique=True))
def test_keys_depend_on_the_id_alone_not_on_its_type_or_its_company(values: list[int]) -> None:
    """One text among the ids turns all of them into texts, which must not change anybody's split or start."""
    whole = Ids(np.array(values, np.int64)).keys
    texts = Ids(objects([*map(str, values), "x"])).keys
    assert whole.tolist() == texts[:-1].tolist()
    assert len(set(texts.tolist())) == len(texts)


def test_the_first_repeated_id_is_named() -> None:
    assert Ids(np.array([3, 4, 3])).first_repeated() == 3
    assert Ids(objects(["a", "b"])).first_repeated() is None


@given(text=st.one_of(st.text("0123456789-+_ ٣", max_size=22), st.integers(-(2**65), 2**65).map(str)))
def test_only_the_usual_spelling_of_64_bits_is_an_integer(text: str) -> None:
    usual = re.fullmatch("0|-?[1-9][0-9]*", text) and -(2**63) <= int(text) < 2**63
    assert as_integer(text) == (int(text) if usual else None)


def test_texts_are_integers_only_together() -> None:
    assert parse_ids(["7", "-8"]).tolist() == [7, -8]
    assert parse_ids(["7", "08"]).tolist() == ["7", "08"]


@pytest.mark.parametrize("values", [np.ones((2, 2)), np.array([0.5]), np.array([np.nan]), np.array(["a", None])])
def test_what_is_no_list_of_ids_is_refused(values: NDArray[Any]) -> None:
    with pytest.raises(InvalidRatings, match="ids must be"):
        Ids(values)


@pytest.mark.parametrize("other", [7.0, "x", True, None, uuid.UUID(int=0), b"x"])
def test_one_value_of_another_type_is_refused(other: object) -> None:
    """Else the id of one person would change those of all others: 2**60 and 2**60 + 1 are one id beside a 7.0."""
    with pytest.raises(InvalidRatings, match="ids must be"):
        Ids.factorize(objects([2**60, 2**60 + 1, other]))
