"""Convergence diagnostics: several chains with different starts, compared.

Factors may rotate without changing the model, so predictions are compared, of a few users for a few items that are
chosen by their ids. There are two figures per prediction (Gelman et al., Bayesian Data Analysis, 3rd ed., 11.4 and
11.5): split R-hat compares the halves of the chains with each other, and is near 1 if they agree; the effective sample
size is the number of independent draws that the chains are worth. Both may look good although the chains are wrong;
they are evidence, never proof. They are for the holder of the data, and no draw is chosen by them.

>>> rng = np.random.default_rng(0)
>>> apart = np.array([0.0, 5.0])[:, None, None]
>>> good = rng.normal(size=(2, 400, 3))
>>> bool(split_r_hat(good).max() < 1.05), bool(split_r_hat(good + apart).max() > 1.05)
(True, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.executor import Executor
from dpmf.engine.resources import Resources
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.methods.sgld import SGLD
from dpmf.methods.sgld.chain import Chain
from dpmf.ratings import Ratings
from dpmf.streams import mix, stream_key

_MOST_R_HAT = 1.05
_LEAST_SIZE = 100.0
_PROBES = 8  # users, and items
_LEAST_DRAWS = 4  # of each chain, in the half that counts

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Convergence:
    """The diagnostics of some chains.

    Attributes:
        traces: shape (chains, epochs, probes), predictions after every epoch, in the ratings' units.
        r_hat: the greatest split R-hat of a probe, over the second half of the epochs.
        effective_size: the smallest effective sample size of a probe, likewise.
    """

    traces: Array
    r_hat: float
    effective_size: float

    @classmethod
    def of(cls, traces: Array) -> Convergence:
        """Judge traces by their second half."""
        late = traces[:, traces.shape[1] // 2 :]
        return cls(traces, float(split_r_hat(late).max()), float(effective_sizes(late).min()))

    @property
    def converged(self) -> bool:
        """Whether neither figure indicates a lack of convergence."""
        return self.r_hat <= _MOST_R_HAT and self.effective_size >= _LEAST_SIZE

    def __str__(self) -> str:
        n_chains, n_epochs, n_probes = self.traces.shape
        figures = (
            f"{n_chains} chains of {n_epochs} epochs, {n_probes} predictions: split R-hat {self.r_hat:.3f} at most, "
            f"effective sample size {self.effective_size:.0f} at least"
        )
        if self.converged:
            return f"{figures}. No sign of a lack of convergence, which is evidence and not proof"
        return f"{figures}. Not converged: do not rely on this"

    def to_json(self) -> dict[str, Any]:
        """Return the figures in plain JSON types."""
        return {
            "chains": self.traces.shape[0],
            "r_hat": self.r_hat,
            "effective_size": self.effective_size,
            "converged": self.converged,
        }


def diagnose(
    method: SGLD,
    ratings: Ratings,
    *,
    n_chains: int = 2,
    n_threads: int | None = None,
    user_budgets: Mapping[Any, float] | None = None,
) -> Convergence:
    """Run chains from different starts with different noise, and compare them; nothing of them is released.

    Args:
        method: the method whose chains to run.
        ratings: the ratings to learn from.
        n_chains: at least 2.
        n_threads: as in `SGLD.fit`.
        user_budgets: as there.
    """
    if n_chains < 2:
        raise InvalidArgument(f"n_chains={n_chains}: one chain says nothing about another, so give at least 2")
    if method.kind == "certified":
        raise InvalidArgument("chains mean nothing with mode='certified', which rests on no convergence")
    n_epochs = method.resolve().n_epochs
    if n_epochs < 2 * _LEAST_DRAWS:
        raise InvalidArgument(f"n_epochs={n_epochs}: too few to compare chains, give at least {2 * _LEAST_DRAWS}")
    traces, resources = [], Resources(thread_count(n_threads))
    with method.prepared(ratings, user_budgets) as (counted, weights, bound):
        for number in range(n_chains):
            of_noise = None if method.noise_seed is None else _seed_of(number, method.noise_seed)
            apart = replace(method, seed=_seed_of(number, method.seed), noise_seed=of_noise)
            chain = apart.chain_on(counted, weights, bound, resources)
            traces.append(_trace(apart, chain, ratings, resources.executor))
    return Convergence.of(np.array(traces))


def _seed_of(number: int, seed: int) -> int:
    return int(stream_key(seed, f"chain {number}") >> np.uint64(1))


def _trace(method: SGLD, chain: Chain, ratings: Ratings, executor: Executor) -> Array:
    """Return predictions after every epoch, shape (epochs, probes)."""
    layout = chain.state.grid.layout
    users = _first_by_hash(ratings.user_ids.keys[layout.user_order], chain.user_counts > 0)
    items = _first_by_hash(ratings.catalogue.ids.keys[layout.item_order], np.ones(ratings.n_items, np.bool_))
    trace = []
    for epoch in range(1, method.resolve().n_epochs + 1):
        method.advance(chain, epoch, executor)
        state = chain.state
        U, V = state.U[users].astype(np.float64), state.V[items].astype(np.float64)
        centred = U @ V.T + state.b[users].astype(np.float64)[:, None] + state.c[items]
        trace.append(chain.sampler.density.centre + state.unit * centred.ravel())
    return np.array(trace)


def _first_by_hash(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a few eligible positions, in the order of a hash of their keys."""
    order = np.argsort(mix(keys), kind="stable")
    return order[eligible[order]][:_PROBES]


def split_r_hat(traces: Array) -> Array:
    """Return split R-hat of every probe; 1 where nothing varies.

    Args:
        traces: shape (chains, draws, probes).
    """
    halves = _halves(traces)
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = n * halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((n - 1) / n + between / within / n)
    return np.where(within > 0, r_hat, np.where(between > 0, np.inf, 1.0))


def effective_sizes(traces: Array) -> Array:
    """Return the effective sample size of every probe, from autocorrelations up to the first negative pair."""
    halves = _halves(traces)
    m, n, n_probes = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    padded = np.fft.rfft(centred, 2 * n, axis=1)
    covariances = np.fft.irfft(padded * padded.conj(), 2 * n, axis=1)[:, :n].mean(axis=0) / n
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    total = within * (n - 1) / n + halves.mean(axis=1).var(axis=0, ddof=1)
    sizes = np.empty(n_probes)
    for probe in range(n_probes):
        if total[probe] == 0:  # nothing varies, so every draw is as good as all of them
            sizes[probe] = m * n
            continue
        correlations = 1 - (within[probe] - covariances[:, probe]) / total[probe]
        pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
        positive = len(pairs) if (pairs > 0).all() else int(np.argmax(pairs <= 0))
        spread = 2 * np.minimum.accumulate(pairs[: max(positive, 1)]).sum() - 1
        sizes[probe] = m * n / max(spread, 1 / np.log10(m * n))
    return sizes


def _halves(traces: Array) -> Array:
    """Return the chains' halves as chains, shape (2 chains, draws / 2, probes)."""
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]])
