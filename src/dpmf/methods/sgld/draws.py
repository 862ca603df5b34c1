"""Draws of `dpmf.methods.sgld`: the start of a chain from ratings, averages of its draws, and their model.

Item factors are averaged over draws. The posterior does not change when factors are rotated, but a chain rotates them
slowly, so draws of consecutive epochs can be averaged without aligning them.

>>> from dpmf.ratings.synthetic import make
>>> settings = ChainSettings(
...     n_factors=4, n_epochs=1, learning_rate=0.1, decay=0.0, regularization=2.0, temperature=1.0, n_samples=1, table=0
... )
>>> chain = start_chain(make(50, 40), np.ones(50), None, Resources(1), settings, seed=0, noise_seed=0)
>>> averages = Averages.start(chain)
>>> averages.add(chain)
>>> averages.item_factors.shape
(40, 4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.grid import BlockGrid
from dpmf.engine.resources import Resources
from dpmf.engine.store import StoredRatings, counts_of
from dpmf.engine.tensorfile import Tensor
from dpmf.methods.foldin import folded
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.sgld.chain import Chain
from dpmf.methods.sgld.claim import Bound
from dpmf.methods.sgld.defaults import ChainSettings
from dpmf.methods.sgld.sampler import Density, Sampler
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings

BIAS_PRIOR = 1.0  # a standard deviation of 0.7
_FAR = 1e30  # no limit to predictions
START_SD = 0.1  # of factors, where the precision of the priors is learnt

Array = NDArray[np.float64]


def start_chain(
    ratings: Ratings | StoredRatings,
    weights: Array,
    bound: Bound | None,
    resources: Resources,
    settings: ChainSettings,
    *,
    seed: int,
    noise_seed: int,
) -> Chain:
    """Return a chain at its start.

    Args:
        ratings: the ratings to learn from.
        weights: of all users.
        bound: of a private run; None otherwise.
        resources: threads and memory.
        settings: of the chain; the precision of the priors is its initial one.
        seed, noise_seed: of start and order, and of the noise.
    """
    scale, temperature, prior = ratings.scale, settings.temperature, settings.regularization
    unit = unit_of(scale)
    if isinstance(ratings, StoredRatings):
        grid: BlockGrid | BlockFile = ratings.blocks
    else:
        grid = BlockGrid.build(ratings, n_threads=resources.n_threads)
    # A private run learns little, so it starts from a draw of the prior and has nothing to unlearn.
    sd = START_SD if bound is None else math.sqrt(temperature / (2 * prior))
    keys, folder = (ratings.user_ids.keys, ratings.catalogue.ids.keys), resources.user_folder
    K = settings.n_factors
    state = Descent.start(grid, *keys, n_factors=K, sd=sd, unit=unit, seed=seed, user_folder=folder)
    if bound is None:
        density = plain_density(grid.mean, temperature)
    else:
        reach = (scale.hi - scale.lo) / 2 + bound.kappa
        limits = -reach / unit, reach / unit
        density = Density(scale.middle, bound.scale * unit**2, BIAS_PRIOR, *limits, temperature)
    return Chain.start(
        state,
        *counts_of(ratings),
        weights,
        density,
        prior=prior,
        table_size=settings.table,
        noise_seed=noise_seed,
        every_item=bound is not None,
    )


def plain_density(mean: float, temperature: float) -> Density:
    """Return the density of a run that is not private, given the mean of all ratings."""
    return Density(mean, 1.0, BIAS_PRIOR, -_FAR, _FAR, temperature)


@dataclass(eq=False)
class Averages:
    """Sums of draws, in the grid's numbering.

    Attributes:
        count: shape (1,), the number of draws.
        V, c, P: sums of item factors, shape (n_items, K), of item biases, and of the precisions of users' factors.
    """

    count: NDArray[np.int64]
    V: Array
    c: Array
    P: Array

    @classmethod
    def start(cls, chain: Chain) -> Averages:
        """Return empty sums."""
        n_items, K = len(chain.state.c), chain.state.n_factors
        return cls(np.zeros(1, np.int64), np.zeros((n_items, K)), np.zeros(n_items), np.zeros(K))

    def add(self, chain: Chain) -> None:
        """Add the current state of the chain."""
        K = chain.state.n_factors
        self.count += 1
        self.V += chain.state.V[:, :K]
        self.c += chain.state.c
        self.P += chain.sampler.priors[0, :K]

    def tensors(self) -> dict[str, Tensor]:
        """Return the sums for a snapshot."""
        return {"draws": self.count, "sum_V": self.V, "sum_c": self.c, "sum_P": self.P}

    @property
    def item_factors(self) -> Array:
        """The mean of item factors."""
        return self.V / self.count

    @property
    def item_biases(self) -> Array:
        """The mean of item biases."""
        return self.c / self.count

    @property
    def precisions(self) -> Array:
        """The mean precision of users' factors."""
        return self.P / self.count


def model_of(
    ratings: Ratings | StoredRatings,
    chain: Chain,
    averages: Averages,
    configuration: dict[str, Any],
    guarantee: Guarantee,
    history: tuple[EpochRecord, ...],
    resources: Resources,
) -> Model:
    """Return the model: item factors from the draws, and user factors fitted to all ratings of each user."""
    if not averages.count[0]:  # the run ended before the first draw to be averaged
        averages.add(chain)
    order = chain.state.grid.layout.item_order
    release = release_of(ratings, chain.sampler, averages, order, configuration, guarantee)
    return folded(release, ratings, history, resources)


def release_of(
    ratings: Ratings | StoredRatings,
    sampler: Sampler,
    averages: Averages,
    order: NDArray[np.int64],
    configuration: dict[str, Any],
    guarantee: Guarantee,
) -> Release:
    """Return the release of averages, given the order of items in the grid's numbering."""
    unit, density = sampler.unit, sampler.density
    V, c = averages.item_factors, averages.item_biases
    # With v / √P in place of v, and u √P in place of u, all of u's coordinates have the same prior.
    V *= math.sqrt(unit) / np.sqrt(averages.precisions)
    factors, biases = np.empty(V.shape, np.float32), np.empty(c.shape, np.float32)
    factors[order], biases[order] = V, unit * c
    return Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=density.centre,
        item_factors=factors,
        item_biases=biases,
        # A person's own fit stays with them, so it uses their ratings in full, whatever the scale of the density.
        ridge=Ridge(bias=density.bias_prior, factors=unit),
        configuration=configuration,
        guarantee=guarantee,
    )
