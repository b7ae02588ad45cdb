import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, spearmanr

from tacit.errors import CallError
from tacit.measure import (
    critical_radius,
    lower_limit,
    mean_of,
    proportion,
    rank_correlation,
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


def test_rank_correlations_are_spearmans_and_know_nothing_of_few_pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = x + rng.normal(size=40)
    found = rank_correlation(x, np.exp(y), over="filters")
    assert found.value == pytest.approx(float(spearmanr(x, y).statistic))
    assert found.low < found.value < found.high
    assert (found.n, found.over) == (40, "filters")
    assert rank_correlation(x, y, of=5).spread > found.spread
    same = rank_correlation(x, x)
    assert same.value == same.high == 1
    assert 0.9 < same.low < 1
    for few in (rank_correlation([1, 2, 3], [1, 2, 3]), rank_correlation(x, np.ones(40))):
        assert (few.value, few.low, few.high) == (0.0, -1.0, 1.0)


def test_rank_correlations_hold_their_level():
    """Of independent pairs 5% of the intervals miss 0, and of dependent ones their true value."""
    rng = np.random.default_rng(1)
    for slope in (0.0, 1.0):
        truth = 6 / math.pi * math.asin(slope / math.hypot(1, slope) / 2)  # of Gaussian pairs
        missed = 0
        for _ in range(400):
            x = rng.normal(size=32)
            found = rank_correlation(x, slope * x + rng.normal(size=32))
            missed += not found.low <= truth <= found.high
        assert missed < 36  # 20 on average
