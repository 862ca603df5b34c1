"""Plain least squares on the workers of a cluster: the bits of one machine, through losses and stops."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods import ALS, Joint, Method
from dpmf.methods.als.spread import Profiles
from dpmf.model import Model
from dpmf.privacy import Budget
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

from ..cases import release_bits
from ..clusters import Pretence, Pretended

RATINGS = make(300, 120, mean_ratings=30)
NOTHING = Budget(math.inf)
EXPLICIT = ALS(n_factors=10, n_epochs=4, seed=5, budget=NOTHING)
IMPLICIT = ALS(n_factors=10, n_epochs=4, seed=5, feedback="implicit", budget=NOTHING)
JOINT = Joint(n_factors=3, n_epochs=2, budget=NOTHING)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path_factory.mktemp("als") / "store", size=5)


def learnt(model: Model) -> tuple[Any, ...]:
    return (*release_bits(model), [one.train_rmse for one in model.history], model.release.configuration)


@pytest.mark.parametrize("method", [EXPLICIT, IMPLICIT, JOINT], ids=["explicit", "implicit", "joint"])
def test_items_and_errors_are_those_of_one_machine(store: StoredRatings, method: Method) -> None:
    here = method.fit(RATINGS, n_threads=2)
    for n in (1, 2, 5):
        there = method.fit(store, executor=Pretended(n=n), n_threads=2)
        assert learnt(there) == learnt(here)
        assert not len(there.user_ids)


def test_counts_weigh_there_as_they_do_here(tmp_path: Path) -> None:
    values = RATINGS.values.astype(np.float32) ** 2
    counted = Ratings.of(RATINGS.users, RATINGS.items, values, scale=Scale.of_counts())
    store = StoredRatings.build(MemorySource(counted), tmp_path / "store", size=3)
    for method in (IMPLICIT, ALS(n_factors=0, feedback="implicit", budget=NOTHING)):
        assert learnt(method.fit(store, executor=Pretended(n=2))) == learnt(method.fit(counted))


@pytest.mark.parametrize("every", [None, 1, 3])
def test_lost_workers_send_all_back_to_the_snapshot_or_to_the_start(
    store: StoredRatings, every: int | None, tmp_path: Path
) -> None:
    losses = tuple(np.random.default_rng(every).choice(60, 8, replace=False).tolist())
    checkpoint = None if every is None else Checkpoint(tmp_path / "run", every_epochs=every)
    executor = Pretended(n=3, losses=losses)
    there = IMPLICIT.fit(store, executor=executor, checkpoint=checkpoint)  # whose users go on from where they are
    assert learnt(there) == learnt(IMPLICIT.fit(RATINGS))
    assert executor.started[0].n_calls > 4 * 9 + 6 + len(losses)


def test_a_run_is_resumed_by_another_number_of_workers(store: StoredRatings, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run", resume=True)
    IMPLICIT.fit(store, executor=Pretended(n=2), checkpoint=checkpoint, callbacks=[lambda one: one.epoch == 2])
    there = IMPLICIT.fit(store, executor=Pretended(n=3), checkpoint=checkpoint)
    assert learnt(there) == learnt(IMPLICIT.fit(RATINGS))


def test_nobodys_factors_come_to_whoever_leads_the_run(store: StoredRatings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray hands results of less than 100 kB to whoever asked for them, so those with users are never as small."""
    call, small, many = Pretence._call, list[int](), list[int]()

    def noting(self: Pretence, worker: int, method: str, arguments: tuple[Any, ...]) -> Any:
        result = call(self, worker, method, arguments)
        (many if isinstance(result, Profiles) else small).append(len(pickle.dumps(result, protocol=5)))
        return result

    monkeypatch.setattr(Pretence, "_call", noting)
    EXPLICIT.fit(store, executor=Pretended(n=2))
    assert len(many) == 2 * EXPLICIT.configuration()["n_epochs"]
    assert min(many) > 100 * 1024


def test_a_cap_needs_all_ratings_in_one_place(store: StoredRatings) -> None:
    with pytest.raises(InvalidArgument, match="cap=5 needs all ratings in one place without privacy"):
        ALS(n_factors=2, cap=5, budget=NOTHING).fit(store, executor=Pretended())
