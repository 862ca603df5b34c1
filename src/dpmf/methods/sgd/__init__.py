"""Biased matrix factorization by stochastic gradient descent. Fast, accurate, and not private.

A rating is predicted as mean + b_i + c_j + u_i·v_j; squared error with an L2 penalty per rating is minimised by
visiting all ratings once per epoch in the order of the block grid. The same seed gives the same bits for any number
of threads.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = SGD(n_factors=2, n_epochs=5).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Cluster
from dpmf.engine.grid import BlockGrid
from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings, counts_of
from dpmf.errors import InvalidArgument
from dpmf.methods.base import Callback, Method, RunOptions, settings_of
from dpmf.methods.checks import fraction, not_negative, positive, whole
from dpmf.methods.sgd.defaults import Settings, suggested
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.sgd.stopping import EarlyStopping
from dpmf.methods.snapshots import restore, save, snapshots_of
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

MOST_FACTORS = 1 << 16


@dataclass(frozen=True)
class SGD(Method):
    """Configuration of the method.

    Attributes:
        n_factors: K, the length of the factor vectors.
        n_epochs: how often every rating is visited.
        learning_rate: eta, in the first epoch, for a scale as wide as 1 to 5; other scales are converted to it.
            None chooses it to fit the data, see `dpmf.methods.sgd.defaults`.
        regularization: lambda, the penalty on squared factors and biases per rating, likewise.
        decay: "linear" lets eta fall in a straight line towards 0; a number gamma gives eta / epoch^gamma.
        initial_sd: standard deviation of u_i·v_j before the first update, likewise.
        storage: the type of item factors while training; "bfloat16" halves their memory and the traffic they cause,
            which pays off from about 500 factors. Arithmetic is in float32 either way.
        validation: the fraction of the ratings held out for early stopping; 0 for none.
        patience: the number of epochs without a better validation error after which training ends.
        seed: fixes initial factors and the validation part.
    """

    name: ClassVar[str] = "sgd"

    n_factors: int = 64
    n_epochs: int = 30
    learning_rate: float | None = None
    regularization: float | None = None
    decay: float | Literal["linear"] = "linear"
    initial_sd: float = 0.01
    storage: Literal["float32", "bfloat16"] = "float32"
    validation: float = 0.0
    patience: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        whole("n_factors", self.n_factors, most=MOST_FACTORS)
        whole("n_epochs", self.n_epochs)
        whole("patience", self.patience)
        whole("seed", self.seed, least=0, most=(1 << 63) - 1)
        positive("initial_sd", self.initial_sd)
        if self.learning_rate is not None:
            positive("learning_rate", self.learning_rate)
        if self.regularization is not None:
            not_negative("regularization", self.regularization)
        fraction("validation", self.validation)
        if self.storage not in ("float32", "bfloat16"):
            raise InvalidArgument(f"storage={self.storage!r} is not known: choose float32 or bfloat16")
        if self.decay != "linear":
            not_negative("decay", self.decay)

    @property
    def kind(self) -> str:
        """What kind of run it is: never private."""
        return "none"

    @property
    def streams(self) -> bool:
        """Whether ratings may stay on disk: always."""
        return True

    @property
    def n_turns(self) -> int:
        """How many epochs there are at most."""
        return self.n_epochs

    @property
    def training_share(self) -> float:
        """The fraction of the ratings that it learns from; the rest is for validation."""
        return 1 - self.validation

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster: always."""
        return True

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        chosen = self.chosen_for(ratings)
        if options.cluster is not None:
            assert isinstance(ratings, StoredRatings)
            return chosen._fit_on(options.cluster, ratings, options)
        return chosen._fit(ratings, options.n_threads, options.callbacks, options.checkpoint)

    def chosen_for(self, ratings: Ratings | StoredRatings) -> SGD:
        """Return the same configuration with open settings chosen to fit these ratings."""
        per_user, per_item = counts_of(ratings)
        rate, penalty = suggested(len(ratings), int(np.count_nonzero(per_user)), int(np.count_nonzero(per_item)))
        return replace(
            self,
            learning_rate=rate if self.learning_rate is None else self.learning_rate,
            regularization=penalty if self.regularization is None else self.regularization,
        )

    def _fit(
        self,
        ratings: Ratings | StoredRatings,
        n_threads: int,
        callbacks: tuple[Callback, ...],
        checkpoint: Checkpoint | None,
    ) -> Model:
        settings = self.resolve()
        training, held_out = ratings, None
        if self.validation:
            if isinstance(ratings, StoredRatings):
                raise InvalidArgument("validation needs the ratings in memory: leave it out, or allow more memory")
            training, held_out = ratings.split(self.validation, seed=self.seed)
            if not len(training) or not len(held_out):
                raise InvalidArgument(f"validation={self.validation} leaves nothing to train on or to validate with")
        resources = Resources(n_threads)
        if isinstance(training, StoredRatings):
            resources = Resources.for_factors(training, self.n_factors, n_threads)
        state = self._start(training, resources)
        state.forget_unrated(*counts_of(training))
        watch = None if held_out is None else EarlyStopping(state, held_out, self.patience, resources.n_threads)
        same, mean = {"name": "sgd", **self.facts()}, state.grid.mean
        with snapshots_of(checkpoint, same, training, state.grid.fingerprint, mean=mean) as snapshots:
            history = restore(snapshots, state.tensors(), None if watch is None else watch.restore)
            while len(history) < self.n_epochs and not (watch is not None and watch.exhausted):
                epoch = len(history) + 1
                record = state.run_epoch(epoch, settings.rate(epoch), settings.regularization, resources.executor)
                history.append(record if watch is None else watch.measure(record))
                if snapshots is not None and (snapshots.is_due(epoch) or epoch == self.n_epochs):
                    tensors, facts = ({}, {}) if watch is None else watch.progress()
                    save(snapshots, {**state.tensors(), **tensors}, history, stopping=facts)
                stops = [callback(history[-1]) is True for callback in callbacks]  # every one is called
                if any(stops):
                    break
        if watch is not None:
            watch.restore_best()
        return self._model(ratings, state, tuple(history))

    def resolve(self) -> Settings:
        """Return the settings of epochs, with everything chosen: see `chosen_for`."""
        return settings_of(Settings, self.facts())

    def rate(self, epoch: int) -> float:
        """Return eta in an epoch, counted from 1."""
        return self.resolve().rate(epoch)

    def _start(self, ratings: Ratings | StoredRatings, resources: Resources) -> Descent:
        unit = unit_of(ratings.scale)
        return Descent.start(
            ratings.blocks
            if isinstance(ratings, StoredRatings)
            else BlockGrid.build(ratings, n_threads=resources.n_threads),
            ratings.user_ids.keys,
            ratings.catalogue.ids.keys,
            n_factors=self.n_factors,
            sd=self._start_sd(unit),
            unit=unit,
            seed=self.seed,
            packed=self.storage == "bfloat16",
            user_folder=resources.user_folder,
        )

    def _start_sd(self, unit: float) -> float:
        sd: float = math.sqrt(self.initial_sd * unit) / self.n_factors**0.25
        return sd

    def _fit_on(self, cluster: Cluster, ratings: StoredRatings, options: RunOptions) -> Model:
        """Train on the workers of a cluster."""
        from dpmf.methods.sgd.spread import descend_on

        if self.validation:
            raise InvalidArgument("validation needs the ratings in memory: leave it out on a cluster")
        unit = unit_of(ratings.scale)
        found = descend_on(self, ratings, options, cluster, self._start_sd(unit), unit)
        release = self._release(ratings, ratings.blocks.mean, found.factors, found.biases)
        return Model.without_users(release, found.history)

    def _release(
        self, ratings: AnyRatings, mean: float, factors: NDArray[np.float32], biases: NDArray[np.float32]
    ) -> Release:
        penalty = self.resolve().regularization
        return Release(
            items=ratings.catalogue,
            scale=ratings.scale,
            mean=mean,
            item_factors=factors,
            item_biases=biases,
            # SGD applies the penalty once per rating, so a person's own fit does the same.
            ridge=Ridge(bias=penalty, factors=penalty * unit_of(ratings.scale), exponent=1.0),
            configuration=self.configuration(),
            guarantee=Guarantee.none(),
        )

    def _model(self, ratings: Ratings | StoredRatings, state: Descent, history: tuple[EpochRecord, ...]) -> Model:
        user_factors, user_biases = state.user_side()
        release = self._release(ratings, state.grid.mean, *state.item_side())
        seen = ratings.seen() if isinstance(ratings, StoredRatings) else (ratings.indptr, ratings.items)
        return Model(release, ratings.user_ids, user_factors, user_biases, *seen, history)
