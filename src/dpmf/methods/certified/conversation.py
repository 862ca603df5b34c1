"""The conversation of a certified method with people: who asks, who brings back noisy answers, and one stage of it.

A public half asks and learns; a partner puts its questions to people. `dpmf.methods.certified.curator` is the partner
where one party holds all ratings, `dpmf.federated.certified.simulation` where everybody answers for themselves.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from dpmf.errors import BudgetExceeded, DpmfError
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.questions import Fit, Headcount, Noisy, Question
from dpmf.methods.certified.script import Script

logger = logging.getLogger(__name__)
Conversation = Generator[tuple[Question, ...], tuple[Noisy, ...], None]


class PublicHalf(Protocol):
    """The half of a certified method that knows no ratings: it asks questions, and learns from noisy answers.

    All it learns is public state, which `state` returns and `restore` takes; a conversation is never stored.
    """

    @property
    def plan(self) -> Plan:
        """What the run releases."""

    @property
    def script(self) -> Script | None:
        """What may be asked, where people answer for themselves; None if they cannot."""

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, receive their noisy answers, and make public state of them."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that is public so far."""

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""

    def fit_after(self, stage: Stage) -> Fit | None:
        """Return what everybody fits their own part to once a stage is over; None if nobody has to."""


class StageLost(DpmfError):
    """What was asked stays charged, and there is no answer.

    Args:
        message: of the error.
        why: for whoever reports what is lost with it.
    """

    def __init__(self, message: str, why: str = "too few people answered") -> None:
        super().__init__(message)
        self.why = why


class Partner(Protocol):
    """Whoever puts questions to people, and sees to it that sums come back with noise."""

    def begin(self, stage: Stage) -> None:
        """Prepare for the questions of a stage."""

    def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Return the noisy sums of everybody's answers, or raise `StageLost`."""

    def forfeit(self, what: str) -> None:
        """Give up the next release of an event: it stays charged."""

    def error(self, fit: Fit | None) -> float:
        """Return the training error of a fit, or of those who answered last: for the holder of the data."""

    def finish(self) -> None:
        """Refuse to end before everything in the plan was released or given up."""


def converse(public: PublicHalf, stage: Stage, partner: Partner, released: dict[str, float] | None = None) -> bool:
    """Carry out one stage, and return whether it was answered; what it releases and did not ask for is given up.

    Args:
        public: asks.
        stage: of its plan.
        partner: brings back noisy answers.
        released: numbers of people by the name of their release, with noise (out).
    """
    partner.begin(stage)
    asked: Counter[str] = Counter()
    conversation, answered = public.converse(stage), True
    try:
        questions = next(conversation)
        while True:
            asked.update(question.what for question in questions)
            answers = partner.ask(questions)
            for question, noisy in zip(questions, answers, strict=True):
                if released is not None and isinstance(question, Headcount):
                    released[question.what] = float(noisy.values[0])
            questions = conversation.send(answers)
    except StopIteration:
        pass
    except StageLost as lost:
        lose(stage, f"because {lost.why}")
        answered = False
    for what in (Counter(stage.releases) - asked).elements():
        partner.forfeit(what)
    return answered


def lose(stage: Stage, why: str) -> None:
    """Report a stage that is lost, or refuse to continue without it."""
    if stage.essential:
        raise BudgetExceeded(
            f"{stage.name} was lost {why}, without which nothing can be learnt: its budget is spent; begin a new run, "
            "which is charged again"
        )
    logger.warning("%s was lost %s: it stays charged, and is left out", stage.name, why)
