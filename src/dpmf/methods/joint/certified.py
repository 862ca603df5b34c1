"""Certified ranking and rating model, the public half: that of EASE and that of least squares, one after the other.

What the ranking has released is public when the second half begins, so using it costs nothing: see `Known`, the one
thing that is passed between the halves, and docs/proofs/joint.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.als.certified import PublicALS
from dpmf.methods.als.known import Known, above_noise
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Fit
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.ease.tastes import taste_factors
from dpmf.methods.joint.plan import JointPlan
from dpmf.methods.joint.script import JointScript

_HALVES = ("ranking", "ratings")
_TOLD = "told"


@dataclass(eq=False)
class PublicJoint:
    """What a run asks people for, and what it makes of noisy sums. It knows no ratings.

    Args:
        plan: the public facts.
        ranking: the half that ranks.
        ratings: the half that predicts ratings.
    """

    plan: JointPlan
    ranking: PublicEase
    ratings: PublicALS
    _told: bool = field(init=False, default=False)

    @property
    def script(self) -> JointScript:
        """What may be asked, where people answer for themselves."""
        return JointScript(self.plan, self.ranking.script, self.ratings.script)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        half = self._half(stage)
        if half is self.ratings and not self._told:  # at its first stage, or later if that was lost
            self.ratings.learn_from(self._known())
            self._told = True
        return half.converse(stage)

    def _known(self) -> Known:
        """Return what the ranking tells the rating model: everything in it is released already."""
        counts, plan = self.ranking.counts, self.plan
        if plan.ranking.counts_users:
            n_users = above_noise(self.ranking.n_users, plan.users_sd)
        else:  # if the number is not public either, the other half counts people: until then, there are some at least
            n_users = float(plan.ranking.known_users or max(counts.values.max(), counts.sd, 1.0))
        return Known(n_users, counts.values, counts.sd, taste_factors(self.ranking, plan.ratings.given))

    def _half(self, stage: Stage) -> PublicEase | PublicALS:
        return self.ranking if stage in self.plan.ranking.stages() else self.ratings

    def fit_after(self, stage: Stage) -> Fit | None:
        """Return what everybody fits their own part to once a stage is over."""
        return self._half(stage).fit_after(stage)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        of_halves = {f"{half} {name}": one for half in _HALVES for name, one in getattr(self, half).state().items()}
        return {**of_halves, _TOLD: np.array([self._told])}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self._told = bool(tensors[_TOLD][0])
        for half in _HALVES:
            own = {name.removeprefix(f"{half} "): one for name, one in tensors.items() if name.startswith(f"{half} ")}
            getattr(self, half).restore(own)
