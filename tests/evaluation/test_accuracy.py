"""Evaluation of a model small enough to evaluate by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.evaluation import accuracy as evaluating
from dpmf.evaluation import baseline_errors, evaluate, prediction_errors
from dpmf.model import Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Ratings, Scale

# Three users, four items. User 1 has rated item 0; user 3 has rated nothing before.
ALL = Ratings.of([1, 1, 1, 2, 2, 2, 3], [0, 1, 2, 0, 1, 3, 2], [5, 4, 1, 2, 5, 4, 3], scale=(1, 5), items=[0, 1, 2, 3])
KNOWN = ALL.select(np.array([True, False, False, True, False, False, False]))
TEST = ALL.select(np.array([False, True, True, False, True, True, True]))


def model_by_hand() -> Model:
    """Return a model that predicts 3 + user bias + item bias + u·v with one factor."""
    release = Release(
        items=Items.of([0, 1, 2, 3]),
        scale=Scale(1, 5),
        mean=3.0,
        item_factors=np.array([[0], [1], [-1], [0.5]], np.float32),
        item_biases=np.array([1, 0, 0, -1], np.float32),
        ridge=Ridge(1.0, 1.0),
        configuration={},
        guarantee=Guarantee.none(),
    )
    factors, biases = np.array([[3], [-1], [0]], np.float32), np.array([0, 0.5, 0], np.float32)
    return Model(release, ALL.user_ids, factors, biases, KNOWN.indptr, KNOWN.items)


def test_predictions_are_clamped_before_errors_are_taken() -> None:
    # User 1: item 1 is 3 + 3 = 6, clamped to 5, given 4; item 2 is 0, clamped to 1, given 1.
    # User 2: item 1 is 3.5 - 1, given 5; item 3 is 3.5 - 1 - 0.5, given 4. User 3: item 2 is 3, given 3.
    assert prediction_errors(model_by_hand(), TEST).tolist() == pytest.approx([1, 0, -2.5, -2, 0])


def test_figures_by_hand() -> None:
    figures = evaluate(model_by_hand(), TEST, k=2)
    assert figures["rmse"] == pytest.approx(math.sqrt((1 + 6.25 + 4) / 5))
    assert figures["mae"] == pytest.approx(5.5 / 5)
    # Relevant from 1 + 0.75·4 = 4 on: item 1 to user 1, items 1 and 3 to user 2, nothing to user 3.
    # Lists, without item 0, which both have rated: user 1 gets 1 (6), 3 (3.5); user 2 gets 2 (4.5), 1 (2.5).
    assert figures["recall@2"] == pytest.approx((1 / 1 + 1 / 2) / 2)
    assert figures["ndcg@2"] == pytest.approx((1 + (1 / math.log2(3)) / (1 + 1 / math.log2(3))) / 2)
    assert figures["hit_rate@2"] == 1.0
    assert figures["coverage@2"] == pytest.approx(3 / 4)


def test_the_threshold_of_relevance_is_three_quarters_up_the_scale() -> None:
    assert Scale(1, 5).liked == 4
    assert Scale(0, 100).liked == 75
    assert Scale(0.5, 5).liked == pytest.approx(3.875)


def test_what_was_folded_in_is_no_candidate() -> None:
    """Item 0 has the largest bias by far, so only those who have not rated it get it."""
    model = model_by_hand()
    loved = replace(model.release, item_biases=np.array([50, 0, 0, 0], np.float32))
    everybody = ALL.select(np.ones(len(ALL), np.bool_))
    assert evaluate(replace(model, release=loved), everybody, k=1)["coverage@1"] > 0.25
    nobody_rated = np.zeros(4, np.int64), np.zeros(0, np.int32)
    unseen = replace(model, release=loved, seen_indptr=nobody_rated[0], seen_items=nobody_rated[1])
    assert evaluate(unseen, everybody, k=1)["coverage@1"] == 0.25


def test_a_release_is_measured_on_people_folded_in() -> None:
    release = model_by_hand().release
    figures = evaluate(release, TEST, known=KNOWN, k=2)
    # User 1 knows item 0, rated 5 where 4 is expected: bias 1 / (1 + 1) = 0.5, no factor. User 2: -2 / 2 = -1.
    errors = np.array([3.5 - 4, 3.5 - 1, 2 - 5, 1 - 4, 3 - 3])
    assert figures["rmse"] == pytest.approx(math.sqrt((errors**2).mean()), rel=1e-6)


def test_figures_do_not_depend_on_threads() -> None:
    model = model_by_hand()
    assert evaluate(model, TEST, n_threads=1) == evaluate(model, TEST, n_threads=4)


def test_lists_longer_than_the_catalogue_are_fine() -> None:
    assert evaluate(model_by_hand(), TEST, k=100)["recall@100"] == 1.0


def test_nothing_relevant_leaves_ranking_figures_open() -> None:
    dull = TEST.select(TEST.values < 4)
    figures = evaluate(model_by_hand(), dull, k=2)
    assert math.isnan(figures["recall@2"])
    assert figures["mae"] == 0.0


def test_the_baseline_is_ones_own_mean_or_the_midpoint() -> None:
    train = ALL.select(np.array([True, True, False, True, False, False, False]))
    # Means: 4.5 for user 1, 2 for user 2; user 3 has none, so 3.
    assert baseline_errors(train, TEST).tolist() == [0.5, 3.5, -3, -2, 0]


def test_test_ratings_of_other_users_or_items_are_refused() -> None:
    others = Ratings.of([7, 8], [0, 1], [3, 4], scale=(1, 5), items=[0, 1, 2, 3])
    more_items = Ratings.of([1, 2, 3], [0, 500, 999], [3, 4, 5], scale=(1, 5), items=range(1000))
    for wrong in (others, more_items):
        with pytest.raises(InvalidArgument, match="different users or items"):
            evaluate(model_by_hand(), wrong)
        with pytest.raises(InvalidArgument, match="different users or items"):
            evaluate(model_by_hand().release, wrong, known=wrong if wrong is more_items else KNOWN)


def test_known_ratings_of_other_items_never_reach_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would read beside the factors, since kernels do not check bounds."""
    more_items = Ratings.of([1, 2, 3], [0, 500, 999], [3, 4, 5], scale=(1, 5), items=range(1000))
    for name in ("fold_in_many", "fold_in_each"):
        monkeypatch.setattr(evaluating, name, lambda *_: pytest.fail("people were folded in"))
    with pytest.raises(InvalidArgument, match="different users or items"):
        evaluate(model_by_hand().release, TEST, known=more_items)


