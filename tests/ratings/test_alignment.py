"""A test file beside training data: the same ids, and nothing that is trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.alignment import align, beside, read_test
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import with_positions
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

Refused = Callable[..., Any]


def triples(ratings: Ratings) -> set[tuple[object, object, float]]:
    """Return who rated what how."""
    return {
        (ratings.user_ids[user], ratings.catalogue.ids[item], value)
        for user, item, value in zip(ratings.users, ratings.items, ratings.values.tolist(), strict=True)
    }


def test_every_known_rating_is_kept_under_the_ids_of_training() -> None:
    train, _ = make(60, 40, mean_ratings=8, seed=1).split(0.3)
    other = make(90, 50, mean_ratings=8, seed=2)  # more users and more items, with ids in part the same
    found = align(other, train.user_ids, train.catalogue, train.scale)
    users, items = set(train.user_ids), set(train.catalogue.ids)
    assert triples(found.ratings) == {one for one in triples(other) if one[0] in users and one[1] in items}
    assert found.left_out == len(other) - len(found.ratings) > 0
    assert found.unknown_users == len(set(other.user_ids) - users)
    assert found.unknown_items == len({other.catalogue.ids[item] for item in other.items} - items)
    assert found.ratings.user_ids is train.user_ids
    for user in range(train.n_users):  # as kernels expect: by user, then by item
        assert (np.diff(found.ratings.of_user(user)[0]) > 0).all()


def test_ids_spelt_as_text_and_as_numbers_are_the_same() -> None:
    train = Ratings.of([1, 2], [10, 20], [5, 3], scale=(1, 5))
    test = Ratings.of(["1", "2", "x"], ["20", "10", "10"], [4, 2, 1], scale=(1, 5))
    found = beside(train, test)
    assert triples(found.ratings) == {(1, 20, 4.0), (2, 10, 2.0)}
    assert (found.unknown_users, found.unknown_items, found.left_out, found.also_trained_on) == (1, 0, 1, 0)


def test_what_is_trained_on_is_not_tested_on_in_memory_or_in_pieces() -> None:
    ratings = make(60, 40, mean_ratings=10)
    _, test = ratings.split(0.5)
    train, _ = ratings.split(0.3, seed=4)
    whole = beside(train, test)
    assert whole.also_trained_on == len({one[:2] for one in triples(test)} & {one[:2] for one in triples(train)}) > 0
    assert not {one[:2] for one in triples(whole.ratings)} & {one[:2] for one in triples(train)}
    source = MemorySource(train)
    pieces = align(test, source.user_ids, source.catalogue, source.scale)
    for positions, piece in with_positions(source):
        pieces = pieces.without(piece, positions)
    assert triples(pieces.ratings) == triples(whole.ratings)
    assert pieces.to_json() == whole.to_json()


def test_a_test_file_of_which_nothing_is_left_is_refused(refused: Refused) -> None:
    train = Ratings.of([1, 2], [10, 20], [5, 3], scale=(1, 5))
    for test in (train, Ratings.of(["a"], ["b"], [1], scale=(1, 5))):
        with refused("nothing is left of the test file", "same ids"):
            beside(train, test)


def test_it_is_read_as_the_training_data_are(tmp_path: Path) -> None:
    """Options, and what a folder declares, hold for both; its list of items does not hide unknown ones."""
    (tmp_path / "ratings.csv").write_text("1;10;4\n2;20;1\n")
    (tmp_path / "items.csv").write_text("item,title\n10,Heat\n20,Up\n")
    declared = '{"scale": [1, 5], "reading": {"delimiter": ";", "header": false, "missing": 0}}'
    (tmp_path / "dataset.json").write_text(declared)
    (tmp_path / "test.csv").write_text("1;20;5\n2;10;0\n1;30;3\n")
    train = Ratings.read(tmp_path)
    assert train.catalogue.declared
    test = read_test(str(tmp_path / "test.csv"), str(tmp_path), ReadOptions(), train.scale)
    assert triples(test) == {("1", "20", 5.0), ("1", "30", 3.0)}
    found = beside(train, test)
    assert (len(found.ratings), found.unknown_items) == (1, 1)
    options = ReadOptions(delimiter=";", header=False, items=Items.of([10, 20]), scale=Scale(1, 5), missing=0.0)
    again = read_test(str(tmp_path / "test.csv"), str(tmp_path / "ratings.csv"), options, Scale(1, 5))
    assert triples(again) == triples(test)
