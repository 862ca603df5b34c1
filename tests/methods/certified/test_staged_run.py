"""Stages of a certified run: what is on disk before noise is drawn, what a resumed run makes of it, and the ledger."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf import Checkpoint, GaussianGD, Ratings
from dpmf.engine.journal import Journal
from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods.als import ALS
from dpmf.methods.als.plan import ALSPlan
from dpmf.methods.certified import run as certified_run
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.certified.questions import Fit
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings.synthetic import make

from ..cases import bits
from ..watch import Killed, Watch

Program = Callable[..., subprocess.CompletedProcess[str]]

METHOD = ALS(n_factors=2, n_epochs=3, budget=Budget(5.0))
DRAWS = (3, 1, 2, 2, 2)  # of noise: counts, a pass over biases, and rounds
BEFORE = sum(DRAWS[:2])


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(120, 30, mean_ratings=12)


def stop_at(draw: int, watch: Watch, method: ALS, ratings: Ratings, folder: Path, **more: Any) -> None:
    """Run until a draw, counted from 1, and die there."""
    watch.kill_at = draw
    with pytest.raises(Killed):
        method.fit(ratings, checkpoint=Checkpoint(folder), **more)
    watch.kill_at = None


def resume(method: ALS, ratings: Ratings, folder: Path, **more: Any) -> Model:
    return method.fit(ratings, checkpoint=Checkpoint(folder, resume=True), **more)


# What is on disk


def test_it_is_on_disk_that_a_stage_was_started_before_noise_is_drawn(
    tmp_path: Path, ratings: Ratings, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, draw = os.fsync, watch.draw

    def flush(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().name.startswith(".started.json"):
            order.append("mark")
        fsync(handle)

    def note(label: str, index: int) -> None:
        order.append("noise")
        draw(label, index)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(watch, "draw", note)
    METHOD.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    assert order == ["mark", *(what for count in DRAWS for what in ("mark", *["noise"] * count))]


def test_an_old_snapshot_put_back_does_not_bring_back_what_was_spent(
    tmp_path: Path, ratings: Ratings, watch: Watch
) -> None:
    run = tmp_path / "run"
    stop_at(BEFORE + 2, watch, METHOD, ratings, run)
    old = next(run.glob("epoch-*"))
    shutil.copytree(old, tmp_path / old.name)
    resume(METHOD, ratings, run)
    shutil.rmtree(next(run.glob("epoch-*")))
    shutil.copytree(tmp_path / old.name, run / old.name)
    before = len(watch.drawn)
    model = resume(METHOD, ratings, run)
    assert len(watch.drawn) == before
    assert model.history == ()


def test_marks_older_than_the_snapshot_are_refused(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    run = tmp_path / "run"
    stop_at(BEFORE + 2, watch, METHOD, ratings, run)
    old = (run / "started.json").read_bytes()
    resume(METHOD, ratings, run)
    (run / "started.json").write_bytes(old)
    before = len(watch.drawn)
    with pytest.raises(DamagedFile, match="3 were started"):
        resume(METHOD, ratings, run)
    (run / "started.json").unlink()
    with pytest.raises(DamagedFile, match="what the run has spent is unknown"):
        resume(METHOD, ratings, run)
    assert len(watch.drawn) == before


# What a run makes of what is left


def test_what_is_lost_is_said_without_a_word_about_people(
    tmp_path: Path, ratings: Ratings, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    stop_at(BEFORE + 4, watch, METHOD, ratings, tmp_path / "run")
    with caplog.at_level(logging.DEBUG, logger="dpmf"):
        resume(METHOD, ratings, tmp_path / "run")
    assert caplog.messages == ["round 2 was lost when the run was stopped: it stays charged, and is left out"]


@pytest.mark.parametrize("draw", [4, BEFORE + 1, BEFORE + 3, sum(DRAWS)])
@pytest.mark.parametrize("fields", [{}, {"moments": "per-item", "cap": 5}])
def test_whatever_is_lost_people_fit_the_release_as_newcomers_do(
    tmp_path: Path, ratings: Ratings, watch: Watch, draw: int, fields: dict[str, Any]
) -> None:
    method = replace(METHOD, **fields)
    stop_at(draw, watch, method, ratings, tmp_path / "run")
    model = resume(method, ratings, tmp_path / "run")
    everything = ratings.catalogue.ids
    for user in (0, 17):
        items, values = ratings.of_user(user)
        mine = dict(zip([everything[int(item)] for item in items], values.tolist(), strict=True))
        there = model.predict(ratings.user_ids[user], everything)
        np.testing.assert_allclose(model.release.fold_in(mine).predict(everything), there, atol=1e-3)


def test_factors_that_a_run_chose_are_those_it_resumes_with(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    method = replace(METHOD, n_factors=None, budget=Budget(40.0))
    stop_at(BEFORE + 3, watch, method, ratings, tmp_path / "run")  # after the counts, from which they were chosen
    model = resume(method, ratings, tmp_path / "run")
    assert 0 < model.release.n_factors == model.user_factors.shape[1] < 16


@pytest.mark.parametrize("draw", [BEFORE + 1, BEFORE + 2 * 5])
def test_a_lost_round_costs_little_accuracy(tmp_path: Path, watch: Watch, draw: int) -> None:
    train, test = make(2000, 200, mean_ratings=50).split(0.1, seed=2)
    method = ALS(n_factors=4, n_epochs=5, budget=Budget(20.0))
    whole = rmse(prediction_errors(method.fit(train), test))
    watch.drawn.clear()
    stop_at(draw, watch, method, train, tmp_path / "run")
    assert rmse(prediction_errors(resume(method, train, tmp_path / "run"), test)) < 1.03 * whole


def test_stopped_while_people_compute_their_part_it_has_lost_nothing(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was released is stored before."""
    method, calls = replace(METHOD, noise_seed=4), list[bool]()
    whole = method.fit(ratings)

    class Dying(RatingsAnswerer):
        def error(self, fit: Fit | None) -> float:
            calls.append(fit is not None)
            if sum(calls) == 3:
                raise Killed
            return super().error(fit)

    with monkeypatch.context() as patch:
        patch.setattr(certified_run, "RatingsAnswerer", Dying)
        with pytest.raises(Killed):
            method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    assert (tmp_path / "run" / "epoch-000005").exists()
    assert bits(whole) == bits(resume(method, ratings, tmp_path / "run"))


