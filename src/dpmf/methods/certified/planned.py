"""What the plan of a certified run was made from, recorded in its release, so that anybody can make the plan again.

Nearly all of it is the configuration. Beside that there are the budget, settings as they were given where the
configuration has what a run made of them, the number of users as the mechanism released it, and those who answered for
themselves. `dpmf.methods.verification` rebuilds the plan and compares.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmf.errors import InvalidArgument
from dpmf.methods.certified.script import Crowd
from dpmf.model import Release
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.events import Event

if TYPE_CHECKING:
    from dpmf.methods.certified.method import Learner
    from dpmf.methods.certified.run import Certified

PLAN = "plan"
"""The name of the record in the configuration of a release."""
_FIELDS = ("version", "epsilon", "given", "released")
_MOST = 2**53


class Shape(NamedTuple):
    """The sizes of what a method releases.

    Attributes:
        n_factors: how many factors an item may have.
        biases: whether items have biases; else all are 0.
        n_ranked: how many items the head of a ranking may have; None without a ranking.
        if_alike: whether there is a ranking only if no more than noise is known of how items are rated.
        leanings: whether factors may be how popular and how well liked items are.
    """

    n_factors: Collection[int]
    biases: bool = True
    n_ranked: Collection[int] | None = None
    if_alike: bool = False
    leanings: bool = False


class Expected(NamedTuple):
    """What a release should hold.

    Attributes:
        events: of its method's plan.
        shape: the sizes of what they release.
        as_stated: what had to be taken as the release states it, in a clause; "" if nothing had.
    """

    events: tuple[Event, ...]
    shape: Shape
    as_stated: str = ""


@dataclass(frozen=True)
class PlanRecord:
    """What a plan was made from beside the configuration; public facts, and one noisy number.

    Attributes:
        version: of the method's plans, `Method.plan_version`.
        epsilon: of the budget.
        promised: its delta, unit and neighbours: what noise protects does not show in its size.
        given: settings as they were given, where the configuration has what the run made of them.
        released: the number of users, exactly as the mechanism released it, by the name of its event; empty if it was
            not released.
        of: the method's own configuration, where that of the release is about people who answered for themselves.
        crowd: those people; None where one party held all ratings.
        more: what a method adds, see `Learner.plan_facts`.
    """

    version: int
    epsilon: float
    promised: Mapping[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    released: Mapping[str, float] = field(default_factory=dict)
    of: Mapping[str, Any] | None = None
    crowd: Crowd | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headcount(self) -> float | None:
        """The number of users as released; None if it was not."""
        return next(iter(self.released.values()), None)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        written = {name: getattr(self, name) for name in ("version", "epsilon")}
        written |= {name: dict(getattr(self, name)) for name in ("promised", "given", "released")}
        written |= {} if self.of is None else {"of": dict(self.of)}
        return {**written, **({} if self.crowd is None else {"crowd": list(self.crowd)}), **self.more}

    @classmethod
    def from_json(cls, content: Any) -> PlanRecord:
        """Read what `to_json` wrote, or raise InvalidArgument."""
        if not isinstance(content, dict) or not content.keys() >= set(_FIELDS):
            raise InvalidArgument("the record of its plan is damaged: a field is missing")
        found = dict(content)
        version, epsilon, given, released = (found.pop(name) for name in _FIELDS)
        of, crowd, promised = found.pop("of", None), found.pop("crowd", None), found.pop("promised", {})
        mappings = (promised, given, released, {} if of is None else of)
        if (
            type(version) is not int
            or version < 1
            or not all(isinstance(one, dict) for one in mappings)
            or len(released) > 1
        ):
            raise InvalidArgument("the record of its plan is damaged: a field has the wrong type")
        if not all(map(_is_number, (epsilon, *released.values()))):
            raise InvalidArgument("the record of its plan is damaged: what should be a number is none")
        numbers = {what: float(number) for what, number in released.items()}
        return cls(version, float(epsilon), promised, given, numbers, of, _crowd(crowd), found)


def with_plan(release: Release, learner: Learner, found: Certified, crowd: Crowd | None = None) -> Release:
    """Return a release that records what its plan was made from.

    A run that an older version began may lack a number that was released; then nothing is recorded, as it was then.
    """
    if found.released is None:
        return release
    stated, own = release.configuration, learner.configuration()
    of = None if stated.get("method") == own["method"] else own
    given = {name: value for name, value in own.items() if stated.get(name) != value} if of is None else {}
    budget: Budget = learner.facts()["budget"]
    facts = learner.plan_version, budget.epsilon, promises_of(budget), given, found.released, of, crowd
    record = PlanRecord(*facts, learner.plan_facts())
    return replace(release, configuration={**stated, PLAN: record.to_json()})


def promises_of(promise: Budget | Guarantee) -> dict[str, Any]:
    """Return what a budget, or a guarantee, promises beside epsilon."""
    return {name: getattr(promise, name) for name in ("delta", "unit", "neighbours")}


def _crowd(content: Any) -> Crowd | None:
    if content is None:
        return None
    if not isinstance(content, list) or len(content) != 2 or not all(type(one) is int for one in content):
        raise InvalidArgument(f"crowd={content!r} in the record of its plan should be two whole numbers")
    crowd = Crowd(*content)
    if not 1 <= crowd.n_shares <= crowd.n_users <= _MOST:
        raise InvalidArgument(f"{crowd!r} in the record of its plan should have people, and no more shares of noise")
    return crowd


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
