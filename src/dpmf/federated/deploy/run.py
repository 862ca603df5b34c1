"""The recommender's run: the method asks, stage by stage, and what it learns is stored before the next stage begins.

It is the same run as where one party holds all ratings (`dpmf.methods.certified.staged_run`), with another partner:
whoever asks people over a network. A process that was killed in a stage asks for it again: people's devices draw no
noise twice, but give the answers that they gave, and a sum that has left the third party does not leave it again. Then
the stage is lost, stays charged, and the run resumes with the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.resources import Resources
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.recommender import Recommender
from dpmf.federated.deploy.agreement_file import AgreementFile
from dpmf.federated.deploy.stored_sums import StoredSums
from dpmf.methods.certified.conversation import PublicHalf
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.planned import with_plan
from dpmf.methods.certified.questions import Fit, Noisy, Question
from dpmf.methods.certified.run import Certified
from dpmf.methods.certified.staged_run import StagedRun, staged_run
from dpmf.model import Release

PlayRound = Callable[[Sequence[Question]], tuple[Noisy, ...]]
"""Puts questions to people, and returns noisy sums, or raises StageLost."""


class NetworkPartner:
    """Asks people over a network.

    Args:
        agreement: of the run.
        machine: the recommender's side of the protocol.
        play: plays a round.
        sums: of the stage that an earlier process was killed in.
    """

    def __init__(self, agreement: Agreement, machine: Recommender, play: PlayRound, sums: StoredSums) -> None:
        self._agreement, self._machine, self._play, self._sums = agreement, machine, play, sums

    def begin(self, stage: Stage) -> None:
        """Leave out the rounds of earlier stages that were not played."""
        number = self._agreement.first_round(stage)
        self._machine.skip_to(number)
        self._sums.drop_before(number)

    def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Play a round, unless an earlier process did."""
        number = self._machine.round
        answers = self._sums.of(number, len(questions))
        if answers is not None:
            for question in questions:
                self._machine.forfeit(question.what)
            self._machine.skip_to(number + 1)
            return answers
        answers = self._play(questions)
        self._sums.store(number, answers)
        return answers

    def forfeit(self, what: str) -> None:
        """Give up the next release of an event: it stays charged."""
        self._machine.forfeit(what)

    def error(self, fit: Fit | None) -> float:
        """Return 0: nobody has the ratings that an error could be measured on."""
        return 0.0

    def finish(self) -> None:
        """Refuse to end before everything in the plan was asked for or given up."""
        self._machine.mechanism.finish()
        self._sums.drop_before(len(self._agreement.rounds))


@dataclass(frozen=True, eq=False)
class Run:
    """A run that can be carried out, in this process or the next.

    Attributes:
        file: the agreement.
        agreement: made of it.
        folder: for what was learnt.
    """

    file: AgreementFile
    agreement: Agreement
    folder: Path

    def carry_out(
        self, machine: Recommender, play: PlayRound, before: Callable[[int], None] = lambda place: None
    ) -> Release:
        """Carry out what is left of the run, and return the release.

        Args:
            machine: the recommender's side of the protocol.
            play: plays a round.
            before: called with the place of each stage before that starts; what it raises ends the run without loss.

        Raises:
            BudgetExceeded: the run was stopped in a stage that nothing can be learnt without.
        """
        agreement, method = self.agreement, self.agreement.method
        public = method.public_half(agreement.catalogue, agreement.scale, agreement.crowd)
        partner = NetworkPartner(agreement, machine, play, StoredSums(self.folder / "sums"))
        checkpoint = Checkpoint(self.folder, resume=True)
        with staged_run(
            checkpoint, lambda: {"agreement": self.file.id.hex()}, agreement.stages, repeatable=True
        ) as run:
            history = run.carry_out(public, partner, before=before)
            partner.finish()
            return self._release(public, run, history)

    def _release(self, public: PublicHalf, run: StagedRun, history: Any) -> Release:
        agreement, method = self.agreement, self.agreement.method
        assumptions = method.assumptions(agreement.catalogue, agreement.crowd)
        guarantee = agreement.guarantee(assumptions, seeded=False, personal=method.personal)
        configuration = release_configuration(self.file, agreement)
        release = method.release_of(public, agreement.catalogue, agreement.scale, configuration, guarantee)
        found = Certified(guarantee, history, Resources(1), run.released)
        return with_plan(release, method, found, agreement.crowd)


def release_configuration(file: AgreementFile, agreement: Agreement) -> dict[str, Any]:
    """Return the public facts that the release states; the agreement among them."""
    people = agreement.n_users
    lost = {"dropouts": agreement.dropouts, "colluders": agreement.colluders}
    return {
        "method": "federated",
        "mode": "certified",
        "agreement": file.id.hex(),
        "per_round": people,
        **{name: _part(count, people) for name, count in lost.items()},
        "of": agreement.method.configuration(),
    }


def _part(count: int, people: int) -> float:
    """Return a fraction of people of which no more than a count follows.

    >>> math.ceil(_part(55, 1000) * 1000)
    55
    """
    part = count / people
    while math.ceil(part * people) > count:
        part = math.nextafter(part, 0.0)
    return part
