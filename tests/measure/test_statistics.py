import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from tacit.measure import (
    critical_radius,
    lower_limit,
    proportion,
    upper_limit,
)


@given(n=st.integers(1, 500), share=st.floats(0, 1))
def test_limits_are_those_of_clopper_and_pearson(n, share):
    events = round(n * share)
    theirs = binomtest(events, n).proportion_ci(0.95, "exact")
    ours = proportion(events, n)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(n=st.integers(2, 300), events=st.integers(1, 299))
def test_one_sided_limits_have_their_level(n, events):
    events = min(events, n - 1)
    q = upper_limit(events, n, 0.99)
    assert binom.cdf(events, n, q) == pytest.approx(0.01, rel=1e-6)
    q = lower_limit(events, n, 0.99)
    assert binom.sf(events - 1, n, q) == pytest.approx(0.01, rel=1e-6)


def test_the_bootstrap_interval_is_what_resampling_gives():
    rng = np.random.default_rng(0)
    values = rng.normal(size=101)
    resampled = np.median(rng.choice(values, (20_000, 101)), axis=1)
    found = critical_radius(torch.tensor(values))
    assert found.value == np.median(values)
    ordered = np.sort(values)
    for end, level in ((found.low, 0.025), (found.high, 0.975)):
        # within one order statistic of the resampled quantile
        place = np.searchsorted(ordered, np.quantile(resampled, level))
        assert ordered[max(place - 2, 0)] <= end <= ordered[min(place + 2, 100)]


def test_infinite_radii_are_radii():
    found = critical_radius(torch.tensor([1.0, 2.0, math.inf, math.inf, math.inf]))
    assert found.value == math.inf
    assert critical_radius(torch.tensor([3.0])).value == 3.0
