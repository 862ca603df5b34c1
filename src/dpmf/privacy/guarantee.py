"""The privacy guarantee of a release, as data.

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
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.html import show_facts
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.budget import Budget, check_neighbours, check_unit, delta_warning
from dpmf.privacy.events import ClaimEvent, Event, check_text, event_from_json

MODES = ("none", "certified", "paper")
SEEDED = (
    "The noise was drawn from a seed. Whoever knows or guesses the seed can take the noise away again, so this "
    "release protects nobody: it is for research, and epsilon is what noise that cannot be predicted would give."
)
"""How `Guarantee.seeded` is written in a file: this sentence, word for word, before all other assumptions."""
PERSONAL = "Everybody chose their own epsilon independently of their ratings; the list of choices is not published."
"""How `Guarantee.personal` is written in a file: this sentence, word for word, after all other assumptions."""
_SENTENCES = {"seeded": SEEDED, "personal": PERSONAL}


EARLIER = "earlier: "
"""Begins the names of events of a release that another one starts from."""


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, or its absence. Construct one with `none`, `certified_by` or `paper`.

    Attributes:
        epsilon, delta: the parameters of differential privacy, as `dpmf.privacy.budget.Budget` defines them; None
            without a guarantee. In mode "certified" epsilon was computed from the events, in mode "paper" it is what
            the paper claims.
        unit: what is protected, "user" or "rating"; None if nothing is.
        neighbours: which data sets count as neighbours, "add-remove" or "replace"; None without a guarantee.
        mode: "none", "certified" (bounded, noised and accounted for by this code) or "paper" (a published claim).
        certified: whether the guarantee holds for exactly what the code did. Only in mode "certified", and not even
            then if the noise came from a seed.
        assumptions: what it rests on, one sentence each, for people to read: code reads `seeded` and `personal`.
        releases: what is published, a few words each.
        events: what was done, so that epsilon can be recomputed.
        seeded: whether the noise came from a seed, so that nobody is protected.
        personal: whether users chose an epsilon of their own, none above that of the guarantee.
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
    seeded: bool = False
    personal: bool = False

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
        personal: bool = False,
    ) -> Guarantee:
        """Return the guarantee that the events give, at the delta of the budget.

        Args:
            budget: the largest epsilon allowed.
            events: what is done. Each says how many numbers it releases; claims are refused.
            releases: what is published, a few words each.
            assumptions: what else the guarantee rests on, one sentence each.
            seeded: whether the noise is drawn from a seed. Then nothing is certified.
            personal: whether users chose an epsilon of their own.

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
        guarantee = cls(
            epsilon=min(budget.epsilon, rounded_up(computed)),
            delta=budget.delta,
            unit=budget.unit,
            neighbours=budget.neighbours,
            mode="certified",
            certified=not seeded,
            assumptions=_stated(assumptions, seeded=seeded, personal=personal),
            releases=tuple(releases),
            events=tuple(events),
            seeded=seeded,
            personal=personal,
        )
        guarantee._check_sentences()
        return guarantee

    def own_events(self) -> tuple[Event, ...]:
        """Return the events of the run itself, without those of a release that it started from."""
        return tuple(event for event in self.events if not event.what.startswith(EARLIER))

    def earlier_events(self) -> tuple[Event, ...]:
        """Return the events of a release that the run started from, as that release names them."""
        found = [event for event in self.events if event.what.startswith(EARLIER)]
        return tuple(replace(event, what=event.what.removeprefix(EARLIER)) for event in found)

    def after(self, earlier: Guarantee) -> Guarantee:
        """Return the guarantee of this and an earlier release together, for whoever is in the data of both.

        The earlier events come first, under names that say so. It rests on whatever either of them rests on.

        Raises:
            BudgetExceeded: together they cost more than can be accounted for at this delta.
        """
        assert self.delta is not None
        assert self.neighbours is not None
        before = tuple(replace(one, what=f"{EARLIER}{one.what}") for one in earlier.events)
        events = (*before, *self.events)
        epsilon = epsilon_of(events, self.delta, neighbours=self.neighbours)
        if not math.isfinite(epsilon):
            raise BudgetExceeded(
                f"epsilon={self.epsilon:g} after the earlier {earlier.epsilon:g} is more than can be accounted for at "
                f"delta={self.delta:g}: ask for a smaller epsilon, or train on all ratings"
            )
        return replace(
            self,
            epsilon=rounded_up(epsilon),
            events=events,
            releases=tuple(dict.fromkeys((*earlier.releases, *self.releases))),
            assumptions=tuple(dict.fromkeys((*self.assumptions, *earlier.assumptions))),
            certified=self.certified and earlier.certified,
            seeded=self.seeded or earlier.seeded,
            personal=self.personal or earlier.personal,
        )

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
        seeded: bool = False,
        personal: bool = False,
    ) -> Guarantee:
        """Return a published claim, which is not certified.

        Args:
            epsilon, delta: as claimed; delta may be 0.
            unit, neighbours: of the claim.
            claim: what is claimed, by whom, in a sentence.
            releases: what is published, a few words each.
            assumptions: what the claim rests on, one sentence each; a claim without any is refused.
            seeded, personal: as in `certified_by`.
        """
        guarantee = cls(
            epsilon=float(epsilon),
            delta=float(delta),
            unit=unit,
            neighbours=neighbours,
            mode="paper",
            certified=False,
            assumptions=_stated(assumptions, seeded=seeded, personal=personal),
            releases=tuple(releases),
            events=(ClaimEvent(_listed(releases), claim),),
            seeded=seeded,
            personal=personal,
        )
        guarantee._check()
        return guarantee

    @property
    def is_private(self) -> bool:
        """Whether there is any guarantee or claim: seeded noise gives none."""
        return self.mode != "none" and not self.seeded

    @property
    def warning(self) -> str | None:
        """Why delta protects hardly anybody, in a sentence; None if it does not seem to be too large."""
        return delta_warning(self.delta)

    def recomputed_epsilon(self) -> float | None:
        """Return epsilon as the accountant computes it from the events; infinity for a claim, None without either."""
        if self.delta is None or self.neighbours is None:
            return None
        if any(isinstance(event, ClaimEvent) for event in self.events):
            return math.inf
        return epsilon_of(self.events, self.delta, neighbours=self.neighbours)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `seeded` and `personal` are sentences among the assumptions there."""
        lists = {name: list(getattr(self, name)) for name in ("assumptions", "releases")}
        written = {**asdict(self), **lists, "events": [event.to_json() for event in self.events]}
        return {name: written[name] for name in _written_fields()}

    @classmethod
    def from_json(cls, content: Any) -> Guarantee:
        """Read what `to_json` wrote; a guarantee this version does not understand is refused, not guessed.

        Epsilon is not recomputed: that is `dpmf.privacy.verify.verify`.
        """
        if not isinstance(content, dict) or set(content) != set(_written_fields()):
            raise DamagedFile("the guarantee of this release is not one that this version of dpmf understands")
        lists = [content[name] for name in ("assumptions", "releases", "events")]
        if not all(isinstance(one, list) for one in lists):
            raise DamagedFile("the guarantee is damaged: assumptions, releases and events should be lists")
        texts = {name: tuple(content[name]) for name in ("assumptions", "releases")}
        events = tuple(event_from_json(event) for event in content["events"])
        # The one place where a sentence is data: the format of a release has no other field for these.
        said = {name: sentence in texts["assumptions"] for name, sentence in _SENTENCES.items()}
        guarantee = cls(**{**content, **texts, **said, "events": events})
        try:
            guarantee._check()
        except InvalidArgument as error:
            raise DamagedFile(f"the guarantee is damaged: {error}") from None
        return guarantee

    def _check(self) -> None:
        """Raise `InvalidArgument` unless the fields are as the constructors set them."""
        if self.mode not in MODES:
            raise InvalidArgument(f"mode={self.mode!r} is unknown: it should be {', '.join(MODES)}")
        for text in (*self.assumptions, *self.releases):
            check_text("one of assumptions and releases", text)
        self._check_sentences()
        if self.mode == "none":
            if self != Guarantee.none():
                raise InvalidArgument("mode='none' guarantees nothing, and a guarantee is stated")
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
        elif not (all(map(_is_accountable, self.events)) and self.delta and self.certified != self.seeded):
            raise InvalidArgument("what rests on a claim, on delta=0 or on seeded noise cannot be certified")

    def _check_sentences(self) -> None:
        """Refuse an assumption that a field should state: written to a file, it would set that field when read."""
        for name, sentence in _SENTENCES.items():
            if getattr(self, name) != (sentence in self.assumptions):
                raise InvalidArgument(
                    f"{name}={getattr(self, name)} contradicts the assumptions: pass {name}=True, not its sentence"
                )

    def __str__(self) -> str:
        if self.mode == "none":
            return "none: not private. Item factors and biases were computed from the ratings without any protection."
        stated = f"({self.epsilon}, {self.delta})-DP per {self.unit}, {self.neighbours}"
        if self.seeded:
            return f"not private: noise from a seed, research only; unpredictable noise would be {stated}"
        status = "certified" if self.certified else "paper claim, not certified"
        warning = "" if self.warning is None else f". WARNING: {self.warning}"
        return f"{stated}, {status}; releases {_listed(self.releases)}{warning}"

    def _repr_html_(self) -> str:
        """Return what is guaranteed and what it rests on."""
        facts: dict[str, object] = {"guarantee": str(self)}
        if self.mode != "none":
            facts |= {"releases": self.releases, "it rests on": self.assumptions}
            facts["recompute with"] = "dpmf.privacy.verify, or `dpmf verify`"
        return show_facts("Guarantee", facts)


def rounded_up(epsilon: float) -> float:
    """Return epsilon with six decimals, never smaller than it was.

    >>> rounded_up(0.8289681), rounded_up(2.0)
    (0.828969, 2.0)
    """
    if not math.isfinite(epsilon):
        return epsilon
    shown = round(epsilon, 6)
    return shown if shown >= epsilon else round(shown + 1e-6, 6)


def _stated(assumptions: Sequence[str], *, seeded: bool, personal: bool) -> tuple[str, ...]:
    """Return the assumptions with the sentences of what is true, each sentence once."""
    first, last = [SEEDED] if seeded else [], [PERSONAL] if personal else []
    return tuple(dict.fromkeys((*first, *assumptions, *last)))


def _written_fields() -> list[str]:
    return [field.name for field in fields(Guarantee) if field.name not in _SENTENCES]


def _is_accountable(event: Event) -> bool:
    return not isinstance(event, ClaimEvent) and event.coordinates > 0


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def _check_number(name: str, value: object, *, least: float, most: float) -> None:
    most = min(most, sys.float_info.max)  # JSON has whole numbers that are larger
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < most:
        raise InvalidArgument(f"{name}={value!r} should be a number from {least:g} on and below {most:g}")
