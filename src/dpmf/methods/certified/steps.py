"""Certified descent, the public half: steps on everybody's clipped gradient with respect to items, with noise.

Whoever takes part in a step fits their own bias and factors to their own ratings and to the items as they are, and
answers with the gradient of their squared error with respect to item factors and biases, clipped as a whole to a length
of C. The sum comes back with Gaussian noise on every coordinate, and items move by it.

How far a step should go depends on how many people rated an item, which is private. So steps begin as long as the noise
allows, but not longer than a few times what noise alone would make them; and where an item's noisy gradient has turned
round since the step before, by more than noise explains, its steps are halved. All of that is made from noisy sums.

Who takes part, how much noise there is and how it is accounted for is up to a plan: see `dpmf.methods.sgld.certified`,
whose steps take a sample of people each, and `dpmf.methods.gaussian.certified`, whose steps take all. Items have rows
of their own here; `dpmf.methods.sketch.certified` keeps them elsewhere.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.kernels.clipped_gradients import add_clipped_gradients
from dpmf.kernels.csr import Csr
from dpmf.kernels.ridge import Penalties, solve_people, squared_errors
from dpmf.methods.centre import on_scale
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.questions import (
    Array,
    Fit,
    Fitted,
    Floats,
    Integers,
    Noisy,
    People,
    Question,
    Rated,
)
from dpmf.methods.certified.script import Crowd, Script, Told, numbers
from dpmf.model import Release, Ridge
from dpmf.privacy import Budget, GaussianEvent, Guarantee, PoissonGaussianEvent
from dpmf.ratings import Items, Scale
from dpmf.streams import stream_key

GRADIENTS = "gradients with respect to item factors and biases"
CLIP = 1.0  # C, in units of a quarter of the scale's width
_BEYOND_NOISE = 3.0  # standard deviations of what noise alone makes of the product of two gradients
_FARTHEST = 2.5  # of a step, as a multiple of what noise alone would make of it
_PULL = 1.0  # how often, in all steps together, the prior takes away what an item has

Event = GaussianEvent | PoissonGaussianEvent


@dataclass(frozen=True)
class StepPlan(Plan):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        n_factors: K.
        n_steps: how many steps there are.
        noise_sd: the standard deviation of the noise that all steps together leave on a factor; sets how far they go.
        budget: what may be spent.
        crowd: those who answer for themselves; None where one party holds all ratings.
    """

    n_items: int
    n_factors: int
    n_steps: int
    noise_sd: float
    budget: Budget
    crowd: Crowd | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def event(self) -> Event:
        """What will be released, with as much noise as the budget asks for."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """What the noise multiplier of the event is relative to."""

    @property
    def sampled(self) -> bool:
        """Whether a coin decides who takes part in a step."""
        return isinstance(self.event, PoissonGaussianEvent)

    @property
    def what(self) -> str:
        """What is released, in words."""
        return GRADIENTS

    @property
    def most_factors(self) -> int:
        """The factors that an item gets."""
        return self.n_factors

    @property
    def sum_size(self) -> int:
        """The numbers that a step releases."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers that a step releases."""
        return self.n_items, self.n_factors + 1

    @property
    def coordinates(self) -> int:
        """How many numbers all steps together release; every share of noise is counted."""
        return self.n_steps * math.prod(self.shape) * (1 if self.crowd is None else self.crowd.n_shares)

    @property
    def step_size(self) -> float:
        """How far items go for a unit of the noisy sum."""
        return self.noise_sd / (self.event.noise_multiplier * self.sensitivity * math.sqrt(self.n_steps))

    def events(self) -> tuple[Event, ...]:
        """Return what will be released."""
        return (self.event,)

    def stages(self) -> tuple[Stage, ...]:
        """Return the steps."""
        return tuple(Stage(f"step {number + 1}", (self.what,), number) for number in range(self.n_steps))


@dataclass(frozen=True)
class Centre:
    """Where predictions start, and what there is besides factors; a public choice.

    Attributes:
        mean: what predictions start from.
        bias_ridge: the penalty on everybody's own bias.
        height: how much biases of items count beside factors; 0 for none.
        start_sd: of item factors.
    """

    mean: float
    bias_ridge: float = 1.0
    height: float = 0.3
    start_sd: float = 0.15


