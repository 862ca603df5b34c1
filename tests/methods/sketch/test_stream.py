"""Learning from a stream: new ids at any time, memory that stays, and the same bits as in one go."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.evaluation.metrics import rmse
from dpmf.methods import Sketch
from dpmf.methods.sketch.stream import SketchStream
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = Sketch(n_factors=4, width=5000, budget=Budget(math.inf))


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(400, 100, mean_ratings=40)


def columns(ratings: Ratings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users, items and values in an order of arrival."""
    order = np.random.default_rng(0).permutation(len(ratings))
    users = np.array(list(ratings.user_ids), object)[ratings.users]
    return users[order], ratings.catalogue.ids.array[ratings.items][order], ratings.values[order]


def test_batches_give_the_same_bits_as_all_at_once(ratings: Ratings) -> None:
    """Ratings of one user that follow each other are read together; so batches end where a user does."""
    users, items, values = columns(ratings)
    whole = METHOD.stream((1, 5)).partial_fit(users, items, values)
    ends = [end for end in range(50, len(users), 50) if users[end] != users[end - 1]]
    parts = METHOD.stream("1:5")
    for first, last in zip([0, *ends], [*ends, len(users)], strict=True):
        parts.partial_fit(users[first:last], items[first:last], values[first:last])
    assert len(ends) > 10
    assert parts.table.cells.tobytes() == whole.table.cells.tobytes()


def test_it_learns_from_what_comes_and_predicts_before_it_does(ratings: Ratings) -> None:
    users, items, values = columns(ratings)
    stream = replace(METHOD, learning_rate=0.05).stream((1, 5))
    errors = []
    for _ in range(3):
        for first in range(0, len(users), 200):
            part = slice(first, first + 200)
            errors.append(rmse(stream.predict(users[part], items[part]) - values[part]))
            stream.partial_fit(users[part], items[part], values[part])
    assert np.mean(errors[-20:]) < 0.85 * np.mean(errors[:5])


def test_new_users_and_items_take_no_memory(ratings: Ratings) -> None:
    stream = METHOD.stream((1, 5))
    assert stream.memory == 4 * 4 * 5000

    def batch(number: int) -> None:
        ids = np.arange(1000 * number, 1000 * number + 1000)
        stream.partial_fit(ids, ids, np.full(1000, 4.0))

    batch(0)
    tracemalloc.start()
    batch(1)
    before = tracemalloc.get_traced_memory()[0]
    for number in range(2, 100):
        batch(number)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000  # 98,000 users and as many items came meanwhile
    assert stream.memory == 4 * 4 * 5000


def test_a_release_of_the_stream_is_like_any_other(ratings: Ratings, tmp_path: Path) -> None:
    stream = METHOD.stream(ratings.scale).partial_fit(ratings)
    release = stream.release(ratings.catalogue)
    release.save(tmp_path / "release")
    back = Release.load(tmp_path / "release")
    assert back.guarantee.mode == "none"
    mine = {release.items.ids[0]: 5.0}
    assert back.fold_in(mine).recommend(3) == release.fold_in(mine).recommend(3)
    claim = replace(METHOD, budget=Budget(4.0), mode="paper").stream((1, 5)).release([1, 2]).guarantee
    assert (claim.mode, claim.epsilon, claim.certified) == ("paper", 4.0, False)


