"""Certified alternating least squares, the public half; see docs/proofs/als.md for the proof.

Released are, each with Gaussian noise: the number of users, unless it is public; how often items are rated, twice; sums
that item biases are made of; and in every round second moments of the users' factors and sums that item factors are
made of. All of them are answers to questions (`dpmf.methods.als.questions`), in which everybody's part is bounded; who
sums them, and how noise gets into the sum, is not decided here. Nothing here sees ratings, and what is done with noisy
sums (averaging over rounds, shrinking) costs nothing.

Rounds do not start over. Each measures what is still missing, with residuals small enough to be clipped tightly, and
the measurements of all rounds are averaged: so the noise of all rounds together counts, not that of the last alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.kernels.bounded_sums import symmetric
from dpmf.methods.als.known import Before, Known, above_noise
from dpmf.methods.als.plan import BIASES, FACTORS, MOMENTS, POPULARITY, USERS, WEIGHTS, ALSPlan
from dpmf.methods.als.questions import CLIP, RADIUS, ALSScript, Moments, Residuals, RidgeFit, clip_of
from dpmf.methods.als.traits import N_LEANINGS, Traits, leanings_of, size_of
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.estimate import Estimate, likely_totals, standardized
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Counts, Headcount
from dpmf.methods.certified.script import within_reach
from dpmf.methods.units import unit_of
from dpmf.model.learnt import BEYOND, Learnt, beyond_chance
from dpmf.ratings import Scale
from dpmf.ratings.features import further_traits_of, traits_of
from dpmf.streams import stream_key

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
_MEAN_SQUARE = 1.0  # of users' factors, to which they are scaled after every round
_ERROR = 0.7  # about the standard deviation of a residual, for a scale as wide as 1 to 5
_SAMPLING = 0.03  # of the variance of a rating counts beside noise, as if people were a sample
_LEAST_TREND_GAIN = 6.0  # in likelihood, by the logarithm, of the trend of a factor along popularity
_LEAST_BIAS_GAIN, _LEAST_LEVEL_GAIN = 2.0, 12.0  # likewise, of biases: of deviations from their trend, and of the trend
_LEAST_FACTOR_GAIN = 4.0  # likewise, of factors with what is said about items
_CLEAR = 2.0  # times the size of noise, from which on a second moment is known well enough to go on from a release
_LEAST_MOVED_GAIN = 2.0  # likewise, of factors, of deviations from an earlier release
_START_SD, _START_REACH = 0.1, 5.0
_RARE_EXPONENT = 0.3
_SHARE_OF_NEW = 0.1  # of all items, which nobody could have rated yet
_GIVEN_SD = 0.18  # of a factor of an item that is given, for a scale as wide as 1 to 5
_GIVEN_RIDGE = 0.4  # the penalty on users' factors, relative to the usual, if those of items are given
_EARLY_RIDGE = 0.2  # the penalty on users' factors until the release is final: what is held down is not measured
_USER_BIAS_RIDGE, _LEAST_BIAS_RIDGE = 3.0, 0.7  # of people with many ratings and with few
_MANY_RATINGS = 40  # from as many ratings a person on, the former: the common level is known well enough to go by
_ENOUGH_RATINGS = 20  # with fewer, a person says less about factors than the rule for their number expects
_LONE_BIAS_RIDGE = 0.1  # the same as long as the common level is not known: the middle of the scale is a poor guess


@dataclass(eq=False)
class PublicALS:
    """What a run asks people for, and what it makes of noisy sums. It knows no ratings.

    Args:
        plan: the public facts.
        scale: of ratings.
        keys: of the catalogue's items, from which the start is drawn.
        seed: of the public start.
        features: what the catalogue says about items, shape (n_items, F); see `dpmf.ratings.features`.
        further: other descriptions of them, one matrix each; see `dpmf.ratings.described`.
        with_traits: whether people's tastes go by these, too, and by how popular and how well liked items are.
    """

    plan: ALSPlan
    scale: Scale
    keys: NDArray[np.uint64]
    seed: int
    features: Array = field(default_factory=lambda: np.zeros((0, 0)))
    further: Sequence[Array] = ()
    with_traits: bool = True
    c: Floats = field(init=False)
    V: Floats = field(init=False)

    def __post_init__(self) -> None:
        scale, n_items = self.scale, self.plan.n_items
        self.mean, self.unit = scale.middle, unit_of(scale)
        self.features = self.features if self.features.size else np.zeros((n_items, 0))
        # Where people answer for themselves, they are told what a list of items says, and nothing else.
        beside = self.further if self.with_traits and self.plan.crowd is None else ()
        listed = self.features if self.with_traits else self.features[:, :0]
        self._traits = Traits(traits_of(listed), [further_traits_of(one) for one in beside])
        self.clip, self.error = clip_of(scale), _ERROR * self.unit
        self.c = np.zeros(n_items, np.float32)
        self.n_users, self.weights = 1.0, np.ones(n_items)
        self.roots = math.inf  # of everybody's number of ratings, added up
        self.totals, self.popularity = np.ones(n_items), np.zeros(n_items)
        self._totals_noise, self._counted = np.ones(n_items), np.ones(n_items)
        self._biases, self._level_known = Estimate.nothing(n_items, 1), False
        self._given = np.zeros((n_items, 0), np.float32)
        self._before: Before | None = None
        self._choose_factors()
        self._passing = math.erf(CLIP / _ERROR / math.sqrt(2))  # how much of a small shift clipping lets through

    def _choose_factors(self) -> None:
        """Begin with factors to be measured, all of them 0; if there are none, with those that were given."""
        K = self._n_measured
        self.V = np.zeros((self.plan.n_items, K), np.float32) if K else self._given
        if self._before is not None:
            self.V = self._before.factors.astype(np.float32)
        self._factors = Estimate.nothing(self.plan.n_items, K)

    @property
    def _typical(self) -> float:
        """How many ratings a person typically has."""
        return (self.roots / self.n_users) ** 2

    @property
    def _n_measured(self) -> int:
        """How many factors are measured here: where people have few ratings, as many as for fewer people."""
        return self.plan.n_factors(self.n_users * min(self._typical / _ENOUGH_RATINGS, 1.0) ** 2)

    @property
    def ridge(self) -> tuple[float, float]:
        """The penalties with which everybody's bias and factors are fitted to the release."""
        return self._bias_penalty, self._penalty(self._user_ridge)

    @property
    def _user_ridge(self) -> float:
        return self.plan.user_ridge * (1.0 if self._n_measured else _GIVEN_RIDGE)

    @property
    def _bias_penalty(self) -> float:
        """The penalty on a person's bias: where few ratings say what it is, the common level must not outweigh them."""
        known = min(max(_USER_BIAS_RIDGE * self._typical / _MANY_RATINGS, _LEAST_BIAS_RIDGE), _USER_BIAS_RIDGE)
        return known if self._level_known else _LONE_BIAS_RIDGE

    def _penalty(self, relative: float) -> float:
        """Return the penalty on factors, given relative to what the assumed spread of errors and factors suggests."""
        n_factors = self._n_measured or int(self._given.any(axis=0).sum())
        return float(relative * max(n_factors, 1) / _MEAN_SQUARE * self.error**2)

    @property
    def script(self) -> ALSScript:
        """What may be asked, where people answer for themselves."""
        return ALSScript(self.plan, self.scale, self._traits.columns)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        if stage.round is not None:
            return self._measure_factors(stage.round)
        return self._measure_biases() if BIASES in stage.releases else self._measure_popularity()

    def fit_after(self, stage: Stage) -> RidgeFit:
        """Return what everybody fits their own bias and factors to once a round is over."""
        return self._fit(self.V, self._user_ridge if stage.round == self.plan.n_rounds - 1 else _EARLY_RIDGE)

    def _fit(self, V: Floats, penalty: float, length: float = 0.0) -> RidgeFit:
        ridges = self._bias_penalty, self._penalty(penalty)
        c, reached, known = (within_reach(one, self.unit) for one in (self.c, V, self._leanings(ridges[1])))
        size = self._trait_size(ridges[1])
        return RidgeFit.beside(self.mean, c, (reached, known), ridges, length, self._traits.used, size)

    def _leanings(self, penalty: float) -> Floats:
        """Return how popular and how well liked items are, in the size that this penalty is for."""
        if not self._n_leanings:
            return np.zeros((self.plan.n_items, 0), np.float32)
        found = leanings_of(self.totals, self._totals_noise, self.c, self.unit)
        return np.asarray(found * np.float32(size_of(penalty / self.error**2) * self.unit))

    @property
    def _n_leanings(self) -> int:
        """How many there are: none until it is known how items are rated, nor where people would be told of them."""
        if not self.with_traits or self.plan.crowd is not None:
            return 0
        earlier = self._before is not None and self._before.with_ratings.any()
        return N_LEANINGS * bool(earlier or (self._rated & self._popular).any())

    @property
    def _popular(self) -> NDArray[np.bool_]:
        """Of which items it is known that people rate them; where counts are the least, no more is known than that."""
        return np.asarray(self._counted > BEYOND * self._totals_noise)

    @property
    def _rated(self) -> NDArray[np.bool_]:
        """Of which items it is known how they are rated."""
        if not np.isfinite(self._biases.variance).all():
            return np.zeros(self.plan.n_items, np.bool_)
        gains = _LEAST_BIAS_GAIN, _LEAST_LEVEL_GAIN
        return self._biases.stands_out(self.popularity, self._bias_sampling, *gains)[:, 0]

    def _trait_size(self, penalty: float) -> float:
        return self._traits.size(penalty / self.error**2) * self.unit

    @property
    def item_factors(self) -> Floats:
        """The factors of items to release: those measured or given, leanings, and then traits.

        They are as many as the number of users asks for, so that anyone can check it: those that were not measured,
        because people have few ratings, are 0.
        """
        penalty, left_out = self.ridge[1], self.plan.n_factors(self.n_users) - self._n_measured
        known = np.hstack([np.pad(self.V, ((0, 0), (0, left_out))), self._leanings(penalty)])
        return self._traits.beside(known, self._trait_size(penalty))

    def start_from(self, before: Before) -> None:
        """Start from an earlier release, with as many factors: what is measured are differences from it."""
        self._before, self._level_known = before, bool(before.biases.any())
        self._traits.keep(before.traits)
        self.c[:] = before.biases
        self._choose_factors()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it."""
        before = self._before
        return {
            **({} if before is None else {"factors before": before.factors}),
            **({"given": self._given} if self._given.size else {}),
            "c": self.c,
            "V": self.V,
            "n_users": np.array([self.n_users]),
            "roots": np.array([self.roots]),
            "weights": self.weights,
            "totals": self.totals,
            "counted": self._counted,
            "noise of totals": self._totals_noise,
            "popularity": self.popularity,
            "biases": np.stack([self._biases.value, self._biases.variance]),
            "factors": np.stack([self._factors.value, self._factors.variance]),
        }

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.n_users, self._given = float(tensors["n_users"][0]), np.array(tensors.get("given", self._given))
        self.roots = float(tensors.get("roots", np.array([math.inf]))[0])  # not known of older runs
        if self._before is not None:
            self._before = self._before._replace(factors=np.array(tensors["factors before"]))
        self._choose_factors()
        self.c[:], self.V[:] = tensors["c"], tensors["V"]
        self.weights, self.totals = np.array(tensors["weights"]), np.array(tensors["totals"])
        self._counted = np.array(tensors.get("counted", self.totals))  # not known of older runs, no more than the next
        self._totals_noise = np.array(tensors.get("noise of totals", self.totals))
        self.popularity = np.array(tensors["popularity"])
        self._biases = Estimate(*np.array(tensors["biases"]))
        known = bool(np.isfinite(self._biases.variance).any())
        self._level_known = known and self._has_level()
        if known:
            self._judge_traits()
        self._factors = Estimate(*np.array(tensors["factors"]))

    def _measure_popularity(self) -> Conversation:
        """Release how many people there are and how much weight items get; choose factors and weights in between."""
        if self.plan.crowd is not None:
            self.n_users = float(self.plan.crowd.n_users)
        elif self.plan.measures(USERS):
            (count,) = yield (Headcount(USERS),)
            self.n_users = above_noise(float(count.values[0]), count.sd)
        if self.plan.measures(POPULARITY):
            (first,) = yield (Counts(POPULARITY, np.ones(self.plan.n_items)),)
            self._weigh(first.values, first.sd)
        self._choose_factors()
        (second,) = yield (Counts(WEIGHTS, self.weights),)
        self._set_totals(second.values, np.full(self.plan.n_items, second.sd))

    def learn_from(self, known: Known) -> None:
        """Learn what another half of the run has released, before this one asks for the rest.

        Totals are only guessed here, and soon measured; but should that stage be lost, the run can do with the guess.
        """
        self.n_users, self._given = known.n_users, self._fitting(known.factors)
        self._weigh(known.counts, known.sd)
        self._choose_factors()
        counts = np.maximum(known.counts, known.sd)
        per_count = self.weights / math.sqrt(counts @ self.weights**2 / counts.sum())
        self._set_totals(counts * per_count, known.sd * per_count)

    def _fitting(self, factors: Floats) -> Floats:
        """Return given factors in the size that penalties are made for; where people are told them, in full width."""
        width = self.plan.given if self.plan.crowd is not None else min(factors.shape[1], self.plan.given)
        known = factors[:, :width]
        mean_square = float(np.square(known[known.any(axis=1)], dtype=np.float64).mean()) if known.any() else 1.0
        given = np.zeros((len(factors), width), np.float32)
        given[:, : known.shape[1]] = known * np.float32(_GIVEN_SD * self.unit / math.sqrt(mean_square))
        return given

    def _weigh(self, counts: Array, sd: float) -> None:
        """Let rare items weigh more than popular ones, given noisy counts; and see how much people rate.

        Who rates n items counts 1/√n for each, so that all counts add up to the sum of everybody's √n: never taken for
        more than it surely is.
        """
        self.roots = max(float(counts.sum()) - 2 * sd * math.sqrt(len(counts)), 0.0)
        self.weights = np.maximum(counts, 2 * sd) ** -_RARE_EXPONENT
        self.weights /= self.weights.max()

    def _set_totals(self, totals: Array, noise: Array) -> None:
        """Set how much weight items get from everybody together, never less than the size of the noise in it.

        Where a run continues an earlier release, never less than three times that: steps of items that have more weight
        than it seems would be too long, and nothing is lost by short ones.
        """
        self._counted, self._totals_noise = totals, noise
        likely = likely_totals(totals, noise, _SHARE_OF_NEW)
        self.totals = likely.steps if self._before is None else np.maximum(totals, BEYOND * noise)
        self.popularity = standardized(likely.levels if self._before is None else np.log(self.totals))

    def _measure_biases(self, what: str = BIASES) -> Conversation:
        """Ask for sums of residuals from factors that are given, if any, and make item biases of them."""
        V = self.V[:, :0] if self._n_measured else self.V
        (sums,) = yield (self._residuals(what, self._fit(V, _EARLY_RIDGE), 1.0, alone=True),)
        self._refine_biases(sums.values[:, 0], sums.sd, 1.0)

    def _measure_factors(self, number: int) -> Conversation:
        """Ask for moments and sums, and make item factors and biases of them; rounds count from 0."""
        K = self._n_measured
        if not K:  # it was not known when the budget was shared out: all that is left goes into biases
            yield from self._measure_biases(FACTORS)
            return
        # Round 0, unless that was lost; where there are factors from before, none is the first.
        first = self._before is None and not np.isfinite(self._factors.variance).any()
        fit = self._start() if first else self._fit(self.V, _EARLY_RIDGE)
        height = self.plan.height(self.n_users)
        moments, sums = yield (
            Moments(MOMENTS, fit, RADIUS, self.weights if self.plan.per_item else None),
            self._residuals(FACTORS, fit, height),
        )
        self._refine_biases(sums.values[:, K], sums.sd, height)
        matrices = symmetric(moments.values, K)
        shared = self._shared_moment(matrices)
        if self.plan.per_item:
            self._refine_per_item(sums.values[:, :K], sums.sd, matrices, moments.sd)
        else:  # and noise alone may make of an eigenvalue so much
            self._refine_factors(sums.values[:, :K], sums.sd, shared, floor=2 * moments.sd / self.n_users)
        if not first and self._before is None and number < self.plan.n_rounds - 1:  # else they have the size already
            self._rescale(float(np.trace(shared)))

    def _residuals(self, what: str, fit: RidgeFit, height: float, *, alone: bool = False) -> Residuals:
        return Residuals(what, self.weights, fit, self.clip, RADIUS, height, alone)

    def _start(self) -> RidgeFit:
        """Return first item factors, to which people fit factors of one length; they are not released.

        What is released already suggests a few directions: those that were given, or else that people differ in how
        much they care for what is popular and for what is well liked. The others are random.
        """
        V = np.zeros_like(self.V)
        fill_randomly(stream_key(self.seed, "item factors"), self.keys, V.shape[1], 1.0, V)
        guesses = _directions(self.popularity, standardized(self.c.astype(np.float64)))[:, : V.shape[1]]
        V[:, : guesses.shape[1]] = guesses
        V *= np.float32(_START_SD * self.unit)
        given = self._given[:, self._given.any(axis=0)][:, : V.shape[1]]
        V[:, : given.shape[1]] = given
        return self._fit(V, _EARLY_RIDGE, math.sqrt(_MEAN_SQUARE))

    def _refine_biases(self, sums: Array, noise: float, height: float) -> None:
        through = self._passing * self.totals * height
        measured, variance = self.c + sums / through, (noise / through) ** 2
        self._biases = self._biases.refined(measured[:, None], variance[:, None])
        before = np.zeros((len(self.c), 1)) if self._before is None else self._before.biases[:, None]
        moved = self._biases.less(before)
        # Of differences from a release descriptions say nothing.
        described = (self.features, self.further) if self._before is None else ()
        gains = _LEAST_BIAS_GAIN, _LEAST_LEVEL_GAIN
        likely = before + moved.shrunk(self.popularity, self._bias_sampling, *gains, *described)
        self.c = likely[:, 0].astype(np.float32)
        self._level_known = self._has_level()
        self._judge_traits()

    @property
    def _bias_sampling(self) -> Array:
        return _SAMPLING * self.error**2 / self.totals[:, None]

    def _has_level(self) -> bool:
        """Return whether more is known of the biases than how items differ."""
        known = self._before is not None and self._before.biases.any()
        return bool(known or self._biases.trends(self.popularity, self._bias_sampling, _LEAST_LEVEL_GAIN).any())

    def _judge_traits(self) -> None:
        """Decide which traits say more about biases than chance would: people's tastes go by them, too."""
        if self._before is None and (self.features.shape[1] or self.further):
            known = self.popularity, self._bias_sampling, _LEAST_LEVEL_GAIN
            found = self._biases.described(*known, self.features, self.further)
            self._traits.judge(found.gains, [size / self.unit for size in found.sizes])

    @property
    def _told(self) -> Array:
        """What the list says about items, and telling further descriptions, shape (n_items, F), standardised."""
        telling = compress(self.further, self._traits.shares)
        return np.hstack([self.features, *(one * math.sqrt(one.shape[1]) for one in telling)])

    def learnt(self) -> Learnt:
        """Return what stands out from the noise."""
        popular = self._popular
        rated = self._rated if np.isfinite(self._biases.variance).all() else ~popular
        factors = self._factors_beyond_noise() & popular[:, None]
        with_factors = factors.any(axis=1)
        known = rated | with_factors
        with_ratings = known & beyond_chance(self._counted, self._totals_noise)
        n_factors, n_rated = int(factors.any(axis=0).sum()), int(np.count_nonzero(popular & known))
        if self._before is not None:  # what was known is known, and noise of these ratings alone was added
            with_factors = with_factors | self._before.with_factors
            with_ratings = with_ratings | self._before.with_ratings
            n_factors = max(n_factors, self._before.n_known)
            n_rated = max(n_rated, int(np.count_nonzero(with_ratings)))
        with_factors = with_factors | self._traits.described
        return Learnt(
            n_items=self.plan.n_items,
            factors=n_factors,
            pairs=0,
            rated=n_rated,
            popular=int(np.count_nonzero(popular)),
            with_factors=np.asarray(with_factors) if self.V.any() or self._n_leanings else None,
            with_ratings=np.asarray(with_ratings),
            leanings=self._n_leanings,
            traits=self._traits.count,
        )

    def _factors_beyond_noise(self) -> NDArray[np.bool_]:
        """Return which factors are known, in the directions in which items differ most; those given all are."""
        if not self.V.any() or not self._n_measured or not np.isfinite(self._factors.variance).all():
            return np.asarray(self.V != 0)
        V = self.V.astype(np.float64)
        _, basis = np.linalg.eigh(V.T @ V)
        turned = self._factors.turned(basis)
        return turned.stands_out(self.popularity, np.zeros_like(turned.value), 0.0, _LEAST_TREND_GAIN)

    @property
    def counts(self) -> Array:
        """About how often items are rated, up to a factor: of totals, what their weight does not explain."""
        return np.asarray(self.totals / self.weights)

    def _shared_moment(self, moments: Array) -> Array:
        """Return the mean of u u' over users."""
        return moments.sum(axis=0) / self.totals.sum() if self.plan.per_item else moments / self.n_users

    def _refine_factors(self, sums: Array, noise: float, shared: Array, floor: float) -> None:
        """Take a step with one second moment for all items, in the basis in which it is diagonal."""
        spread, basis = np.linalg.eigh(shared)
        unclear = spread < _CLEAR * floor  # steps would be too short there, and what moved by noise would stay
        spread = np.maximum(spread, max(1e-3 * spread[-1], floor, 1e-9))
        through = self._passing * self.totals[:, None] * spread
        before = self._factors.turned(basis)
        after = before.refined(self.V @ basis + sums @ basis / through, (noise / through) ** 2)
        sampling = _SAMPLING * self.error**2 / (self.totals[:, None] * spread)
        self._factors = after.turned(basis.T)
        known = self._factors_before @ basis
        described = self._told if self._before is None else None
        gains = self._least_gain, _LEAST_TREND_GAIN
        moved = after.less(known).shrunk(self.popularity, sampling, *gains, described, (), _LEAST_FACTOR_GAIN)
        if self._before is not None:
            moved[:, unclear] = 0
        self.V = ((known + moved) @ basis.T).astype(np.float32)

    def _refine_per_item(self, sums: Array, noise: float, moments: Array, moment_noise: float) -> None:
        """Take a step with a second moment of its own for every item."""
        spread, basis = np.linalg.eigh(self._passing * moments)
        spread = np.maximum(spread, self._passing * moment_noise)
        inverse = np.einsum("jab,jb,jcb->jac", basis, 1 / spread, basis)
        variance = noise**2 * np.einsum("jab,jb->ja", basis**2, 1 / spread**2)
        measured = self.V + np.einsum("jab,jb->ja", inverse, sums)
        self._factors = self._factors.refined(measured, variance)
        sampling = _SAMPLING * self.error**2 * np.einsum("jaa->ja", inverse)
        known = self._factors_before
        moved = self._factors.less(known)
        likely = known + moved.shrunk(self.popularity, sampling, self._least_gain, _LEAST_TREND_GAIN)
        self.V = likely.astype(np.float32)

    @property
    def _least_gain(self) -> float:
        """How likely deviations of factors have to be: those from an earlier release may be none at all."""
        return 0.0 if self._before is None else _LEAST_MOVED_GAIN

    @property
    def _factors_before(self) -> Array:
        """What factors were before anything was measured here: 0 unless there is an earlier release."""
        return np.zeros(self.V.shape) if self._before is None else self._before.factors

    def _rescale(self, mean_square: float) -> None:
        """Scale item factors so that users' factors will have the mean square that the bound is made for."""
        factor = math.sqrt(max(mean_square, 1e-6) / _MEAN_SQUARE)
        self.V *= np.float32(factor)
        self._factors = self._factors.scaled(factor)
        if self._before is not None:
            self._before = self._before._replace(factors=self._before.factors * factor)


def _directions(popularity: Array, liking: Array) -> Array:
    """Return columns of mean 0 and variance about 1, nearly at right angles, made of two such columns."""
    columns: list[Array] = []
    for guess in (popularity, liking, popularity * liking, popularity**2, liking**2):
        left = guess - guess.mean()
        for column in columns:
            left = left - (left @ column) / max(float(column @ column), 1.0) * column
        columns.append(np.clip(standardized(left), -_START_REACH, _START_REACH))
    return np.stack(columns, axis=1)
