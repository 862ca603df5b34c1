"""A certified sketch: collisions, noise in all cells, what is guaranteed, and what it learns."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.errors import BudgetExceeded
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.kernels.sketch import locate_rows
from dpmf.methods import Sketch
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.steps import Centre
from dpmf.methods.sketch.certified import CELLS, PublicSketch, SketchedPlan
from dpmf.methods.sketch.table import ITEMS
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

from ..cases import RATINGS, SAMPLED
from ..halves import Sketched
from ..watch import Record, Recorder

METHOD = Sketch(**SAMPLED, depth=3, width=7, query="median", noise_seed=4)  # the accountant has seen it before


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def carried_out(
    plan: SketchedPlan, ratings: Ratings, shares: NDArray[np.float64], stages: slice = slice(None)
) -> tuple[PublicSketch, list[Record]]:
    """Carry out some steps, and return where they led, and what was released."""
    public = PublicSketch(plan, ratings.scale, ratings.catalogue.ids.keys, Centre(3.0), 1.0, 3, 1)
    recorder = Recorder(plan.events(), Noise(9))
    curator = Curator(RatingsAnswerer(ratings, shares, 2), recorder, "add-remove")
    for stage in plan.stages()[stages]:
        converse(public, stage, curator)
    return public, recorder.records


def test_items_that_collide_with_equal_signs_do_not_add_up_beyond_the_clip(ratings: Ratings) -> None:
    """Bounded item by item, or before collisions, the sum of what meets in one cell would be longer than the clip."""
    plan = Sketched(60, 3, 6, 0.5, Budget(3.0), 0.9, depth=1, width=1, median=False)
    family = carried_out(plan, ratings, np.ones(150), slice(0))[0].table.family
    _, signs = locate_rows(ratings.catalogue.ids.keys, ITEMS, family, 3)
    mine = np.flatnonzero(signs[:, -1] > 0)  # of the bias, in the only cell there is
    wrong = Ratings.of(
        np.repeat("ann", len(mine)),
        ratings.catalogue.ids.array[mine],
        np.where(mine % 2, 5.0, 1.0),
        scale=ratings.scale,
        items=ratings.catalogue,
    )
    _, records = carried_out(plan, wrong, np.ones(1))
    lengths = np.array([abs(int(one.sums[0])) / one.steps for one in records])
    assert lengths.max() <= 1.0
    assert lengths.max() > 0.999


def test_every_cell_gets_noise_whether_or_not_anything_lives_there(ratings: Ratings) -> None:
    plan = Sketched(60, 3, 2, 0.5, Budget(3.0), 0.3, depth=2, width=5000, median=False)
    before = carried_out(plan, ratings, np.ones(150), slice(0))[0].table.cells.copy()
    after = carried_out(plan, ratings, np.ones(150), slice(1))[0].table.cells
    assert (after != 0.5 * before).all()
    assert np.std(after - 0.5 * before) == pytest.approx(0.5 / math.sqrt(2), rel=0.1)


def test_what_is_promised_follows_from_what_was_done(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(6.0))
    guarantee = replace(METHOD, noise_seed=None).fit(RATINGS, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.epsilon is not None
    assert 4.9 < guarantee.epsilon <= 5.0
    (event,) = guarantee.events
    assert isinstance(event, PoissonGaussianEvent)
    assert (event.what, event.sampling_rate, event.count, event.coordinates) == (CELLS, 0.5, 3, 3 * 3 * 7)
    assert Sketch(n_factors=3, budget=Budget(5.0)).width_for(60) == 45  # in 4 rows, as many cells as factors
    assert verify(guarantee).ok
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-4)
    with pytest.raises(BudgetExceeded, match=r"together they would cost [0-9.]+: more"):  # not infinity
        replace(METHOD, noise_seed=None).fit(RATINGS, ledger=ledger)


def test_nothing_public_depends_on_how_many_users_there_are() -> None:
    fewer = RATINGS.select(RATINGS.users < 40)
    one, other = METHOD.fit(RATINGS).release, METHOD.fit(fewer).release
    assert one.configuration == other.configuration
    assert one.guarantee == other.guarantee
    assert (one.mean, one.ridge, one.item_factors.shape) == (other.mean, other.ridge, other.item_factors.shape)


def test_it_learns() -> None:
    train, test = make(4000, 300, mean_ratings=60).split(0.1, seed=2)
    model = Sketch(budget=Budget(8.0)).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.95 * rmse(baseline_errors(train, test))
