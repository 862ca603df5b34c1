"""Private runs, stopped and gone on with: no noise is drawn twice, and everything that was started is charged."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpmf.methods.als.central import CentralRounds
from numpy.typing import NDArray

from dpmf import Checkpoint, Ratings
from dpmf.engine.journal import Journal
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods.als import ALS
from dpmf.methods.als.plan import _BIAS_PASSES, Plan
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.privacy.verify import verify
from dpmf.ratings import Items
from dpmf.ratings.synthetic import make

PRIVATE = ALS(n_factors=2, n_epochs=3, budget=Budget(5.0))
BEFORE = 3 + _BIAS_PASSES  # users, two counts, passes over biases
DRAWS = BEFORE + 2 * 3  # two for every round
RESEARCH = replace(PRIVATE, noise_seed=4)


class Killed(BaseException):
    """Stands for the end of the process."""


class Draws:
    """Watches all noise that is drawn, by all runs, and kills one that asks for a certain draw."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.kill_at: int | None = None

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = Noise.integers

        def integers(noise: Noise, shape: Any, label: str, index: int) -> NDArray[np.int64]:
            self.asked.append((label, index))
            if self.kill_at is not None and len(self.asked) == self.kill_at:
                raise Killed
            return honest(noise, shape, label, index)

        monkeypatch.setattr(Noise, "integers", integers)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    watched = Draws()
    watched.watch(monkeypatch)
    return watched


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(120, 30, mean_ratings=12)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return tuple(
        one.tobytes() for one in (release.item_factors, release.item_biases, model.user_factors, model.user_biases)
    )


def stop_at(draw: int, draws: Draws, method: ALS, ratings: Ratings, folder: Path, **more: Any) -> None:
    """Run until a draw, counted from 1, and die there."""
    draws.kill_at = draw
    with pytest.raises(Killed):
        method.fit(ratings, checkpoint=Checkpoint(folder), **more)
    draws.kill_at = None


def resume(method: ALS, ratings: Ratings, folder: Path, **more: Any) -> Model:
    return method.fit(ratings, checkpoint=Checkpoint(folder, resume=True), **more)


# Nothing is drawn twice, and everything is charged


@pytest.mark.parametrize("draw", range(4, DRAWS + 1))
def test_wherever_a_run_is_stopped_no_noise_is_drawn_twice(
    tmp_path: Path, ratings: Ratings, draws: Draws, draw: int
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    stop_at(draw, draws, PRIVATE, ratings, tmp_path / "run", ledger=ledger)
    model = resume(PRIVATE, ratings, tmp_path / "run", ledger=ledger)
    assert len(set(draws.asked)) == len(draws.asked)
    half_a_round = (
        draw > BEFORE and (draw - BEFORE) % 2 == 1
    )  # stopped in the first draw of a round, so the second was given up too
    assert len(draws.asked) == DRAWS - half_a_round
    assert model.guarantee == PRIVATE.fit(ratings).guarantee
    assert verify(model.guarantee).ok
    assert [entry.guarantee for entry in ledger.entries()] == [model.guarantee]
    lost = (draw - BEFORE + 1) // 2 if draw > BEFORE else None
    assert [record.epoch for record in model.history] == [number for number in (1, 2, 3) if number != lost]
    assert np.isfinite(model.release.item_factors).all()


def test_a_run_may_be_stopped_again_and_again(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    stop_at(4, draws, PRIVATE, ratings, tmp_path / "run")
    for _ in range(_BIAS_PASSES + 3 - 1):
        draws.kill_at = len(draws.asked) + 1
        with pytest.raises(Killed):
            resume(PRIVATE, ratings, tmp_path / "run")
    draws.kill_at = None
    model = resume(PRIVATE, ratings, tmp_path / "run")  # everything but the counts is lost
    assert len(set(draws.asked)) == len(draws.asked)
    assert model.history == ()
    assert verify(model.guarantee).ok
    assert not model.release.item_factors.any()


@pytest.mark.parametrize("draw", [1, 2, 3])
def test_a_run_of_which_nothing_is_left_is_refused(tmp_path: Path, ratings: Ratings, draws: Draws, draw: int) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(20.0))
    stop_at(draw, draws, PRIVATE, ratings, tmp_path / "run", ledger=ledger)
    with pytest.raises(BudgetExceeded, match=r"its budget is spent: begin a new run in another folder.*charged anew"):
        resume(PRIVATE, ratings, tmp_path / "run", ledger=ledger)
    with pytest.raises(InvalidArgument, match="choose another folder"):
        PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger)
    assert len(draws.asked) == draw
    assert len(ledger.entries()) == 1