@dataclass(frozen=True, eq=False)
class StepFit:
    """What people fit their own bias and factors to, in units of a quarter of the scale's width.

    Attributes:
        V, c: factors and biases of items.
        bias_ridge, ridge: penalties on a person's bias and factors.
        unit: a quarter of the scale's width.
    """

    V: Floats
    c: Floats
    bias_ridge: float
    ridge: float
    unit: float

    @property
    def n_factors(self) -> int:
        """K."""
        return int(self.V.shape[1])

    def solve(self, rated: Rated, first: int, last: int, fitted: Fitted) -> None:
        """Let people first..last-1 fit their own bias and factors, fitted[i] (out)."""
        penalties = Penalties(self.bias_ridge, self.ridge, 0.0)
        solve_people(rated.csr, first, last, self.V, self.c, 0.0, penalties, *fitted)

    def squared_errors(self, rated: Rated, first: int, last: int, fitted: Fitted) -> float:
        """Return the squared errors of people first..last-1, summed."""
        return float(squared_errors(rated.csr, first, last, self.V, self.c, 0.0, *fitted))

    def same_as(self, other: Fit) -> bool:
        """Return whether everybody's bias and factors come out the same: items move at every step."""
        return self is other


@dataclass(frozen=True, eq=False)
class Gradients(Question):
    """In which direction should items move, for those who take part?

    Attributes:
        what: the name of the release.
        fit: what people fit their own part to.
        centre: where predictions start.
        sampled: whether a coin decides who takes part; the accountant then takes replaced neighbours into account.
    """

    what: str
    fit: StepFit
    centre: Centre
    sampled: bool
    tracks_error = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return len(self.fit.V), self.fit.n_factors + 1

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return CLIP

    def sensitivity(self, neighbours: str) -> float:
        """Return what the noise multiplier is relative to."""
        return self.reach if self.sampled else super().sensitivity(neighbours)

    def needs(self) -> StepFit:
        """Return what people have to fit before they can answer."""
        return self.fit

    def prepared(self, people: People) -> People:
        """Return people with ratings that are centred and in units."""
        of = people.counted
        with np.errstate(all="ignore"):  # a warning would tell of a person
            values = ((of.values - self.centre.mean) / self.fit.unit).astype(np.float32)
        centred = Csr(of.indptr, of.items, values)
        return replace(people, solving=centred, counted=centred)

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's clipped gradient to sums (out)."""
        assert fitted is not None
        ratings, fit = people.counted.csr, self.fit
        numbers = self.centre.height, CLIP, steps
        add_clipped_gradients(ratings, first, last, fit.V, fit.c, *fitted, people.shares, *numbers, sums)


