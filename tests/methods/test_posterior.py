"""What a draw from the posterior costs: bounds that hold for anybody's ratings, claims, and who pays what."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.engine.local import ThreadExecutor
from dpmf.engine.resources import Resources
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.kernels.sgld import Dynamics, Side, sgld_block
from dpmf.methods import SGLD
from dpmf.methods.sgld.claim import Bound
from dpmf.privacy import Budget
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHOD = SGLD(n_factors=4, n_epochs=3, budget=Budget(100), mode="paper", items_public=True, noise_seed=1)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def test_the_papers_own_figures() -> None:
    bound = Bound(epsilon=250, width=4, cap=100, kappa=1, rho=1)
    assert bound.most == 2500
    assert bound.scale == pytest.approx(250 / 10_000)
    assert (bound.tight("add-remove"), bound.tight("replace")) == pytest.approx((62.5, 125))
    # The privacy runs at zeta = 0.07 and 0.0025 cost 14 and 400 times as much.
    assert replace(bound, temperature=0.07).tight("add-remove") / 62.5 == pytest.approx(14.29, abs=0.01)
    assert replace(bound, temperature=0.0025).tight("add-remove") / 62.5 == pytest.approx(400)
    assert Bound(epsilon=1, width=5, cap=200, kappa=1, rho=1).most == 7200  # where the paper has 5000


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=20),
    st.floats(0.1, 50), st.integers(1, 200), st.floats(0, 3), st.floats(0.01, 1e4), st.floats(0, 1), st.integers(1, 9),
)  # fmt: skip
def test_nobody_pays_more_than_their_epsilon(
    counts: list[int], rho: float, cap: int, kappa: float, epsilon: float, part: float, n_draws: int
) -> None:
    bound = Bound(epsilon, 4, cap, kappa, rho, n_draws=n_draws)
    kept = np.minimum(counts, cap)
    weights = bound.weights(kept, np.full(len(kept), part * epsilon))
    losses = bound.losses(kept, weights)
    assert (weights >= 0).all()
    assert (weights <= rho).all()
    assert (losses <= bound.most * (1 + 1e-12)).all()
    assert (np.asarray(bound.cost(losses)) <= part * epsilon / 4 * (1 + 1e-9)).all()


def test_an_adversary_cannot_lose_more_than_the_bound() -> None:
    """Through the real kernel: a user whose every prediction is as wrong as it can be, however large the factors."""
    rng = np.random.default_rng(0)
    bound = Bound(epsilon=100, width=4, cap=30, kappa=1.0, rho=2.0)
    reach, count = 2 + bound.kappa, 30
    limits = Dynamics.of(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -reach, reach)
    weight = float(bound.weights(np.array([count]), np.array([100.0]))[0])
    worst = 0.0
    for size in (0.1, 1.0, 1e3, 1e6):

        def side(rows: int, size: float = size) -> Side:
            return Side(
                rng.normal(0, size, (rows, 16)).astype(np.float32), rng.normal(0, size, rows).astype(np.float32),
                np.zeros(rows, np.int64), np.zeros(16, np.float32),
            )  # fmt: skip

        users, items, places = side(1), side(count), np.arange(count, dtype=np.uint16)
        # The scale's ends, whichever is further from what is predicted.
        predicted = users.biases[0] + items.biases + items.factors @ users.factors[0]
        codes = (predicted < 0).astype(np.uint8)
        squared = sgld_block(
            np.zeros(count, np.uint16), places, codes, np.array([-2, 2], np.float32), users, items,
            np.ones(1, np.float32), np.ones(16, np.float32), limits, np.zeros(0, np.float32), 0, np.uint64(1),
        )  # fmt: skip
        assert weight * squared <= bound.most * (1 + 1e-6)
        worst = max(worst, weight * squared)
    assert worst == pytest.approx(bound.losses(np.array([count]), np.array([weight]))[0], rel=1e-6)  # it is tight


def test_a_claim_says_what_it_is(ratings: Ratings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        guarantee = replace(METHOD, noise_seed=None).fit(ratings).guarantee
    assert not caplog.records
    assert (guarantee.mode, guarantee.certified, guarantee.epsilon, guarantee.delta) == ("paper", False, 100, 0)
    assert (guarantee.unit, guarantee.neighbours) == ("user", "add-remove")
    assert guarantee.recomputed_epsilon() == math.inf
    assert verify(guarantee).ok
    claim = guarantee.events[0].to_json()["claim"]
    assert "epsilon=100 per user" in claim
    assert "cost 25 under add-remove and 50 under replace." in claim
    rests_on = " ".join(guarantee.assumptions)
    for words in ("chain has converged", "table of 65,536", "(1 + e^epsilon) delta", "Steps of finite size"):
        assert words in rests_on
    assert SEEDED not in guarantee.assumptions
    assert "paper claim, not certified" in str(guarantee)


def test_a_claim_names_temperature_and_draws_and_seed(ratings: Ratings, caplog: pytest.LogCaptureFixture) -> None:
    cold = replace(METHOD, temperature=0.25, n_samples=2, table=0, budget=Budget(100, neighbours="replace"))
    guarantee = cold.fit(ratings, user_budgets={0: 5.0}).guarantee
    assert SEEDED in [record.getMessage() for record in caplog.records]
    claim = guarantee.events[0].to_json()["claim"]
    assert "epsilon=100 per user for 2 draws" in claim
    assert "cost 100 under add-remove and 200 under replace: the chain runs at temperature 0.25" in claim
    assert "multiplies the cost by 4" in claim
    assert guarantee.assumptions[0] == SEEDED
    assert guarantee.neighbours == "replace"
    rests_on = " ".join(guarantee.assumptions)
    assert "chose their own epsilon" in rests_on
    assert "table" not in rests_on
    assert "catalogue of items is public" in rests_on


def test_who_wants_nothing_is_not_in_the_data(ratings: Ratings) -> None:
    """A user with epsilon 0 might as well have no ratings: the same bits."""
    absent = [0, 7, 20]
    wishes = {ratings.user_ids[place]: 0.0 for place in absent}
    without = ratings.select(~np.isin(ratings.users, absent))
    one, other = METHOD.fit(ratings, user_budgets=wishes), METHOD.fit(without)
    assert one.release.item_factors.tobytes() == other.release.item_factors.tobytes()
    assert one.release.item_biases.tobytes() == other.release.item_biases.tobytes()
    assert one.user_factors[0].any()  # their own profile is their own business
    with pytest.raises(InvalidArgument, match="everybody wants to be left out"):
        METHOD.fit(ratings, user_budgets=dict.fromkeys(ratings.user_ids, 0))


def test_what_counts_is_trimmed_and_weighted(ratings: Ratings) -> None:
    method = replace(METHOD, cap=10, rho=4.0)
    with method.prepared(ratings, {ratings.user_ids[3]: 25.0}) as (counted, weights, bound):
        assert isinstance(counted, Ratings)
        counts = np.diff(counted.indptr)
    assert counts.max() == 10
    expected = np.minimum(4.0, 10 / counts)
    expected[3] /= 4 if expected[3] < 4 else 1
    np.testing.assert_allclose(weights, expected)
    assert bound is not None
    losses = bound.losses(counts, weights)
    assert losses.max() <= 250 * (1 + 1e-12)
    assert losses[3] <= 62.5 * (1 + 1e-12)


def test_every_item_of_a_claim_moves_whether_or_not_somebody_rated_it() -> None:
    """With hardly any weight on ratings, items with and without them have the same distribution: their prior."""
    rng = np.random.default_rng(1)
    users, items = np.divmod(np.arange(40 * 1500), 1500)
    seen = rng.random(len(users)) < 0.1
    seen &= items < 1000  # 500 items without a rating
    rated = Ratings.of(users[seen], items[seen], rng.integers(1, 6, seen.sum()), scale=(1, 5), items=range(1500))
    method = replace(METHOD, n_factors=3, n_epochs=40, budget=Budget(1e-6), n_samples=2)
    model = method.fit(rated)
    factors = model.release.item_factors
    squares = [float((part.astype(float) ** 2).mean()) for part in (factors[:1000], factors[1000:])]
    # 1500 and 3000 squares, of relative standard deviation √2 each.
    assert squares[0] / squares[1] == pytest.approx(1, abs=4 * math.sqrt(2 / 1500 + 2 / 3000))
    precision = method.chosen().regularization
    chain = method.chosen().chain_on(rated, np.ones(40), method.bound(rated.scale), Resources(1))
    for epoch in range(1, 41):
        method.chosen().advance(chain, epoch, ThreadExecutor(1))
    assert precision is not None
    variance = float((chain.state.V[:, :3].astype(float) ** 2).mean())
    assert variance == pytest.approx(1 / (2 * precision), rel=4 * math.sqrt(2 / 4500) + 0.05)


def test_the_report_of_what_users_pay() -> None:
    bound = Bound(epsilon=100, width=4, cap=100, kappa=1, rho=1, temperature=0.5)
    report = bound.paid(np.array([10, 50, 100]), np.ones(3), mean_square=0.8)
    assert report["claimed"] == {"least": 5.0, "median": 25.0, "most": 50.0}
    assert report["add-remove"] == {"least": pytest.approx(5.0), "median": pytest.approx(25), "most": pytest.approx(50)}
    assert report["typical"] == pytest.approx(0.01 * 50 * 0.8 / 0.5)
    assert report["rating"] == {"claimed": 1.0, "weight 1": pytest.approx(0.5), "most": pytest.approx(1.0)}


def test_a_ledger_counts_a_claim_as_unbounded(ratings: Ratings, tmp_path: Path) -> None:
    strict, open_ended = Ledger(tmp_path / "strict", Budget(1e6)), Ledger(tmp_path / "open", Budget(math.inf))
    with pytest.raises(BudgetExceeded):
        METHOD.fit(ratings, ledger=strict)
    assert not strict.entries()
    METHOD.fit(ratings, ledger=open_ended)
    assert open_ended.spent() == math.inf


def test_what_must_be_declared_is(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="public catalogue"):
        replace(METHOD, items_public=False).fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="scale that is declared"):
        METHOD.fit(Ratings.of([1, 1], [2, 3], [3, 4]))
    with pytest.raises(InvalidArgument, match="unit='rating'"):
        replace(METHOD, budget=Budget(1, unit="rating"))


def test_a_claim_never_names_users_or_counts_in_its_release(ratings: Ratings) -> None:
    release = METHOD.fit(ratings).release
    assert "noise_seed" not in release.configuration
    assert release.mean == 3.0  # the middle of the scale, not the mean of the ratings
    assert str(len(ratings)) not in str(release.guarantee.to_json())
