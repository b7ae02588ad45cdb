import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.measure.distance.function import best_scale, function_distance
from tacit.nets import TwoLayerNet, average_net, centre_net

SEEDS = st.integers(0, 999)


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def near_pair(seed, D, m, p, noise=0.3):
    """Two random nets of m neurons, the second near the first."""
    g = torch.Generator().manual_seed(seed)
    w, v, dw = (torch.randn(*s, generator=g, dtype=torch.float64) for s in ((m, D), (m,), (m, D)))
    return TwoLayerNet(w + noise * dw, v, p=p), TwoLayerNet(w, v, p=p)


def on_grid(f, F, points):
    """dist on a finite set of points, c by a scalar search."""
    a, b = f(points).numpy(), F(points).numpy()
    top = 2 * np.abs(b).max() / np.abs(a).max()
    found = minimize_scalar(
        lambda c: np.abs(c * a - b).max(),
        bounds=(0, top),
        method="bounded",
        options={"xatol": 1e-11},
    )
    return min(found.fun, np.abs(b).max())


def circle(n):
    phi = torch.arange(n, dtype=torch.float64) * (2 * math.pi / n)
    return torch.stack([phi.cos(), phi.sin()], 1)


@given(seed=SEEDS, n=st.integers(1, 30))
def test_the_best_scale_of_finitely_many_points_is_that_of_a_scalar_search(seed, n):
    f, F = normal(seed, n), normal(seed + 1000, n)
    value, c = best_scale(f, F)
    assert value == pytest.approx(float((c * f - F).abs().max()), rel=1e-12)
    grid = torch.linspace(0, 2 * float(F.abs().max() / f.abs().max()), 4001, dtype=torch.float64)
    all_values = (grid.unsqueeze(1) * f - F).abs().amax(1)
    assert value <= float(all_values.min()) + 1e-12
    step = float(grid[1]) * float(f.abs().max())
    assert value >= float(all_values.min()) - step


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_a_net_has_no_distance_from_itself_in_any_scale(p):
    mixture = min2024_mixture(40, 5, 3, 0.1, torch.Generator().manual_seed(0))
    F = average_net(mixture) if p == 1 else centre_net(mixture, p)
    found = function_distance(TwoLayerNet(F.w, 7 * F.v, p=p), F)
    assert found.lower == 0
    assert found.c == pytest.approx(1 / 7)
    # 1 < p < 2 and p = 2 pay for the grid of the circle
    assert found.upper <= (1e-8 if p in (1.0, 3.0) else 2e-4)