@dataclass(frozen=True)
class StepScript(Script):
    """The steps of certified descent.

    Attributes:
        plan: what they release.
        centre: where predictions start.
        ridge: the penalty on users' factors.
        unit: a quarter of the scale's width.
    """

    plan: StepPlan
    centre: Centre
    ridge: float
    unit: float

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the question of a step."""
        n_items = self.plan.n_items
        return numbers("V", (n_items, self.plan.n_factors)), numbers("c", (n_items,))

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the question of a step."""
        fit = StepFit(told["V"], told["c"], self.centre.bias_ridge, self.ridge, self.unit)
        return (self.question(fit),)

    def question(self, fit: StepFit) -> Gradients:
        """Return the question of a step, given what people fit their own part to."""
        return Gradients(self.plan.what, fit, self.centre, self.plan.sampled)

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same question."""
        (question,) = questions
        assert isinstance(question, Gradients)
        return {"V": question.fit.V, "c": question.fit.c}

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        return {"clip": CLIP, "ridge": self.ridge, "unit": self.unit, **asdict(self.centre)}


@dataclass(eq=False)
class PublicSteps:
    """What a run asks people for, and where its items are. It knows no ratings.

    Args:
        plan: the public facts.
        scale: of ratings.
        keys: of the catalogue's items, from which the start is drawn.
        centre: where predictions start.
        ridge: the penalty on users' factors.
        n_averaged: over how many of the last steps item factors are averaged.
        seed: of the public start.
    """

    plan: StepPlan
    scale: Scale
    keys: NDArray[np.uint64]
    centre: Centre
    ridge: float
    n_averaged: int
    seed: int
    V: Floats = field(init=False)
    c: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_items, K = self.plan.n_items, self.plan.n_factors
        self.unit = (self.scale.hi - self.scale.lo) / 4
        self.V, self.c = np.zeros((n_items, K), np.float32), np.zeros(n_items, np.float32)
        fill_randomly(stream_key(self.seed, "item factors"), self.keys, K, self.centre.start_sd, self.V)
        self._sums = np.zeros((n_items, K + 1))
        self._n_summed = 0
        self._left, self._last = np.ones(self.plan.shape[0]), np.zeros(self.plan.shape)

    def converse(self, stage: Stage) -> Conversation:
        """Ask for the gradient of those who take part, and move the items."""
        assert stage.round is not None
        (noisy,) = yield (self.script.question(self._fit()),)
        self.move(1 - _PULL / self.plan.n_steps, self.moves(noisy))
        if stage.round >= self.plan.n_steps - self.n_averaged:
            self._sums[:, :-1] += self.V
            self._sums[:, -1] += self.c
            self._n_summed += 1

    @cached_property
    def script(self) -> StepScript:
        """What steps ask for."""
        return StepScript(self.plan, self.centre, self.ridge, self.unit)

    def _fit(self) -> StepFit:
        return StepFit(self.V, self.c, self.centre.bias_ridge, self.ridge, self.unit)

    def moves(self, noisy: Noisy) -> Array:
        """Return how far items, or cells, go for a noisy sum, which is public: less if it turned round."""
        values, noise, each = noisy.values, noisy.sd, (len(noisy.values), -1)
        products = (values * self._last).reshape(each)
        self._left[products.sum(axis=1) < -_BEYOND_NOISE * noise**2 * math.sqrt(products.shape[1])] /= 2
        self._last = values
        rows = values.reshape(each)
        lengths = np.sqrt(np.square(rows).mean(axis=1)) / noise
        steps = self.plan.step_size * self._left * np.minimum(1.0, _FARTHEST / np.maximum(lengths, 1e-30))
        return np.asarray((steps[:, None] * rows).reshape(values.shape), np.float64)

    def move(self, keep: float, by: Array) -> None:
        """Move items a step, and pull all of them towards 0 alike."""
        self.V = (keep * self.V + by[:, :-1]).astype(np.float32)
        self.c = (keep * self.c + self.centre.height * by[:, -1]).astype(np.float32)

    def fit_after(self, stage: Stage) -> None:
        """Return nothing: people compute their own part when they take part."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        course = {"sums": self._sums, "n_summed": np.array([self._n_summed]), "left": self._left, "last": self._last}
        return {"V": self.V, "c": self.c, **course}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.V[:], self.c[:], self._sums[:] = tensors["V"], tensors["c"], tensors["sums"]
        self._n_summed = int(tensors["n_summed"][0])
        self._left, self._last = np.array(tensors["left"]), np.array(tensors["last"])

    def items(self) -> tuple[Floats, Floats]:
        """Return factors and biases of items, averaged over the last steps, in the ratings' own units."""
        n_summed = self._n_summed
        sums = self._sums / n_summed if n_summed else np.c_[self.V, self.c].astype(np.float64)
        factors = math.sqrt(self.unit) * sums[:, :-1]
        return factors.astype(np.float32), (self.unit * sums[:, -1]).astype(np.float32)


@dataclass(frozen=True)
class SteppingMethod(CertifiedMethod):
    """A method whose certified mode takes steps on clipped gradients."""

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the steps found."""
        factors, biases = public.items()
        mean, biases = on_scale(public.centre.mean, biases, scale)
        return Release(
            items=catalogue,
            scale=scale,
            mean=mean,
            item_factors=factors,
            item_biases=biases,
            ridge=Ridge(bias=public.centre.bias_ridge, factors=public.ridge * public.unit),
            configuration=configuration,
            guarantee=guarantee,
        )