def test_a_release_needs_known_ratings() -> None:
    with pytest.raises(InvalidArgument, match="known="):
        evaluate(model_by_hand().release, TEST)


def test_no_test_ratings_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="no test ratings"):
        evaluate(model_by_hand(), TEST.select(np.zeros(len(TEST), np.bool_)))


def test_the_leak_by_hand() -> None:
    """Errors on known ratings are 3 + 1 - 5 and 3.5 + 1 - 2, those on test ratings as above; user 1 is the top one."""
    figures = evaluate(model_by_hand(), TEST, known=KNOWN, k=2)
    known, test = np.array([-1.0, 2.5]), np.array([1, 0, -2.5, -2, 0])
    ratio = known.var() / test.var()
    shift = (known.mean() - test.mean()) ** 2 / test.var()
    assert figures["kld"] == pytest.approx(0.5 * (ratio + shift - 1 - math.log(ratio)), rel=1e-6)
    assert math.isnan(figures["kld_top_users"])  # one known rating has no variance
    assert figures["rmse_top_users"] == pytest.approx(math.sqrt(0.5))
    assert figures["rmse"] == evaluate(model_by_hand(), TEST, k=2)["rmse"]


def test_rare_users_and_items_may_be_left_out_of_the_test() -> None:
    figures = evaluate(model_by_hand(), TEST, known=ALL, k=2, least_ratings=2)
    assert figures["mae"] == pytest.approx((1 + 0 + 2.5) / 3)  # item 3 and user 3 have one rating
    with pytest.raises(InvalidArgument, match="hold out a larger part"):
        evaluate(model_by_hand(), TEST, known=ALL, least_ratings=9)
    with pytest.raises(InvalidArgument, match="counts known ratings"):
        evaluate(model_by_hand(), TEST, least_ratings=2)
