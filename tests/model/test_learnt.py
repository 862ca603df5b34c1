"""What a release says it has learnt: no more than stands out, and lists and similarities that go by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf import ALS, EASE, SGD, Budget, Joint, Release
from dpmf.errors import DamagedFile
from dpmf.model.learnt import LEARNT, Learnt
from dpmf.model.ranking import Ranking
from dpmf.ratings.synthetic import make


def with_record(release: Release, record: dict[str, Any]) -> Release:
    """Return a release with another record of what was learnt."""
    return replace(release, configuration={**release.configuration, LEARNT: record})


@pytest.mark.parametrize("make_method", [ALS, EASE, Joint], ids=["als", "ease", "joint"])
def test_next_to_no_budget_learns_nothing_and_a_large_one_something(make_method: Any) -> None:
    ratings = make(2000, 40, mean_ratings=12)
    nothing, much = (
        make_method(budget=Budget(epsilon), noise_seed=1).fit(ratings).release.learnt for epsilon in (0.01, 40.0)
    )
    assert not nothing.is_personal
    assert nothing.popular is not None
    assert nothing.popular <= 2  # of 40, and noise alone reaches three deviations once in 740
    assert nothing.lack is not None
    assert much.is_personal
    assert much.lack is None
    assert much.popular is not None
    assert much.popular > 20
    assert much.rated is None if make_method is EASE else much.rated > 20


def test_implicit_factors_count_where_they_stand_out() -> None:
    ratings = make(2000, 40, mean_ratings=12)
    nothing, much = (
        ALS(budget=Budget(epsilon), feedback="implicit", n_factors=3, noise_seed=1).fit(ratings).release.learnt
        for epsilon in (0.01, 40.0)
    )
    assert nothing.popular is not None
    assert (nothing.factors == 0, nothing.popular <= 2, nothing.rated) == (True, True, None)
    assert much.factors > 0
    assert much.lack is None


def test_without_noise_everything_is_known() -> None:
    learnt = SGD(n_factors=3, n_epochs=2).fit(make(60, 40)).release.learnt
    assert (learnt.factors, learnt.rated, learnt.lack) == (3, 40, None)


def test_it_survives_saving_and_is_checked_on_loading(release: Release, tmp_path: Path) -> None:
    known = np.array([True, False, True, True, False, True])
    written = Learnt(6, factors=2, pairs=0, rated=3, popular=5, with_factors=known)
    with_record(release, written.record()).save(tmp_path / "r")
    read = Release.load(tmp_path / "r").learnt
    assert read == written
    assert read.with_factors is not None
    assert read.with_factors.tolist() == known.tolist()
    good = written.record()
    of_others = Learnt(20, 1, 0, with_factors=np.ones(20, np.bool_)).record()["with_factors"]
    damages: list[dict[str, Any]] = [{"factors": -1}, {"rated": 1.5}, {"with_factors": of_others}, {"users": 3}]
    for number, damage in enumerate(damages):
        with_record(release, {**good, **damage}).save(tmp_path / f"{number}")
        with pytest.raises(DamagedFile, match="damaged"):
            Release.load(tmp_path / f"{number}")


def test_what_is_mostly_noise_is_like_nothing(release: Release) -> None:
    known = np.array([True, True, False, True, False, True])
    partly = with_record(release, Learnt(6, 2, 0, with_factors=known).record())
    assert partly.similar_items(30) == []
    assert {one.item for one in partly.similar_items(10)} == {20, 40, 60}
    assert len(release.similar_items(30)) == 5


def test_items_of_whose_ratings_no_more_than_noise_is_known_are_listed_last(release: Release) -> None:
    known = np.array([False, True, False, True, False, True])
    partly = with_record(release, Learnt(6, 2, 0, rated=3, with_ratings=known).record())
    ratings = {10: 5.0, 30: 1.0}
    plain, listed = release.fold_in(ratings).recommend(6), partly.fold_in(ratings).recommend(6)
    assert {one.item: one.score for one in listed} == {one.item: one.score for one in plain}
    of_known = {20, 40, 60}
    assert [one.item for one in listed] == [one.item for one in sorted(plain, key=lambda one: one.item not in of_known)]
    rows = np.array([[7, item, rating] for item, rating in ratings.items()])
    for most in (None, 6):  # the two ways of making lists of many people
        batch = partly.recommend_batch(rows, 6, most_per_genre=most)
        assert [one.item for one in batch[0]] == [one.item for one in listed]
        assert [one.score for one in batch[0]] == pytest.approx([one.score for one in listed], abs=1e-5)


def test_a_list_says_what_decides_its_order(release: Release, ranking_of: Callable[..., Ranking]) -> None:
    assert release.fold_in({10: 5}).ordered_by == "factors"
    for rated, by in ((4, "ratings"), (0, "nothing")):
        nobodys = with_record(release, Learnt(6, factors=0, pairs=0, rated=rated).record())
        assert nobodys.fold_in({10: 5}).ordered_by == by
    alike = replace(release, item_biases=np.zeros(6, np.float32), item_factors=np.zeros((6, 2), np.float32))
    assert alike.fold_in({10: 5}).ordered_by == "nothing"
    popular = replace(release, ranking=Ranking.by_popularity(np.arange(6)))
    assert popular.fold_in({10: 5}).ordered_by == "popularity"
    assert "Nothing personal: by popularity" in popular.fold_in({10: 5}).recommend()._repr_html_()
    assert "caption" not in release.fold_in({10: 5}).recommend()._repr_html_()
    assert with_record(popular, Learnt(6, 0, 0, popular=0).record()).fold_in({10: 5}).ordered_by == "nothing"
    ranked = replace(release, ranking=ranking_of(6))
    assert ranked.ranking is not None
    head = int(ranked.items.ids[int(ranked.ranking.items[0])])
    assert ranked.fold_in({head: 5}).ordered_by == "pairs"
    assert ranked.fold_in({}).ordered_by == "popularity"


def test_a_rating_model_that_tells_no_items_apart_lists_by_private_popularity() -> None:
    release = ALS(budget=Budget(0.01), noise_seed=2).fit(make(200, 300, mean_ratings=20)).release
    assert not np.ptp(release.item_biases)
    assert release.ranking is not None
    person = release.fold_in({2: 5.0})
    listed = [one.item for one in person.recommend(k=300)]
    counts = dict(zip(release.items.ids, release.ranking.popularity, strict=True))
    assert [counts[item] for item in listed] == sorted((counts[item] for item in listed), reverse=True)
    assert "the popularity of items" in release.guarantee.releases
    assert np.ptp(person.predict(listed)) == 0