def test_it_is_on_the_disk_that_a_stage_was_started_before_noise_is_drawn(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, honest = os.fsync, Noise.integers

    def flush(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().name.startswith(".started.json"):
            order.append("mark")
        fsync(handle)

    def integers(noise: Noise, shape: Any, label: str, index: int) -> NDArray[np.int64]:
        order.append("noise")
        return honest(noise, shape, label, index)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Noise, "integers", integers)
    PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    assert order == ["mark", "mark", *["noise"] * 3, *["mark", "noise"] * _BIAS_PASSES, *["mark", "noise", "noise"] * 3]


def test_a_finished_run_draws_nothing_again(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    first = PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    again = resume(PRIVATE, ratings, tmp_path / "run", n_threads=1)
    assert len(draws.asked) == DRAWS
    assert bits(first) == bits(again)
    assert [record.epoch for record in again.history] == [1, 2, 3]


def test_an_old_snapshot_put_back_does_not_bring_back_what_was_spent(
    tmp_path: Path, ratings: Ratings, draws: Draws
) -> None:
    run = tmp_path / "run"
    stop_at(BEFORE + 2, draws, PRIVATE, ratings, run)
    old = next(run.glob("epoch-*"))
    shutil.copytree(old, tmp_path / old.name)
    resume(PRIVATE, ratings, run)
    shutil.rmtree(next(run.glob("epoch-*")))
    shutil.copytree(tmp_path / old.name, run / old.name)
    before = len(draws.asked)
    model = resume(PRIVATE, ratings, run)
    assert len(draws.asked) == before
    assert model.history == ()


def test_marks_older_than_the_snapshot_are_refused(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    run = tmp_path / "run"
    stop_at(BEFORE + 2, draws, PRIVATE, ratings, run)
    old = (run / "started.json").read_bytes()
    resume(PRIVATE, ratings, run)
    (run / "started.json").write_bytes(old)
    before = len(draws.asked)
    with pytest.raises(DamagedFile, match=f"{_BIAS_PASSES + 2} were started"):
        resume(PRIVATE, ratings, run)
    (run / "started.json").unlink()
    with pytest.raises(DamagedFile, match="what the run has spent is unknown"):
        resume(PRIVATE, ratings, run)
    assert len(draws.asked) == before


# What a run makes of what is left


def test_what_is_lost_is_said_without_a_word_about_people(
    tmp_path: Path, ratings: Ratings, draws: Draws, caplog: pytest.LogCaptureFixture
) -> None:
    stop_at(BEFORE + 4, draws, PRIVATE, ratings, tmp_path / "run")
    with caplog.at_level(logging.DEBUG, logger="dpmf"):
        resume(PRIVATE, ratings, tmp_path / "run")
    assert caplog.messages == ["round 2 was lost when the run was stopped: it stays charged, and is left out"]


@pytest.mark.parametrize("draw", [4, BEFORE + 1, BEFORE + 3, DRAWS])
@pytest.mark.parametrize("fields", [{}, {"moments": "per-item", "cap": 5}])
def test_whatever_is_lost_people_fit_the_release_as_newcomers_do(
    tmp_path: Path, ratings: Ratings, draws: Draws, draw: int, fields: dict[str, Any]
) -> None:
    method = replace(PRIVATE, **fields)
    stop_at(draw, draws, method, ratings, tmp_path / "run")
    model = resume(method, ratings, tmp_path / "run")
    everything = ratings.catalogue.ids
    for user in (0, 17):
        items, values = ratings.of_user(user)
        mine = dict(zip([everything[int(item)] for item in items], values.tolist(), strict=True))
        there = model.predict(ratings.user_ids[user], everything)
        np.testing.assert_allclose(model.release.fold_in(mine).predict(everything), there, atol=1e-3)


@pytest.mark.parametrize("draw", [4, 5])
def test_biases_alone_can_be_resumed(tmp_path: Path, ratings: Ratings, draws: Draws, draw: int) -> None:
    method = replace(PRIVATE, n_factors=0, budget=Budget(40.0))
    stop_at(draw, draws, method, ratings, tmp_path / "run")
    model = resume(method, ratings, tmp_path / "run")
    assert model.release.item_biases.any()
    assert verify(model.guarantee).ok


def test_factors_that_a_run_chose_are_those_it_goes_on_with(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    method = replace(PRIVATE, n_factors=None, budget=Budget(40.0))
    stop_at(BEFORE + 3, draws, method, ratings, tmp_path / "run")  # after the counts, from which they were chosen
    model = resume(method, ratings, tmp_path / "run")
    assert 0 < model.release.n_factors == model.user_factors.shape[1] < 16


@pytest.mark.parametrize("draw", [BEFORE + 1, BEFORE + 3, BEFORE + 2 * 5])
def test_a_lost_round_costs_little_accuracy(tmp_path: Path, draws: Draws, draw: int) -> None:
    train, test = make(2000, 200, mean_ratings=50).split(0.1, seed=2)
    method = ALS(n_factors=4, n_epochs=5, budget=Budget(20.0))
    whole = rmse(prediction_errors(method.fit(train), test))
    draws.asked.clear()
    stop_at(draw, draws, method, train, tmp_path / "run")
    assert rmse(prediction_errors(resume(method, train, tmp_path / "run"), test)) < 1.03 * whole


def test_what_is_kept_is_made_of_noisy_sums_alone(tmp_path: Path, ratings: Ratings) -> None:
    PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    facts = json.loads(next(tmp_path.glob("run/epoch-*/state.json")).read_text())
    assert facts["tensors"] == ["V", "biases", "c", "factors", "n_users", "popularity", "totals", "weights"]


# Seeded noise: research


@pytest.mark.parametrize("draw", [1, 4, BEFORE + 1, BEFORE + 4, DRAWS])
@pytest.mark.parametrize("fields", [{}, {"moments": "per-item", "cap": 5}])
def test_with_seeded_noise_a_run_goes_on_to_the_same_bits(
    tmp_path: Path, ratings: Ratings, draws: Draws, draw: int, fields: dict[str, Any]
) -> None:
    method = replace(RESEARCH, **fields)
    whole = method.fit(ratings)
    draws.asked.clear()
    stop_at(draw, draws, method, ratings, tmp_path / "run")
    resumed = resume(method, ratings, tmp_path / "run", n_threads=3)
    assert bits(whole) == bits(resumed)
    assert not resumed.guarantee.certified
    assert [record.epoch for record in resumed.history] == [1, 2, 3]


def test_a_stage_taken_up_goes_on_as_if_never_stopped(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped while users compute their part, a run has lost nothing: what was released is kept before."""
    whole, honest, calls = RESEARCH.fit(ratings), CentralRounds.settle, []

    def settle(state: CentralRounds, stage: Any) -> None:
        calls.append(stage)
        if len(calls) == 5:
            raise Killed
        honest(state, stage)

    monkeypatch.setattr(CentralRounds, "settle", settle)
    with pytest.raises(Killed):
        RESEARCH.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    assert (tmp_path / "run" / "epoch-000005").exists()
    assert bits(whole) == bits(resume(RESEARCH, ratings, tmp_path / "run"))


# Which run may go on


def test_another_run_is_refused_before_any_noise(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(20.0))
    for name, draw in (("counts", 2), ("rounds", 8)):  # without a snapshot, and with one
        draws.asked.clear()
        stop_at(draw, draws, PRIVATE, ratings, tmp_path / name)
        values = ratings.values.copy()
        values[7] = 1 if values[7] > 1 else 2
        for method, others, budgets in (
            (replace(PRIVATE, budget=Budget(4.0)), ratings, None),
            (replace(PRIVATE, budget=Budget(5.0, delta=1e-7)), ratings, None),
            (replace(PRIVATE, budget=Budget(5.0, neighbours="replace")), ratings, None),
            (replace(PRIVATE, n_epochs=4), ratings, None),
            (replace(PRIVATE, n_factors=3), ratings, None),
            (replace(PRIVATE, cap=9), ratings, None),
            (replace(PRIVATE, noise_seed=1), ratings, None),
            (PRIVATE, ratings, {ratings.user_ids[3]: 1.0}),
            (PRIVATE, replace(ratings, values=values), None),
            (PRIVATE, replace(ratings, catalogue=Items.of(np.arange(1000, 1030))), None),
        ):
            with pytest.raises(InvalidArgument, match="another run"):
                resume(method, others, tmp_path / name, user_budgets=budgets, ledger=ledger)
        assert len(draws.asked) == draw
    assert ledger.entries() == ()


def test_a_refusal_names_the_budget(tmp_path: Path, ratings: Ratings) -> None:
    PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    with pytest.raises(InvalidArgument, match=r"another run \(budget: .*epsilon=5.0.* there, .*epsilon=4.0.* here\)"):
        resume(replace(PRIVATE, budget=Budget(4.0)), ratings, tmp_path / "run")


def test_checkpoints_of_plain_and_private_runs_are_told_apart(tmp_path: Path, ratings: Ratings) -> None:
    plain = replace(PRIVATE, budget=Budget(float("inf")))
    for first, second, name in ((plain, PRIVATE, "plain"), (PRIVATE, plain, "private")):
        first.fit(ratings, checkpoint=Checkpoint(tmp_path / name))
        with pytest.raises(InvalidArgument, match="another run"):
            resume(second, ratings, tmp_path / name)


def test_the_same_user_budgets_are_the_same_run(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    budgets = {ratings.user_ids[3]: 1.0}
    stop_at(BEFORE + 3, draws, PRIVATE, ratings, tmp_path / "run", user_budgets=budgets)
    with pytest.raises(InvalidArgument, match="another run"):
        resume(PRIVATE, ratings, tmp_path / "run", user_budgets={ratings.user_ids[3]: 2.0})
    assert verify(resume(PRIVATE, ratings, tmp_path / "run", user_budgets=budgets).guarantee).ok


def test_two_cannot_resume_at_once(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    stop_at(BEFORE + 3, draws, PRIVATE, ratings, tmp_path / "run")
    refused: list[str] = []

    def resume_too(_: object) -> None:
        with pytest.raises(InvalidArgument, match="another process is using") as error:
            resume(PRIVATE, ratings, tmp_path / "run")
        refused.append(str(error.value))

    resume(PRIVATE, ratings, tmp_path / "run", callbacks=[resume_too])
    assert len(refused) == 1
    assert len(set(draws.asked)) == len(draws.asked)


# The ledger


def test_a_run_that_was_entered_goes_on_with_its_ledger_only(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    stop_at(BEFORE + 3, draws, PRIVATE, ratings, tmp_path / "run", ledger=ledger)
    with pytest.raises(InvalidArgument, match="was entered into a ledger: name that ledger"):
        resume(PRIVATE, ratings, tmp_path / "run")
    with pytest.raises(BudgetExceeded, match="more than the cap"):
        resume(PRIVATE, ratings, tmp_path / "run", ledger=Ledger(tmp_path / "small.json", Budget(1.0)))
    assert len(draws.asked) == BEFORE + 3
    other = Ledger(tmp_path / "other.json", Budget(6.0))
    resume(PRIVATE, ratings, tmp_path / "run", ledger=other)
    assert len(ledger.entries()) == len(other.entries()) == 1  # a ledger that lacks the run is charged


def test_a_run_that_is_first_entered_when_it_goes_on_is_charged(tmp_path: Path, ratings: Ratings, draws: Draws) -> None:
    stop_at(BEFORE + 3, draws, PRIVATE, ratings, tmp_path / "run")
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    guarantee = resume(PRIVATE, ratings, tmp_path / "run", ledger=ledger).guarantee
    assert [entry.guarantee for entry in ledger.entries()] == [guarantee]


def test_stopped_right_after_it_was_entered_a_run_is_not_entered_again(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))

    def die(_: Journal) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "enter", die)
        with pytest.raises(Killed):
            PRIVATE.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger)
    assert len(ledger.entries()) == 1
    assert len(resume(PRIVATE, ratings, tmp_path / "run", ledger=ledger).history) == 3
    assert len(ledger.entries()) == 1


def test_a_run_that_its_ledger_refused_leaves_the_folder_free(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(BudgetExceeded):
        PRIVATE.fit(
            ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=Ledger(tmp_path / "small.json", Budget(1.0))
        )
    smaller = replace(PRIVATE, budget=Budget(0.9))
    smaller.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=Ledger(tmp_path / "small.json"))


# The real program


def test_killed_for_real_a_private_run_ends_with_its_guarantee(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "dpmf", "train", "synthetic", "--epsilon", "5", "--factors", "4", "--epochs", "60",
        "--items-public", "--out", "release", "--ledger", "ledger.json", "--cap", "6", "--checkpoint", "run",
        "--resume",
    ]  # fmt: skip
    for more in (4, 7, 2):
        before = started_in(tmp_path / "run")
        running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        while started_in(tmp_path / "run") < before + more and running.poll() is None and time.monotonic() - began < 60:
            time.sleep(0.001)
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL, "the run was over before it could be killed"
        assert not (tmp_path / "release").exists()
    assert 13 <= started_in(tmp_path / "run") < 60
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "certified" in done.stdout
    verified = subprocess.run([sys.executable, "-m", "dpmf", "verify", "release", "--json"], cwd=tmp_path,
                              check=True, capture_output=True, text=True)  # fmt: skip
    assert json.loads(verified.stdout)["ok"]
    release = Release.load(tmp_path / "release")
    guarantee, n_items = release.guarantee, len(release.items)
    assert guarantee.events == Plan(n_items, 4, 60, False, 0.5, Budget(5.0)).events()
    assert [entry.guarantee for entry in Ledger(tmp_path / "ledger.json").entries()] == [guarantee]


def started_in(folder: Path) -> int:
    path = folder / "started.json"
    return int(json.loads(path.read_text())["started"]) if path.exists() else 0
