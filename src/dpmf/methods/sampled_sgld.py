"""A run of posterior sampling by a chain, from ratings to a model: with no promise, or with a paper's claim."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.engine.stored import AnyRatings, Room, StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.resuming import keep, snapshots_of, take_up
from dpmf.methods.sampling import Averages, model_of
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]


def fit_sampled(
    method: SGLD,
    ratings: AnyRatings,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    checkpoint: Checkpoint | None,
    user_budgets: Mapping[Any, float] | None,
    ledger: Ledger | None,
) -> Model:
    """Run a chain, and return the model of its draws; arguments as in `SGLD.fit`, with everything chosen."""
    assert method.n_factors is not None
    assert method.n_epochs is not None
    assert method.n_samples is not None
    guarantee = _guarantee(method, ratings, user_budgets, ledger)
    with method.prepared(ratings, user_budgets) as (counted, weights, bound):
        room = Room(n_threads)
        if isinstance(counted, StoredRatings):
            room = Room.for_factors(counted, method.n_factors, n_threads)
        chain = method.chain_on(counted, weights, bound, room)
        averages = Averages.start(chain)
        tensors = {**chain.tensors(), **averages.tensors()}
        settings = {"name": "sgld", **asdict(method), "budget": str(method.budget), "weights": checksum_of((weights,))}
        with snapshots_of(checkpoint, settings, counted, chain.state.grid.fingerprint) as snapshots:
            kept: dict[str, Any] = {"run": secrets.token_hex(16), "entered": False, "ended": False}
            history = take_up(snapshots, tensors, lambda found: kept.update({name: found.facts[name] for name in kept}))
            _enter(ledger, ratings.name or "release", guarantee, kept)
            while len(history) < method.n_epochs and not kept["ended"]:
                history.append(method.advance(chain, len(history) + 1, room.n_threads))
                if len(history) > method.n_epochs - method.n_samples:
                    averages.add(chain)
                stops = [callback(history[-1]) is True for callback in callbacks]  # every one is called
                # What a private run would draw after its release would be another release, which nobody paid for.
                kept["ended"] = method.is_private and any(stops)
                is_last = kept["ended"] or len(history) == method.n_epochs
                if snapshots is not None and (is_last or snapshots.is_due(len(history))):
                    keep(snapshots, tensors, history, **kept)
                if any(stops):
                    break
        return model_of(ratings, chain, averages, method.configuration(), guarantee, tuple(history), room)


def _enter(ledger: Ledger | None, label: str, guarantee: Guarantee, kept: dict[str, Any]) -> None:
    """Enter the run into the ledger, once, however often it is resumed; a ledger that lacks it is charged."""
    if ledger is None:
        if kept["entered"]:
            raise InvalidArgument("the run was entered into a ledger: name that ledger to go on")
        return
    ledger.spend(label, guarantee, run=kept["run"])
    kept["entered"] = True


def _guarantee(
    method: SGLD, ratings: AnyRatings, user_budgets: Mapping[Any, float] | None, ledger: Ledger | None
) -> Guarantee:
    if not method.is_private:
        for name, given in (("user_budgets", user_budgets), ("ledger", ledger)):
            if given is not None:
                raise InvalidArgument(f"{name} means nothing with an infinite epsilon: leave it out")
        return Guarantee.none()
    assert method.budget is not None
    assert method.table is not None
    declared(ratings, method.items_public)
    guarantee = method.bound(ratings.scale).guarantee(
        method.budget, table_size=method.table, seeded=method.noise_seed is not None, personal=bool(user_budgets),
        assumptions=public_facts(ratings.catalogue),
    )  # fmt: skip
    if guarantee.is_seeded:
        logger.warning("%s", SEEDED)
    return guarantee
