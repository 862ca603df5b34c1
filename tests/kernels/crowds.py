"""Crowds of people, well-behaved or not, and everything that bounded sums make of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import Confidence, prepare_items
from dpmf.kernels.bounded_sums import add_counts, add_item_moments, add_moments
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.held_out import HeldOutSettings, add_held_out_residuals
from dpmf.kernels.implicit_sums import ImplicitSettings, add_held_out_factors, add_implicit_moments

Sums = NDArray[np.int64]
INTS = np.iinfo(np.int32)
LIFT = 2.5
WILD = [math.nan, math.inf, -math.inf, 1e30, -1e30, 3e38, 1e-45, -0.0]
WILD_WEIGHTS = [0.0, 5e-324, 1e-170, 1e-161, 3e-158, 1e-9, 1e9, 1e155, math.inf, math.nan]
SINGLES = st.one_of(st.floats(-4, 4, width=32), st.sampled_from(WILD))
SIZES = st.one_of(st.floats(1e-4, 1e4), st.just(1.0))
LEVELS = st.one_of(st.floats(1, 2.0**45), st.just(2.0**45))  # steps in the whole of a bound


@dataclass(frozen=True)
class Crowd:
    """Everything that the sums are made of."""

    rated: Csr
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]
    mean: float
    V: NDArray[np.float32]
    c: NDArray[np.float32]
    U: NDArray[np.float32]
    clip: float
    radius: float
    height: float
    level: float
    fit: tuple[float, float, float]  # penalties on bias and factors, and the length of first guesses
    n_asked: int  # of how many factors sums are made: others are only fitted

    @property
    def n_people(self) -> int:
        return len(self.shares)

    @property
    def pattern(self) -> CsrPattern:
        return self.rated.pattern

    def of(self, person: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return somebody's items and ratings."""
        own = slice(self.rated.indptr[person], self.rated.indptr[person + 1])
        return self.rated.items[own], self.rated.values[own]

    def without(self, person: int) -> Crowd:
        """Return the crowd after somebody has left."""
        indptr, items, values = self.rated
        own = np.zeros(len(items), np.bool_)
        own[indptr[person] : indptr[person + 1]] = True
        lengths = np.delete(np.diff(indptr), person)
        return replace(
            self,
            rated=Csr(starts(lengths), items[~own], values[~own]),
            shares=np.delete(self.shares, person),
            U=np.delete(self.U, person, axis=0),
        )


