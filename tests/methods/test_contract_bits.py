"""What every method must do: the same bits for any number of threads, from disk, and of people who answer alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.engine import layout
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.certified import run
from dpmf.ratings.trim import trimmed

from .cases import ALL, CERTIFIED, RATINGS, Case, bits, label_of, release_bits
from .clusters import Pretended
from .watch import Apart, Record, Watch

certified = pytest.mark.parametrize("case", CERTIFIED, ids=label_of)
others = pytest.mark.parametrize("case", [case for case in ALL if case not in CERTIFIED], ids=label_of)
harder = pytest.mark.parametrize("harder", [False, True], ids=["plain", "harder"])


def settings_of(case: Case, harder: bool) -> tuple[dict[str, object], dict[str, object]]:
    changes, options = case.harder() if harder else ({}, {})
    return {**changes, "noise_seed": 4}, options


def same_sums(first: list[Record], second: list[Record]) -> None:
    assert [one.what for one in first] == [one.what for one in second]
    for one, other in zip(first, second, strict=True):
        assert one.steps == other.steps
        np.testing.assert_array_equal(one.sums, other.sums)


@certified
@harder
def test_whoever_answers_sums_and_release_are_the_same(
    case: Case, harder: bool, watch: Watch, stored: StoredRatings, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, options = settings_of(case, harder)
    expected = case.fit(RATINGS, changes, n_threads=1, **options)
    records = watch.records
    assert records
    assert all(one.sums.any() for one in records)
    for n_threads in (2, 3):
        model = case.fit(RATINGS, changes, n_threads=n_threads, **options)
        same_sums(records, watch.records)
        assert bits(model) == bits(expected)
        assert [one.train_rmse for one in model.history] == [one.train_rmse for one in expected.history]
    for n_threads in (1, 3):
        model = case.fit(stored, changes, n_threads=n_threads, **options)
        same_sums(records, watch.records)
        assert bits(model) == bits(expected)
        errors = [one.train_rmse for one in model.history]
        assert errors == pytest.approx([one.train_rmse for one in expected.history], rel=1e-12)
        assert model.guarantee == expected.guarantee
    monkeypatch.setattr(run, "RatingsAnswerer", Apart)
    model = case.fit(RATINGS, changes, n_threads=2, **options)
    same_sums(records, watch.records)
    assert bits(model) == bits(expected)


@pytest.mark.parametrize("case", [case for case in CERTIFIED if case.takes_cap], ids=label_of)
def test_ratings_beyond_the_cap_do_not_count(case: Case, watch: Watch) -> None:
    """Nor do they in people's own fits where steps are clipped; least squares fits people to all of their ratings."""
    changes = {"noise_seed": 4}
    capped = case.fit(RATINGS, {**changes, "cap": 5})
    records = watch.records
    few = case.fit(trimmed(RATINGS, 5, seed=0), changes)
    if case.method != "als":
        same_sums(records, watch.records)
        assert release_bits(capped) == release_bits(few)
    counted = [one for one in records if one.what in ("number of users", "item popularity")]
    same_sums(counted, [one for one in watch.records if one.what in ("number of users", "item popularity")])
    assert release_bits(case.fit(RATINGS, changes)) != release_bits(capped)


@others
def test_without_a_certificate_bits_do_not_depend_on_threads(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 20)  # a grid as large data have it
    changes = case.seeded(4)
    models = [case.fit(RATINGS, changes, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert len({tuple(one.train_rmse for one in model.history) for model in models}) == 1


@others
def test_without_a_certificate_ratings_on_disk_give_the_same_bits_or_are_refused(
    case: Case, stored: StoredRatings
) -> None:
    if not case.configured().streams:
        with pytest.raises(InvalidArgument, match="needs the ratings in memory"):
            case.fit(stored)
        return
    changes = case.seeded(4)
    assert bits(case.fit(stored, changes, n_threads=2)) == bits(case.fit(RATINGS, changes, n_threads=1))


@others
def test_without_a_certificate_a_cluster_gives_the_same_bits_or_refuses(case: Case, stored: StoredRatings) -> None:
    if not case.configured().spreads:
        with pytest.raises(InvalidArgument, match=f"{case.method} cannot run on a cluster here"):
            case.fit(stored, executor=Pretended(n=1))
        return
    assert release_bits(case.fit(stored, executor=Pretended(n=1))) == release_bits(case.fit(RATINGS, n_threads=1))


@pytest.mark.parametrize("case", ALL, ids=label_of)
def test_noise_is_new_in_every_run_unless_it_is_seeded(case: Case) -> None:
    first, second = (bits(case.fit(RATINGS, n_threads=2)) for _ in range(2))
    assert (first != second) == case.is_seedable
    if case.is_seedable:
        seeded = [bits(case.fit(RATINGS, {"noise_seed": seed}, n_threads=2)) for seed in (1, 1, 2)]
        assert seeded[0] == seeded[1] != seeded[2]


@pytest.mark.parametrize("case", ALL, ids=label_of)
def test_another_seed_gives_another_start(case: Case) -> None:
    noise = case.seeded(1)
    one, other = (bits(case.fit(RATINGS, {**noise, "seed": seed}, n_threads=2)) for seed in (0, 1))
    assert (one == other) == case.starts_alike


@certified
def test_whoever_asks_for_no_epsilon_at_all_leaves_no_trace(case: Case) -> None:
    if case.method == "objective":
        with pytest.raises(InvalidArgument, match="a rating, not a person"):
            case.fit(RATINGS, user_budgets={RATINGS.user_ids[7]: 0.0})
        return
    changes = {"noise_seed": 5}
    left_out = case.fit(RATINGS, changes, user_budgets={RATINGS.user_ids[7]: 0.0, "nobody": 1.0})
    silent = case.fit(RATINGS.select(RATINGS.users != 7), changes, user_budgets={RATINGS.user_ids[7]: 0.0})
    assert release_bits(left_out) == release_bits(silent) != release_bits(case.fit(RATINGS, changes))
    assert any("chose their own epsilon" in one for one in left_out.guarantee.assumptions)


@pytest.mark.parametrize("case", ALL, ids=label_of)
def test_training_leaves_the_ratings_as_they_were(case: Case) -> None:
    before = [one.copy() for one in (RATINGS.values, RATINGS.items, RATINGS.indptr)]
    case.fit(RATINGS)
    for one, other in zip(before, (RATINGS.values, RATINGS.items, RATINGS.indptr), strict=True):
        np.testing.assert_array_equal(one, other)
