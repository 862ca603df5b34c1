"""Metrics against answers computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.evaluation.metrics import coverage, error_cdf, hit_rate, hits, mae, ndcg, recall, rmse

# Three people: two of three relevant items found; nothing relevant to find; a short list without a hit.
RANKED = np.array([[4, 0, 7], [1, 2, 3], [5, -1, -1]])
INDPTR = np.array([0, 3, 3, 4])
RELEVANT = np.array([0, 2, 4, 6])


def test_errors() -> None:
    errors = np.array([1.0, -2.0, 2.0, 0.0])
    assert rmse(errors) == pytest.approx(1.5)
    assert mae(errors) == pytest.approx(1.25)
    assert rmse(errors.astype(np.float32)) == pytest.approx(1.5)


def test_the_distribution_of_errors_counts_sizes_up_to_and_including() -> None:
    errors = np.array([1.0, -2.0, 2.0, 0.0])
    assert error_cdf(errors, np.array([0.0, 0.5, 1.0, 2.0, 9.0])).tolist() == [0.25, 0.25, 0.5, 1.0, 1.0]


def test_hits_belong_to_their_own_person() -> None:
    assert hits(RANKED, INDPTR, RELEVANT).tolist() == [[True, True, False], [False] * 3, [False] * 3]


def test_recall_counts_people_with_something_to_find() -> None:
    assert recall(RANKED, INDPTR, RELEVANT) == pytest.approx((2 / 3 + 0) / 2)


def test_ndcg_by_hand() -> None:
    gained = 1 / math.log2(2) + 1 / math.log2(3)
    possible = gained + 1 / math.log2(4)
    assert ndcg(RANKED, INDPTR, RELEVANT) == pytest.approx((gained / possible + 0) / 2)


def test_a_list_shorter_than_the_relevant_items_can_still_be_perfect() -> None:
    assert ndcg(np.array([[2, 1]]), np.array([0, 4]), np.array([0, 1, 2, 3])) == pytest.approx(1.0)


def test_a_hit_further_down_gains_less() -> None:
    first, last = (ndcg(np.array([ranked]), np.array([0, 1]), np.array([8])) for ranked in ([8, 1, 2], [1, 2, 8]))
    assert first == pytest.approx(1.0)
    assert last == pytest.approx(0.5)


def test_hit_rate_counts_people_with_any_hit() -> None:
    assert hit_rate(RANKED, INDPTR, RELEVANT) == pytest.approx(1 / 2)


def test_coverage_counts_each_item_once_and_no_gaps() -> None:
    assert coverage(np.array([[1, 2], [2, -1], [-1, -1]]), 8) == pytest.approx(2 / 8)


def test_nobody_to_ask_is_not_a_number() -> None:
    nobody = np.array([[1, 2]]), np.array([0, 0]), np.zeros(0, np.int64)
    assert all(math.isnan(metric(*nobody)) for metric in (recall, ndcg, hit_rate))


people = st.lists(st.tuples(st.sets(st.integers(0, 9)), st.permutations(range(10))), min_size=1, max_size=5)


@given(people)
def test_hits_equal_membership(lists: list[tuple[set[int], list[int]]]) -> None:
    ranked = np.array([order[:4] for _, order in lists])
    indptr = np.cumsum([0, *(len(wanted) for wanted, _ in lists)])
    relevant = np.array([item for wanted, _ in lists for item in sorted(wanted)], np.int32)
    expected = [[item in wanted for item in order[:4]] for wanted, order in lists]
    assert hits(ranked, indptr, relevant).tolist() == expected
