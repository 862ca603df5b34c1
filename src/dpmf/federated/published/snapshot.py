"""Keeping a simulation, so that it can be stopped and gone on with: secrets of all its parties, as it holds them all.

Keys are not kept: after a stop everybody has new ones.
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


def kept(run: Simulation) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return what a snapshot keeps: arrays, and facts."""
    numbers = np.array(sorted(run.users), np.int64)
    users = [run.users[int(number)] for number in numbers]
    nothing = np.zeros((0, run.terms.n_factors))
    pieces = [user.fixed for user in users]
    tensors: dict[str, NDArray[Any]] = {
        "numbers": numbers,
        "profiles": np.concatenate([nothing, *(user.profile[None] for user in users)]),
        "piece_counts": np.array([len(piece) for piece in pieces], np.int64),
        "pieces": np.concatenate([nothing.astype(np.int64), *pieces]),
        **run.recommender.kept(),
        **({} if run.third_party is None else run.third_party.kept()),
    }
    facts = {
        "population": run.population.state(),
        "seconds": run.seconds,
        "discarded": run.recommender.discarded,
        "history": [asdict(record) for record in run.history],
        "traffic": asdict(run.traffic),
        "refused": run.refused(),
    }
    return tensors, facts


def take_up(run: Simulation, found: Snapshot | None) -> None:
    """Go on from a snapshot, if there is one."""
    if found is None:
        return
    if found.epoch > run.scenario.rounds:
        raise InvalidArgument(f"the run has {found.epoch:,} rounds already: ask for as many, or more")
    try:
        tensors, facts = found.tensors, found.facts
        run.done, run.resumed = found.epoch, True
        run.recommender.take_up(tensors, found.epoch, int(facts["discarded"]))
        if run.third_party is not None:
            run.third_party.take_up(tensors, found.epoch)
        ends = np.cumsum(tensors["piece_counts"])
        for place, number in enumerate(tensors["numbers"].tolist()):
            piece = tensors["pieces"][ends[place] - tensors["piece_counts"][place] : ends[place]]
            run.user(number).take_up(tensors["profiles"][place], piece, found.epoch)
        run.population.take_up(facts["population"])
        run.seconds = float(facts["seconds"])
        run.history = [EpochRecord(**record) for record in facts["history"]]
        run.traffic, run.refused_before = Traffic.of_json(facts["traffic"]), int(facts["refused"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFile(f"the checkpoint of round {found.epoch} is damaged: {error}") from None
