"""Tables of recommendations: whole or not there, whoever breaks off, and the same for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpmf.errors import InvalidArgument
from dpmf.methods import SGD
from dpmf.model import Model
from dpmf.ratings import Items, Ratings
from dpmf.ratings.ids import Ids
from dpmf.runs import recommending
from dpmf.runs.recommending import Choice, Some, of_model, of_ratings, write_lists


@pytest.fixture(scope="module")
def model(small_ratings: Ratings) -> Model:
    return SGD(n_factors=4, n_epochs=2).fit(small_ratings, n_threads=1)


@pytest.fixture(autouse=True)
def _a_few_people_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommending, "_PEOPLE_AT_ONCE", 50)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_a_run_that_breaks_off_leaves_nothing(model: Model, tmp_path: Path, failure: type[BaseException]) -> None:
    def some_people() -> Iterator[Some]:
        yield from list(of_model(model, model.user_ids))[:2]
        raise failure

    with pytest.raises(failure):
        write_lists(tmp_path / "top.parquet", model.release, some_people(), Choice())
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_people_and_threads_do_not_matter(model: Model, small_ratings: Ratings, tmp_path: Path) -> None:
    contents = []
    for n_threads in (1, 3):
        done: list[int] = []
        path, people = tmp_path / f"{n_threads}.parquet", of_ratings(model.release, small_ratings, n_threads=n_threads)
        written = write_lists(path, model.release, people, Choice(7), n_threads=n_threads, progress=done.append)
        assert (written.people, written.rows, done) == (120, 840, [50, 100, 120])
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_nobody_and_another_catalogue_are_refused(model: Model, small_ratings: Ratings, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="there is nobody to recommend to"):
        write_lists(tmp_path / "top.parquet", model.release, of_model(model, Ids(model.user_ids.array[:0])), Choice())
    others = replace(small_ratings, catalogue=Items.of([f"item {place}" for place in range(small_ratings.n_items)]))
    with pytest.raises(InvalidArgument, match="of another catalogue: give that of the release"):
        list(of_ratings(model.release, others))
    assert list(tmp_path.iterdir()) == []
