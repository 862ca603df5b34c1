"""Snapshots of a simulation, from which it can be resumed. They hold the secrets of all parties, except their keys.

Keys are never stored: in a resumed simulation every party has new ones.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Snapshot
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.federated.simulate.traffic import Traffic
from dpmf.model import EpochRecord

if TYPE_CHECKING:
    from dpmf.federated.published.simulation import Simulation


def snapshot_of(run: Simulation) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the tensors and the facts of a snapshot."""
    numbers = np.array(sorted(run.users), np.int64)
    users = [run.users[int(number)] for number in numbers]
    nothing = np.zeros((0, run.terms.n_factors))
    shares = [user.fixed for user in users]
    tensors: dict[str, NDArray[Any]] = {
        "numbers": numbers,
        "profiles": np.concatenate([nothing, *(user.profile[None] for user in users)]),
        "piece_counts": np.array([len(share) for share in shares], np.int64),
        "pieces": np.concatenate([nothing.astype(np.int64), *shares]),
        **run.recommender.snapshot(),
        **({} if run.third_party is None else run.third_party.snapshot()),
    }
    facts = {
        "population": run.population.snapshot(),
        "seconds": run.seconds,
        "discarded": run.recommender.discarded,
        "history": [asdict(record) for record in run.history],
        "traffic": asdict(run.traffic),
        "refused": run.refused(),
    }
    return tensors, facts


def restore(run: Simulation, found: Snapshot | None) -> None:
    """Restore the state of a snapshot, if there is one."""
    if found is None:
        return
    if found.epoch > run.scenario.rounds:
        raise InvalidArgument(f"the run has {found.epoch:,} rounds already: ask for at least that number")
    try:
        tensors, facts = found.tensors, found.facts
        run.done, run.resumed = found.epoch, True
        run.recommender.restore(tensors, found.epoch, int(facts["discarded"]))
        if run.third_party is not None:
            run.third_party.restore(tensors, found.epoch)
        ends = np.cumsum(tensors["piece_counts"])
        for place, number in enumerate(tensors["numbers"].tolist()):
            share = tensors["pieces"][ends[place] - tensors["piece_counts"][place] : ends[place]]
            run.user(number).restore(tensors["profiles"][place], share, found.epoch)
        run.population.restore(facts["population"])
        run.seconds = float(facts["seconds"])
        run.history = [EpochRecord(**record) for record in facts["history"]]
        run.traffic, run.refused_before = Traffic.of_json(facts["traffic"]), int(facts["refused"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFile(f"the checkpoint of round {found.epoch} is damaged: {error}") from None
