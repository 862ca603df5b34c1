"""SGD on the workers of a cluster: the bits of one machine, through losses and stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.methods import SGD
from dpmf.model import EpochRecord, Model
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

from ..clusters import Pretended

METHOD = SGD(n_factors=10, n_epochs=4, seed=5)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    source = MemorySource(make(300, 120, mean_ratings=30))
    return StoredRatings.build(source, tmp_path_factory.mktemp("sgd") / "store", size=5, memory=1 << 30)


@pytest.fixture(scope="module")
def here(store: StoredRatings) -> Model:
    return METHOD.fit(store, n_threads=2)


def learnt(model: Model) -> tuple[Any, ...]:
    release, errors = model.release, [one.train_rmse for one in model.history]
    return release.item_factors.tobytes(), release.item_biases.tobytes(), release.mean, errors


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_items_and_errors_are_those_of_one_machine(store: StoredRatings, here: Model, n: int) -> None:
    seen: list[EpochRecord] = []
    there = METHOD.fit(store, executor=Pretended(n=n), n_threads=2, callbacks=[seen.append])
    assert learnt(there) == learnt(here)
    assert there.release.configuration == here.release.configuration
    assert tuple(seen) == there.history
    assert not len(there.user_ids)


def test_items_in_sixteen_bits_travel_as_they_are(store: StoredRatings) -> None:
    method = SGD(n_factors=20, n_epochs=2, storage="bfloat16")
    assert learnt(method.fit(store, executor=Pretended(n=2))) == learnt(method.fit(store))


@pytest.mark.parametrize("every", [None, 1, 3])
def test_lost_workers_send_all_back_to_the_snapshot_or_to_the_start(
    store: StoredRatings, here: Model, every: int | None, tmp_path: Path
) -> None:
    random = np.random.default_rng(every)
    losses = tuple(random.choice(40, 10, replace=False).tolist())
    seen: list[int] = []
    checkpoint = None if every is None else Checkpoint(tmp_path / "run", every_epochs=every)
    executor = Pretended(n=3, losses=losses)
    there = METHOD.fit(
        store, executor=executor, checkpoint=checkpoint, callbacks=[lambda record: seen.append(record.epoch)]
    )
    assert learnt(there) == learnt(here)
    assert seen == [1, 2, 3, 4]
    assert executor.started[0].n_calls > 3 + 4 * 3 + 5 + len(losses)  # epochs were repeated


def test_workers_that_never_stay_are_given_up(store: StoredRatings) -> None:
    with pytest.raises(DpmfError, match="workers were lost 21 times before epoch 1 was over"):
        METHOD.fit(store, executor=Pretended(n=2, losses=range(10_000)))


@pytest.mark.parametrize("others", [1, 3])
def test_a_run_is_resumed_by_another_number_of_workers(
    store: StoredRatings, here: Model, others: int, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path / "run", resume=True)
    stopped = METHOD.fit(store, executor=Pretended(n=2), checkpoint=checkpoint, callbacks=[lambda one: one.epoch == 2])
    assert len(stopped.history) == 2
    assert learnt(METHOD.fit(store, executor=Pretended(n=others), checkpoint=checkpoint)) == learnt(here)
    with pytest.raises(InvalidArgument, match="is a checkpoint of another run"):
        METHOD.fit(store, checkpoint=checkpoint)


def test_damaged_snapshots_are_refused(store: StoredRatings, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run", resume=True)
    METHOD.fit(store, executor=Pretended(n=2), checkpoint=checkpoint, callbacks=[lambda one: True])
    path = tmp_path / "run" / "epoch-000001" / "tier-0003.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedFile, match=r"tier-0003\.safetensors is damaged, or not on"):
        METHOD.fit(store, executor=Pretended(n=2), checkpoint=checkpoint)


def test_snapshots_that_others_write_elsewhere_are_an_error(
    store: StoredRatings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {"strip-0000.safetensors": "0" * 64}
    monkeypatch.setattr("dpmf.engine.spread.SpreadGrid.save", lambda self, folder: elsewhere)
    with pytest.raises(DpmfError, match="is not the same folder everywhere, strip-0000"):
        METHOD.fit(store, executor=Pretended(n=2), checkpoint=Checkpoint(tmp_path / "run"))
    assert not list((tmp_path / "run").glob("epoch-*"))


def test_more_workers_than_strips_are_refused(store: StoredRatings) -> None:
    with pytest.raises(InvalidArgument, match="6 workers cannot share 5 strips of users: use 5 of them at most"):
        METHOD.fit(store, executor=Pretended(n=6))
    with pytest.raises(InvalidArgument, match="validation needs the ratings in memory"):
        SGD(validation=0.1).fit(store, executor=Pretended(n=2))


def test_training_that_diverges_is_an_error_there_too(store: StoredRatings) -> None:
    with pytest.raises(DpmfError, match="training diverged in epoch"):
        SGD(n_factors=4, n_epochs=30, learning_rate=50.0).fit(store, executor=Pretended(n=2))
