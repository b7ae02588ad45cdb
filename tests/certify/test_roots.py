import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.certify.poly.roots import falling_root, high_rising_root, low_rising_root, power

exponent = st.floats(-6, 6)


def scalar(x):
    return torch.tensor([x], dtype=torch.float64)


@given(
    c=st.floats(1e-6, 10), k=exponent, p=st.sampled_from([1.2, 1.5, 1.9, 2.0, 2.3, 3.0, 4.0, 12.0])
)
def test_falling_root_solves_its_equation(c, k, p):
    u = falling_root(scalar(c), scalar(10**k), p).item()
    # the left side increases: the root lies between two points that bracket u
    low, high = (max(u + e * c, 0.0) for e in (-1e-8, 1e-8))
    assert low + 10**k * low ** (p - 1) <= c <= high + 10**k * high ** (p - 1)


@given(
    c=st.floats(1e-6, 10), share=st.floats(0, 0.9), p=st.sampled_from([2.0, 2.3, 3.0, 4.0, 12.0])
)
def test_low_rising_root_solves_its_equation_below_the_fold(c, share, p):
    fold = 1.0 if p == 2 else (c * (p - 1) / (p - 2)) ** (2 - p) / (p - 1)
    k = share * fold
    u = low_rising_root(scalar(c), scalar(k), p)
    assert (u - k * u ** (p - 1) - c).abs().item() <= 1e-4 * c
    # the lower of the two roots: positive curvature
    assert 1 - (p - 1) * k * u.item() ** (p - 2) >= -1e-6


def test_low_rising_root_leaves_negative_projections_alone():
    assert low_rising_root(scalar(-0.3), scalar(5.0), 3.0).item() == -0.3


@given(c=st.floats(-1, 5), k=st.floats(-2, 2), p=st.sampled_from([1.1, 1.5, 1.8]))
def test_high_rising_root_solves_its_equation_or_sits_at_the_bottom(c, k, p):
    k, q = 10**k, p - 1
    bottom = (q * k) ** (1 / (1 - q))
    lowest = bottom - k * bottom**q
    u = high_rising_root(scalar(c), scalar(k), p).item()
    assert u >= bottom * (1 - 1e-9)
    if c > lowest * 0.9:
        assert abs(u - k * u**q - c) <= 1e-5 * max(abs(c), u)


def test_whole_powers_by_multiplication():
    u = torch.linspace(0, 3, 50, dtype=torch.float64)
    for p in (1, 2, 3, 4, 2.5):
        assert torch.allclose(power(u, p), u**p)
