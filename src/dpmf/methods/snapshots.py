"""Snapshots of a method's run: its identity, saving its state, and restoring it.

>>> import tempfile
>>> import numpy as np
>>> from dpmf.ratings.synthetic import make
>>> ratings, state = make(20, 10), {"V": np.ones(3, np.float32)}
>>> plan = Checkpoint(tempfile.mkdtemp() + "/run", resume=True)
>>> with snapshots_of(plan, {"name": "test"}, ratings, lambda: fingerprint_of(ratings)) as snapshots:
...     save(snapshots, state, [EpochRecord(1, 0.5, 0.9)])
>>> state["V"][:] = 0
>>> restore(snapshots, state), state["V"].tolist()
([EpochRecord(epoch=1, seconds=0.5, train_rmse=0.9, validation_rmse=None)], [1.0, 1.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshot, Snapshots, machine_identity
from dpmf.engine.grid import checksum_of
from dpmf.engine.journal import locked
from dpmf.engine.store import StoredRatings
from dpmf.engine.tensorfile import Tensor
from dpmf.errors import DamagedFile
from dpmf.model import EpochRecord
from dpmf.ratings import Ratings


def identity_of(
    method: Mapping[str, Any], ratings: Ratings | StoredRatings, fingerprint: str, **more: Any
) -> dict[str, Any]:
    """Return what two runs must have in common to be the same run, in JSON values.

    Args:
        method: its name, and all settings that the result depends on.
        ratings: the ratings it learns from.
        fingerprint: of the ratings, in the form in which the method uses them.
        more: anything else that the result depends on.
    """
    return {
        "method": dict(method),
        "data": fingerprint,
        "ids": f"{checksum_of((ratings.user_ids.keys, ratings.catalogue.ids.keys)):08x}",
        "scale": str(ratings.scale),
        **more,
        **machine_identity(),
    }


def fingerprint_of(ratings: Ratings, *more: NDArray[Any]) -> str:
    """Return a checksum of ratings in memory, and of more arrays, by which a resumed run recognises its data."""
    return f"{checksum_of((ratings.indptr, ratings.items, ratings.values, *more)):08x}"


@contextmanager
def snapshots_of(
    plan: Checkpoint | None,
    method: Mapping[str, Any],
    ratings: Ratings | StoredRatings,
    fingerprint: Callable[[], str],
    **more: Any,
) -> Iterator[Snapshots | None]:
    """Yield the snapshots of a run, kept from other processes meanwhile; None without a plan. See `identity_of`."""
    if plan is None:
        yield None
        return
    # Ratings are on disk where memory is limited: a copy of all factors might not fit.
    may_copy = not isinstance(ratings, StoredRatings)
    identity = identity_of(method, ratings, fingerprint(), **more)
    with locked(plan.folder), Snapshots(plan, identity, may_copy=may_copy) as snapshots:
        yield snapshots


def save(
    snapshots: Snapshots | None, state: Mapping[str, Tensor], history: Sequence[EpochRecord], **facts: Any
) -> None:
    """Save the state after the last epoch of the history."""
    if snapshots is not None:
        snapshots.save(len(history), state, {"history": [asdict(record) for record in history], **facts})


def restore(
    snapshots: Snapshots | None,
    state: Mapping[str, Tensor],
    more: Callable[[Snapshot], None] | None = None,
) -> list[EpochRecord]:
    """Restore the newest snapshot, if there is one, and return its history.

    Args:
        snapshots: of this run; None for a run without any.
        state: arrays to overwrite with the snapshot's tensors of the same names.
        more: restores anything else that was saved.
    """
    found = None if snapshots is None else snapshots.latest(into=state)
    if found is None:
        return []
    try:
        history = [EpochRecord(**record) for record in found.facts["history"]]
        if len(history) != found.epoch:
            raise ValueError(f"{len(history)} records of {found.epoch} epochs")
        if not found.tensors.keys() >= state.keys():
            raise ValueError(f"it holds {sorted(found.tensors)} only")
        if more is not None:
            more(found)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"the checkpoint of epoch {found.epoch} is damaged: {error}") from None
    return history
