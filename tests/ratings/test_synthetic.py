"""The synthetic set repeats with its seed and has the structure that it documents."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.methods.ease.defaults import LEAST_COVERAGE
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make
from dpmf.ratings.titles import catalogue_links


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(1500, 200, mean_ratings=40)


def test_the_seed_fixes_everything_and_another_gives_another() -> None:
    first, second, other = make(60, 30, seed=5), make(60, 30, seed=5), make(60, 30, seed=6)
    assert np.array_equal(first.items, second.items)
    assert np.array_equal(first.values, second.values)
    assert first.catalogue.genres == second.catalogue.genres
    assert not np.array_equal(first.items[:100], other.items[:100])


def test_sizes_scale_and_catalogue_are_public_facts(ratings: Ratings) -> None:
    assert (ratings.n_users, ratings.n_items, ratings.name) == (1500, 200, "synthetic")
    assert set(ratings.values.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert ratings.scale.declared
    assert ratings.catalogue.declared


def test_items_have_names_of_their_own_and_one_or_two_genres() -> None:
    catalogue = make(5, 2500).catalogue
    assert len(set(catalogue.titles)) == 2500
    genres = [text.split("|") for text in catalogue.genres]
    assert {len(one) for one in genres} == {1, 2}
    assert all(len(set(one)) == len(one) for one in genres)
    assert len({one[0] for one in genres}) == 8


def test_people_give_about_as_many_ratings_as_asked_and_at_least_five(ratings: Ratings) -> None:
    counts = np.diff(ratings.indptr)
    assert 0.85 * 40 < counts.mean() < 1.15 * 40
    assert counts.min() >= 5
    assert counts.max() > 2 * counts.mean()
    assert np.diff(make(50, 10).indptr).max() <= 6


def test_popularity_falls_off_like_a_power(ratings: Ratings) -> None:
    counts = np.sort(np.bincount(ratings.items, minlength=ratings.n_items))[::-1]
    assert counts[:20].sum() > 2 * counts.sum() / 10
    assert counts[:20].mean() > 4 * counts[-20:].mean()


def test_people_who_like_one_item_of_a_genre_like_another(ratings: Ratings) -> None:
    """After users' and items' means are taken off, items of one genre agree and items of different genres do not."""
    table = np.full((ratings.n_users, ratings.n_items), np.nan)
    table[ratings.users, ratings.items] = ratings.values
    popular = np.argsort(-np.bincount(ratings.items))[:60]
    table -= np.nanmean(table, axis=1, keepdims=True)
    rest = table[:, popular] - np.nanmean(table[:, popular], axis=0)
    genre = np.array([ratings.catalogue.genres[item].split("|")[0] for item in popular])
    known = ~np.isnan(rest)
    together = np.where(known, rest, 0.0)
    agreement = (together.T @ together) / (known.T.astype(float) @ known)
    same = genre[:, None] == genre[None, :]
    different = ~same
    np.fill_diagonal(same, False)
    assert agreement[same].mean() > 0.2
    assert abs(agreement[different].mean()) < 0.1


def test_more_noise_explains_less() -> None:
    calm, wild = make(300, 50, noise=0.0), make(300, 50, noise=3.0)
    assert wild.values.std() > calm.values.std() + 0.2


@pytest.mark.parametrize(("users", "items"), [(0, 100), (10, 9)])
def test_too_few_are_refused(users: int, items: int) -> None:
    with pytest.raises(InvalidArgument, match="too few"):
        make(users, items)


@pytest.mark.parametrize("n_items", [100, 600, 1500, 6000])
def test_titles_are_all_different_and_link_nothing(n_items: int) -> None:
    """So a run pays for no links, which would say nothing about tastes."""
    catalogue = make(2, n_items).catalogue
    assert len(set(catalogue.titles)) == n_items
    assert catalogue_links(catalogue).coverage(n_items) < LEAST_COVERAGE / 5
