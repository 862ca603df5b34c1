"""Certified ranking and rating model, the public half: that of EASE and that of least squares, one after the other.

What the ranking has released is public when the second half begins, so using it costs nothing: see `Known`, the one
thing that is passed between the halves, and docs/proofs/joint.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dpmf.methods.als.certified import Known, PublicALS, above_noise
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Fit
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.joint.plan import JointPlan
from dpmf.methods.joint.script import JointScript

_HALVES = ("ranking", "ratings")


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

    @property
    def script(self) -> JointScript:
        """What may be asked, where people answer for themselves."""
        return JointScript(self.plan, self.ranking.script, self.ratings.script)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        if stage == self.plan.ratings.stages()[0]:
            self.ratings.learn_from(self._known())
        return self._half(stage).converse(stage)

    def _known(self) -> Known:
        """Return what the ranking tells the rating model."""
        counts, users_sd = self.ranking.counts, self.plan.users_sd
        n_users = None if users_sd is None else above_noise(self.ranking.n_users, users_sd)
        return Known(n_users, counts.values, counts.sd)

    def _half(self, stage: Stage) -> PublicEase | PublicALS:
        return self.ranking if stage in self.plan.ranking.stages() else self.ratings

    def fit_after(self, stage: Stage) -> Fit | None:
        """Return what everybody fits their own part to once a stage is over."""
        return self._half(stage).fit_after(stage)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return {f"{half} {name}": one for half in _HALVES for name, one in getattr(self, half).state().items()}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        for half in _HALVES:
            own = {name.removeprefix(f"{half} "): one for name, one in tensors.items() if name.startswith(f"{half} ")}
            getattr(self, half).restore(own)
