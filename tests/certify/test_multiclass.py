"""Radii of any multi-class net: against fans of rays, exact radii of two-layer nets, and constrained descent."""

import math

import numpy as np
import pytest
import torch
from brute import grid_radius
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import lambertw

from tacit.certify import radius
from tacit.certify.multiclass import (
    by_pieces,
    by_sums,
    floors,
    multiclass_radius,
    pair_diagonal,
    sound_diagonal,
)
from tacit.certify.softmax import prop48_centres, prop48_radius
from tacit.certify.softmax_leader import Sums, lambert, least_cost, lower_root
from tacit.data import equiangular_centres, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import MultiClassNet, TwoLayerNet, prop48_net

F64 = torch.float64


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def random_net(seed, k, h, D, scale=1.0):
    """Weights of no structure, labels in any order, both classes there."""
    g = gen(seed)
    w = scale * torch.randn(k, h, D, generator=g, dtype=F64)
    labels = torch.ones(k, dtype=F64)
    labels[torch.randperm(k, generator=g)[: 1 + seed % (k - 1)]] = -1
    return MultiClassNet(w, labels)


def trained_like(seed, k=10, k1=5, h=1, height=5.0, d=400, noise=0.03):
    """Subclasses of cosine about -.03, neurons nearly parallel within one: what training gives."""
    g = gen(seed)
    u = equiangular_centres(k, d, -0.03, 1.0, g)
    size = height / math.sqrt(d) * (1 + noise * torch.randn(k, 1, generator=g, dtype=F64))
    spread = 0.2 * noise / math.sqrt(d)
    w = (size * u).unsqueeze(1) * (
        1 + noise * torch.randn(k, h, 1, generator=g, dtype=F64)
    ) + spread * size.unsqueeze(1) * torch.randn(k, h, d, generator=g, dtype=F64)
    labels = torch.ones(k, dtype=F64)
    labels[k1:] = -1
    x = math.sqrt(d) * u + torch.randn(k, d, generator=g, dtype=F64)
    return MultiClassNet(w, labels), x, labels


def shortest_by_slsqp(net, x, y):
    """Constrained minimisation from moves towards every opposite subclass and all of them."""
    u = net.w.mean(1).numpy()
    opp = [j for j in range(len(u)) if net.labels[j] != y]
    i = int((net.logits(x[None])[0] * (net.labels == y)).argmax())
    aims = [u[j] for j in opp] + [u[opp].sum(0)]
    best = np.inf
    scale = float(net.w.norm(dim=2).max())

    def room(delta):
        return -float(y * net((x + torch.from_numpy(delta))[None])[0])

    def slope(delta):
        at = (x + torch.from_numpy(delta)).requires_grad_(True)
        (g,) = torch.autograd.grad(-y * net(at[None])[0], at)
        return g.numpy()

    for aim in aims:
        way = (aim - u[i]) / np.linalg.norm(aim - u[i]) / scale
        for t in (1.0, 2.0, 4.0):
            found = minimize(
                lambda s: s @ s, t * way, jac=lambda s: 2 * s, method="SLSQP",
                constraints=[{"type": "ineq", "fun": room, "jac": slope}],
                options={"ftol": 1e-12, "maxiter": 200},
            )  # fmt: skip
            if room(found.x) >= -1e-8:
                best = min(best, math.sqrt(found.fun))
    return best


def certified(net, x, y, upper):
    """Both certificates as they are, not cut at the attack."""
    parts = torch.zeros_like(upper)
    for sign in (1, -1):
        mine = y == sign
        parts[mine] = torch.maximum(
            by_sums(net, x[mine], sign, upper[mine]), by_pieces(net, x[mine], sign)
        )
    return parts


def test_lambert_and_the_lower_root_agree_with_scipy():
    log_y = torch.linspace(-590, 700, 4001, dtype=F64)
    assert np.allclose(lambert(log_y), lambertw(log_y.exp().numpy()).real, rtol=1e-13, atol=0)
    assert lambert(torch.tensor([-math.inf], dtype=F64)) == 0
    y = torch.cat(
        [torch.linspace(0, 0.3678, 999, dtype=F64), torch.logspace(-300, -1, 99, dtype=F64)]
    )
    assert np.allclose(lower_root(y), -lambertw(-y.numpy()).real, rtol=1e-10, atol=0)
    assert lower_root(torch.tensor([0.5, math.inf], dtype=F64)) == pytest.approx([1, 1], abs=1e-7)


