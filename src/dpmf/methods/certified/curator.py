"""The trusted holder of all ratings: has answers summed, and lets the mechanism add the noise."""

from __future__ import annotations

from collections.abc import Sequence

from dpmf.methods.certified.answer import Answerer, Asked
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Fit, Integers, Noisy, Question
from dpmf.privacy.mechanism import Mechanism


class Curator:
    """The trusted holder of the data: has answers summed, and lets the mechanism add the noise.

    Args:
        people: sum their answers.
        mechanism: adds the noise, and tosses the coins of those who take part.
        neighbours: which data sets the guarantee compares.
    """

    def __init__(self, people: Answerer, mechanism: Mechanism, neighbours: str) -> None:
        self._people, self._mechanism, self._neighbours = people, mechanism, neighbours

    def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Return the noisy sums of everybody's answers."""
        asked = [self._asked(question) for question in questions]
        return tuple(self._noisy(one, sums) for one, sums in zip(asked, self._people.answer(asked), strict=True))

    def _asked(self, question: Question) -> Asked:
        steps = self._mechanism.steps(question.what, question.sensitivity(self._neighbours))
        return Asked(question, steps, self._mechanism.participants(question.what, self._people.n_users))

    def _noisy(self, asked: Asked, sums: Integers) -> Noisy:
        what, bound = asked.question.what, asked.question.sensitivity(self._neighbours)
        return Noisy(self._mechanism.release(what, sums, bound), self._mechanism.sd(what, bound), asked.steps)

    def begin(self, stage: Stage) -> None:
        """Prepare for a stage: there is nothing to do."""

    def forfeit(self, what: str) -> None:
        """Give up the next release of an event: it stays charged."""
        self._mechanism.forfeit(what)

    def error(self, fit: Fit | None) -> float:
        """Return the training error of a fit, or of those who answered last."""
        return self._people.error(fit)

    def finish(self) -> None:
        """Refuse to end before everything in the plan was released or given up."""
        self._mechanism.finish()
