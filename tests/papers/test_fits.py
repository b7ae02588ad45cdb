"""What exhibits of several papers sum up in the same way."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.papers._shared.fits import exponent, listed


@given(st.floats(-2, 2), st.floats(0.1, 10))
def test_an_exact_power_law_has_its_exponent(power: float, size: float) -> None:
    x = [1.0, 3.0, 10.0, 40.0]
    found = exponent(x, np.stack([size * np.power(x, power), 2 * np.power(x, power)], 1))
    assert found.value == pytest.approx(power, abs=1e-12)


def test_the_interval_of_an_exponent_is_students_over_the_repeats_slopes() -> None:
    x, rng = np.array([1.0, 2.0, 4.0, 8.0]), np.random.default_rng(0)
    values = x**0.5 * np.exp(0.1 * rng.standard_normal((5, 4)))
    slopes = [stats.linregress(np.log(x), np.log(row)).slope for row in values]
    low, high = stats.t.interval(0.95, 4, np.mean(slopes), stats.sem(slopes))
    found = exponent(x.tolist(), values.T)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(slopes), low, high))


def test_a_single_repeat_has_an_exponent_without_an_interval() -> None:
    found = exponent([1, 10], np.array([[1.0], [100.0]]))
    assert found.value == pytest.approx(2)
    assert found.spread == math.inf


def test_numbers_are_listed_in_short() -> None:
    assert listed([2, 4, 3072]) == "2, 4, 3072"
    assert listed([0.1, 1e5, 1.0]) == "0.1, 100000, 1"
