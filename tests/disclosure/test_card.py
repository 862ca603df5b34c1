"""A model card says of a release what is true, in the form that the Hub reads, whatever is in its texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import yaml

from dpmf.disclosure.card import model_card
from dpmf.errors import NotVerified
from dpmf.model import Ranking, Release
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Items, Scale

PROMISE = Guarantee.certified_by(Budget(1.0), [GaussianEvent("item sums", 5.0, 1, 40)], releases=["item factors"])


def test_a_card_has_metadata_a_label_and_the_guarantee(release: Release) -> None:
    _, metadata, text = model_card(replace(release, guarantee=PROMISE), "Films for you").split("---\n", 2)
    known = yaml.safe_load(metadata)
    assert (known["library_name"], known["license"]) == ("dpmf", "unknown")
    assert {"differential-privacy", "recommender-system"} <= set(known["tags"])
    assert "# Films for you" in text
    assert "ε = 0.8341 per user" in text
    assert "predicts ratings on the scale 1:5" in text
    assert "item sums: a sum over everybody" in text
    assert "| n_factors | 2 |" in text
    assert "dpmf evaluate" in text


def test_what_is_not_private_is_not_tagged_as_if_it_were(release: Release) -> None:
    card = model_card(release, "Films")
    assert "differential-privacy" not in card.split("---\n")[1]
    assert "**Not private.**" in card


def test_the_example_of_a_card_runs(release: Release, ranking_of: Callable[..., Ranking]) -> None:
    for one in (
        release,
        replace(release, items=Items.of(["a", 'b"', "c", "d", "e", "f"])),
        replace(release, mean=0.0, scale=Scale(0, 1), feedback="implicit", alpha=1.0),
        replace(release, ranking=ranking_of(6)),
    ):
        code = model_card(one, "x").split("```python\n")[1].split("```")[0]
        line = next(line for line in code.splitlines() if "fold_in" in line)
        names: dict[str, object] = {"release": one}
        exec(line, names)
        assert len(names["me"].rated) == 2  # type: ignore[attr-defined]


def test_a_ranking_says_what_it_knows(release: Release, ranking_of: Callable[..., Ranking]) -> None:
    only = replace(
        release,
        ranking=ranking_of(6),
        item_factors=np.zeros((6, 0), np.float32),
        item_biases=np.zeros(6, np.float32),
    )
    card = model_card(only, "x")
    assert "that orders lists on the scale" in card
    assert "The ranking knows 4 items; the other 2 follow by popularity." in card


def test_markup_in_a_name_stays_text(release: Release) -> None:
    card = model_card(release, "a|b <script>\n# c")
    assert "# a\\|b \\<script> # c\n" in card


def test_a_card_of_a_release_that_contradicts_itself_is_refused(release: Release) -> None:
    with pytest.raises(NotVerified):
        model_card(replace(release, guarantee=replace(PROMISE, epsilon=0.1)), "x")
