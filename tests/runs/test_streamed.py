"""What is streamed, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmf.ratings import Ratings, Scale
from dpmf.ratings.options import ReadOptions
from dpmf.runs.streamed import open_ratings


@pytest.fixture
def data(tmp_path: Path) -> str:
    lines = [f"{user},{user % 7},3" for user in range(500)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]))
    return str(tmp_path / "ratings.csv")


@pytest.mark.parametrize(
    ("n_factors", "memory", "streams"), [(16, 10**6, False), (256, 10**6, True), (16, 10**4, True)]
)
def test_ratings_or_factors_that_do_not_fit_are_streamed(
    data: str, tmp_path: Path, n_factors: int, memory: int, streams: bool
) -> None:
    options = ReadOptions(scale=Scale(1, 5))
    with open_ratings(data, memory=memory, n_factors=n_factors, scratch=tmp_path, options=options) as source:
        assert isinstance(source, Ratings) is not streams
        assert len(source.user_ids) == 500
