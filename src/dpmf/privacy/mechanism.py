"""The one place where noise is added to sums: a sum leaves it only with the noise that an event of the plan states.

A caller asks for the step of the public grid, forms the sum of everybody's bounded contributions in whole steps, and
passes it in. The result is private by the event's noise multiplier, provided that the sensitivity is right.

>>> from dpmf.privacy import GaussianEvent
>>> mechanism = Mechanism([GaussianEvent("counts", noise_multiplier=2.0, count=1, coordinates=3)], Noise(noise_seed=1))
>>> steps = mechanism.steps("counts", sensitivity=1.0)
>>> noisy = mechanism.release("counts", (np.array([5, 0, 9]) * steps).astype(np.int64), sensitivity=1.0)
>>> bool(np.abs(noisy - [5, 0, 9]).max() < 12)
True
>>> mechanism.release("counts", np.zeros(3, np.int64), sensitivity=1.0)
Traceback (most recent call last):
dpmf.errors.BudgetExceeded: 'counts' was to be released once: releasing it again is not in the plan
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.privacy.events import GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.noise import STEPS_PER_SD, Noise
from dpmf.privacy.norm_noise import STEPS_PER_SCALE, norm_integers

PlannedEvent: TypeAlias = GaussianEvent | PoissonGaussianEvent | NormNoiseEvent

_COINS = "who takes part"
_MOST_STEPS = 2.0**45  # per unit of sensitivity: 2**17 people may add up to it in one coordinate before int64 ends


class Mechanism:
    """Adds noise to the releases of a plan, and enforces the plan.

    Args:
        events: the plan; each event has a name of its own.
        noise: the source of noise.
        n_shares: the number of shares of noise that a sum is certain to have, where everybody adds one to their own
            part; the events count each released coordinate once per share.
    """

    def __init__(self, events: Sequence[PlannedEvent], noise: Noise, n_shares: int = 1) -> None:
        self._events = {event.what: event for event in events}
        if len(self._events) != len(events):
            raise InvalidArgument("two events of a plan have the same name: give each a name of its own")
        if n_shares > 1 and any(isinstance(event, NormNoiseEvent) for event in events):
            raise InvalidArgument("noise of gamma-distributed length is not made of shares: use n_shares=1")
        self._noise, self._n_shares = noise, n_shares
        self._used = dict.fromkeys(self._events, 0)  # releases made or given up

    def sd(self, what: str, sensitivity: float) -> float:
        """Return the standard deviation of the noise on each number, for sums of this L2 sensitivity.

        The event's docstring defines the sensitivity, which its noise multiplier is relative to. For noise of
        gamma-distributed length the result is the scale b: in rows of K numbers, each has a deviation of √(K + 1)·b.
        """
        if not 0 < sensitivity < np.inf:
            raise InvalidArgument(f"sensitivity={sensitivity!r} of {what!r} should be a number above 0")
        return self._event(what).noise_multiplier * sensitivity

    def steps(self, what: str, sensitivity: float) -> float:
        """Return the number of grid steps per unit of the sum."""
        per_scale = STEPS_PER_SCALE if isinstance(self._event(what), NormNoiseEvent) else STEPS_PER_SD
        steps = per_scale / self.sd(what, sensitivity)
        if steps * sensitivity > _MOST_STEPS:
            raise InvalidArgument(f"the noise on {what!r} is too small for the grid: use a smaller epsilon")
        return steps

    def participants(self, what: str, n_people: int) -> NDArray[np.bool_] | None:
        """Toss everybody's coin for the next release of an event that samples people; None where all take part."""
        event = self._event_with_some_left(what)
        if not isinstance(event, PoissonGaussianEvent):
            return None
        return self._noise.coins(n_people, event.sampling_rate, _COINS, self._used[what])

    def release(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        """Return sums, given in steps, with noise added, in units.

        Noise of gamma-distributed length is for tables: sums of shape (rows, K), with noise for each row.

        Raises:
            BudgetExceeded: the plan has fewer releases, or fewer numbers in each.
        """
        if self._n_shares > 1:
            raise InvalidArgument(f"{what!r} would have one share of its noise alone: add all shares up first")
        return self.noisy(what, sums, sensitivity) / self.steps(what, sensitivity)

    def noisy(self, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.int64]:
        """Return sums with noise, or one person's part of them with their share of the noise; all in steps.

        Raises:
            BudgetExceeded: as `release`.
        """
        event = self._event_with_some_left(what)
        self.steps(what, sensitivity)  # raises if the noise does not fit the grid
        most = event.coordinates // (event.count * self._n_shares)
        if sums.size > most:
            raise BudgetExceeded(f"{what!r} has {sums.size} numbers, and {most} at most in the plan")
        if sums.dtype != np.int64:
            raise InvalidArgument(f"{what!r} should be summed in int64, not {sums.dtype}")
        self._noise.absorb(sums)
        noisy = sums + self._drawn(event, sums.shape)
        self._used[what] += 1
        return noisy

    def forfeit(self, what: str) -> None:
        """Give up the next release of this name: it stays charged, and nothing is drawn for it.

        For a resumed run, where an earlier process made this release, or may have; and for a run that turns out not to
        need it.

        Raises:
            BudgetExceeded: the plan has no such release left.
        """
        self._event_with_some_left(what)
        self._used[what] += 1

    def finish(self) -> None:
        """Raise unless everything in the plan was released or given up: the guarantee covers the whole plan."""
        for what, event in self._events.items():
            if self._used[what] != event.count:
                raise InvalidArgument(f"{what!r} was released {self._used[what]} times, not {event.count}")

    def _drawn(self, event: PlannedEvent, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return noise for the next release of an event, in steps."""
        what, index = event.what, self._used[event.what]
        if self._n_shares > 1:
            return self._noise.shares(shape, self._n_shares, what, index)
        if not isinstance(event, NormNoiseEvent):
            return self._noise.integers(shape, what, index)
        if len(shape) != 2:
            raise InvalidArgument(f"{what!r} of shape {shape} should be a table, with noise for each of its rows")
        return norm_integers(self._noise, (shape[0], shape[1]), what, index)

    def _event_with_some_left(self, what: str) -> PlannedEvent:
        event = self._event(what)
        if self._used[what] == event.count:
            often = "once" if event.count == 1 else f"{event.count} times"
            raise BudgetExceeded(f"{what!r} was to be released {often}: releasing it again is not in the plan")
        return event

    def _event(self, what: str) -> PlannedEvent:
        if what not in self._events:
            raise BudgetExceeded(f"{what!r} is not in the plan: add an event for it")
        return self._events[what]
