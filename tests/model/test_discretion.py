"""What people rated does not show where it is not asked for."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf.disclosure.explain import explain_release
from dpmf.methods import SGD
from dpmf.ratings import Items, Ratings


@pytest.fixture
def ratings() -> Ratings:
    catalogue = Items.of(np.arange(6), [f"title {item}" for item in range(6)])
    return Ratings.of(["ann", "ann", "bob"], [0, 1, 2], [5, 4, 1], scale=(1, 5), items=catalogue)


def test_models_people_and_batches_print_sizes_only(ratings: Ratings) -> None:
    model = SGD(n_factors=3, n_epochs=2).fit(ratings)
    assert repr(model) == "Model(2 users, Release(6 items, 3 factors, guarantee none))"
    assert repr(model.person("ann")) == "Person(2 rated items, Release(6 items, 3 factors, guarantee none))"
    assert repr(model.recommend_batch(k=2)) == "Batch(2 people, 2 items each)"


def test_a_release_shows_the_factors_that_say_something(ratings: Ratings) -> None:
    release = SGD(n_factors=1, n_epochs=2).fit(ratings).release
    assert repr(release) == "Release(6 items, 1 factor, guarantee none)"
    assert "1 factor and a bias each" in explain_release(release)[0].sentences[0]
    nothing = replace(release, item_factors=np.zeros((6, 1), np.float32))
    assert (nothing.n_factors, repr(nothing)) == (1, "Release(6 items, 0 factors, guarantee none)")
    assert "0 factors and a bias each" in explain_release(nothing)[0].sentences[0]


def test_items_that_nobody_rated_resemble_nothing(ratings: Ratings) -> None:
    model = SGD(n_factors=3, n_epochs=2).fit(ratings)
    assert not model.release.item_factors[3:].any()
    assert {one.item for one in model.similar_items(0, k=6)} == {1, 2}
    assert len(model.recommend("ann", k=6)) == 4  # they can still be recommended, for what is known of the mean


@pytest.mark.parametrize(("mask", "folder_mode", "file_mode"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_a_release_can_be_read_by_whom_the_umask_allows(
    tmp_path: Path, ratings: Ratings, mask: int, folder_mode: int, file_mode: int
) -> None:
    before = os.umask(mask)
    try:
        SGD(n_factors=2, n_epochs=1).fit(ratings).release.save(tmp_path / "release")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "release").stat().st_mode) == folder_mode
    for name in ("release.json", "release.safetensors"):
        assert stat.S_IMODE((tmp_path / "release" / name).stat().st_mode) == file_mode
