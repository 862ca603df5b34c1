"""Everybody's lists from the workers of a cluster: those of one machine, in tables of people that live together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.methods import SGD, Joint
from dpmf.privacy import Budget
from dpmf.ratings.formats.database import open_database
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make
from dpmf.runs import list_parts
from dpmf.runs.list_parts import write_lists_on
from dpmf.runs.recommending import Choice, Written, of_ratings, write_lists

RATINGS = make(90, 40, mean_ratings=15, seed=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path_factory.mktemp("lists") / "store")


def rows_in(path: Path | str) -> list[tuple[Any, ...]]:
    with open_database() as connection:
        return list(connection.execute(f"SELECT * FROM '{path}' ORDER BY user, rank").fetchall())


@pytest.mark.parametrize("method", [SGD(n_factors=3, n_epochs=2), Joint(n_factors=2, budget=Budget(50.0))])
def test_lists_are_those_of_one_machine(
    method: Any, store: StoredRatings, cluster: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = method.fit(RATINGS, n_threads=1).release
    choice, done = Choice(k=4), list[int]()
    alone = write_lists(tmp_path / "alone.parquet", release, of_ratings(release, RATINGS), choice)
    monkeypatch.setattr(list_parts, "_PEOPLE_PER_TABLE", 20)
    for n in (1, 3):
        folder = tmp_path / f"{n}"
        executor = cluster(n, losses=(0,))
        assert write_lists_on(executor, store, release, folder, choice, progress=done.append) == alone
        assert done.pop() == RATINGS.n_users
        assert [one.name for one in sorted(folder.iterdir())] == [f"part-0000{part}.parquet" for part in range(5)]
        assert rows_in(folder / "*.parquet") == rows_in(tmp_path / "alone.parquet")
        assert folder.stat().st_mode & 0o077 == 0
        assert all(one.stat().st_mode & 0o077 == 0 for one in folder.iterdir())


def test_what_cannot_be_is_refused_and_leaves_nothing(
    store: StoredRatings, cluster: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, folder = SGD(n_factors=2, n_epochs=1).fit(RATINGS, n_threads=1).release, tmp_path / "lists"
    other = SGD(n_factors=2, n_epochs=1).fit(make(30, 20, seed=1), n_threads=1).release
    with pytest.raises(InvalidArgument, match="the store has another catalogue than the release"):
        write_lists_on(cluster(2), store, other, folder, Choice())
    monkeypatch.setattr(list_parts.Writer, "write", lambda self, folder: {"part-00000.parquet": Written(1, 1)})
    with pytest.raises(DpmfError, match=r"lists is not the same folder everywhere, part-00000\.parquet was written"):
        write_lists_on(cluster(1), store, release, folder, Choice())
    monkeypatch.undo()
    with pytest.raises(DpmfError, match=r"is not on .*: write to a disk that all nodes share"):
        list_parts.Writer({}, release, Choice(), 1).write(tmp_path / "elsewhere" / "work")
    assert list(tmp_path.iterdir()) == []
