"""A certified run of steps on clipped gradients, from ratings to a model; what steps do is in `clipped_steps`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.files import digest_of
from dpmf.methods.centering import on_scale
from dpmf.methods.checks import PERSONAL, public_facts
from dpmf.methods.clipped_steps import ClippedSteps
from dpmf.methods.posterior import RELEASES
from dpmf.methods.private_plan import Stage
from dpmf.methods.private_run import private_run
from dpmf.methods.resuming import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.privacy import Budget, GaussianEvent, Guarantee, PoissonGaussianEvent
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from dpmf.methods.gaussian import GaussianGD
    from dpmf.methods.sgld import SGLD

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]
Event = GaussianEvent | PoissonGaussianEvent


@dataclass(frozen=True, eq=False)
class CertifiedSteps:
    """A run that is about to start.

    Attributes:
        name: of the method, which makes it another run than that of another method.
        method: the configuration, with everything chosen.
        event: what the steps will release, within the budget.
        stages: the steps.
        shares: what part of the clip each user has.
        personal: whether some users asked for less.
        start: makes the state of the run from what adds the noise and where it comes from.
    """

    name: str
    method: SGLD | GaussianGD
    event: Event
    stages: tuple[Stage, ...]
    shares: NDArray[np.float64]
    personal: bool
    start: Callable[[Mechanism, Noise], ClippedSteps]

    def fit(
        self,
        ratings: Ratings,
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
            self._budget, [self.event], releases=RELEASES,
            assumptions=[*public_facts(ratings.catalogue), *([PERSONAL] if self.personal else [])],
            seeded=noise.seeded,
        )  # fmt: skip
        with private_run(
            checkpoint, lambda: self._identity(ratings, guarantee), self.stages, noise.seeded
        ) as run:  # fmt: skip
            run.enter(ledger, ratings.name or "release", guarantee)
            mechanism = Mechanism([self.event], noise)
            state = self.start(mechanism, noise)
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
        b, U = fold_in_many(release, ratings.indptr, ratings.items, ratings.values, n_threads)
        return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, history)

    @property
    def _budget(self) -> Budget:
        assert self.method.budget is not None
        return self.method.budget

    def _identity(self, ratings: Ratings, guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two runs the same run."""
        settings: Mapping[str, Any] = {"name": f"certified {self.name}", **asdict(self.method)}
        # The budget stands by itself, so that a refusal names it.
        settings = {name: value for name, value in settings.items() if name != "budget"}
        return identity_of(
            settings, ratings, fingerprint_of(ratings), budget=str(self._budget),
            user_budgets=f"{checksum_of((self.shares,)):08x}", guarantee=digest_of(guarantee.to_json()),
        )  # fmt: skip
