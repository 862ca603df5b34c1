"""The published protocol with all its parties in one process: it learns, counts, stops and resumes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint, Snapshots
from dpmf.engine.journal import locked
from dpmf.errors import InvalidArgument
from dpmf.evaluation import prediction_errors
from dpmf.federated.published import Outcome, Scenario, Simulation, Terms, simulate
from dpmf.federated.published.snapshot import restore
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

S3 = Scenario("s3", rounds=12, epsilon=5.0, per_round=30, n_factors=6, come=0.4, leave=0.1)
S2 = Scenario("s2", rounds=4, epsilon=5.0, n_factors=6)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(80, 40)


def test_without_noise_it_learns() -> None:
    """Even users love even items, odd users odd ones: held-out ratings are predicted right."""
    users, items = np.divmod(np.arange(1600), 40)
    board = Ratings.of(users, items, np.where((users + items) % 2 == 0, 5, 1), scale=(1, 5))
    train, test = board.split(0.2, seed=1)
    quick = replace(S3, rounds=400, epsilon=math.inf, n_factors=3, items_public=True)
    outcome = simulate(train, quick)
    assert outcome.model.guarantee.mode == "none"
    assert np.abs(prediction_errors(outcome.model, test)).mean() < 0.1
    errors = [record.train_rmse for record in outcome.model.history]
    assert [record.epoch for record in outcome.model.history] == [100, 200, 300, 400]
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("scenario", [S2, S3, replace(S2, third_party=False)], ids=["s2", "s3", "alone"])
def test_every_scenario_runs_and_says_what_is_claimed(ratings: Ratings, scenario: Scenario) -> None:
    outcome = simulate(ratings, scenario)
    assert outcome.rounds == scenario.rounds
    assert outcome.refused == 0
    assert np.isfinite(outcome.model.release.item_factors).all()
    lengths = np.linalg.norm(outcome.model.user_factors, axis=1)
    assert (lengths <= 1 + 1e-6).sum() >= outcome.took_part
    assert (lengths > 0).all()
    guarantee = outcome.model.guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.epsilon, guarantee.unit) == ("paper", False, 5.0, "rating")
    text = " ".join([*guarantee.assumptions, guarantee.events[0].claim])  # type: ignore[union-attr]
    assert f"epsilon={(scenario.rounds + scenario.third_party) * 5:g}" in text
    assert "proven figure is none" in text
    assert "which items each of them rated" in text
    assert ("draws H" in text) == scenario.third_party


def test_bytes_are_those_of_the_messages(ratings: Ratings) -> None:
    traffic = simulate(ratings, replace(S3, n_factors=50, rounds=3)).traffic
    figures = traffic.to_json()
    n, K, overhead = 20, 50, 24
    header, seed = 6, 32
    most_down = header + 9 + n * 4 + n * K * 4 + n * K * 2 + seed + n * 4 + n * K * 4 + overhead
    most_up = 2 * (header + 4 + 4 * n + overhead) + n * K * 4
    assert 0 < figures["most_bytes_down_20_ratings"] <= most_down <= 12_000
    assert 0 < figures["most_bytes_up_20_ratings"] <= most_up <= 5_000
    assert figures["bytes_from_third_party"] > 0
    assert figures["client_seconds"] > 0
    assert traffic.client_seconds.count == traffic.down.count == traffic.up.count > 0


def test_an_interrupted_run_resumes(ratings: Ratings, tmp_path: Path) -> None:
    seen: list[int] = []

    class Stopped(Exception):
        pass

    def stop(record: Any) -> None:
        seen.append(record.epoch)
        raise Stopped

    long = replace(S3, rounds=130)
    with pytest.raises(Stopped):
        simulate(ratings, long, callbacks=[stop], checkpoint=Checkpoint(tmp_path / "run", every_epochs=40))
    outcome = simulate(ratings, long, checkpoint=Checkpoint(tmp_path / "run", every_epochs=40, resume=True))
    assert seen == [100]
    assert outcome.rounds == 130
    assert outcome.refused == 0
    assert any("played again" in one for one in outcome.model.guarantee.assumptions)
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("scenario", [S2, S3], ids=["s2", "s3"])
def test_a_snapshot_is_the_state_of_all_parties(ratings: Ratings, tmp_path: Path, scenario: Scenario) -> None:
    """With no noise, and nobody but the same people online, a run in two parts gives the same items as one."""
    exact = replace(scenario, epsilon=math.inf, come=1.0, leave=0.0, per_round=80, noise_seed=3, rounds=6)

    def items(*rounds: int) -> np.ndarray[Any, Any]:
        outcome: Outcome | None = None
        for number, end in enumerate(rounds):
            plan = Checkpoint(tmp_path / f"{scenario.scenario}-{len(rounds)}", resume=number > 0)
            outcome = simulate(ratings, replace(exact, rounds=end), checkpoint=plan)
        assert outcome is not None
        return outcome.model.release.item_factors

    np.testing.assert_allclose(items(6), items(2, 6), atol=1e-6)


def test_another_run_is_not_resumed(ratings: Ratings, tmp_path: Path) -> None:
    simulate(ratings, S3, checkpoint=Checkpoint(tmp_path / "run"))
    with pytest.raises(InvalidArgument, match="another run"):
        simulate(ratings, replace(S3, epsilon=1.0), checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_seeded_noise_guarantees_nothing(ratings: Ratings) -> None:
    outcome = simulate(ratings, replace(S3, noise_seed=1))
    assert outcome.model.guarantee.seeded
    assert not outcome.model.guarantee.is_private


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"scenario": "s4"}, "scenario="),
        ({"rounds": 0}, "rounds="),
        ({"per_round": 0}, "per_round="),
        ({"come": 0.0}, "come=0"),
        ({"leave": 1.5}, "leave=1.5"),
        ({"third_party": False}, "third party"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        replace(S3, **changed)


def test_noise_that_does_not_fit_the_grid_is_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="larger epsilon"):
        simulate(ratings, replace(S3, epsilon=1e-7))


def test_a_catalogue_that_was_learnt_has_to_be_asserted() -> None:
    found = Ratings.of([1, 1, 2], [1, 2, 1], [5, 1, 4], scale=(1, 5))
    with pytest.raises(InvalidArgument, match="items"):
        simulate(found, S3)
    assert simulate(found, replace(S2, items_public=True)).rounds == 4


def test_the_grid_has_room_for_the_sum_of_a_round() -> None:
    for epsilon, most_users in ((math.inf, 1), (0.05, 100), (0.8, 1000), (1.0, 100_000)):
        terms = Terms(100, (1.0, 5.0), epsilon, most_users)
        largest = most_users * terms.limit + 2 * 40 * terms.amplitude
        assert largest * terms.steps < terms.ring.half <= 4 * (largest + most_users) * terms.steps


def test_fixed_noise_is_restored_and_not_drawn_again(ratings: Ratings, tmp_path: Path) -> None:
    """If every resumed run drew it again, averaging over many of them would remove it."""
    seen = []
    for end in (2, 4):
        run = Simulation(ratings, replace(S2, rounds=end), 1)
        with Snapshots(Checkpoint(tmp_path / "run", resume=True), {"name": "test"}) as snapshots:
            restore(run, snapshots.latest())
            run.run((), snapshots)
        seen.append({number: user.fixed.copy() for number, user in run.users.items()})
    assert len(seen[0]) == 80
    for number, fixed in seen[0].items():
        assert fixed.any()
        np.testing.assert_array_equal(seen[1][number], fixed)


def test_two_processes_do_not_share_a_checkpoint(ratings: Ratings, tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(InvalidArgument, match="another process"):
        simulate(ratings, S3, checkpoint=Checkpoint(tmp_path / "run", resume=True))