# Which run may be resumed


def test_checkpoints_of_plain_and_certified_runs_are_told_apart(tmp_path: Path, ratings: Ratings) -> None:
    plain = replace(METHOD, budget=Budget(float("inf")))
    for first, second, name in ((plain, METHOD, "plain"), (METHOD, plain, "certified")):
        first.fit(ratings, checkpoint=Checkpoint(tmp_path / name))
        with pytest.raises(InvalidArgument, match="another run"):
            resume(second, ratings, tmp_path / name)


def test_another_method_is_named(tmp_path: Path, ratings: Ratings) -> None:
    METHOD.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"))
    with pytest.raises(
        InvalidArgument, match=r"\(of the method private als there, certified gaussian here\): use the same method"
    ):
        GaussianGD(budget=Budget(5.0)).fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True))


def test_other_settings_are_refused_with_and_without_a_snapshot(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(20.0))
    for name, draw in (("counts", 2), ("rounds", 8)):
        watch.drawn.clear()
        stop_at(draw, watch, METHOD, ratings, tmp_path / name)
        for wrong in ({"n_epochs": 4}, {"n_factors": 3}, {"cap": 9}, {"feedback": "implicit"}):
            with pytest.raises(InvalidArgument, match="another run"):
                resume(replace(METHOD, **wrong), ratings, tmp_path / name, ledger=ledger)
        assert len(watch.drawn) == draw
    assert ledger.entries() == ()