def test_ids_are_the_same_as_numbers_and_as_texts() -> None:
    one = METHOD.stream((1, 5)).partial_fit([7], [8], [5])
    other = METHOD.stream((1, 5)).partial_fit(["7"], ["8"], [5])
    assert one.table.cells.tobytes() == other.table.cells.tobytes()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="needs width"):
        replace(METHOD, width=None).stream((1, 5))
    with pytest.raises(InvalidArgument, match="cannot be certified"):
        replace(METHOD, budget=Budget(1.0)).stream((1, 5))
    with pytest.raises(InvalidArgument, match="all ratings at once"):
        replace(METHOD, biases="means").stream((1, 5))
    stream = METHOD.stream((1, 5))
    before = stream.table.cells.copy()
    for users, items, values, words in (
        ([1], [2], [6], "not on the scale 1:5"),
        ([1], [2], [math.nan], "not on the scale"),
        ([1, 2], [2], [3], "give the same number of each"),
        ("ann", ["Heat"], [3], "list of ids"),
        ([1], None, [3], "list of ids"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            stream.partial_fit(users, items, values)
    with pytest.raises(InvalidArgument, match="give the same number of each"):
        stream.predict([1, 2], [3])
    assert (stream.table.cells == before).all()


def test_a_stream_that_was_saved_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    first, second = (["ann", "bob"], ["Heat", "Up"], [5, 1]), (["eve", "ann"], ["Alien", "Up"], [4, 2])
    stream = replace(METHOD, query="median", seed=3).stream((1, 5)).partial_fit(*first)
    stream.save(tmp_path / "stream")
    again = SketchStream.load(tmp_path / "stream")
    assert (again.method, again.scale) == (stream.method, stream.scale)
    for one in (stream, again):
        one.partial_fit(*second)
    assert again.table.cells.tobytes() == stream.table.cells.tobytes()
    again.save(tmp_path / "stream")  # in the place of the first
    assert SketchStream.load(tmp_path / "stream").predict(["ann"], ["Up"]) == stream.predict(["ann"], ["Up"])


def test_a_saved_stream_is_for_its_owner_and_a_claim_stays_a_claim(tmp_path: Path) -> None:
    claim = replace(METHOD, budget=Budget(4.0), mode="paper").stream((1, 5))
    claim.save(tmp_path / "stream")
    assert (tmp_path / "stream").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "stream" / "SENSITIVE").exists()
    guarantee = SketchStream.load(tmp_path / "stream").release([1, 2]).guarantee
    assert (guarantee.epsilon, guarantee.certified) == (4.0, False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "dpmf-model"}, "not a stream"),
        ({"version": 99}, "not a stream of format"),
        ({"hash_functions": 1}, "other hash functions"),
        ({"sha256": "0"}, "is damaged"),
        ({"scale": None}, "is damaged"),
        ({"method": {"width": 3}}, "is damaged"),
        ({"method": {"colour": 3}}, "is damaged"),
    ],
)
def test_a_damaged_stream_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    METHOD.stream((1, 5)).save(tmp_path / "stream")
    path = tmp_path / "stream" / "stream.json"
    facts = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps(facts))
    with pytest.raises(DamagedFile, match=words if "not" in words else "not what its digest says"):
        SketchStream.load(tmp_path / "stream")
    del facts["digest"]  # as an earlier version wrote it
    path.write_text(json.dumps(facts))
    with pytest.raises(DamagedFile, match=words):
        SketchStream.load(tmp_path / "stream")


def test_no_stream_and_a_folder_of_other_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no stream at"):
        SketchStream.load(tmp_path / "none")
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InvalidArgument, match="holds other files"):
        METHOD.stream((1, 5)).save(tmp_path)


def test_a_stream_that_diverges_says_so_and_is_not_released(ratings: Ratings) -> None:
    users, items, values = columns(ratings)
    stream = replace(METHOD, learning_rate=5.0).stream((1, 5))
    with pytest.raises(DpmfError, match="the stream diverged at learning rate 5 and is lost"):
        stream.partial_fit(users, items, values)
    with pytest.raises(DpmfError, match="nothing was saved"):
        stream.release(ratings.catalogue).save("never")


@pytest.mark.parametrize("values", [["x"], [[1.0]], (one for one in [3.0])])
def test_values_that_are_no_ratings_are_refused(values: Any) -> None:
    with pytest.raises(InvalidArgument, match="one per user"):
        METHOD.stream((1, 5)).partial_fit([1], [2], values)


@pytest.mark.parametrize("settings", [{"decay": 1.0}, {"n_epochs": 3}])
def test_what_means_nothing_for_a_stream_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="means nothing for a stream"):
        replace(METHOD, **settings).stream((1, 5))
