import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from tacit.errors import CallError
from tacit.measure import (
    critical_radius,
    lower_limit,
    mean_of,
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


@given(n=st.integers(1, 400), of=st.sampled_from([1, 10]))
def test_the_median_is_covered_as_often_as_it_says_whatever_the_law(n, of):
    """P(x_(r) <= median <= x_(n-r+1)) = 1 - 2 P(Binomial(n, 1/2) < r), by counting."""
    values = torch.arange(1.0, n + 1).double()
    found = critical_radius(values, of=of)
    assert found.value == np.median(values.numpy())
    if math.isinf(found.low):
        assert 2 * 0.5**n > 0.05 / of  # not even the extremes would do
        return
    rank = int(found.low)
    assert found.high == n + 1 - rank
    assert 2 * binom.cdf(rank - 1, n, 0.5) <= 0.05 / of < 2 * binom.cdf(rank, n, 0.5)


def test_infinite_radii_are_radii():
    found = critical_radius(torch.tensor([1.0, 2.0, math.inf, math.inf, math.inf]))
    assert found.value == math.inf
    alone = critical_radius(torch.tensor([3.0]))
    assert (alone.value, alone.low, alone.high) == (3.0, -math.inf, math.inf)


def test_what_says_nothing_of_its_spread_has_the_whole_line():
    for values in ([2.0], [1.0, 1.0, 1.0], [1.0, 2.0, math.inf], [1.0, math.nan, 2.0]):
        found = mean_of(values)
        assert not math.isfinite(found.low)
        assert not math.isfinite(found.high)
    with pytest.raises(CallError, match="nothing to count"):
        proportion(0, 0)
