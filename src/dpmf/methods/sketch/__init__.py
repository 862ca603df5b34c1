"""Matrix factorization in a count sketch (Balu and Furon 2016): the factors of everybody and everything in one table.

A rating is predicted as mean + b_i + c_j + u_i·v_j, as in SGD. But the factors of users and items have no rows of
their own: they share the cells of a table whose size is fixed in advance, and are told apart by hash functions and
random signs (`dpmf.kernels.sketch`). It takes a fraction of the memory, and new users and items need none. Without a
finite epsilon nothing is private. With one, mode "paper" skips ratings with a large loss and repeats a claim
(`dpmf.methods.sketch.claim`), and mode "certified" keeps item factors alone in a sketch, all of whose cells get noise
(`dpmf.methods.sketch.certified`).

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = Sketch(n_factors=2, n_epochs=5, budget=Budget(math.inf)).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dpmf.engine.store import AnyRatings, counts_of
from dpmf.errors import InvalidArgument
from dpmf.kernels.sketch import MOST_ROWS, SketchStep
from dpmf.methods.base import RunOptions, Section, settings_of
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import Centre, SteppingMethod
from dpmf.methods.checks import (
    check_given,
    check_private,
    check_sizes,
    declared,
    fraction,
    not_negative,
    positive,
    public_facts,
    whole,
)
from dpmf.methods.sgd.defaults import suggested
from dpmf.methods.sgld.certified import CertifiedSettings
from dpmf.methods.sketch.certified import PublicSketch, SketchedPlan, sketched_plan
from dpmf.methods.sketch.claim import claim_of
from dpmf.methods.sketch.defaults import MEANINGLESS, STREAM, EpochSettings, defaults_for
from dpmf.methods.sketch.run import fit_sketch
from dpmf.methods.sketch.stream import SketchStream
from dpmf.methods.sketch.table import CountSketch, width_for
from dpmf.methods.units import unit_of
from dpmf.model import Model
from dpmf.privacy import Budget, Guarantee
from dpmf.ratings import Items, Ratings, Scale

MOST_FACTORS, MOST_EPOCHS, MOST_WIDTH = 1 << 16, 1 << 20, (1 << 31) - 1
_START_SD = 0.01  # of u_i·v_j, on a scale as wide as 1 to 5


@dataclass(frozen=True)
class Sketch(SteppingMethod):
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors.
        n_epochs: how often every rating is visited; in mode "certified", the number of steps.
        budget: `Budget(math.inf)` says explicitly that nothing has to be private. In mode "paper" epsilon is the
            greatest loss e²/2 with which a rating counts, and is claimed to be that of one rating.
        mode: what kind of guarantee a finite epsilon is: "certified", or "paper", a published claim.
        depth: k, the rows of the table.
        gain: gamma, how much smaller the table is than dense factors would be.
        width: w, the cells of a row; chosen by the gain unless given.
        query: whether the "mean" or the "median" of the rows counts.
        biases: where biases are: in the "sketch", as one more component; subtracted "means", as published, for which
            memory is needed in proportion to users and items; or "none". Not in mode "certified", where those of items
            are in the sketch.
        learning_rate: eta in the first epoch, for a scale as wide as 1 to 5. In mode "certified", the standard
            deviation of the noise that all steps together leave on a factor. None chooses.
        decay: "linear" lets eta fall in a straight line towards 0; a number b gives eta / (1 + b t/T) after t of T
            epochs. Not in mode "certified".
        regularization: lambda, the penalty on squared factors and biases per rating. In mode "certified", the penalty
            on users' factors.
        sampling_rate, n_samples, cap: in mode "certified" only, see `dpmf.methods.sgld.SGLD`.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the hash functions, the start and the order.
        noise_seed: research only, in mode "certified"; the same noise every time, and no guarantee.
    """

    name: ClassVar[str] = "sketch"
    one_each: ClassVar[bool] = False  # items share cells
    modes: ClassVar[tuple[str, ...]] = ("certified", "paper")

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    mode: Literal["certified", "paper"] = "certified"
    depth: int = 4
    gain: float = 1.0
    width: int | None = None
    query: Literal["mean", "median"] = "mean"
    biases: Literal["sketch", "means", "none"] | None = None
    learning_rate: float | None = None
    decay: float | Literal["linear"] | None = None
    regularization: float | None = None
    sampling_rate: float | None = None
    n_samples: int | None = None
    cap: int | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        whole("depth", self.depth, most=MOST_ROWS)
        positive("gain", self.gain)
        check_given(self, positive, "learning_rate")
        check_given(self, not_negative, "regularization")
        check_given(self, whole, "cap")
        check_sizes(self, n_factors=MOST_FACTORS, n_epochs=MOST_EPOCHS, width=MOST_WIDTH)
        check_sizes(self, n_samples=self.n_epochs or MOST_EPOCHS)
        if self.decay not in (None, "linear"):
            not_negative("decay", self.decay)  # type: ignore[arg-type]
        choices = {"query": ("mean", "median"), "biases": (None, "sketch", "means", "none")}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                choice = " or ".join(str(one) for one in known if one is not None)
                raise InvalidArgument(f"{name}={getattr(self, name)!r} is not known: choose {choice}")
        if self.width is not None and self.gain != 1:
            raise InvalidArgument(f"gain={self.gain!r} chooses a width, and width={self.width} is given: leave one out")
        kind = "an infinite epsilon" if not self.is_private else f"mode={self.mode!r}"
        for name in MEANINGLESS[self.kind]:
            if getattr(self, name) is not None:
                raise InvalidArgument(f"{name} means nothing with {kind}: leave it out")
        if self.kind == "paper" and self.budget.neighbours != "add-remove":
            raise InvalidArgument("neighbours='replace': the claim is about a rating that is added, use add-remove")
        if self.kind == "certified":
            if self.budget.unit != "user":
                raise InvalidArgument(f"unit={self.budget.unit!r}: a certified sketch protects users")
            if self.sampling_rate is not None:
                positive("sampling_rate", self.sampling_rate)
                fraction("sampling_rate", self.sampling_rate)

    @property
    def is_private(self) -> bool:
        """Whether there is a finite epsilon, be it a claim only."""
        return self.budget.is_finite

    @property
    def kind(self) -> str:
        """The mode, and "none" without a finite epsilon."""
        return self.mode if self.is_private else "none"

    @classmethod
    def unit_for(cls, mode: str) -> str:
        """Return whom a guarantee protects: the claim is about a rating, the certificate about a user."""
        return "rating" if mode == "paper" else "user"

    @classmethod
    def private_fields(cls, mode: str, epsilon: float, delta: float | None = None, **more: Any) -> dict[str, Any]:
        """Return the fields that an epsilon sets; a claim has no delta."""
        if mode == "paper" and math.isfinite(epsilon) and delta is not None:
            raise InvalidArgument("delta means nothing for the claim about sketch, which has none: leave it out")
        return super().private_fields(mode, epsilon, delta, **more)

    @property
    def n_turns(self) -> int | None:
        """How many epochs, or steps, there are."""
        return int(self.facts()["n_epochs"])

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        if self.kind == "certified":
            return self.certify(ratings, options)
        assert isinstance(ratings, Ratings)
        if options.user_budgets is not None:
            raise InvalidArgument("user_budgets means nothing here: the claim is the same for everybody, leave it out")
        if self.kind == "paper":
            declared(ratings, self.items_public)
        guarantee = self.guarantee(public_facts(ratings.catalogue))
        return fit_sketch(self.chosen_for(ratings), ratings, options, guarantee)

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicSketch:
        """Return the public half of a certified run."""
        settings = settings_of(CertifiedSettings, self.facts())
        plan, how = self.plan_of(catalogue, scale, crowd), (settings.regularization, settings.n_samples)
        return PublicSketch(plan, scale, catalogue.ids.keys, Centre(scale.middle), *how, self.seed)

    def plan_of(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> SketchedPlan:
        """Return the plan of a certified run."""
        return sketched_plan(self, len(catalogue), settings_of(CertifiedSettings, self.facts()), crowd)

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open, as far as that can be done beforehand."""
        return defaults_for("paper" if self.mode == "paper" else self.kind, self.n_epochs)

    def stream(self, scale: Scale | Sequence[float] | str) -> SketchStream:
        """Return a learner that takes ratings batch by batch; see `dpmf.methods.sketch.stream`."""
        if self.kind == "certified":
            raise InvalidArgument(
                "a stream cannot be certified: everybody's ratings come when they come, and all of them count; use fit"
            )
        for name in ("decay", "n_epochs"):
            if getattr(self, name) is not None:
                raise InvalidArgument(f"{name} means nothing for a stream: every rating is visited once, leave it out")
        if self.width is None:
            raise InvalidArgument("a stream needs width=…: nobody knows yet how many users and items will come")
        if self.biases == "means":
            raise InvalidArgument("biases='means' needs all ratings at once: a stream has biases='sketch' or 'none'")
        return SketchStream(self._chosen(STREAM), Scale.of(scale))

    def chosen_for(self, ratings: Ratings) -> Sketch:
        """Return the same configuration with whatever was left open chosen, for a run that is not certified."""
        per_user, per_item = counts_of(ratings)
        rate, penalty = suggested(len(ratings), int(np.count_nonzero(per_user)), int(np.count_nonzero(per_item)))
        return self._chosen({"learning_rate": rate, "regularization": penalty})

    def _chosen(self, more: Mapping[str, Any]) -> Sketch:
        usual = {**self.usual(), **more}
        return replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})

    def width_for(self, n_ids: int) -> int:
        """Return w for a number of users and items; in mode "certified" items alone are in the sketch."""
        n_factors = int(self.facts()["n_factors"])
        return width_for(n_ids, n_factors, self.depth, self.gain) if self.width is None else self.width

    def table_for(self, n_users: int, n_items: int, scale: Scale) -> CountSketch:
        """Return the table at its start, with everything chosen."""
        facts = self.facts()
        return CountSketch.start(
            depth=self.depth,
            width=self.width_for(n_users + n_items),
            n_factors=facts["n_factors"],
            biased=facts["biases"] == "sketch",
            median=self.query == "median",
            sd=math.sqrt(_START_SD) / facts["n_factors"] ** 0.25,
            unit=unit_of(scale),
            seed=self.seed,
        )

    def resolve(self) -> EpochSettings:
        """Return the settings of epochs, with everything chosen: see `chosen_for`."""
        return settings_of(EpochSettings, self.facts())

    def step(self, epoch: int, mean: float, scale: Scale) -> SketchStep:
        """Return the numbers of an epoch, counted from 1, in units; e²/2 counts up to epsilon in the ratings' own."""
        unit, settings = unit_of(scale), self.resolve()
        most = 2 * self.budget.epsilon / unit**2
        return SketchStep.of(mean / unit, settings.rate(epoch), settings.regularization, most)

    def rate(self, epoch: int) -> float:
        """Return eta in an epoch, counted from 1."""
        return self.resolve().rate(epoch)

    def guarantee(self, assumptions: Sequence[str]) -> Guarantee:
        """Return what is claimed of a run that is not certified."""
        if not self.is_private:
            return Guarantee.none()
        sized = self.width is None or self.learning_rate is None or self.regularization is None
        means = self.facts()["biases"] == "means"
        return claim_of(self.budget.epsilon, exact_means=means, data_sized=sized, assumptions=assumptions)

    def report(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return rows, cells per row and bytes of the table, and the bytes of dense factors of the same ids."""
        n_ids = len(model.release.items)
        if model.guarantee.mode != "certified":  # there items alone are in it
            n_ids += len(model.user_ids)
        width = self.width_for(n_ids)
        return {
            "sketch": {
                "rows": self.depth,
                "cells_per_row": width,
                "bytes": 4 * self.depth * width,
                "dense_bytes": 4 * n_ids * model.release.n_factors,
            }
        }

    def sections(self, report: Mapping[str, Any]) -> Iterator[Section]:
        """Yield how much memory the table takes."""
        size = report["sketch"]
        ours, dense = (size[name] / 1e6 for name in ("bytes", "dense_bytes"))
        cells = f"{size['rows']} rows of {size['cells_per_row']:,} cells"
        yield Section(note=f"The sketch has {cells}: {ours:.2f} MB, where dense factors take {dense:.2f} MB")
