"""A certified run of steps on clipped gradients, from ratings to a model; what steps do is in `clipped_steps`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.files import digest_of
from dpmf.methods.centre import on_scale
from dpmf.methods.certified.run import private_run
from dpmf.methods.certified.steps import ClippedSteps, StepPlan
from dpmf.methods.checks import public_facts
from dpmf.methods.counted import counted_ratings
from dpmf.methods.foldin import folded
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise

if TYPE_CHECKING:
    from dpmf.methods.gaussian import GaussianGD
    from dpmf.methods.sgld import SGLD
    from dpmf.methods.sketch import Sketch

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]
RELEASES = ("item factors", "item biases", "the configuration")


@dataclass(frozen=True, eq=False)
class CertifiedSteps:
    """A run that is about to start.

    Attributes:
        method: the configuration, with everything chosen.
        plan: what the steps will release, within the budget.
        shares: what part of the clip each user has.
        personal: whether some users asked for less.
        cap: how many ratings of a user count at most; None for all.
        start: makes the state of the run from the ratings that count, what adds the noise, where it comes from, and the
            number of threads.
    """

    method: SGLD | GaussianGD | Sketch
    plan: StepPlan
    shares: NDArray[np.float64]
    personal: bool
    cap: int | None
    start: Callable[[AnyRatings, Mechanism, Noise, int], ClippedSteps]

    def fit(
        self,
        ratings: AnyRatings,
        n_threads: int,
        callbacks: tuple[Callback, ...],
        checkpoint: Checkpoint | None,
        ledger: Ledger | None,
    ) -> Model:
        """Carry it out, and return a model whose release is certified; arguments as in `SGLD.fit`."""
        noise = Noise(self.method.noise_seed)
        if noise.seeded:
            logger.warning("%s", SEEDED)
        guarantee = Guarantee.certified_by(
            self.plan.budget, [self.plan.event], releases=RELEASES,
            assumptions=public_facts(ratings.catalogue), seeded=noise.seeded, personal=self.personal,
        )  # fmt: skip
        room = Resources(n_threads)
        if isinstance(ratings, StoredRatings):
            room = Resources.for_sums(ratings, self.plan.n_factors, n_threads)
        with (
            counted_ratings(ratings, self.cap, seed=self.method.seed) as counted,
            private_run(
                checkpoint, partial(self._identity, ratings, guarantee), self.plan.stages(), noise.seeded
            ) as run,
        ):
            run.enter(ledger, ratings.name or "release", guarantee)
            mechanism = Mechanism([self.plan.event], noise)
            state = self.start(counted, mechanism, noise, room.n_threads)
            history = run.carry_out(state, callbacks)
            mechanism.finish()
        factors, biases = state.items()
        mean, biases = on_scale(state.centre.mean, biases, ratings.scale)
        release = Release(
            items=ratings.catalogue,
            scale=ratings.scale,
            mean=mean,
            item_factors=factors,
            item_biases=biases,
            ridge=Ridge(bias=state.centre.bias_ridge, factors=state.ridge * state.unit),
            configuration=self.method.configuration(),
            guarantee=guarantee,
        )
        return folded(release, ratings, history, room)

    def _identity(self, ratings: AnyRatings, guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two runs the same run; one that streams is not one that does not."""
        if isinstance(ratings, StoredRatings):
            fingerprint = f"{ratings.blocks.fingerprint()}, streamed"
        else:
            fingerprint = fingerprint_of(ratings)
        settings = {"name": f"certified {self.method.configuration()['method']}", **asdict(self.method)}
        del settings["budget"]  # stands by itself, so that a refusal names it
        return identity_of(
            settings, ratings, fingerprint, budget=str(self.plan.budget),
            user_budgets=f"{checksum_of((self.shares,)):08x}", guarantee=digest_of(guarantee.to_json()),
        )  # fmt: skip