def starts(lengths: Any) -> NDArray[np.int64]:
    """Return where rows of these lengths begin."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@st.composite
def crowds(draw: st.DrawFn, wild: bool = True) -> Crowd:
    """Draw up to four people; wild ones break every rule."""
    m, K, n = draw(st.integers(1, 6)), draw(st.integers(0, 3)), draw(st.integers(1, 4))
    n_asked = draw(st.integers(0, K))
    single = SINGLES if wild else st.floats(-4, 4, width=32)
    odd = st.one_of(st.integers(-2, m + 2), st.sampled_from([int(INTS.min), int(INTS.max)]))
    some = st.lists(odd, max_size=12) if wild else st.sets(st.integers(0, m - 1), min_size=1).map(sorted)
    weight = st.floats(1e-3, 1e3)
    if wild:
        weight = st.one_of(weight, st.floats(1e-9, 1e9), st.sampled_from(WILD_WEIGHTS))
    share = st.floats(0, 1)
    if wild:
        share = st.one_of(share, st.sampled_from([1.0, 1.5, -0.5, math.nan, math.inf, 1e-310]))
    rated = [draw(some) for _ in range(n)]

    def singles(*shape: int) -> NDArray[np.float32]:
        size = math.prod(shape)
        return np.array(draw(st.lists(single, min_size=size, max_size=size)), np.float32).reshape(shape)

    lengths = [len(one) for one in rated]
    items = np.array([item for one in rated for item in one], np.int32)
    return Crowd(
        rated=Csr(starts(lengths), items, singles(sum(lengths))),
        weights=np.array(draw(st.lists(weight, min_size=m, max_size=m))),
        shares=np.array(draw(st.lists(share, min_size=n, max_size=n))),
        mean=draw(st.one_of(st.just(3.0), st.sampled_from(WILD) if wild else st.just(0.5))),
        V=singles(m, K),
        c=singles(m),
        U=singles(n, K),
        clip=draw(SIZES),
        radius=draw(SIZES),
        height=draw(SIZES),
        level=draw(LEVELS),
        fit=(draw(st.floats(0.1, 10)), draw(st.floats(0.1, 10)), draw(st.sampled_from([0.0, 0.7]))),
        n_asked=n_asked,
    )


def greedy(n_items: int, K: int = 2) -> Crowd:
    """Return a person who uses up every bound: far beyond radius and clip, in one direction."""
    values = np.full(n_items, 1e9, np.float32)
    return Crowd(
        rated=Csr(np.array([0, n_items]), np.arange(n_items, dtype=np.int32), values),
        weights=np.ones(n_items),
        shares=np.ones(1),
        mean=0.0,
        V=np.ones((n_items, K), np.float32),
        c=np.zeros(n_items, np.float32),
        U=np.full((1, K), 7, np.float32),
        clip=0.7,
        radius=1.0,
        height=0.6,
        level=2.0**40,
        fit=(1.0, 1.0, 0.0),
        n_asked=K,
    )


def steps_for(crowd: Crowd, bound: float) -> float:
    return crowd.level / bound


def counts(crowd: Crowd, start: int, stop: int) -> Sums:
    sums = np.zeros(len(crowd.weights), np.int64)
    add_counts(crowd.pattern, start, stop, crowd.weights, crowd.shares, steps_for(crowd, 1.0), sums)
    return sums


def residual_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.clip * math.hypot(crowd.radius, crowd.height))


def residuals(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), crowd.n_asked + 1), np.int64)
    public = of.V, of.c, held_out_settings(of), residual_steps(of)
    add_held_out_residuals(of.rated, of.rated, start, stop, of.weights, of.shares, *public, sums)
    return sums


def lone_residual_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.clip * crowd.height)


def lone_residuals(crowd: Crowd, start: int, stop: int) -> Sums:
    """Return residuals without what factors go with them."""
    of, sums = crowd, np.zeros((len(crowd.weights), 1), np.int64)
    public = of.V, of.c, held_out_settings(of), lone_residual_steps(of)
    add_held_out_residuals(of.rated, of.rated, start, stop, of.weights, of.shares, *public, sums)
    return sums


def held_out_settings(crowd: Crowd) -> HeldOutSettings:
    ridge_b, ridge_u, length = crowd.fit
    return HeldOutSettings(crowd.mean, ridge_b, ridge_u, length, crowd.clip, crowd.radius, crowd.height)


def triangle_size(K: int) -> int:
    return K * (K + 1) // 2


def moment_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.radius**2)


def moments(crowd: Crowd, start: int, stop: int) -> Sums:
    sums = np.zeros(triangle_size(crowd.n_asked), np.int64)
    add_moments(start, stop, crowd.shares, crowd.U, crowd.radius, moment_steps(crowd), sums)
    return sums


def item_moments(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), triangle_size(crowd.n_asked)), np.int64)
    add_item_moments(of.pattern, start, stop, of.weights, of.shares, of.U, of.radius, moment_steps(of), sums)
    return sums


def implicit_moment_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.radius**2 + 1)


def implicit_moments(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros(triangle_size(crowd.U.shape[1] + 1), np.int64)
    public = LIFT, of.radius, implicit_moment_steps(of)
    add_implicit_moments(of.pattern, start, stop, of.weights, of.shares, of.U, *public, sums)
    return sums


def implicit_settings(crowd: Crowd) -> ImplicitSettings:
    """Return public numbers; the penalty on the bias has no meaning here, and stands for alpha."""
    confidence = Confidence(crowd.fit[0] - 0.1, 16.0, crowd.fit[1] > 1)  # values stand for counts, whatever they are
    return ImplicitSettings(confidence, crowd.fit[2], crowd.radius, crowd.height)


def held_out_factor_steps(crowd: Crowd) -> float:
    return steps_for(crowd, math.hypot(crowd.radius, crowd.height))


def held_out_factors(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), crowd.V.shape[1] + 1), np.int64)
    public = prepare_items(of.V, of.c, of.fit[1]), implicit_settings(of), held_out_factor_steps(of)
    add_held_out_factors(of.rated, of.rated, start, stop, of.weights, of.shares, *public, sums)
    return sums


Kernel = Callable[[Crowd, int, int], Sums]
KERNELS: list[Kernel] = [counts, residuals, lone_residuals, moments, item_moments, implicit_moments, held_out_factors]


def squared(number: float) -> Fraction:
    return Fraction(number) ** 2


def squared_bound(kernel: Kernel, crowd: Crowd, person: int) -> Fraction:
    """Return (steps · the bound of the docstring)², exactly."""
    share = float(crowd.shares[person])
    share = share if 0 <= share <= 1 else 0.0
    radius = squared(crowd.radius) if crowd.U.shape[1] else Fraction(0)
    if kernel is counts:
        return squared(share) * squared(steps_for(crowd, 1.0))
    if kernel is residuals:
        reach = squared(crowd.height) + (radius if crowd.n_asked else 0)
        return squared(share) * squared(residual_steps(crowd)) * squared(crowd.clip) * reach
    if kernel is lone_residuals:
        return squared(share) * squared(lone_residual_steps(crowd)) * squared(crowd.clip) * squared(crowd.height)
    if kernel is implicit_moments:
        return squared(share) * squared(implicit_moment_steps(crowd)) * (radius + 1) ** 2
    if kernel is held_out_factors:
        return squared(share) * squared(held_out_factor_steps(crowd)) * (squared(crowd.height) + radius)
    return squared(share) * squared(moment_steps(crowd)) * squared(crowd.radius) ** 2


def squared_length(sums: NDArray[Any]) -> int:
    return sum(int(one) ** 2 for one in sums.ravel())


def agree(got: NDArray[Any], expected: NDArray[Any], size: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * size)