def test_the_same_user_budgets_are_the_same_run(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    budgets = {ratings.user_ids[3]: 1.0}
    stop_at(BEFORE + 3, watch, METHOD, ratings, tmp_path / "run", user_budgets=budgets)
    with pytest.raises(InvalidArgument, match="another run"):
        resume(METHOD, ratings, tmp_path / "run", user_budgets={ratings.user_ids[3]: 2.0})
    assert verify(resume(METHOD, ratings, tmp_path / "run", user_budgets=budgets).guarantee).ok


def test_two_cannot_resume_at_once(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    stop_at(BEFORE + 3, watch, METHOD, ratings, tmp_path / "run")
    refused: list[str] = []

    def resume_too(_: object) -> None:
        with pytest.raises(InvalidArgument, match="another process is using") as error:
            resume(METHOD, ratings, tmp_path / "run")
        refused.append(str(error.value))

    resume(METHOD, ratings, tmp_path / "run", callbacks=[resume_too])
    assert len(refused) == 1
    assert len(set(watch.drawn)) == len(watch.drawn)


# The ledger


def test_a_run_that_was_entered_resumes_with_its_ledger_only(tmp_path: Path, ratings: Ratings, watch: Watch) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    stop_at(BEFORE + 3, watch, METHOD, ratings, tmp_path / "run", ledger=ledger)
    with pytest.raises(InvalidArgument, match="was entered into a ledger: name that ledger"):
        resume(METHOD, ratings, tmp_path / "run")
    with pytest.raises(BudgetExceeded, match="more than the cap"):
        resume(METHOD, ratings, tmp_path / "run", ledger=Ledger(tmp_path / "small.json", Budget(1.0)))
    assert len(watch.drawn) == BEFORE + 3
    other = Ledger(tmp_path / "other.json", Budget(6.0))
    resume(METHOD, ratings, tmp_path / "run", ledger=other)
    assert len(ledger.entries()) == len(other.entries()) == 1  # a ledger that lacks the run is charged


def test_a_run_that_is_first_entered_when_it_is_resumed_is_charged(
    tmp_path: Path, ratings: Ratings, watch: Watch
) -> None:
    stop_at(BEFORE + 3, watch, METHOD, ratings, tmp_path / "run")
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))
    guarantee = resume(METHOD, ratings, tmp_path / "run", ledger=ledger).guarantee
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
            METHOD.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger)
    assert len(ledger.entries()) == 1
    assert len(resume(METHOD, ratings, tmp_path / "run", ledger=ledger).history) == 3
    assert len(ledger.entries()) == 1


def test_a_run_that_its_ledger_refused_leaves_the_folder_free(tmp_path: Path, ratings: Ratings) -> None:
    small = Ledger(tmp_path / "small.json", Budget(1.0))
    with pytest.raises(BudgetExceeded):
        METHOD.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=small)
    replace(METHOD, budget=Budget(0.9)).fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=small)


def test_a_backup_of_a_run_that_was_never_stopped_does_not_continue_either(tmp_path: Path, ratings: Ratings) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(6.0))

    def back_up(record: Any) -> None:
        if record.epoch == 2:
            shutil.copytree(tmp_path / "run", tmp_path / "backup")

    METHOD.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger, callbacks=[back_up])
    with pytest.raises(BudgetExceeded, match="elsewhere"):
        resume(METHOD, ratings, tmp_path / "backup", ledger=ledger)


# The real program


def test_killed_for_real_a_certified_run_ends_with_its_guarantee(
    program: Program, signalled: Program, tmp_path: Path
) -> None:
    command = [
        "train", "synthetic", "--for", "ratings", "--epsilon", "5", "--factors", "4", "--epochs", "60",
        "--items-public", "--out", "release", "--ledger", "ledger.json", "--cap", "6", "--checkpoint", "run",
        "--resume",
    ]  # fmt: skip
    for n in (6, 9):
        assert signalled(*command, kind="os.rename", start="started.json", n=n).returncode == -signal.SIGKILL
        assert not (tmp_path / "release").exists()
    assert 11 <= started_in(tmp_path / "run") < 60
    done = program(*command, check=True)
    assert "certified" in done.stdout
    release = Release.load(tmp_path / "release")
    guarantee, n_items = release.guarantee, len(release.items)
    assert verify(guarantee).ok
    assert guarantee.events == ALSPlan(n_items, FactorRule.exactly(4), 60, 0.5, Budget(5.0)).events()
    assert [entry.guarantee for entry in Ledger(tmp_path / "ledger.json").entries()] == [guarantee]


def started_in(folder: Path) -> int:
    path = folder / "started.json"
    return int(json.loads(path.read_text())["started"]) if path.exists() else 0
