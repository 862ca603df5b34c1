"""The benchmark: figures that can be compared, and peers that may be missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dpmf.compare.bench import bench, first_users, libmf_speed
from dpmf.compare.serving import serving_speed
from dpmf.errors import InvalidArgument
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

_FAKE_LIBMF = """
import time

class MF:
    def __init__(self, k, nr_threads, nr_iters, **others):
        self.count = nr_iters

    def fit(self, ratings):
        time.sleep(0.01 * self.count)
        print("a peer that talks")
"""


@pytest.fixture
def ratings() -> Ratings:
    return make(80, 60)


def test_every_row_has_its_own_limit_and_ratio(ratings: Ratings) -> None:
    rows = list(bench(ratings, [4, 20], n_threads=2, epochs=1, peers=False))
    assert [row["factors"] for row in rows] == [4, 20]
    for row in rows:
        assert row["updates_per_second"] > 0
        assert row["roofline_ratio"] == row["updates_per_second"] / row["roofline_updates_per_second"]
        assert "libmf_updates_per_second" not in row


def test_too_few_factors_are_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="factors=0"):
        list(bench(ratings, [0], n_threads=1, epochs=1, peers=False))


def test_a_peer_that_prints_is_timed_by_the_difference_of_two_runs(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libmf").mkdir()
    (tmp_path / "libmf" / "__init__.py").touch()
    (tmp_path / "libmf" / "mf.py").write_text(_FAKE_LIBMF)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    speed = libmf_speed(ratings, 8, 1, None)
    assert speed is not None
    assert speed > 0  # how fast is not for a test to say


def test_a_peer_that_is_not_installed_has_no_figure(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    assert libmf_speed(ratings, 8, 1, None) is None


def test_first_users_are_a_data_set_of_their_own(ratings: Ratings) -> None:
    few = first_users(ratings, 10)
    assert few.n_users == 10
    assert len(few) == ratings.indptr[10]
    np.testing.assert_array_equal(few.of_user(9)[0], ratings.of_user(9)[0])
    assert first_users(ratings, None) is ratings


def test_serving_figures_are_people_per_second() -> None:
    figures = serving_speed(2, n_people=60, n_items=50, n_factors=4, peers=False)
    assert set(figures) == {"recommend", "fold_in"}
    assert all(figure is not None and figure > 0 for figure in figures.values())
