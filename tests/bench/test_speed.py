"""The benchmark: figures that can be compared, and peers that may be missing."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmf.bench import peers, speed
from dpmf.bench.caches import Cache
from dpmf.bench.peers import implicit_figures, libmf_speed, users_to_race
from dpmf.bench.race import Meeting, Point, Race, iteration_seconds, seconds_to
from dpmf.bench.serving import serving_speed
from dpmf.bench.speed import bench, first_users
from dpmf.errors import InvalidArgument
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

# It takes a hundredth of a second for an iteration, and one to start, by a clock of its own.
_FAKE_LIBMF = """
import time

seconds = 0.0
time.perf_counter = lambda: seconds

class MF:
    def __init__(self, k, nr_threads, nr_iters, **others):
        self.count = nr_iters

    def fit(self, ratings):
        global seconds
        seconds += 1 + 0.01 * self.count
        print("a peer that talks")
"""

# It keeps to factors of zero, so its objective is the sum of all confidences.
_FAKE_IMPLICIT = """
import numpy as np

class AlternatingLeastSquares:
    def __init__(self, factors, iterations, use_cg, num_threads, **others):
        assert (iterations, use_cg) == (1, True)
        self.factors = factors

    def fit(self, confidences, show_progress, callback):
        assert confidences.data.min() >= 1
        self.user_factors, self.item_factors = (np.zeros((n, self.factors), np.float32) for n in confidences.shape)
        print("RESULTS may be printed", flush=True)
        callback(0, 2000.0, None)
