"""Public halves of all certified methods on a few items, and their conversations with a few people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.als.certified import PublicALS
from dpmf.methods.als.implicit_certified import PublicImplicitALS
from dpmf.methods.als.known import Before
from dpmf.methods.als.plan import ALSPlan, ImplicitPlan
from dpmf.methods.certified.answer import RatingsAnswerer
from dpmf.methods.certified.conversation import converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.certified.steps import Centre, PublicSteps
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.ease.defaults import ramp_of
from dpmf.methods.ease.plan import EasePlan
from dpmf.methods.ease.ranking import ranking_of
from dpmf.methods.gaussian.certified import FullBatchPlan, centre_of
from dpmf.methods.joint.certified import PublicJoint
from dpmf.methods.joint.plan import JointPlan
from dpmf.methods.sgld.certified import SteppingPlan
from dpmf.methods.sketch.certified import PublicSketch, SketchedPlan
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.titles import Links
from dpmf.ratings.trim import trimmed

from .watch import Record, Recorder

ROUNDS = 3
STARS, LARGE, TWO = Scale(1, 5), Budget(50.0), FactorRule.exactly(2)
Pair = tuple[int, float]
Half = PublicALS | PublicImplicitALS | PublicEase | PublicJoint | PublicSteps


@dataclass(frozen=True)
class Facts:
    """What is public.

    Attributes:
        n_items: the size of the catalogue.
        scale: of the ratings.
        budget: what may be spent.
        factors: how many there are.
        ridge: the penalty on users' factors.
    """

    n_items: int = 4
    scale: Scale = STARS
    budget: Budget = LARGE
    factors: FactorRule = TWO
    ridge: float = 1e-3

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Of the items."""
        return Ids(np.arange(self.n_items)).keys

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Items, factors, and steps."""
        return self.n_items, max(self.factors.most, 1), ROUNDS


FEW = Facts()


class Sampled(SteppingPlan):
    """A plan whose noise nobody calibrated: how much there is does not matter here, and to find it takes seconds."""

    @property
    def event(self) -> PoissonGaussianEvent:
        return PoissonGaussianEvent(self.what, 1.7, self.sampling_rate, self.n_steps, self.coordinates)


class Sketched(Sampled, SketchedPlan):
    """The same for a sketch."""


def _als(facts: Facts, per_item: bool = False) -> PublicALS:
    plan = ALSPlan(facts.n_items, facts.factors, ROUNDS, facts.ridge, facts.budget, per_item=per_item)
    return PublicALS(plan, facts.scale, facts.keys, 3)


def _continued(facts: Facts) -> PublicALS:
    """Return a run that starts from an earlier release, of factors of several sizes."""
    K, rng = facts.factors.most, np.random.default_rng(4)
    public = _als(replace(facts, factors=FactorRule.exactly(K)))
    sizes = np.array([0.1, 0.3, 0.5])
    factors = rng.normal(size=(facts.n_items, K)) * rng.choice(sizes, (facts.n_items, 1))
    known = np.ones(facts.n_items, np.bool_)
    public.start_from(Before(factors, rng.normal(size=facts.n_items), known, known, K, np.zeros(0)))
    return public


class _DescribedALS(PublicALS):
    """Items with traits that always tell: what they say of a few biases is hardly more than chance."""

    def _judge_traits(self) -> None:
        known = bool(self._biases.variance.max() < np.inf) or self._before is not None
        self._traits.tell, self._traits.shares = known, [0.5 * known]


def _described(facts: Facts, *, continued: bool = False, per_item: bool = False) -> PublicALS:
    alone = _continued(facts) if continued else _als(facts, per_item)
    rng = np.random.default_rng(6)
    features, further = rng.normal(size=(facts.n_items, 3)), rng.normal(size=(facts.n_items, 2))
    public = _DescribedALS(alone.plan, facts.scale, facts.keys, 3, features, [further])
    if alone._before is not None:
        public.start_from(alone._before._replace(traits=np.ones(5)))
    return public


def _implicit(facts: Facts, alpha: float, most_count: float = 1.0, linear: bool = False) -> PublicImplicitALS:
    public = facts.n_items, facts.factors, ROUNDS, 0.3, facts.budget
    plan = ImplicitPlan(*public, alpha=alpha, most_count=most_count, linear=linear)
    return PublicImplicitALS(plan, facts.keys, 3)


def _ease(
    facts: Facts, head: int | None, n_users: int | None = None, implicit: bool = False, linked: bool = False
) -> PublicEase:
    first, second = (one.astype(np.int32) for one in np.triu_indices(facts.n_items if linked else 0, 1))
    links = Links(first, second, np.linspace(0.2, 1.0, len(first)))
    plan = EasePlan(facts.n_items, head, n_users, facts.budget, n_links=len(first))
    return PublicEase(plan, ramp_of(facts.scale, implicit=implicit), links if linked else None)


class _FlatEase(PublicEase):
    """What a large catalogue of flat popularity is asked: a head of a few items is never a small part of all."""

    def _groups_say_more(self) -> bool:
        return True


def _grouped(facts: Facts) -> PublicEase:
    public = _ease(facts, None, n_users=10**6, linked=True)
    assert public.links is not None
    pairs = public.links.first, public.links.second
    two_by_two = np.where((pairs[0] % 2 == 0) & (pairs[1] == pairs[0] + 1), 1.0, 0.2)  # so, there are several groups
    return _FlatEase(public.plan, public.ramp, Links(*pairs, two_by_two))


def _joint(
    facts: Facts,
    head: int | None,
    n_users: int | None = None,
    given: int = 0,
    linked: bool = False,
    **changes: Any,
) -> PublicJoint:
    first = _ease(facts, head, n_users, linked=linked)
    known = tuple(part.what for part in first.plan.parts())
    second = PublicALS(replace(_als(facts).plan, known=known, given=given, **changes), facts.scale, facts.keys, 3)
    return PublicJoint(JointPlan(first.plan, second.plan, 0.4, facts.budget), first, second)


def _gaussian(facts: Facts, centering: str) -> PublicSteps:
    centre, plan = centre_of(centering, facts.scale, facts.sizes[1]), FullBatchPlan(*facts.sizes, 0.5, facts.budget)
    return PublicSteps(plan, facts.scale, facts.keys, centre, 1.0, 2, 1)


def _sgld(facts: Facts) -> PublicSteps:
    plan = Sampled(*facts.sizes, 0.5, facts.budget, 0.5)
    return PublicSteps(plan, facts.scale, facts.keys, Centre(facts.scale.middle), 1.0, 2, 1)


def _sketch(facts: Facts, width: int) -> PublicSketch:
    plan = Sketched(*facts.sizes, 0.5, facts.budget, 0.5, depth=2, width=width, median=False)
    return PublicSketch(plan, facts.scale, facts.keys, Centre(facts.scale.middle), 1.0, 2, 1)


HALVES: Mapping[str, Callable[[Facts], Half]] = {
    "als": _als,
    "als-per-item": lambda facts: _als(facts, per_item=True),
    "als-continued": _continued,
    "als-described": _described,
    "als-described-per-item": lambda facts: _described(facts, per_item=True),
    "als-described-continued": lambda facts: _described(facts, continued=True),
    "als-described-biases": lambda facts: _described(replace(facts, factors=FactorRule.exactly(0))),
    "als-implicit": lambda facts: _implicit(facts, 1.0),
    "als-implicit-even": lambda facts: _implicit(facts, 0.0),
    "als-implicit-counts": lambda facts: _implicit(facts, 1.0, 16.0),
    "als-implicit-linear": lambda facts: _implicit(facts, 2.0, 1e6, linear=True),
    "ease": lambda facts: _ease(facts, facts.n_items),
    "ease-implicit": lambda facts: _ease(facts, 2, n_users=4, implicit=True),
    "ease-counts": lambda facts: _ease(
        replace(facts, scale=Scale.of_counts()), facts.n_items, implicit=True, linked=True
    ),
    "ease-of-few": lambda facts: _ease(facts, None),  # people, so that popularity is measured twice
    "ease-linked": lambda facts: _ease(facts, facts.n_items, linked=True),
    "ease-linked-of-few": lambda facts: _ease(facts, None, linked=True),
    "ease-linked-of-many": lambda facts: _ease(facts, None, n_users=10**6, linked=True),
    "ease-grouped": _grouped,
    "joint": lambda facts: _joint(facts, facts.n_items),
    "joint-declared": lambda facts: _joint(facts, 2, n_users=4),
    "joint-of-few": lambda facts: _joint(facts, None),
    "joint-given": lambda facts: _joint(facts, facts.n_items, given=3, factors=FactorRule.exactly(0)),
    "joint-linked": lambda facts: _joint(facts, facts.n_items, linked=True),
    "joint-linked-of-many": lambda facts: _joint(facts, None, n_users=10**6, linked=True),
    "joint-linked-of-few": lambda facts: _joint(facts, None, linked=True),
    "joint-started": lambda facts: _joint(facts, facts.n_items, given=1),
    "gaussian": lambda facts: _gaussian(facts, "mean"),
    "gaussian-raw": lambda facts: _gaussian(facts, "raw"),
    "sgld": _sgld,
    "sketch": lambda facts: _sketch(facts, 5),
    "sketch-of-one-cell": lambda facts: _sketch(facts, 1),
}


@dataclass(frozen=True)
class Someone:
    """A person: an id, pairs of item and rating, and the part of the full weight they agreed to."""

    name: int
    rated: list[Pair]
    share: float = 1.0


@dataclass(frozen=True)
class Setting:
    """A run of a public half.

    Attributes:
        half: its name.
        facts: what is public.
        cap: how many ratings of a person count.
        checked: whether ratings come in by the front door, which refuses what is no rating.
        n_threads: how many there are.
        lost: stages that another process began and did not finish.
        always: the name of somebody who takes part in every step.
    """

    half: str
    facts: Facts = FEW
    cap: int | None = None
    checked: bool = True
    n_threads: int = 1
    lost: frozenset[int] = frozenset()
    always: int = 12

    def public(self) -> Half:
        """Return the public half at its start."""
        return HALVES[self.half](self.facts)

    def ratings(self, people: list[Someone]) -> Ratings:
        """Return everybody's ratings."""
        catalogue, scale = Items.of(np.arange(self.facts.n_items)), self.facts.scale
        rows = [(one.name, item, value) for one in people for item, value in one.rated]
        if self.checked:
            users, items, values = ([row[column] for row in rows] for column in range(3))
            return Ratings.of(users, items, values, scale=scale, items=catalogue)
        people = sorted(people, key=lambda one: one.name)
        return Ratings(
            indptr=np.concatenate([[0], np.cumsum([len(one.rated) for one in people])]).astype(np.int64),
            items=np.array([item for one in people for item, _ in one.rated], np.int32),
            values=np.array([value for one in people for _, value in one.rated], np.float32),
            timestamps=None,
            user_ids=Ids(np.array([one.name for one in people], np.int64)),
            catalogue=catalogue,
            scale=scale,
        )

    def run(self, people: list[Someone], script: list[Record] | None = None) -> tuple[Half, list[Record]]:
        """Carry out all stages, on the sums of these people, or on what the script says was seen."""
        ratings, public = self.ratings(people), self.public()
        names = np.array(list(ratings.user_ids), np.int64)
        shares = {one.name: one.share for one in people}

        def coins(_: int, step: int) -> NDArray[np.bool_]:
            return np.asarray(((names + step) % 3 > 0) | (names == self.always))

        recorder = Recorder(public.plan.events(), Noise(noise_seed=1), script, coins)
        weights, cap = np.array([shares[int(name)] for name in names]), self.cap
        if cap is not None and isinstance(public, PublicSteps):  # where fits are capped, too
            ratings, cap = trimmed(ratings, cap, seed=5), None
        answerer = RatingsAnswerer(ratings, weights, self.n_threads, cap=cap, seed=5)
        curator = Curator(answerer, recorder, self.facts.budget.neighbours)
        for place, stage in enumerate(public.plan.stages()):
            if place not in self.lost:
                assert converse(public, stage, curator)
                continue
            for what in stage.releases:
                curator.forfeit(what)
        curator.finish()
        return public, recorder.records

    def with_neighbours(self, neighbours: str) -> Setting:
        """Return the same setting for other neighbours."""
        return replace(self, facts=replace(self.facts, budget=replace(self.facts.budget, neighbours=neighbours)))


def public_state(public: Half) -> dict[str, NDArray[Any]]:
    """Return all that is public: state, and what follows from it."""
    if isinstance(public, PublicSteps):
        factors, biases = public.items()
        return {**public.state(), "factors": factors, "biases": biases}
    if isinstance(public, PublicEase):
        found = ranking_of(public)
        return {**public.state(), **{name: one for name, one in vars(found).items() if isinstance(one, np.ndarray)}}
    if isinstance(public, PublicJoint):
        return {**public.state(), **public_state(public.ranking), **public_state(public.ratings)}
    return {**public.state(), "ridge": np.array(public.ridge)}