@given(theta=st.floats(0.01, 1.5))
def test_one_relu_neuron_turned_in_the_plane_is_off_by_the_sine(theta):
    """c relu(<u, x>) against relu(<m, x>): c = cos theta, and the distance of m from the segment to u."""
    m = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    u = torch.tensor([[math.cos(theta), math.sin(theta)]], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    found = function_distance(TwoLayerNet(u, one), TwoLayerNet(m, one))
    assert found.lower == pytest.approx(math.sin(theta), rel=1e-6)
    assert found.upper == pytest.approx(math.sin(theta), rel=1e-6)
    assert found.lower <= found.upper


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.5])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_both_ends_enclose_every_angle_of_the_plane(p, seed):
    f, F = near_pair(seed, 2, 3, p)
    found = function_distance(f, F)
    brute = on_grid(f, F, circle(20_000))
    # a grid of spacing 3e-4 misses at most slope * 1.6e-4 of a kink
    assert brute <= found.upper
    assert found.lower == pytest.approx(brute, rel=1e-3)
    if p != 1.5:
        assert found.upper <= found.lower * (1 + 1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("seed", [21, 22])
def test_both_ends_enclose_many_points_of_a_sphere_in_three_dimensions(p, seed):
    f, F = near_pair(seed, 3, 4, p)
    found = function_distance(f, F)
    x = normal(seed, 100_000, 3)
    brute = on_grid(f, F, x / x.norm(dim=1, keepdim=True))
    assert brute <= found.lower * (1 + 1e-9)
    assert brute >= found.lower * 0.98
    assert found.lower <= found.upper <= found.lower * (1 + 1e-5)


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("seed", [31, 32])
def test_no_quasi_newton_search_from_many_starts_beats_the_supremum_found(p, seed):
    """scipy's BFGS on x -> |c f - F|(x / |x|) in six dimensions, from 20 starts, at the c that was found."""
    f, F = near_pair(seed, 6, 5, p, noise=0.1)
    found = function_distance(f, F)
    gap = float((found.c * f(found.x[None]) - F(found.x[None])).abs())
    w = torch.cat([f.w, F.w]).numpy()
    v = torch.cat([found.c * f.v, -F.v]).numpy() * np.linalg.norm(w, axis=1) ** (1 - p)

    def downhill(x, sign):
        """-sign h(x / |x|) and its gradient; h is homogeneous of degree p."""
        r = np.linalg.norm(x)
        z = np.maximum(w @ x, 0)
        h, slope = (v * z**p).sum(), p * (v * z ** (p - 1) * (z > 0)) @ w
        return -sign * h / r**p, -sign * (slope / r**p - p * h * x / r ** (p + 2))

    best = max(
        -minimize(downhill, row, args=(sign,), jac=True, method="BFGS").fun
        for row in normal(seed + 500, 20, 6).numpy()
        for sign in (1, -1)
    )
    assert found.x.norm() == pytest.approx(1)
    assert best <= gap * (1 + 1e-5)
    assert best <= found.upper
    assert gap >= found.lower * (1 - 1e-9)


@settings(max_examples=4)
@given(seed=SEEDS, scale=st.floats(1e-9, 1e9), p=st.sampled_from([1.0, 2.0, 3.0]))
def test_the_scale_of_f_does_not_count_and_that_of_F_does(seed, scale, p):
    f, F = near_pair(seed, 3, 3, p)
    found = function_distance(f, F)
    larger = function_distance(TwoLayerNet(f.w, scale * f.v, p=p), F)
    assert larger.lower == pytest.approx(found.lower, rel=1e-5)
    # not c itself: the least supremum can be flat in c
    assert larger.upper == pytest.approx(found.upper, rel=1e-5)
    far = function_distance(f, TwoLayerNet(F.w, 3 * F.v, p=p))
    assert far.lower == pytest.approx(3 * found.lower, rel=1e-5)


@settings(max_examples=5)
@given(seed=SEEDS, p=st.sampled_from([1.0, 3.0]))
def test_order_and_splitting_of_neurons_do_not_count(seed, p):
    f, F = near_pair(seed, 8, 4, p)
    found = function_distance(f, F)
    g = torch.Generator().manual_seed(seed)
    share = 0.1 + 0.8 * torch.rand(4, generator=g, dtype=torch.float64)
    length = 0.5 + torch.rand(8, 1, generator=g, dtype=torch.float64)
    order = torch.randperm(8, generator=g)
    # v relu(<w, x>)^p / |w|^(p-1): the mass is v |w|
    w = (torch.cat([f.w, f.w]) * length)[order]
    v = (torch.cat([f.v * share, f.v * (1 - share)]) / length.squeeze(1))[order]
    again = function_distance(TwoLayerNet(w, v, p=p), F)
    assert again.lower == pytest.approx(found.lower, rel=1e-4)
    assert again.upper == pytest.approx(found.upper, rel=1e-3)
    assert again.lower <= found.upper


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_hundreds_of_neurons_in_bundles_are_measured_from_both_sides(p):
    """The bundles of f are spread by 1e-3: dist moves by less than the spread, the ends stay close."""
    g = torch.Generator().manual_seed(5)
    mixture = min2024_mixture(150, 6, 3, 0.1, g)
    F = average_net(mixture) if p == 1 else centre_net(mixture, p)
    turned = F.w + 0.05 * F.w.norm(dim=1, keepdim=True) * torch.randn(
        F.w.shape, generator=g, dtype=torch.float64
    ) / math.sqrt(150)
    few = function_distance(TwoLayerNet(turned, F.v, p=p), F)
    index = torch.arange(300) % len(F.v)
    copies = 300 // len(F.v)
    w = turned[index] + 1e-3 / math.sqrt(150) * turned[index].norm(
        dim=1, keepdim=True
    ) * torch.randn(300, 150, generator=g, dtype=torch.float64)
    f = TwoLayerNet(w, F.v[index] / copies, p=p)
    many = function_distance(f, F)
    assert many.lower == pytest.approx(few.lower, rel=2e-2)
    assert many.lower <= many.upper <= 1.02 * few.upper
    x = many.x.unsqueeze(0)
    assert float((many.c * f(x) - F(x)).abs()) == pytest.approx(many.lower, rel=1e-3)


def test_float32_nets_are_measured_in_float64():
    f, F = near_pair(3, 10, 3, 3.0)
    single = TwoLayerNet(f.w.float(), f.v.float(), p=3.0)
    found = function_distance(single, F)
    assert found.x.dtype == torch.float64
    assert found.lower == pytest.approx(function_distance(f, F).lower, rel=1e-4)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_a_net_that_is_zero_is_as_far_as_F_is_large(p):
    mixture = min2024_mixture(20, 4, 2, 0.1)
    F = average_net(mixture) if p == 1 else centre_net(mixture, p)
    zero = TwoLayerNet(
        torch.zeros(3, 20, dtype=torch.float64), torch.ones(3, dtype=torch.float64), p=p
    )
    found = function_distance(zero, F)
    # p = 1: the length of the class sum; p = 3: one centre
    largest = math.sqrt(2) if p == 1 else 1.0
    assert found.lower == pytest.approx(largest, rel=1e-6)
    assert found.upper >= largest * (1 - 1e-9)
    assert function_distance(F, zero).lower == 0
    assert function_distance(F, zero).upper <= 1e-10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p": 2.0}, "one p"),
        ({"w": torch.ones(3, 5, dtype=torch.float64)}, "5 coordinates"),
        ({"b": torch.ones(3, dtype=torch.float64)}, "biases"),
        ({"v": torch.tensor([1.0, math.nan, 1.0], dtype=torch.float64)}, "holds NaN or inf"),
        ({"w": torch.ones(2, 3, 4, dtype=torch.float64), "v": torch.ones(2, 3, dtype=torch.float64)}, "member"),
    ],
)  # fmt: skip
def test_nets_that_cannot_be_compared_are_refused(change, words):
    _, F = near_pair(0, 4, 3, 3.0)
    with pytest.raises(CallError, match=words):
        function_distance(TwoLayerNet(**({"w": F.w, "v": F.v, "p": 3.0} | change)), F)