def separable_grid(sums, reach=7.0, steps=141):
    """The least cost over a grid of all moves of two own and two opposite terms (row 0 of the costs)."""
    fall = np.linspace(-reach, 0, steps)
    rise = np.linspace(0, reach, steps)
    own, opp, floor = (t[0].numpy() for t in (sums.own, sums.opp, sums.floor))
    D1, D2 = sums.own_cost[0].numpy(), sums.opp_cost[0].numpy()
    low = [np.exp(np.maximum(own[i] + fall, 0)) for i in (0, 1)]
    high = [np.exp(np.maximum(opp[j] + rise, floor[j])) for j in (0, 1)]
    left = (low[0][:, None] + low[1]).ravel()
    paid = (D1[0] * fall[:, None] ** 2 + D1[1] * fall**2).ravel()
    right = (high[0][:, None] + high[1]).ravel()
    cost = (D2[0] * rise[:, None] ** 2 + D2[1] * rise**2).ravel()
    order = np.argsort(left)
    cheapest = np.minimum.accumulate(paid[order])
    at = np.searchsorted(left[order], right, side="right") - 1
    return (cheapest[np.maximum(at, 0)] + cost)[at >= 0].min()


@given(seed=st.integers(0, 10**6), top=st.floats(0.2, 6.0))
def test_the_least_cost_is_a_tight_bound_of_a_grid_search(seed, top):
    g = gen(seed)
    own, opp = (torch.randn(1, 2, generator=g, dtype=F64) for _ in range(2))
    own[0, 0] = top
    floor = 0.2 * torch.rand(1, 2, generator=g, dtype=F64)
    D1, D2 = (0.5 + torch.rand(1, 2, generator=g, dtype=F64) for _ in range(2))
    for one_cost in (True, False):
        sums = Sums(own, opp, floor, D1.expand(2, 2), D2.expand(2, 2), one_cost)
        bound, best = float(least_cost(sums)), separable_grid(sums)
        assert bound <= best + 1e-9
        # the grid is off by its step, .05; ties and the fixed cost of a term below its floor may cost the rest
        assert math.sqrt(bound) >= 0.9 * math.sqrt(best) - 0.15