"""


def _install_implicit(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    (folder / "implicit" / "cpu").mkdir(parents=True)
    for package in ("implicit", "implicit/cpu"):
        (folder / package / "__init__.py").touch()
    (folder / "implicit" / "cpu" / "als.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure no longer than the epochs asked for take: no test is about how exact a figure is."""
    monkeypatch.setattr(speed, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(speed, "_PROBE_SECONDS", 0.0)
    monkeypatch.setattr(speed, "caches", lambda: (Cache("L1", 1 << 12, 2), Cache("L2", 1 << 14, 1)))


@pytest.fixture
def ratings() -> Ratings:
    return make(80, 60)


def test_every_row_has_its_own_limit_and_ratio(ratings: Ratings) -> None:
    rows = list(bench(ratings, [4, 20], n_threads=2, epochs=1, peers=False))
    assert [row["factors"] for row in rows] == [4, 20]
    for row in rows:
        assert row["updates_per_second"] > 0
        for kind in ("", "bfloat16_", "one_thread_"):
            measured, limit = row[f"{kind}updates_per_second"], row[f"{kind}roofline_updates_per_second"]
            assert row[f"{kind}roofline_ratio"] == pytest.approx(measured / limit)
            seconds = row[f"{kind}seconds_per_update"]
            assert list(seconds) == ["arithmetic", "L1", "L2", "memory"]
            assert 1 / limit <= max(seconds.values()) * 1.0001  # that of memory may be an estimate above the bound
            assert seconds[row[f"{kind}limited_by"].removesuffix(" bandwidth")] >= 0.9999 / limit
        assert row["over_one_thread"] > 0
        assert row["roofline_over_one_thread"] > 0
        assert list(row["copy_over_one_thread"]) == list(row["machine"]["threads"]["bytes_per_second"])
        assert not [name for name in row if "libmf" in name or "implicit" in name]


def test_a_wide_scale_is_measured_like_a_narrow_one(ratings: Ratings) -> None:
    ids = ratings.user_ids.array[ratings.users], ratings.catalogue.ids.array[ratings.items]
    wide = Ratings.of(*ids, 250 * (ratings.values - 1), scale=(0, 1000))
    (row,) = bench(wide, [16], n_threads=1, epochs=1, peers=False)  # steps for stars would diverge
    assert row["updates_per_second"] > 0


def test_a_machine_that_does_not_describe_its_caches_has_fewer_figures(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "caches", lambda: ())
    (row,) = bench(ratings, [16], n_threads=1, epochs=1, peers=False)
    assert list(row["seconds_per_update"]) == ["arithmetic", "L1"]
    assert row["copy_over_one_thread"] == {"L1": 1.0}


def test_threads_that_wait_in_turn_have_the_peaks_of_those_that_run(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "caches", lambda: ())
    monkeypatch.setattr(speed, "allowed_cpus", lambda: 1)
    (row,) = bench(ratings, [16], n_threads=3, epochs=1, peers=False)
    assert row["machine"]["threads_at_once"] == 1
    assert row["machine"]["threads"] == row["machine"]["one_thread"]
    assert row["copy_over_one_thread"] == {"L1": 1.0}


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
    assert libmf_speed(ratings, 8, 1, None) == pytest.approx(len(ratings) / 0.01)


def test_a_peer_that_is_not_installed_has_no_figure(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    assert libmf_speed(ratings, 8, 1, None) is None
    assert set(implicit_figures(ratings, 8, 1).values()) == {None}


def test_a_missing_peer_is_no_cause_for_a_warning_and_a_failing_one_is(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    _install_implicit(tmp_path, monkeypatch, "raise ModuleNotFoundError(\"No module named 'implicit'\")")
    assert set(implicit_figures(ratings, 8, 1).values()) == {None}
    assert caplog.messages == []
    (tmp_path / "implicit" / "cpu" / "als.py").write_text("raise ImportError('no libgomp')")
    assert set(implicit_figures(ratings, 8, 1).values()) == {None}
    assert caplog.messages == ["no figures for implicit, which failed: ImportError: no libgomp"]


def test_implicit_takes_turns_with_least_squares_in_a_process_of_its_own(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_implicit(tmp_path, monkeypatch, _FAKE_IMPLICIT)
    monkeypatch.setattr(peers, "_MOST_SECONDS", 5000.0)  # of which a turn of the fake says it takes 2000
    row = next(bench(ratings, [4], n_threads=1, epochs=1))
    assert row["implicit_ratings"] == len(ratings)
    assert row["implicit_iterations"] == 3
    assert row["implicit_iteration_seconds"] == row["implicit_seconds_to_objective"] == 2000.0
    # The first iteration is below the objective of the fake, which never gets anywhere.
    assert 0 < row["als_seconds_to_objective"] < 2000
    assert row["als_over_implicit"] == 2000.0 / row["als_seconds_to_objective"]


def test_weights_for_implicit_are_not_negative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install_implicit(tmp_path, monkeypatch, _FAKE_IMPLICIT)
    monkeypatch.setattr(peers, "_MOST_SECONDS", 1.0)
    jokes = Ratings.of([1, 1, 2], [1, 2, 2], [-10, 3, 9], scale=(-10, 10))
    assert implicit_figures(jokes, 2, 1)["implicit_iterations"] == 1


def test_a_race_is_over_fewer_users_the_more_factors_there_are(
    ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert users_to_race(ratings, 64) == ratings.n_users
    monkeypatch.setattr(peers, "_MOST_PRODUCTS", 4e7)
    counts = [users_to_race(ratings, n_factors) for n_factors in (8, 64, 128, 256)]
    assert counts[0] == ratings.n_users
    assert counts == sorted(counts, reverse=True)
    for n_factors, count in zip((64, 128), counts[1:], strict=False):
        few = first_users(ratings, count)
        rows = few.n_users + len(np.unique(few.items))
        assert n_factors**2 * len(few) + n_factors**3 / 6 * rows <= 4e7
    assert counts[-1] >= 1
    monkeypatch.setattr(peers, "_MOST_RATINGS", int(ratings.indptr[7]) + 1)
    assert users_to_race(ratings, 1) == 7
    assert set(implicit_figures(ratings, peers.MOST_RACING_FACTORS + 1, 1).values()) == {None}


def test_a_race_ends_where_both_have_been() -> None:
    ours, theirs = [Point(1, 70), Point(3, 50)], [Point(2, 90), Point(3, 60), Point(4, 40)]
    assert Race(ours, theirs).meeting() == Meeting(50, 3, 4)
    assert Race(theirs, ours).meeting() == Meeting(50, 4, 3)
    assert seconds_to(45, ours) is None
    assert iteration_seconds(theirs) == 1


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
