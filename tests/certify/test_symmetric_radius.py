"""Certified radii of the symmetric smoothed net: against attacks, brute force, and each part by itself."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from brute import grid_radius
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tacit.attack import minimal, pgd
from tacit.attack.norms import L2, LINF, known_norm
from tacit.certify import radius, symmetric_certified, symmetric_radius
from tacit.certify.relu.radius import relu_radius
from tacit.certify.symmetric.axes import axes_of, found_axes, orthonormal
from tacit.certify.symmetric.cells import Lined, Pieces, pieces, slopes_between
from tacit.certify.symmetric.envelope import envelope
from tacit.certify.symmetric.radius import prepared
from tacit.certify.symmetric.spend import Chords, least, spent
from tacit.data.sparse_coding import sparse_coding, two_level_law, unitary_dictionary
from tacit.errors import CallError
from tacit.nets import SymmetricNet
from tacit.nets.smoothed import pair_slope, pair_value

DOUBLE = torch.float64
D, K, B, SIGMA = 24, 4, 0.25, 0.04


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=DOUBLE)


DICTIONARY = unitary_dictionary(D, D, seeded(1))


def purified(off: float, *, each: int = 3, sigma: float = SIGMA, seed: int = 2) -> SymmetricNet:
    """Neurons a (M_j + off n), each feature some of them, n a random direction."""
    h = each * D
    a = 0.6 + torch.rand(h, 1, generator=seeded(seed), dtype=DOUBLE)
    n = normal(h, D, seed=seed + 1)
    n = n / n.norm(dim=1, keepdim=True)
    w = a * (DICTIONARY.T.repeat(each, 1) + off * n)
    return SymmetricNet(w, torch.full((h,), B, dtype=DOUBLE), sigma)


def samples(n: int, seed: int = 3) -> tuple[Tensor, Tensor]:
    model = sparse_coding(DICTIONARY, two_level_law(D, K), K, sigma_x=0.3, margin=1.0)
    drawn = model.sample(n, seeded(seed))
    return drawn.x, drawn.y


def random_net(seed: int, d: int, h: int, sigma: float, one_bias: bool) -> SymmetricNet:
    b = normal(h, seed=seed + 1).abs() * 0.5
    return SymmetricNet(normal(h, d, seed=seed), b * 0 + 0.3 if one_bias else b, sigma)


def its_own(net: SymmetricNet, n: int, seed: int) -> tuple[Tensor, Tensor]:
    x = normal(n, net.w.shape[1], seed=seed)
    return x, torch.where(net(x) > 0, 1.0, -1.0).to(DOUBLE)


# the parts


@given(
    seed=st.integers(0, 10**6),
    b=st.floats(0, 1),
    sigma=st.sampled_from([0.0, 0.05, 0.5]),
    far=st.floats(0, 2),
)
def test_slopes_on_an_interval(seed: int, b: float, sigma: float, far: float) -> None:
    low = normal(20, seed=seed)
    high = low + far
    p, q = slopes_between(low, high, torch.tensor(b, dtype=DOUBLE), sigma)
    inside = low + (high - low) * torch.linspace(0, 1, 101, dtype=DOUBLE).unsqueeze(1)
    slope = pair_slope(inside, b, sigma)
    assert (p <= slope.amin(0) + 1e-15).all()
    assert (q >= slope.amax(0) - 1e-15).all()


@given(
    seed=st.integers(0, 10**6),
    b=st.floats(0, 1),
    sigma=st.sampled_from([0.0, 0.05, 0.5]),
    gamma=st.sampled_from([0.0, 1.0, 8.0]),
)
def test_a_neuron_is_above_its_chords_wherever_the_rest_goes(
    seed: int, b: float, sigma: float, gamma: float
) -> None:
    """phi(z + a t + rho) - s rho + gamma rho^2/2 over cells and rests, by a grid."""
    if sigma == 0:
        gamma = 0.0
    k, T = 6, 9
    v, R = normal(k, 1, seed=seed).abs(), normal(k, 1, seed=seed + 1).abs().expand(k, T) * 0.3
    s, bias = pair_slope(v, b, sigma), torch.full((k, 1), b, dtype=DOUBLE)
    ends = torch.linspace(-1, 1, T + 1, dtype=DOUBLE)
    zeta = normal(k, 1, seed=seed + 2) + normal(k, 1, seed=seed + 3) * ends
    soft = envelope(b, sigma, torch.full((k,), gamma, dtype=DOUBLE), 16.0) if gamma else None
    left, right = Lined(s, v, bias, sigma, soft).below(zeta, R)
    for part in torch.linspace(0, 1, 11, dtype=DOUBLE):
        at = zeta[:, :-1] + part * zeta.diff(dim=1)
        for way in torch.linspace(-1, 1, 41, dtype=DOUBLE):
            rho = way * R
            true = pair_value(at + rho, bias, sigma) - s * rho + gamma * rho.square() / 2
            assert (left + part * (right - left) <= true + 1e-12).all()


def test_cells_are_tight_where_there_is_no_rest() -> None:
    ends = torch.linspace(-1, 1, 65, dtype=DOUBLE)
    none = torch.zeros(1, 64, dtype=DOUBLE)
    b = torch.full((1, 1), 0.3, dtype=DOUBLE)
    left, right = Lined(b * 0, b * 0, b, 0.05, None).below(ends.unsqueeze(0), none)
    true = pair_value(ends, 0.3, 0.05)
    assert (true[:-1] - left[0]).max() < 2e-3
    assert (true[1:] - right[0]).abs().max() < 2e-3
    # the pair is concave below 0: there the chord itself is below
    assert (true[:32] - left[0][:32]).abs().max() < 1e-15


@pytest.mark.parametrize(("b", "sigma"), [(0.2, 0.03), (0.0, 0.2), (1.0, 0.5)])
def test_the_envelope_is_below_and_close(b: float, sigma: float) -> None:
    gamma = torch.tensor([0.7, 6.0, 50.0, 6.0], dtype=DOUBLE)
    soft = envelope(b, sigma, gamma, 4.0)
    assert len(soft.table) == 3
    y = 8 * torch.rand(4, 40, generator=seeded(), dtype=DOUBLE) - 4
    away = torch.linspace(-2.2, 0.2, 4001, dtype=DOUBLE) / gamma[:, None, None]
    true = pair_value(y.unsqueeze(2) + away, b, sigma) + gamma[:, None, None] * away.square() / 2
    assert (soft(y) <= true.amin(2) + 1e-12).all()
    assert (true.amin(2) - soft(y)).max() < 2e-3
    assert (soft(y + 20) == -torch.inf).all()


def some_pieces(seed: int, k: int = 3, T: int = 8) -> Pieces:
    ends = torch.linspace(-1, 1, T + 1, dtype=DOUBLE).expand(k, -1)
    left = normal(k, T, seed=seed)
    return Pieces(
        0.0,
        normal(k + 1, seed=seed + 2),
        torch.ones(k + 1, dtype=DOUBLE),
        torch.arange(k),
        ends,
        left,
        left + normal(k, T, seed=seed + 1) * 0.3,
        torch.tensor([0.0, 1.0, 3.0, 0.5], dtype=DOUBLE),
    )


@given(seed=st.integers(0, 10**6), budget=st.floats(0.05, 5))
def test_the_budget_is_spent_at_least_as_well_as_anybody_does(seed: int, budget: float) -> None:
    parts = some_pieces(seed)
    value = least(parts, budget, 1.0)
    t = 2 * torch.rand(4000, 4, generator=seeded(seed), dtype=DOUBLE) - 1
    t = t[t.square().sum(1) <= budget]
    cell = ((t[:, :3] + 1) * 4).long().clamp_max(7)
    row = torch.arange(3)
    part = (t[:, :3] + 1) * 4 - cell
    left, right = parts.left[row, cell], parts.right[row, cell]
    total = (left + part * (right - left)).sum(1) + t @ parts.slope
    total = total - (parts.bend * t.square()).sum(1) / 2
    assert (total >= value - 1e-9).all()
    assert value >= spent(parts, Chords.of(parts), 0.0)[0]


def test_convex_sums_have_no_gap() -> None:
    """h_j(t) = t^2/2 + c_j t, in cells so fine that they are nearly it: the minimum on the sphere is known."""
    c, T = normal(5, seed=4) * 3, 2000
    ends = torch.linspace(-1, 1, T + 1, dtype=DOUBLE).expand(5, -1)
    bowl = ends.square() / 2
    parts = Pieces(
        0.0, c, torch.ones(5).double(), torch.arange(5), ends, bowl[:, :-1], bowl[:, 1:], c * 0
    )
    lam = float(c.norm()) / 0.5 - 1
    exact = -float((c.square() / (1 + lam)).sum()) / 2 - lam * 0.25 / 2
    assert least(parts, 0.25, 1.0) == pytest.approx(exact, abs=1e-5)


def test_axes_are_orthonormal_and_find_the_features() -> None:
    net = purified(0.2)
    u = found_axes(net.w)
    torch.testing.assert_close(u @ u.T, torch.eye(D, dtype=DOUBLE), rtol=0, atol=1e-12)
    assert (u @ DICTIONARY).abs().amax(1).min() > 0.95
    axes = axes_of(net.w, u, L2)
    back = axes.along.unsqueeze(1) * u[axes.group] + axes.rest
    torch.testing.assert_close(back, net.w)
    assert (axes.rest * u[axes.group]).sum(1).abs().max() < 1e-12
    few = orthonormal(normal(3, D, seed=9))
    torch.testing.assert_close(few @ few.T, torch.eye(D, dtype=DOUBLE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [2, math.inf])
@pytest.mark.parametrize("soft", [False, True])
def test_the_bound_is_below_the_net_in_the_ball(order: float, soft: bool) -> None:
    net, (x, y) = purified(0.3), samples(8)
    prover, x = prepared(net, x, y, order, None)
    norm = known_norm(order)
    for point in x:
        r = 0.3 if order == 2 else 0.05
        price = prover.price(point[None], torch.tensor([r], dtype=DOUBLE)) if soft else None
        assert (price is not None) == soft
        value = float(prover.bound(point, r, price))
        moves = r * norm.random(point.expand(500, -1), seeded())
        ends = norm.extreme(-(net.slopes(point[None]) @ net.w), torch.tensor([[r]]).double(), None)
        worst = net(point + torch.cat([moves, ends, 0 * ends]))
        assert value <= float(worst.min())


# the radii


def test_one_neuron_a_feature_is_exact() -> None:
    """Neurons on the axes: the certificate meets what an attack finds."""
    net, (x, y) = purified(0.0), samples(8)
    lower, upper = symmetric_radius(net, x, y).lower, minimal(net, x, y).radius
    assert (lower <= upper * (1 + 1e-9)).all()
    assert (lower / upper).median() > 0.97


@pytest.mark.parametrize("order", [2, math.inf, 1])
@pytest.mark.parametrize("off", [0.1, 0.4])
def test_no_attack_is_shorter(order: float, off: float) -> None:
    net, (x, y) = purified(off), samples(5)
    found = symmetric_radius(net, x, y, norm=order).lower
    assert (found > 0).all()
    assert (found <= minimal(net, x, y, norm=order).radius * (1 + 1e-9)).all()


def test_hundreds_of_points_against_pgd() -> None:
    net, (x, y) = purified(0.15), samples(200)
    radii = torch.tensor([0.1, 0.3, 0.5], dtype=DOUBLE)
    safe = symmetric_certified(net, x, y, radii)
    broken = pgd(net, x, y, radii.tolist(), steps=20).broken
    assert not (safe & broken).any()
    share = safe.double().mean(1)
    assert share[0] > 0.95
    assert share[0] >= share[1] >= share[2]
    # what neither proves nor breaks is little
    assert (~safe & ~broken).double().mean(1).max() < 0.2


@settings(max_examples=5)
@given(
    seed=st.integers(0, 10**6),
    sigma=st.sampled_from([0.0, 0.05, 0.4]),
    one_bias=st.booleans(),
)
def test_in_the_plane_no_ray_is_shorter(seed: int, sigma: float, one_bias: bool) -> None:
    net = random_net(seed, 2, 5, sigma, one_bias)
    x, y = its_own(net, 3, seed + 7)
    found = symmetric_radius(net, x, y).lower
    for point, label, low in zip(x, y, found, strict=True):
        assert float(low) <= grid_radius(net, point, float(label), 6.0) + 1e-9


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sigma=st.sampled_from([0.0, 0.05, 0.4]),
    one_bias=st.booleans(),
    order=st.sampled_from([1, 2, math.inf]),
    d=st.integers(1, 6),
)
def test_no_attack_is_shorter_for_any_net(
    seed: int, sigma: float, one_bias: bool, order: float, d: int
) -> None:
    net = random_net(seed, d, 12, sigma, one_bias)
    x, y = its_own(net, 4, seed + 7)
    found = symmetric_radius(net, x, y, norm=order).lower
    assert (found <= minimal(net, x, y, norm=order).radius * (1 + 1e-9)).all()


@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 3.0]))
def test_what_changes_nothing_and_what_scales(seed: int, scale: float) -> None:
    net = random_net(seed, 4, 8, 0.1, True)
    x, y = its_own(net, 3, seed + 7)
    once = symmetric_radius(net, x, y).lower
    torch.testing.assert_close(symmetric_radius(net, -x, -y).lower, once, rtol=0.02, atol=1e-9)
    wide = replace(net, w=net.w / scale)
    torch.testing.assert_close(
        symmetric_radius(wide, scale * x, y).lower, scale * once, rtol=0.02, atol=1e-9
    )
    silent = SymmetricNet(torch.cat([net.w, 0 * net.w[:1]]), torch.cat([net.b, net.b[:1]]), 0.1)
    torch.testing.assert_close(symmetric_radius(silent, x, y).lower, once, rtol=0.02, atol=1e-9)


def test_certified_at_radii_is_the_radius_and_falls() -> None:
    net, (x, y) = purified(0.2), samples(10)
    lower = symmetric_radius(net, x, y).lower
    radii = torch.tensor([0.05, 0.4, 0.2, 0.0], dtype=DOUBLE)
    safe = symmetric_certified(net, x, y, radii)
    order = radii.argsort()
    assert (safe[order].int().diff(dim=0) <= 0).all()
    assert safe[3].all()
    for k, r in enumerate(radii.tolist()):
        clear = (lower > 1.03 * r) | (lower < 0.97 * r)
        assert (safe[k] == (lower > r))[clear].all()


def test_given_axes_and_the_wrong_label() -> None:
    net, (x, y) = purified(0.2), samples(6)
    found = symmetric_radius(net, x, y, axes=DICTIONARY.T).lower
    assert (found <= minimal(net, x, y).radius).all()
    assert (found > 0).all()
    assert (symmetric_radius(net, x, -y).lower == 0).all()
    assert not symmetric_certified(net, x, -y, torch.tensor([0.0, 0.1]).double()).any()


def test_without_noise_it_is_below_the_exact_radius() -> None:
    net = random_net(5, 3, 5, 0.0, False)
    x, y = its_own(net, 6, 8)
    exact = relu_radius(net.two_layer(), x, y)
    assert (symmetric_radius(net, x, y).lower <= exact.upper * (1 + 1e-9)).all()


@pytest.mark.parametrize("zeros", [1, 5])
def test_neurons_without_bias_and_noise_are_linear(zeros: int) -> None:
    """With b = 0 and no noise a neuron is <w, x>: the net of such neurons is linear, and its radius known."""
    net = random_net(5, 3, 5, 0.0, False)
    net = SymmetricNet(net.w, torch.where(torch.arange(5) < zeros, 0.0, net.b), 0.0)
    x, y = its_own(net, 20, 8)
    lower = symmetric_radius(net, x, y).lower
    if zeros == 5:
        exact = net(x).abs() / net.w.sum(0).norm()
        torch.testing.assert_close(lower, exact, rtol=0.02, atol=0)
    assert (lower <= minimal(net, x, y).radius * (1 + 1e-6)).all()


def test_the_verb_gives_both_ends() -> None:
    net, (x, y) = purified(0.1), samples(2)
    both = radius(net, x, y)
    torch.testing.assert_close(both.lower, symmetric_radius(net, x, y).lower)
    torch.testing.assert_close(both.upper, minimal(net, x, y).radius)
    assert (both.lower > 0).all()
    assert (both.lower <= both.upper).all()
    single = replace(net, w=net.w.float(), b=net.b.float())
    torch.testing.assert_close(radius(single, x, y).lower, both.lower, rtol=0.02, atol=0)
    assert radius(net, x, y, norm=LINF).lower.min() > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": torch.tensor([0.0, 1.0])}, "labels"),
        ({"x": torch.zeros(2, 3, dtype=DOUBLE)}, "columns"),
        ({"axes": torch.zeros(2, 3, dtype=DOUBLE)}, "axes"),
        ({"norm": 3}, "norm"),
        ({"net": SymmetricNet(-torch.ones(2, D).double(), -torch.ones(2).double(), 0.1)}, "bias"),
        (
            {"net": SymmetricNet(torch.ones(2, 2, D).double(), torch.ones(2, 2).double())},
            "ensemble",
        ),
    ],
)
def test_bad_calls(change: dict, words: str) -> None:
    x, y = samples(2)
    call = {"net": purified(0.1), "x": x, "y": y} | change
    with pytest.raises(CallError, match=words):
        symmetric_radius(call.pop("net"), call.pop("x"), call.pop("y"), **call)
    with pytest.raises(CallError, match="radii"):
        symmetric_certified(purified(0.1), x, y, torch.tensor([-1.0]).double())


def test_pieces_keep_straight_neurons_whole() -> None:
    """Far from every kink the bound is f - r ||gradient||."""
    net = SymmetricNet(normal(6, 3), torch.full((6,), 0.1, dtype=DOUBLE), 0.01)
    x = normal(1, 3, seed=1)[0] * 30
    axes = axes_of(net.w, found_axes(net.w), L2)
    parts = pieces(net, axes, x, 0.01, L2, 16, None)
    assert not len(parts.axis)
    value = parts.constant + least(parts, 1e-4, 1.0)
    gradient = (net.slopes(x[None]) @ net.w)[0]
    assert value == pytest.approx(float(net(x[None])[0]) - 0.01 * float(gradient.norm()), abs=1e-6)