@given(seed=st.integers(0, 10**6), k=st.integers(2, 7))
def test_diagonals_are_above_the_cosines(seed, k):
    u = torch.randn(k, 5, generator=gen(seed), dtype=F64)
    u = u / u.norm(dim=1, keepdim=True)
    cosine = u @ u.T
    most = torch.linalg.eigvalsh(cosine)[-1].clamp_min(1)
    own = torch.arange(k) < max(k // 2, 1)
    E = pair_diagonal(cosine, most, own, 0, k - 1)
    assert torch.linalg.eigvalsh(E.diag() - cosine)[0] > -1e-10
    poor = sound_diagonal(cosine, torch.rand(3, k, generator=gen(seed + 1), dtype=F64))
    assert (torch.linalg.eigvalsh(torch.diag_embed(poor) - cosine) > 0).all()


@given(seed=st.integers(0, 10**6), h=st.integers(1, 4))
def test_logits_stay_below_their_floor_or_their_mean_neuron(seed, h):
    g = gen(seed)
    base = torch.randn(3, 1, 4, generator=g, dtype=F64)
    w = base * (0.3 + torch.rand(3, h, 1, generator=g, dtype=F64))
    w = w + 0.2 * torch.randn(3, h, 4, generator=g, dtype=F64)
    x = torch.randn(5, 4, generator=g, dtype=F64)
    reach = torch.rand(5, generator=g, dtype=F64) * 3
    tau = floors(w, x, reach)
    way = torch.randn(200, 5, 4, generator=g, dtype=F64)
    at = x + way / way.norm(dim=2, keepdim=True) * reach[:, None]
    f = (at.unsqueeze(2).unsqueeze(3) * w).sum(4).clamp_min(0).mean(3)
    mean = (at.unsqueeze(2) * w.mean(1)).sum(3)
    assert (f <= torch.maximum(mean, tau) + 1e-12).all()
    if h == 1:
        assert not tau.any()


@pytest.mark.parametrize(
    ("seed", "h"),
    [
        (1, 1),
        *(pytest.param(s, h, marks=pytest.mark.slow) for s in range(2, 9) for h in (1, 3)),
    ],
)
def test_random_nets_in_the_plane(seed, h):
    """Any weights, K1 != K2, any order of labels, points anywhere: the fan of rays is never beaten."""
    net = random_net(seed, 3 + seed % 3, h, 2, scale=1.0 + seed / 2)
    x = 2 * torch.randn(8, 2, generator=gen(seed + 50), dtype=F64)
    y = torch.where(net(x) > 0, 1.0, -1.0).to(F64)
    found = multiclass_radius(net, x, y)
    raw = certified(net, x, y, found.upper.clamp_max(50.0))
    fan = torch.tensor(
        [grid_radius(net, x[i], float(y[i]), 8.0, rays=180, steps=400) for i in range(8)], dtype=F64
    )
    assert (raw <= fan + 1e-9).all()
    # the attack searches locally: it may miss the nearest of many faces, and mostly does not
    met = torch.isfinite(fan) & (fan > 0)
    assert not met.any() or (found.upper / fan)[met].median() < 1.01


@pytest.mark.parametrize("h", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_two_subclasses_are_a_two_layer_net_with_an_exact_radius(h):
    g = gen(h)
    w = torch.randn(2, h, 6, generator=g, dtype=F64)
    net = MultiClassNet(w, torch.tensor([1.0, -1.0], dtype=F64))
    v = torch.tensor([1 / h] * h + [-1 / h] * h, dtype=F64)
    same = TwoLayerNet(w.flatten(0, 1), v)
    x = torch.randn(12, 6, generator=g, dtype=F64)
    y = torch.where(same(x) > 0, 1.0, -1.0).to(F64)
    exact, found = radius(same, x, y), radius(net, x, y)
    assert (found.lower <= exact.upper + 1e-9).all()
    assert (found.upper >= exact.lower - 1e-9).all()
    assert (found.upper <= 1.02 * exact.upper).all()
    if h == 1:  # ln K = 0: the half-spaces are all there is, but for the corner where both are off
        assert (found.lower >= 0.7 * exact.lower).all()


@pytest.mark.parametrize(
    ("k1", "h", "height", "width"),
    [
        (5, 1, 5.4, 0.01),
        pytest.param(3, 1, 8.0, 0.01, marks=pytest.mark.slow),
        pytest.param(7, 3, 6.5, 0.015, marks=pytest.mark.slow),
        pytest.param(5, 5, 3.3, 0.03, marks=pytest.mark.slow),
    ],
)
def test_the_interval_is_narrow_for_nets_as_training_leaves_them(k1, h, height, width):
    net, x, y = trained_like(11, k1=k1, h=h, height=height)
    found = radius(net, x, y)
    raw = certified(net, x, y, found.upper)
    assert (raw <= found.upper * (1 + 1e-9)).all()
    assert ((found.upper - found.lower) / found.upper).max() < width


@pytest.mark.slow
@pytest.mark.parametrize("h", [1, 3])
def test_constrained_descent_stays_inside_the_interval(h):
    net, x, y = trained_like(3, k=6, k1=2, h=h, height=4.0, d=30)
    found = radius(net, x, y)
    for i in (0, 3):
        best = shortest_by_slsqp(net, x[i], float(y[i]))
        assert float(found.lower[i]) <= best * (1 + 1e-6)
        assert float(found.upper[i]) <= best * 1.002


def test_large_logits_neither_overflow_nor_lose_the_bound():
    """Weights of the centres themselves: logits of thousands, and sqrt(d/2) up to ln K / d."""
    mixture = sqrt_d_mixture(3000, 6, 2)
    net = MultiClassNet(mixture.centres.unsqueeze(1), mixture.labels)
    found = radius(net, mixture.centres, mixture.labels)
    assert (found.upper / math.sqrt(1500) - 1).abs().max() < 1e-3
    assert (found.lower / math.sqrt(1500) - 1).abs().max() < 2e-3
    assert certified(net, mixture.centres, mixture.labels, found.upper).isfinite().all()


def test_broken_points_ensembles_and_silent_subclasses():
    net, x, y = trained_like(5, k=4, k1=2, height=8.0, d=40)
    x, y = x[:2], y[:2]
    found = radius(net, x, -y)
    assert not found.lower.any()
    assert not found.upper.any()
    both = radius(MultiClassNet(torch.stack([net.w, 2 * net.w]), net.labels), x, y)
    assert torch.equal(both.upper[0], radius(net, x, y).upper)
    assert both.lower.shape == (2, 2)
    silent = MultiClassNet(torch.zeros(3, 2, 3, dtype=F64), torch.tensor([1.0, 1, -1]).to(F64))
    never = radius(silent, x[:, :3], torch.ones(2, dtype=F64))  # ln 2 > ln 1 everywhere
    assert torch.isinf(never.upper).all()


def test_one_class_is_refused():
    net = MultiClassNet(torch.ones(2, 1, 3, dtype=F64), torch.ones(2, dtype=F64))
    with pytest.raises(CallError, match="both classes"):
        radius(net, torch.ones(1, 3, dtype=F64), torch.ones(1, dtype=F64))


def test_the_net_of_prop_4_8_keeps_its_own_interval():
    mixture = sqrt_d_mixture(40, 4, 2).reduced()
    net, points = prop48_net(mixture), mixture.sample(20, gen(2))
    assert prop48_centres(net) is not None
    own, any_net = radius(net, points.x, points.y), multiclass_radius(net, points.x, points.y)
    assert torch.equal(own.lower, prop48_radius(net, points.x, points.y).lower)
    assert (any_net.lower <= own.upper + 1e-9).all()
    assert (own.lower <= any_net.upper + 1e-9).all()
    with pytest.raises(CallError, match="one neuron a subclass"):
        prop48_radius(random_net(1, 4, 2, 4), points.x, points.y)
