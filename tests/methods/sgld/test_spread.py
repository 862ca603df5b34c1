"""Posterior sampling on the workers of a cluster: the bits of one machine, through losses and stops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.methods import SGLD
from dpmf.model import Model
from dpmf.privacy import Budget
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

from ..clusters import Pretended

NOTHING = Budget(math.inf)
METHOD = SGLD(n_factors=10, n_epochs=5, n_samples=3, seed=5, budget=NOTHING)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    source = MemorySource(make(200, 90, mean_ratings=20))
    return StoredRatings.build(source, tmp_path_factory.mktemp("sgld") / "store", size=5, memory=1 << 30)


@pytest.fixture(scope="module")
def here(store: StoredRatings) -> Model:
    return METHOD.fit(store, n_threads=2)


def learnt(model: Model) -> tuple[Any, ...]:
    release, errors = model.release, [one.train_rmse for one in model.history]
    return release.item_factors.tobytes(), release.item_biases.tobytes(), release.mean, errors


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_items_and_errors_are_those_of_one_machine(store: StoredRatings, here: Model, n: int) -> None:
    there = METHOD.fit(store, executor=Pretended(n=n), n_threads=2)
    assert learnt(there) == learnt(here)
    assert there.release.configuration == here.release.configuration
    assert not len(there.user_ids)


@pytest.mark.parametrize("changes", [{"n_factors": 1}, {"table": 0}, {"temperature": 0.5, "n_samples": 1}])
def test_whatever_the_settings(store: StoredRatings, changes: dict[str, Any]) -> None:
    method = METHOD.set_params(**{"n_epochs": 2, "n_samples": 2, **changes})
    assert learnt(method.fit(store, executor=Pretended(n=2))) == learnt(method.fit(store))


def test_items_that_nobody_rated_stay_where_they_are(tmp_path: Path) -> None:
    rated = make(60, 30, mean_ratings=6)
    few = rated.select(rated.items % 3 != 0)
    store = StoredRatings.build(MemorySource(few), tmp_path / "store", size=4, memory=1 << 30)
    there = METHOD.fit(store, executor=Pretended(n=3))
    assert learnt(there) == learnt(METHOD.fit(store))
    assert not there.release.item_factors[::3].any()


@pytest.mark.parametrize("every", [None, 1, 2])
def test_lost_workers_change_nothing(store: StoredRatings, here: Model, every: int | None, tmp_path: Path) -> None:
    losses = tuple(np.random.default_rng(every).choice(45, 10, replace=False).tolist())
    checkpoint = None if every is None else Checkpoint(tmp_path / "run", every_epochs=every)
    executor = Pretended(n=3, losses=losses)
    assert learnt(METHOD.fit(store, executor=executor, checkpoint=checkpoint)) == learnt(here)
    assert executor.started[0].n_calls > 3 + 5 * 3 + 3 + len(losses)  # epochs were repeated


@pytest.mark.parametrize("stop", [1, 4])
def test_a_run_is_resumed_by_another_number_of_workers(
    store: StoredRatings, here: Model, stop: int, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path / "run", resume=True)
    stopped = METHOD.fit(
        store, executor=Pretended(n=2), checkpoint=checkpoint, callbacks=[lambda one: one.epoch == stop]
    )
    assert learnt(stopped) == learnt(METHOD.fit(store, callbacks=[lambda one: one.epoch == stop]))
    assert learnt(METHOD.fit(store, executor=Pretended(n=3), checkpoint=checkpoint)) == learnt(here)


def test_damaged_snapshots_and_runs_that_cannot_be_there_are_refused(store: StoredRatings, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run", resume=True)
    METHOD.fit(store, executor=Pretended(n=2), checkpoint=checkpoint, callbacks=[lambda one: True])
    path = tmp_path / "run" / "epoch-000001" / "average-0003.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedFile, match=r"average-0003\.safetensors is damaged, or not on"):
        METHOD.fit(store, executor=Pretended(n=2), checkpoint=checkpoint)
    with pytest.raises(InvalidArgument, match="sgld cannot run on a cluster here: a claim about it needs all ratings"):
        SGLD(budget=Budget(5.0), mode="paper").fit(store, executor=Pretended(n=2))
    with pytest.raises(DpmfError, match="the chain diverged in epoch"):
        SGLD(n_factors=2, learning_rate=1.0, regularization=0.1, n_epochs=30, budget=NOTHING).fit(
            store, executor=Pretended(n=2)
        )
