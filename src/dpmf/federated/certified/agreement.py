"""What everybody knows and agrees to before the first round: what will be asked, how often, and with how much noise.

>>> from dpmf.privacy import Budget
>>> agreement = Agreement(100, (1.0, 5.0), Budget(5.0), n_users=1000, dropouts=50, colluders=50)
>>> agreement.plan.n_factors, agreement.n_shares, agreement.least
(2, 900, 950)
>>> [one.releases for one in agreement.rounds][:4]
[('item popularity',), ('item weights',), ('item biases',), ('user moments', 'item factors')]
>>> agreement.ring(0).n_bytes
5
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.federated.wire.ring import Ring
from dpmf.methods.als.certified import RADIUS, clip_of
from dpmf.methods.als.plan import BIASES, FACTORS, MOMENTS, Plan, Stage, private_defaults
from dpmf.methods.certified.questions import Counts, Fit, Moments, Question, Residuals
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.privacy.noise import LARGEST_DRAW, STEPS_PER_SD
from dpmf.ratings import Scale

RELEASES = ("item factors", "item biases", "the configuration")
THIRD_PARTY_SEES = (
    "Against the third party: it sees who takes part in which round and when, and words that masks make uniform for "
    "whoever cannot break ChaCha20 and X25519, as long as the recommender draws their seeds anew and keeps them. So it "
    "learns nothing of any rating but what everybody may learn from what is published, at the same epsilon and delta, "
    "even together with as many participants as are taken to collude."
)
_TAKES_PART = (
    "Who takes part in which round is public. Data sets are neighbours if one person's contribution is replaced by "
    "{what} in all rounds: the person takes part either way."
)
_REPLACED_BY = {"add-remove": "zero", "replace": "another one"}
_NOBODY_COLLUDES = (
    "Nobody is taken to collude: nothing is promised against another participant, who knows a piece of the noise."
)
_APART = (
    "Recommender and third party do not collude. The third party adds up as the protocol says; the recommender may ask "
    "whatever it likes, for everybody bounds their own answers and keeps their own account."
)
_CIPHER = (
    "Masks, seals and noise hide from whoever cannot break ChaCha20, Poly1305, X25519 and BLAKE2b, and everybody has "
    "the true public keys of the others."
)
_FORMAT = "dpmf certified federated 1"
DIGEST_BYTES = 16
_MOST_USERS = 1 << 20


class Round(NamedTuple):
    """One exchange with everybody.

    Attributes:
        stage: which of the plan's stages it belongs to.
        releases: what is asked for.
    """

    stage: int
    releases: tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """Public facts of a run.

    Attributes:
        n_items: the size of the catalogue.
        scale: lowest and highest rating.
        budget: what all rounds may cost one person together.
        n_users: k, how many people take part in a round.
        dropouts: how many of them may leave before they answer; with more, the round is discarded.
        colluders: how many more may tell others what they did.
        n_factors: None lets the number of people decide.
        n_rounds: how often factors are measured.
        user_ridge: the penalty on a user's factors, relative to what the assumed spread of factors suggests.
        per_item: whether second moments are measured for every item.
    """

    n_items: int
    scale: tuple[float, float]
    budget: Budget
    n_users: int
    dropouts: int = 0
    colluders: int = 0
    n_factors: int | None = None
    n_rounds: int = private_defaults()["n_epochs"]
    user_ridge: float = private_defaults()["regularization"]
    per_item: bool = False

    def __post_init__(self) -> None:
        if self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: the protocol protects users, which protects ratings too")
        for name, most in (("n_users", _MOST_USERS), ("n_items", 1 << 24)):
            if not 1 <= getattr(self, name) <= most:
                raise InvalidArgument(f"{name}={getattr(self, name)!r} should be a whole number from 1 to {most}")
        if self.dropouts < 0 or self.colluders < 0 or self.n_shares < 1:
            raise InvalidArgument(
                f"dropouts={self.dropouts} and colluders={self.colluders} should not be negative, and leave at least "
                f"one of the {self.n_users} people of a round"
            )

    @property
    def n_shares(self) -> int:
        """How many shares of noise are sure to be in a sum, and known to nobody else."""
        return self.n_users - self.dropouts - self.colluders

    @property
    def least(self) -> int:
        """How many have to answer, or the round is discarded before anything of it is revealed."""
        return self.n_users - self.dropouts

    @cached_property
    def plan(self) -> Plan:
        """What will be released; with how many factors follows from public numbers."""
        plan = Plan(
            self.n_items, self.n_factors, self.n_rounds, self.per_item, self.user_ridge, self.budget, self.n_users,
            self.n_shares,
        )  # fmt: skip
        return replace(plan, n_factors=plan.factors(self.n_users))

    @cached_property
    def events(self) -> tuple[GaussianEvent, ...]:
        """What it will cost."""
        return self.plan.events()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The parts of the run, each carried out as a whole, or lost."""
        return self.plan.stages()

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds: what does not depend on another answer of its stage is asked for at once."""
        found = []
        for place, stage in enumerate(self.stages):
            together = [stage.releases] if stage.round is not None else [(one,) for one in stage.releases]
            found += [Round(place, releases) for releases in together]
        return tuple(found)

    def first_round(self, stage: Stage) -> int:
        """Return the number of the first round of a stage."""
        place = self.stages.index(stage)
        return next(number for number, one in enumerate(self.rounds) if one.stage == place)

    def width(self, number: int) -> int | None:
        """Return how many item factors are told in a round; None if neither factors nor biases are."""
        releases = self.rounds[number].releases
        if FACTORS in releases:
            return self.plan.n_factors
        return 0 if BIASES in releases else None

    def questions(self, number: int, weights: NDArray[np.float64], fit: Fit | None) -> tuple[Question, ...]:
        """Return what a round asks for, given what is released by then. All other numbers in it are agreed upon."""
        found: list[Question] = []
        for what in self.rounds[number].releases:
            if fit is None:
                found.append(Counts(what, weights))
            elif what == MOMENTS:
                found.append(Moments(what, fit, RADIUS, weights if self.per_item else None))
            else:
                height = self.plan.height(self.n_users) if what == FACTORS else 1.0
                found.append(Residuals(what, weights, fit, clip_of(Scale(*self.scale)), RADIUS, height))
        return tuple(found)

    def shapes(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the answers in a round."""
        n_items, width = self.n_items, self.width(number)
        if width is None:
            return ((n_items,),)
        triangle = width * (width + 1) // 2
        moments = (n_items, triangle) if self.per_item else (triangle,)
        return tuple(moments if one == MOMENTS else (n_items, width + 1) for one in self.rounds[number].releases)

    def n_words(self, number: int) -> int:
        """Return how many numbers an answer has."""
        return sum(math.prod(shape) for shape in self.shapes(number))

    def ring(self, number: int) -> Ring:
        """Return the smallest ring in which no sum of a round overflows: everybody at the bound, and 32 sd of noise.

        Should it overflow all the same, accuracy suffers, and not privacy: the sum modulo P is a function of the sum.
        """
        return self._rings[number]

    @cached_property
    def _rings(self) -> tuple[Ring, ...]:
        noise = LARGEST_DRAW * math.sqrt(self.n_users / self.n_shares)
        bounds = {event.what: STEPS_PER_SD / event.noise_multiplier for event in self.events}
        largest = [max(bounds[what] for what in one.releases) for one in self.rounds]
        return tuple(Ring.holding(self.n_users * bound + noise) for bound in largest)

    @cached_property
    def digest(self) -> bytes:
        """Bytes that tell agreements apart; they come with every question."""
        facts = {
            "format": _FORMAT, **asdict(self), "events": [event.to_json() for event in self.events],
            "clip": clip_of(Scale(*self.scale)), "radius": RADIUS, "height": self.plan.height(self.n_users),
            "steps": STEPS_PER_SD,
        }  # fmt: skip
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=DIGEST_BYTES).digest()

    def guarantee(self, assumptions: Sequence[str], *, seeded: bool, personal: bool = False) -> Guarantee:
        """Return what is promised against the recommender, and against whoever sees what is published."""
        thin = (
            f"Of the {self.n_users} participants of a round at most {self.colluders} collude with others, and up to "
            f"{self.dropouts} may drop out; with more drop-outs the third party discards the round."
        )
        takes_part = _TAKES_PART.format(what=_REPLACED_BY[self.budget.neighbours])
        alone = [_NOBODY_COLLUDES] if not self.colluders else []
        return Guarantee.certified_by(
            self.budget, self.events, releases=RELEASES, seeded=seeded, personal=personal,
            assumptions=[takes_part, thin, *alone, _APART, _CIPHER, THIRD_PARTY_SEES, *assumptions],
        )  # fmt: skip
