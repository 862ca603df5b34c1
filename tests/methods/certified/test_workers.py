"""People on the workers of a cluster: the bits of one process, whoever is lost, and nobody's ratings on the way."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.shares import shares_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.certified.answer import Asked
from dpmf.methods.certified.questions import Headcount
from dpmf.methods.certified.workers import people_of
from dpmf.privacy.ledger import Ledger
from dpmf.ratings.store.pieces import MemorySource

from ..cases import CERTIFIED, PAPER, PLAIN, RATINGS, Case, label_of, release_bits
from ..clusters import Pretended

SEED = {"noise_seed": 5}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path_factory.mktemp("cluster") / "store")


@pytest.mark.parametrize("case", CERTIFIED, ids=label_of)
def test_releases_and_errors_are_those_of_one_process(case: Case, store: StoredRatings) -> None:
    changes, options = case.harder()
    settings = {**changes, **SEED}
    here = case.fit(RATINGS, settings, n_threads=2, **options)
    for n in (1, 2, 4):
        there = case.fit(store, settings, executor=Pretended(n=n), n_threads=n, **options)
        assert release_bits(there) == release_bits(here)
        assert [one.train_rmse for one in there.history] == [one.train_rmse for one in here.history]
        assert not len(there.user_ids)
        assert there.guarantee.to_json() == here.guarantee.to_json()


@pytest.mark.parametrize("case", PLAIN[2:4], ids=label_of)
def test_exact_sums_make_the_same_ranking(case: Case, store: StoredRatings) -> None:
    here, there = case.fit(RATINGS), case.fit(store, executor=Pretended(n=3))
    assert release_bits(there) == release_bits(here)


@pytest.mark.parametrize("case", [CERTIFIED[0], CERTIFIED[5], CERTIFIED[12]], ids=label_of)
def test_a_lost_worker_is_asked_again_for_the_same_sum(case: Case, store: StoredRatings, tmp_path: Path) -> None:
    here = case.fit(RATINGS, SEED, n_threads=1)
    executor, ledger = Pretended(n=2, losses=(0, 2, 3, 7)), Ledger(tmp_path / "ledger", case.settings["budget"])
    there = case.fit(store, SEED, executor=executor, checkpoint=Checkpoint(tmp_path / "run"))
    assert release_bits(there) == release_bits(here)
    case.fit(store, executor=Pretended(n=2, losses=(0, 2, 3, 7)), ledger=ledger)
    assert len(ledger.entries()) == 1


def test_a_run_can_be_resumed_on_one_machine_and_back(store: StoredRatings, tmp_path: Path) -> None:
    case, whole = CERTIFIED[0], CERTIFIED[0].fit(store, SEED)
    stopped = Checkpoint(tmp_path / "run", resume=True)

    class Stopped(Exception):
        pass

    def stop(record: Any) -> None:
        if record.epoch == 1:
            raise Stopped

    with pytest.raises(Stopped):
        case.fit(store, SEED, executor=Pretended(n=2), checkpoint=stopped, callbacks=[stop])
    assert release_bits(case.fit(store, SEED, checkpoint=stopped)) == release_bits(whole)


def test_what_a_worker_sends_is_as_large_for_any_number_of_people(store: StoredRatings) -> None:
    asked = [Asked(Headcount("people"), 1000.0)]
    sizes = []
    for n in (1, 8):
        share = shares_of(store, n)[0]
        count = share.last - share.first
        people = people_of(share, np.arange(count), np.ones(count), (None, None), 0, 1)
        sizes.append(len(pickle.dumps(people.answered(asked))))
    assert sizes[0] == sizes[1]


def test_what_cannot_run_on_a_cluster_is_refused(store: StoredRatings) -> None:
    with pytest.raises(InvalidArgument, match="sgld cannot run on a cluster here: a claim about it needs all ratings"):
        PAPER[0].fit(store, executor=Pretended())
    with pytest.raises(InvalidArgument, match="a cluster reads ratings from a store"):
        CERTIFIED[0].fit(RATINGS, executor=Pretended())
