"""Synthetic sets on disk: of the size and skew asked for, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.store.synthetic import write_synthetic


def generate(folder: Path, seed: int = 0) -> Ratings:
    write_synthetic(folder, n_ratings=20_000, n_users=2000, n_items=500, scale=Scale(0, 100), seed=seed)
    return Ratings.read(folder)


def test_sizes_and_skew_are_as_asked(tmp_path: Path) -> None:
    ratings = generate(tmp_path / "synthetic")
    assert ratings.n_items == 500
    assert 0.8 * 20_000 < len(ratings) <= 20_000
    assert ratings.values.min() >= 0
    assert ratings.values.max() <= 100
    popularity = np.sort(np.bincount(ratings.items, minlength=500))[::-1]
    assert popularity[:50].sum() > 0.35 * len(ratings)
    assert ratings.values.std() > 10


def test_the_seed_fixes_the_ratings(tmp_path: Path) -> None:
    one, same, other = generate(tmp_path / "a"), generate(tmp_path / "b"), generate(tmp_path / "c", seed=1)
    np.testing.assert_array_equal(one.values, same.values)
    np.testing.assert_array_equal(one.items, same.items)
    assert len(other) != len(one) or (other.items != one.items).any()


def test_nothing_is_too_little(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="0 users are too few"):
        write_synthetic(tmp_path / "synthetic", n_ratings=5, n_users=0, n_items=3, scale=Scale(1, 5))
    assert not (tmp_path / "synthetic").exists()
