"""What is promised about a release, as data.

>>> print(Guarantee.none())
none: not private. Item factors and biases were computed from the ratings without any protection.
>>> from dpmf.privacy import Budget, GaussianEvent
>>> events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
>>> print(Guarantee.certified_by(Budget(1.0), events, releases=["item factors"]))
(0.834118, 1e-06)-DP per user, add-remove, certified; releases item factors
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.budget import Budget, check_neighbours, check_unit
from dpmf.privacy.events import ClaimEvent, Event, check_text, event_from_json

MODES = ("none", "certified", "paper")
SEEDED = (
    "The noise was drawn from a seed. Whoever knows or guesses the seed can take the noise away again, so this "
    "release protects nobody: it is for research, and epsilon is what noise that cannot be predicted would give."
)


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, or its absence. Make one with `none`, `certified_by` or `paper`.

    Attributes:
        epsilon, delta: the parameters of differential privacy, as `dpmf.privacy.budget.Budget` defines them; None if
            nothing is promised. In mode "certified" epsilon was computed from the events, in mode "paper" it is what
            the paper claims.
        unit: what is protected, "user" or "rating"; None if nothing is.
        neighbours: which data sets count as neighbours, "add-remove" or "replace"; None if nothing is promised.
        mode: "none", "certified" (bounded, noised and accounted for by this code) or "paper" (a published claim).
        certified: whether the guarantee holds for exactly what the code did. Only in mode "certified", and not even
            then if the noise came from a seed: then the assumptions begin with `SEEDED`.
        assumptions: what it rests on, one sentence each.
        releases: what is published, a few words each.
        events: what was done, so that epsilon can be computed again.
    """

    epsilon: float | None
    delta: float | None
    unit: str | None
    neighbours: str | None
    mode: str
    certified: bool
    assumptions: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @classmethod
    def none(cls) -> Guarantee:
        """Return the guarantee of a model that is not private."""
        return cls(None, None, None, None, mode="none", certified=False)

    @classmethod
    def certified_by(
        cls,
        budget: Budget,
        events: Sequence[Event],
        *,
        releases: Sequence[str],
        assumptions: Sequence[str] = (),
        seeded: bool = False,
    ) -> Guarantee:
        """Return the guarantee that the events give, at the delta of the budget.

        Args:
            budget: what epsilon may be at most.
            events: what is done. Each says how many numbers it releases; claims are refused.
            releases: what is published, a few words each.
            assumptions: what the guarantee rests on, one sentence each.
            seeded: whether the noise is drawn from a seed. Then nothing is certified.

        Raises:
            BudgetExceeded: the events cost more than the budget.
        """
        if not budget.is_finite or not events:
            raise InvalidArgument("a certified guarantee needs a finite epsilon and at least one event")
        for event in events:
            if not _is_accountable(event):
                raise InvalidArgument(f"{event.what!r} cannot be certified: it should say how many numbers it releases")
        computed = epsilon_of(events, budget.delta, neighbours=budget.neighbours)
        if computed > budget.epsilon:
            raise BudgetExceeded(
                f"the events cost epsilon={computed:g} at delta={budget.delta:g}, more than the {budget.epsilon:g} "
                "of the budget: add noise, or release less"
            )
        return cls(
            min(budget.epsilon, rounded_up(computed)), budget.delta, budget.unit, budget.neighbours,
            mode="certified", certified=not seeded, releases=tuple(releases), events=tuple(events),
            assumptions=(SEEDED, *assumptions) if seeded else tuple(assumptions),
        )  # fmt: skip

    @classmethod
    def paper(
        cls,
        *,
        epsilon: float,
        delta: float,
        unit: str,
        neighbours: str,
        claim: str,
        releases: Sequence[str],
        assumptions: Sequence[str],
    ) -> Guarantee:
        """Return a published claim, which is not certified.

        Args:
            epsilon, delta: as claimed; delta may be 0.
            unit, neighbours: of the claim.
            claim: what is claimed, by whom, in a sentence.
            releases: what is published, a few words each.
            assumptions: what the claim rests on, one sentence each; a claim without any is refused.
        """
        guarantee = cls(
            float(epsilon), float(delta), unit, neighbours, mode="paper", certified=False,
            assumptions=tuple(assumptions), releases=tuple(releases),
            events=(ClaimEvent(_listed(releases), claim),),
        )  # fmt: skip
        guarantee._check()
        return guarantee

    @property
    def is_private(self) -> bool:
        """Whether anything is promised at all: not by seeded noise."""
        return self.mode != "none" and not self.is_seeded

    @property
    def is_seeded(self) -> bool:
        """Whether the noise came from a seed."""
        return SEEDED in self.assumptions

    def recomputed_epsilon(self) -> float | None:
        """Return what the accountant makes of the events; infinity for a claim, None if nothing is promised."""
        if self.delta is None or self.neighbours is None:
            return None
        if any(isinstance(event, ClaimEvent) for event in self.events):
            return math.inf
        return epsilon_of(self.events, self.delta, neighbours=self.neighbours)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        lists = {name: list(getattr(self, name)) for name in ("assumptions", "releases")}
        return {**asdict(self), **lists, "events": [event.to_json() for event in self.events]}

    @classmethod
    def from_json(cls, content: Any) -> Guarantee:
        """Read what `to_json` wrote; a guarantee this version does not understand is refused, not guessed.

        Epsilon is not recomputed: that is `dpmf.privacy.verify.verify`.
        """
        if not isinstance(content, dict) or set(content) != {field.name for field in fields(cls)}:
            raise DamagedFile("the guarantee of this release is not one that this version of dpmf understands")
        lists = [content[name] for name in ("assumptions", "releases", "events")]
        if not all(isinstance(one, list) for one in lists):
            raise DamagedFile("the guarantee is damaged: assumptions, releases and events should be lists")
        texts = {name: tuple(content[name]) for name in ("assumptions", "releases")}
        events = tuple(event_from_json(event) for event in content["events"])
        guarantee = cls(**{**content, **texts, "events": events})
        try:
            guarantee._check()
        except InvalidArgument as error:
            raise DamagedFile(f"the guarantee is damaged: {error}") from None
        return guarantee

    def _check(self) -> None:
        """Raise `InvalidArgument` unless the fields are such as the constructors make them."""
        if self.mode not in MODES:
            raise InvalidArgument(f"mode={self.mode!r} is unknown: it should be {', '.join(MODES)}")
        for text in (*self.assumptions, *self.releases):
            check_text("one of assumptions and releases", text)
        if self.mode == "none":
            if self != Guarantee.none():
                raise InvalidArgument("mode='none' promises nothing, and something is promised")
            return
        check_unit(self.unit)
        check_neighbours(self.neighbours)
        _check_number("epsilon", self.epsilon, least=0.0, most=math.inf)
        _check_number("delta", self.delta, least=0.0, most=1.0)
        if not isinstance(self.certified, bool) or not self.events or not self.releases:
            raise InvalidArgument("certified should be true or false, and events and releases should be named")
        if self.mode == "paper":
            claims = all(isinstance(event, ClaimEvent) for event in self.events)
            if self.certified or not claims or not self.assumptions:
                raise InvalidArgument("a paper's claim is never certified, and names the claim and its assumptions")
        elif not (all(map(_is_accountable, self.events)) and self.delta and self.certified != self.is_seeded):
            raise InvalidArgument("what rests on a claim, on delta=0 or on seeded noise cannot be certified")

    def __str__(self) -> str:
        if self.mode == "none":
            return "none: not private. Item factors and biases were computed from the ratings without any protection."
        promise = f"({self.epsilon}, {self.delta})-DP per {self.unit}, {self.neighbours}"
        if self.is_seeded:
            return f"not private: noise from a seed, research only; unpredictable noise would be {promise}"
        status = "certified" if self.certified else "paper claim, not certified"
        return f"{promise}, {status}; releases {_listed(self.releases)}"


def rounded_up(epsilon: float) -> float:
    """Return epsilon with six decimals, never smaller than it was.

    >>> rounded_up(0.8289681), rounded_up(2.0)
    (0.828969, 2.0)
    """
    if not math.isfinite(epsilon):
        return epsilon
    shown = round(epsilon, 6)
    return shown if shown >= epsilon else round(shown + 1e-6, 6)


def _is_accountable(event: Event) -> bool:
    return not isinstance(event, ClaimEvent) and event.coordinates > 0


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def _check_number(name: str, value: object, *, least: float, most: float) -> None:
    most = min(most, sys.float_info.max)  # JSON has whole numbers that are larger
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < most:
        raise InvalidArgument(f"{name}={value!r} should be a number from {least:g} on and below {most:g}")
