"""The mechanism carries out its plan, all of it and nothing else, with the noise that the plan states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.privacy import GaussianEvent, NormNoiseEvent
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import STEPS_PER_SD, Noise
from dpmf.privacy.norm_noise import STEPS_PER_SCALE

LEAST_P = 1e-9


def mechanism(count: int = 2, size: int = 3, noise_multiplier: float = 2.0, noise: Noise | None = None) -> Mechanism:
    events = [
        GaussianEvent("sums", noise_multiplier, count, count * size),
        GaussianEvent("other sums", noise_multiplier, 1, size),
    ]
    return Mechanism(events, noise or Noise())


def zeros(size: int | tuple[int, int] = 3, dtype: Any = np.int64) -> NDArray[Any]:
    return np.zeros(size, dtype)


def test_more_releases_than_planned_are_refused() -> None:
    one = mechanism()
    one.release("sums", zeros(), 1.0)
    one.release("sums", zeros(), 1.0)
    with pytest.raises(BudgetExceeded, match="'sums' was to be released 2 times"):
        one.release("sums", zeros(), 1.0)
    one.release("other sums", zeros(), 1.0)
    with pytest.raises(BudgetExceeded, match="'other sums' was to be released once"):
        one.release("other sums", zeros(), 1.0)


@pytest.mark.parametrize("size", [4, 6])
def test_more_numbers_than_planned_are_refused(size: int) -> None:
    with pytest.raises(BudgetExceeded, match=f"'sums' has {size} numbers, and 3 at most in the plan"):
        mechanism().release("sums", zeros(size), 1.0)


def test_fewer_numbers_than_planned_are_released() -> None:
    assert mechanism().release("sums", zeros(2), 1.0).shape == (2,)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint64, np.bool_])
def test_sums_that_are_not_exact_are_refused(dtype: Any) -> None:
    with pytest.raises(InvalidArgument, match="'sums' should be summed in int64"):
        mechanism().release("sums", zeros(dtype=dtype), 1.0)


def test_a_refusal_draws_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Noise, "integers", never)
    with pytest.raises(BudgetExceeded):
        mechanism().release("sums", zeros(4), 1.0)
    with pytest.raises(InvalidArgument):
        mechanism().release("sums", zeros(dtype=np.float64), 1.0)
    for sensitivity in (0.0, -1.0, math.nan, math.inf, 1e-30):
        with pytest.raises(InvalidArgument):
            mechanism(noise_multiplier=1e-30).release("sums", zeros(), sensitivity)


def test_what_is_not_in_the_plan_is_not_released() -> None:
    with pytest.raises(BudgetExceeded, match="'secrets' is not in the plan"):
        mechanism().release("secrets", zeros(), 1.0)


def test_a_plan_is_to_be_carried_out_to_its_end() -> None:
    one = mechanism(count=1)
    with pytest.raises(InvalidArgument, match="'sums' was released 0 times, not 1"):
        one.finish()
    one.release("sums", zeros(), 1.0)
    with pytest.raises(InvalidArgument, match="'other sums' was released 0 times, not 1"):
        one.finish()
    one.release("other sums", zeros(), 1.0)
    one.finish()


def test_what_is_given_up_is_charged_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    one = mechanism()
    one.release("other sums", zeros(), 1.0)
    one.forfeit("sums")
    one.release("sums", zeros(), 1.0)
    with pytest.raises(BudgetExceeded, match="'sums' was to be released 2 times"):
        one.release("sums", zeros(), 1.0)
    one.finish()
    monkeypatch.setattr(Noise, "integers", None)
    other = mechanism()
    for what in ("sums", "sums", "other sums"):
        other.forfeit(what)
    other.finish()


def test_no_more_can_be_given_up_than_was_planned() -> None:
    one = mechanism(count=1)
    one.forfeit("sums")
    with pytest.raises(BudgetExceeded, match="'sums' was to be released once"):
        one.forfeit("sums")
    with pytest.raises(BudgetExceeded, match="'secrets' is not in the plan"):
        one.forfeit("secrets")
    with pytest.raises(InvalidArgument, match="'other sums' was released 0 times, not 1"):
        one.finish()


def test_giving_up_a_release_does_not_move_the_noise_of_others() -> None:
    whole, resumed = mechanism(noise=Noise(4)), mechanism(noise=Noise(4))
    whole.release("sums", zeros(), 1.0)
    resumed.forfeit("sums")
    for what in ("sums", "other sums"):
        one, other = (each.release(what, zeros(), 1.0) for each in (whole, resumed))
        np.testing.assert_array_equal(one, other)


def test_two_events_of_one_name_are_refused() -> None:
    event = GaussianEvent("sums", 1.0, 1, 3)
    with pytest.raises(InvalidArgument, match="same name"):
        Mechanism([event, event], Noise())


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
def test_a_sensitivity_that_bounds_nothing_is_refused(sensitivity: float) -> None:
    one = mechanism()
    for use in (one.sd, one.steps):
        with pytest.raises(InvalidArgument, match="sensitivity"):
            use("sums", sensitivity)


def test_noise_that_is_too_small_for_the_grid_is_refused() -> None:
    assert mechanism(noise_multiplier=2.0**-17).steps("sums", 1.0) == 2.0**45
    with pytest.raises(InvalidArgument, match="too small for the grid"):
        mechanism(noise_multiplier=2.0**-18).steps("sums", 1.0)


@pytest.mark.parametrize(("noise_multiplier", "sensitivity"), [(0.3, 1.0), (7.0, 0.05), (200.0, 1300.0)])
def test_noise_has_the_standard_deviation_that_the_event_states(noise_multiplier: float, sensitivity: float) -> None:
    size = 100_000
    one = Mechanism([GaussianEvent("sums", noise_multiplier, 1, size)], Noise())
    noise = one.release("sums", zeros(size), sensitivity) / (noise_multiplier * sensitivity)
    assert one.sd("sums", sensitivity) == noise_multiplier * sensitivity
    square = float((noise**2).sum())
    assert min(stats.chi2.sf(square, size), stats.chi2.cdf(square, size)) > LEAST_P
    assert stats.norm.sf(abs(noise.mean()) * math.sqrt(size)) > LEAST_P
    assert stats.kstest(noise, "norm").pvalue > LEAST_P


def test_noise_is_a_whole_number_of_steps() -> None:
    exact = np.array([5, -7, 2**40])
    one = mechanism(noise_multiplier=3.0)
    noisy = one.release("sums", exact, 0.7) * one.steps("sums", 0.7)
    np.testing.assert_allclose(noisy, np.rint(noisy), rtol=0, atol=1e-3)
    assert (np.rint(noisy) != exact).all()
    assert np.abs(noisy - exact).max() < 32 * STEPS_PER_SD


def test_noise_does_not_depend_on_the_sums() -> None:
    sums = np.array([1, -(2**30), 12345])
    steps = mechanism().steps("sums", 1.0)
    with_sums, without = (mechanism(noise=Noise(8)).release("sums", one, 1.0) for one in (sums, zeros()))
    np.testing.assert_array_equal(np.rint((with_sums - without) * steps), sums)


def test_the_same_noise_is_never_used_twice() -> None:
    one = mechanism(noise=Noise(4))
    drawn = [
        one.release("sums", zeros(), 1.0),
        one.release("sums", zeros(), 1.0),
        one.release("other sums", zeros(), 1.0),
    ]
    assert len(np.unique(np.concatenate(drawn))) == 9
    assert len(np.unique([mechanism().release("sums", zeros(), 1.0) for _ in range(3)])) == 9


def test_two_mechanisms_cannot_share_noise() -> None:
    noise = Noise()
    mechanism(noise=noise).release("sums", zeros(), 1.0)
    with pytest.raises(InvalidArgument, match="drawn before"):
        mechanism(noise=noise).release("sums", zeros(), 1.0)


def test_sums_stay_as_they_were() -> None:
    sums = np.array([1, 2, 3])
    mechanism().release("sums", sums, 1.0)
    assert sums.tolist() == [1, 2, 3]


def test_shares_of_noise_are_drawn_and_counted_as_the_plan_says() -> None:
    event = GaussianEvent("sums", noise_multiplier=2.0, count=2, coordinates=2 * 3 * 4)
    mechanism, other = (Mechanism([event], Noise(noise_seed=seed), n_shares=4) for seed in (1, 2))
    drawn = mechanism.noisy("sums", np.zeros(3, np.int64), 1.0)
    np.testing.assert_array_equal(drawn, Noise(noise_seed=1).shares(3, 4, "sums", 0))
    assert (drawn != other.noisy("sums", np.zeros(3, np.int64), 1.0)).any()
    with pytest.raises(BudgetExceeded, match="3 at most"):
        mechanism.noisy("sums", np.zeros(4, np.int64), 1.0)
    mechanism.noisy("sums", np.zeros(3, np.int64), 1.0)
    with pytest.raises(BudgetExceeded, match="2 times"):
        mechanism.noisy("sums", np.zeros(3, np.int64), 1.0)
    with pytest.raises(InvalidArgument, match="one share of its noise alone"):
        other.release("sums", np.zeros(3, np.int64), 1.0)
    with pytest.raises(InvalidArgument, match="not made of shares"):
        Mechanism([NormNoiseEvent("rows", 2.0, 1, 6)], Noise(), n_shares=2)


# Noise of gamma-distributed length


def of_rows(count: int = 2, shape: tuple[int, int] = (3, 4), noise: Noise | None = None) -> Mechanism:
    size = shape[0] * shape[1]
    rows, sums = NormNoiseEvent("rows", 2.0, count, count * size), GaussianEvent("sums", 2.0, 1, size)
    return Mechanism([rows, sums], noise or Noise())


def table(*shape: int) -> NDArray[np.int64]:
    return np.zeros(shape, np.int64)


@pytest.mark.parametrize(("noise_multiplier", "sensitivity"), [(0.3, 1.0), (200.0, 1300.0)])
def test_rows_have_noise_of_the_scale_that_the_event_states(noise_multiplier: float, sensitivity: float) -> None:
    rows, columns = 20_000, 5
    one = Mechanism([NormNoiseEvent("rows", noise_multiplier, 1, rows * columns)], Noise())
    noise = one.release("rows", table(rows, columns), sensitivity)
    scale = one.sd("rows", sensitivity)
    assert scale == noise_multiplier * sensitivity
    assert one.steps("rows", sensitivity) == STEPS_PER_SCALE / scale
    assert stats.kstest(np.linalg.norm(noise, axis=1) / scale, "gamma", (columns,)).pvalue > LEAST_P
    spread = float(noise[:, 2].std()) / scale  # as the docstring of sd has it
    assert spread == pytest.approx(math.sqrt(columns + 1), rel=0.1)


def test_noise_on_rows_is_a_whole_number_of_steps_beside_the_sums() -> None:
    exact = np.array([[5, -7, 2**40, 0]])
    steps = of_rows().steps("rows", 0.7)
    with_sums, without = (
        of_rows(noise=Noise(8)).release("rows", one, 0.7) * steps for one in (exact, np.zeros_like(exact))
    )
    np.testing.assert_allclose(with_sums, np.rint(with_sums), rtol=0, atol=1e-3)
    np.testing.assert_array_equal(np.rint(with_sums - without), exact)
    assert (np.rint(without) != 0).all()


def test_rows_are_released_as_planned_and_no_more() -> None:
    one = of_rows()
    with pytest.raises(BudgetExceeded, match="'rows' has 15 numbers, and 12 at most in the plan"):
        one.release("rows", table(3, 5), 1.0)
    with pytest.raises(InvalidArgument, match="'rows' should be summed in int64"):
        one.release("rows", zeros((3, 4), np.float64), 1.0)
    for shape in ((12,), (3, 2, 2), ()):
        with pytest.raises(InvalidArgument, match="should be a table"):
            one.release("rows", table(*shape), 1.0)
    with pytest.raises(InvalidArgument, match="0 columns of 'rows'"):
        one.release("rows", table(3, 0), 1.0)
    with pytest.raises(InvalidArgument, match="sensitivity"):
        one.steps("rows", math.nan)
    first = one.release("rows", table(3, 4), 1.0)
    with pytest.raises(InvalidArgument, match="'rows' was released 1 times, not 2"):
        one.finish()
    second = one.release("rows", table(3, 4), 1.0)
    assert len(np.unique([first, second])) == 24
    with pytest.raises(BudgetExceeded, match="'rows' was to be released 2 times"):
        one.release("rows", table(3, 4), 1.0)
    one.release("sums", table(12), 1.0)
    one.finish()


def test_rows_that_are_given_up_are_charged() -> None:
    whole, resumed = of_rows(noise=Noise(4)), of_rows(noise=Noise(4))
    whole.release("rows", table(3, 4), 1.0)
    resumed.forfeit("rows")
    one, other = (each.release("rows", table(3, 4), 1.0) for each in (whole, resumed))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(BudgetExceeded, match="'rows' was to be released 2 times"):
        resumed.forfeit("rows")


def test_two_mechanisms_cannot_share_noise_on_rows() -> None:
    noise = Noise()
    of_rows(noise=noise).release("rows", table(3, 4), 1.0)
    with pytest.raises(InvalidArgument, match="drawn before"):
        of_rows(noise=noise).release("rows", table(3, 4), 1.0)


def test_noise_on_rows_that_is_too_small_for_the_grid_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="too small for the grid"):
        Mechanism([NormNoiseEvent("rows", 2.0**-18, 1, 4)], Noise()).steps("rows", 1.0)
