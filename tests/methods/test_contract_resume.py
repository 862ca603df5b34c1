"""What every method must do when it is stopped: nothing is drawn twice, and what was started stays charged."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import BudgetExceeded, DpmfError, InvalidArgument
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify

from .cases import ALL, CERTIFIED, RATINGS, Case, bits, label_of
from .watch import Killed, Watch

certified = pytest.mark.parametrize("case", CERTIFIED, ids=label_of)
staged = pytest.mark.parametrize(
    "case", [case for case in CERTIFIED if len(case.stages) - case.before > 1], ids=label_of
)  # fmt: skip
others = pytest.mark.parametrize(
    "case", [case for case in ALL if case not in CERTIFIED and case.has_turns], ids=label_of
)


def resumed(case: Case, folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> Model:
    return case.fit(RATINGS, changes, checkpoint=Checkpoint(folder, resume=True), **options)


def killed_at(draw: int, watch: Watch, case: Case, folder: Path, changes: dict[str, Any], **options: Any) -> None:
    """Run until a draw of noise, counted from 1, and die there."""
    watch.drawn.clear()
    watch.kill_at = draw
    with pytest.raises(Killed):
        case.fit(RATINGS, changes, checkpoint=Checkpoint(folder), **options)
    watch.kill_at = None


def stage_of(draw: int, case: Case) -> int:
    """Return the stage of a draw, counted from 1."""
    return int(np.searchsorted(np.cumsum(case.stages), draw))


def interrupt(record: EpochRecord) -> None:
    if record.epoch == 1:
        raise KeyboardInterrupt


def ledger_of(case: Case, path: Path, factor: float = 1.3) -> Ledger:
    """Return a ledger that has room for one run."""
    budget: Budget = case.settings["budget"]
    return Ledger(path, replace(budget, epsilon=factor * budget.epsilon * (2 if case.profiles == "release" else 1)))


@certified
def test_wherever_it_is_killed_no_noise_is_drawn_twice_and_it_is_charged_once(
    case: Case, tmp_path: Path, watch: Watch
) -> None:
    guarantee = case.fit(RATINGS).guarantee
    assert len(watch.drawn) == sum(case.stages)
    for draw in range(1, sum(case.stages) + 1):
        stage, folder, ledger = stage_of(draw, case), tmp_path / f"{draw}", ledger_of(case, tmp_path / f"{draw}.json")
        killed_at(draw, watch, case, folder, {}, ledger=ledger)
        assert [entry.guarantee for entry in ledger.entries()] == [guarantee]
        if stage < max(case.essential, 1):  # without a snapshot nothing is left, either
            with pytest.raises(BudgetExceeded, match=r"budget is spent.*charged again"):
                resumed(case, folder, ledger=ledger)
            with pytest.raises(InvalidArgument, match="choose another folder"):
                case.fit(RATINGS, checkpoint=Checkpoint(folder), ledger=ledger)
            assert len(watch.drawn) == draw
        else:
            model = resumed(case, folder, ledger=ledger)
            assert len(set(watch.drawn)) == len(watch.drawn)
            lost = int(np.cumsum(case.stages)[stage]) - draw  # what was left of the stage is given up, too
            assert len(watch.drawn) == sum(case.stages) - lost
            rounds = range(case.before, len(case.stages))
            expected = [place - case.before + 1 for place in rounds if place != stage]
            assert [record.epoch for record in model.history] == expected
            assert model.guarantee == guarantee
            assert verify(model.guarantee).ok
            assert np.isfinite(model.release.item_factors).all()
            assert bits(resumed(case, folder, ledger=ledger)) == bits(model)  # it is over, and draws nothing
            assert len(watch.drawn) == sum(case.stages) - lost
        assert [entry.guarantee for entry in ledger.entries()] == [guarantee]


@certified
def test_with_seeded_noise_it_resumes_to_the_same_bits_wherever_it_is_killed(
    case: Case, tmp_path: Path, watch: Watch
) -> None:
    changes = case.harder()[0] | {"noise_seed": 4}
    whole = case.fit(RATINGS, changes)
    for draw in range(1, sum(case.stages) + 1):
        killed_at(draw, watch, case, tmp_path / f"{draw}", changes)
        model = resumed(case, tmp_path / f"{draw}", changes, n_threads=3)
        assert bits(model) == bits(whole)
        assert not model.guarantee.certified
        assert [one.train_rmse for one in model.history] == [one.train_rmse for one in whole.history]


@staged
def test_from_disk_it_resumes_to_the_same_bits_in_the_way_it_began(
    case: Case, tmp_path: Path, stored: StoredRatings
) -> None:
    plan, changes = Checkpoint(tmp_path / "run", resume=True), {"noise_seed": 4}
    with pytest.raises(KeyboardInterrupt):
        case.fit(stored, changes, checkpoint=plan, callbacks=[interrupt])
    with pytest.raises(InvalidArgument, match=r"data: '[0-9a-f]{8}, streamed' there, '[0-9a-f]{8}' here"):
        case.fit(RATINGS, changes, checkpoint=plan)
    assert bits(case.fit(stored, changes, checkpoint=plan)) == bits(case.fit(RATINGS, changes))


@staged
def test_stopped_between_two_stages_it_has_lost_nothing(case: Case, tmp_path: Path, watch: Watch) -> None:
    with pytest.raises(KeyboardInterrupt):
        case.fit(RATINGS, checkpoint=Checkpoint(tmp_path / "run"), callbacks=[interrupt])
    heard: list[int] = []
    model = resumed(case, tmp_path / "run", callbacks=[lambda record: heard.append(record.epoch)])
    assert heard[0] == 2
    assert [record.epoch for record in model.history] == [1, *heard]
    assert len(set(watch.drawn)) == len(watch.drawn) == sum(case.stages)


@staged
def test_stopped_in_every_stage_but_the_first_it_still_ends(case: Case, tmp_path: Path, watch: Watch) -> None:
    killed_at(case.stages[0] + 1, watch, case, tmp_path / "run", {})
    for _ in case.stages[2:]:
        watch.kill_at = len(watch.drawn) + 1
        with pytest.raises(Killed):
            resumed(case, tmp_path / "run")
    watch.kill_at = None
    model = resumed(case, tmp_path / "run")
    assert len(set(watch.drawn)) == len(watch.drawn) == len(case.stages) - 1 + case.stages[0]
    assert [record.epoch for record in model.history] == ([] if case.before else [1])
    assert verify(model.guarantee).ok


@staged
def test_of_two_copies_of_a_checkpoint_one_continues(case: Case, tmp_path: Path, watch: Watch) -> None:
    ledger = ledger_of(case, tmp_path / "ledger.json")
    with pytest.raises(KeyboardInterrupt):
        case.fit(RATINGS, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger, callbacks=[interrupt])
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    model = resumed(case, tmp_path / "copy", ledger=ledger)
    before = len(watch.drawn)
    with pytest.raises(BudgetExceeded, match="elsewhere"):
        resumed(case, tmp_path / "run", ledger=ledger)
    shutil.copytree(tmp_path / "copy", tmp_path / "finished")
    assert bits(resumed(case, tmp_path / "finished", ledger=ledger)) == bits(model)  # which draws nothing
    assert len(watch.drawn) == before
    assert len(ledger.entries()) == 1


@certified
def test_another_run_is_refused_before_any_noise(case: Case, tmp_path: Path, watch: Watch) -> None:
    case.fit(RATINGS, checkpoint=Checkpoint(tmp_path / "run"))
    before, values = len(watch.drawn), RATINGS.values.copy()
    values[7] = 1 if values[7] > 1 else 2
    plan, budget = Checkpoint(tmp_path / "run", resume=True), case.settings["budget"]
    other = replace(budget, neighbours="replace") if budget.unit == "user" else replace(budget, delta=1e-7)
    with pytest.raises(InvalidArgument, match=r"another run \(budget: "):
        case.fit(RATINGS, {"budget": other}, checkpoint=plan)
    with pytest.raises(InvalidArgument, match="another run"):
        case.fit(RATINGS, {"seed": 9}, checkpoint=plan)
    with pytest.raises(InvalidArgument, match="another run"):
        case.fit(RATINGS, {"noise_seed": 9}, checkpoint=plan)
    with pytest.raises(InvalidArgument, match="another run"):
        case.fit(replace(RATINGS, values=values), checkpoint=plan)
    if case.method != "objective":
        with pytest.raises(InvalidArgument, match="another run"):
            case.fit(RATINGS, checkpoint=plan, user_budgets={RATINGS.user_ids[3]: 0.0})
    assert len(watch.drawn) == before


@certified
def test_what_is_stored_is_made_of_noisy_sums_alone(case: Case, tmp_path: Path, watch: Watch) -> None:
    """Other ratings that lead to the same releases lead to the same state, byte for byte."""
    case.fit(RATINGS, {"noise_seed": 1}, checkpoint=Checkpoint(tmp_path / "one"))
    watch.script = watch.records
    other = replace(RATINGS, values=(6 - RATINGS.values).astype(np.float32))
    if case.method != "objective":  # for which it is public who rated what
        other = other.select(np.arange(len(other)) % 3 > 0)
    case.fit(other, {"noise_seed": 1}, checkpoint=Checkpoint(tmp_path / "other"))
    one, two = (sorted((tmp_path / name).glob("epoch-*"))[-1] / "state.safetensors" for name in ("one", "other"))
    assert one.read_bytes() == two.read_bytes()


# Runs that certify nothing


@others
def test_without_a_certificate_it_resumes_to_the_same_bits(case: Case, tmp_path: Path) -> None:
    changes, plan = case.seeded(4), Checkpoint(tmp_path / "run", resume=True)

    def stop(record: EpochRecord) -> None:
        if record.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        case.fit(RATINGS, changes, checkpoint=plan, callbacks=[stop])
    heard: list[int] = []
    model = case.fit(RATINGS, changes, checkpoint=plan, n_threads=3, callbacks=[lambda one: heard.append(one.epoch)])
    assert heard[0] in (2, 3)  # no snapshot is begun while another is being written
    whole = case.fit(RATINGS, changes, n_threads=1)
    assert heard[-1] == len(whole.history)
    assert bits(model) == bits(whole)
    assert [one.train_rmse for one in model.history] == [one.train_rmse for one in whole.history]
    heard.clear()
    again = case.fit(RATINGS, changes, checkpoint=plan, callbacks=[lambda one: heard.append(one.epoch)])
    assert bits(again) == bits(model)
    assert not heard  # it was over
    for wrong in ({"n_factors": 3}, {"seed": 9}):
        with pytest.raises(DpmfError, match="another run"):
            case.fit(RATINGS, {**changes, **wrong}, checkpoint=plan)
    values = RATINGS.values.copy()
    values[7] = 1 if values[7] > 1 else 2
    with pytest.raises(DpmfError, match="another run"):
        case.fit(replace(RATINGS, values=values), changes, checkpoint=plan)
