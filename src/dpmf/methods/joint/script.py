"""What may be asked in a run that ranks and predicts: the questions of both halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dpmf.methods.als.questions import ALSScript
from dpmf.methods.certified.questions import Question
from dpmf.methods.certified.script import Round, Script, Told
from dpmf.methods.ease.questions import EaseScript
from dpmf.methods.joint.plan import JointPlan


@dataclass(frozen=True)
class JointScript(Script):
    """The rounds of both halves.

    Attributes:
        plan: what they release.
        ranking, ratings: the scripts of the halves, in this order.
    """

    plan: JointPlan
    ranking: EaseScript
    ratings: ALSScript

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, in order."""
        before = len(self.plan.ranking.stages())
        later = [Round(before + stage, releases) for stage, releases in self.ratings.rounds]
        return *self.ranking.rounds, *later

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the questions of a round."""
        return self._half(releases[0]).told(releases)

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the questions of a round."""
        return self._half(releases[0]).questions(releases, told)

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same questions."""
        return self._half(questions[0].what).spell(questions)

    def terms(self, what: str, n_users: int) -> int:
        """Return how many bounds can add up in one number of a release."""
        return self._half(what).terms(what, n_users)

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        return {"ranking": self.ranking.constants(), "ratings": self.ratings.constants()}

    def _half(self, what: str) -> Script:
        """Return the half that makes a release: none is made by both."""
        return self.ranking if any(part.what == what for part in self.plan.ranking.parts()) else self.ratings
