"""What everybody knows and agrees to before the first round: what will be asked, how often, and with how much noise.

>>> from dpmf.methods import ALS
>>> from dpmf.privacy import Budget
>>> method = ALS(n_factors=2, budget=Budget(5.0))
>>> catalogue = Items.of(list(range(100)))
>>> agreement = Agreement(method, catalogue, Scale(1, 5), n_users=1000, dropouts=50, colluders=50)
>>> agreement.crowd, agreement.least
(Crowd(n_users=1000, n_shares=900), 950)
>>> [one.releases for one in agreement.rounds][:4]
[('item popularity',), ('item weights',), ('item biases',), ('user moments', 'item factors')]
>>> agreement.ring(0).n_bytes
5
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import checksum_of
from dpmf.errors import InvalidArgument
from dpmf.federated.wire.ring import Ring
from dpmf.federated.wire.suites import suite_of
from dpmf.methods.certified.method import Learner
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.questions import Question
from dpmf.methods.certified.script import Crowd, Round, Script, Told
from dpmf.privacy import Budget, Guarantee, PoissonGaussianEvent
from dpmf.privacy.mechanism import PlannedEvent
from dpmf.privacy.noise import LARGEST_DRAW, STEPS_PER_SD
from dpmf.ratings import Items, Scale

_THIRD_PARTY_SEES = (
    "Against the third party: it sees who takes part in which round and when, and words that masks make uniform for "
    "whoever cannot break {stream} and X25519, as long as the recommender draws their seeds anew and keeps them. So it "
    "learns nothing of any rating but what everybody may learn from what is published, at the same epsilon and delta, "
    "even together with as many participants as are taken to collude."
)
_TAKES_PART = (
    "Who takes part in which round is public. Data sets are neighbours if one person's contribution is replaced by "
    "{what} in all rounds: the person takes part either way."
)
_REPLACED_BY = {"add-remove": "zero", "replace": "another one"}
_ONE_VALUE = (
    "Who takes part in which round is public. Data sets are neighbours if one rating of one person has another value: "
    "the person takes part, and rated the same items, either way."
)
_NOBODY_COLLUDES = (
    "Nobody is taken to collude: nothing is promised against another participant, who knows a piece of the noise."
)
_APART = (
    "Recommender and third party do not collude. The third party adds up as the protocol says; the recommender may ask "
    "whatever it likes, for everybody bounds their own answers and keeps their own account."
)
_CIPHER = (
    "Masks, seals and noise hide from whoever cannot break {ciphers}, and everybody has "
    "the true public keys of the others."
)
_COINS = (
    "Whether a person's ratings count in a round is decided by a coin that the person tosses and tells nobody; "
    "everybody answers either way."
)
_FORMAT = "dpmf certified federated 2"
DIGEST_BYTES = 16
_MOST_USERS = 1 << 20


@dataclass(frozen=True, eq=False)
class Agreement:
    """Public facts of a run.

    Attributes:
        method: what is computed, with its budget: what all rounds may cost one person together.
        catalogue: of items.
        scale: of ratings.
        n_users: k, how many people take part in a round.
        dropouts: how many of them may leave before they answer; with more, the round is discarded.
        colluders: how many more may tell others what they did.
        wire: the version of the wire, the same for all parties; browsers need 2.
    """

    method: Learner
    catalogue: Items
    scale: Scale
    n_users: int
    dropouts: int = 0
    colluders: int = 0
    wire: int = 1

    def __post_init__(self) -> None:
        if self.method.kind != "certified":
            raise InvalidArgument("the certified protocol needs a budget with a finite epsilon, and mode='certified'")
        if self.budget.unit != self.method.unit_for("certified"):
            raise InvalidArgument(f"unit={self.budget.unit!r}: the protocol protects users, which protects ratings too")
        if self.method.facts().get("cap") is not None:
            raise InvalidArgument("cap means nothing where people answer for themselves: leave it out")
        for name, value, most in (("n_users", self.n_users, _MOST_USERS), ("n_items", self.n_items, 1 << 24)):
            if not 1 <= value <= most:
                raise InvalidArgument(f"{name}={value!r} should be a whole number from 1 to {most}")
        if self.dropouts < 0 or self.colluders < 0 or self.crowd.n_shares < 1:
            raise InvalidArgument(
                f"dropouts={self.dropouts} and colluders={self.colluders} should not be negative, and leave at least "
                f"one of the {self.n_users} people of a round"
            )
        suite_of(self.wire)

    @property
    def budget(self) -> Budget:
        """What all rounds may cost one person together."""
        return self.method.facts()["budget"]  # type: ignore[no-any-return]

    @property
    def n_items(self) -> int:
        """The size of the catalogue."""
        return len(self.catalogue)

    @property
    def crowd(self) -> Crowd:
        """How many take part, and how many shares of noise are sure to be in a sum, and known to nobody else."""
        return Crowd(self.n_users, self.n_users - self.dropouts - self.colluders)

    @property
    def least(self) -> int:
        """How many have to answer, or the round is discarded before anything of it is revealed."""
        return self.n_users - self.dropouts

    @cached_property
    def script(self) -> Script:
        """What may be asked."""
        script = self.method.public_half(self.catalogue, self.scale, self.crowd).script
        if script is None:
            raise InvalidArgument(f"{self.method.name} has no protocol in which people answer for themselves")
        return script

    @property
    def plan(self) -> Plan:
        """What will be released."""
        return self.script.plan

    @cached_property
    def events(self) -> tuple[PlannedEvent, ...]:
        """What it will cost."""
        return self.plan.events()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The parts of the run, each carried out as a whole, or lost."""
        return self.plan.stages()

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds: what does not depend on another answer of its stage is asked for at once."""
        return self.script.rounds

    def first_round(self, stage: Stage) -> int:
        """Return the number of the first round of a stage."""
        place = self.stages.index(stage)
        return next(number for number, one in enumerate(self.rounds) if one.stage == place)

    def told(self, number: int) -> tuple[Told, ...]:
        """Return which arrays come with the questions of a round."""
        return self.script.told(self.rounds[number].releases)

    def questions(self, number: int, told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return what a round asks for, given what is released by then. All other numbers in it are agreed upon."""
        return self.script.questions(self.rounds[number].releases, told)

    def shapes(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the answers in a round."""
        return self._shapes[number]

    @cached_property
    def _shapes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        found = []
        for number in range(len(self.rounds)):
            told = {one.name: np.full(one.shape, max(one.least, 0.0), one.dtype) for one in self.told(number)}
            found.append(tuple(question.shape for question in self.questions(number, told)))
        return tuple(found)

    def n_elements(self, number: int) -> int:
        """Return how many numbers an answer has."""
        return sum(math.prod(shape) for shape in self.shapes(number))

    def ring(self, number: int) -> Ring:
        """Return the smallest ring in which no sum of a round overflows: everybody at the bound, and 32 sd of noise.

        Should it overflow all the same, accuracy suffers, and not privacy: the sum modulo P is a function of the sum.
        """
        return self._rings[number]

    @cached_property
    def _rings(self) -> tuple[Ring, ...]:
        noise = LARGEST_DRAW * math.sqrt(self.n_users / self.crowd.n_shares)
        bounds = {event.what: STEPS_PER_SD / event.noise_multiplier for event in self.events}
        terms = {what: self.script.terms(what, self.n_users) for what in bounds}
        largest = [max(terms[what] * bounds[what] for what in one.releases) for one in self.rounds]
        return tuple(Ring.holding(bound + noise) for bound in largest)

    @cached_property
    def digest(self) -> bytes:
        """Bytes that tell agreements apart; they come with every question."""
        facts = {
            "format": _FORMAT,
            "method": self.method.configuration(),
            "catalogue": f"{self.n_items} {checksum_of((self.catalogue.ids.keys,)):08x}",
            "scale": str(self.scale),
            "people": [self.n_users, self.dropouts, self.colluders],
            "budget": str(self.budget),
            "events": [event.to_json() for event in self.events],
            "rounds": [one.releases for one in self.rounds],
            "constants": self.script.constants(),
            "steps": STEPS_PER_SD,
        }
        return suite_of(self.wire).digest(json.dumps(facts, sort_keys=True).encode())

    @property
    def against_third_party(self) -> str:
        """What is promised against the third party; `guarantee` is against the recommender."""
        return _THIRD_PARTY_SEES.format(stream=suite_of(self.wire).stream)

    def guarantee(self, assumptions: Sequence[str], *, seeded: bool, personal: bool = False) -> Guarantee:
        """Return what is guaranteed against the recommender, and against whoever sees what is published."""
        thin = (
            f"Of the {self.n_users} participants of a round at most {self.colluders} collude with others, and up to "
            f"{self.dropouts} may drop out; with more drop-outs the third party discards the round."
        )
        if self.budget.unit == "user":
            takes_part = _TAKES_PART.format(what=_REPLACED_BY[self.budget.neighbours])
        else:
            takes_part = _ONE_VALUE
        alone = [_NOBODY_COLLUDES] if not self.colluders else []
        coins = [_COINS] if any(isinstance(event, PoissonGaussianEvent) for event in self.events) else []
        cipher = _CIPHER.format(ciphers=suite_of(self.wire).ciphers)
        rests_on = [takes_part, thin, *alone, _APART, cipher, self.against_third_party, *coins, *assumptions]
        stated = {"seeded": seeded, "personal": personal}
        budget, events = self.plan.guaranteed()
        return Guarantee.certified_by(budget, events, releases=self.method.releases, assumptions=rests_on, **stated)
