"""Radii of any multi-class net: against fans of rays, exact radii of two-layer nets, and constrained descent."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from brute import grid_radius
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import lambertw

from tacit.certify import radius
from tacit.certify.softmax import leader as softmax_leader
from tacit.certify.softmax.bayes import prop48_centres, prop48_radius
from tacit.certify.softmax.leader import Sums, lambert, least_cost, lower_root
from tacit.certify.softmax.multiclass import (
    by_pieces,
    by_sums,
    floors,
    multiclass_radius,
    pair_diagonal,
    sound_diagonal,
)
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
    """The least cost over a grid of all moves of two own and two opposite terms, by the costs of the leader."""
    fall = np.linspace(-reach, 0, steps)
    rise = np.linspace(0, reach, steps)
    own, opp, floor = (t[0].numpy() for t in (sums.own, sums.opp, sums.floor))
    low = [np.exp(np.maximum(own[i] + fall, 0)) for i in (0, 1)]
    high = [np.exp(np.maximum(opp[j] + rise, floor[j])) for j in (0, 1)]
    left = (low[0][:, None] + low[1]).ravel()
    right = (high[0][:, None] + high[1]).ravel()
    order = np.argsort(left)
    at = np.searchsorted(left[order], right, side="right") - 1
    first_leads = (high[0][:, None] >= high[1]).ravel()
    best = np.inf
    for D1, D2, leads in zip(
        sums.own_cost.numpy(), sums.opp_cost.numpy(), (first_leads, ~first_leads), strict=True
    ):
        paid = (D1[0] * fall[:, None] ** 2 + D1[1] * fall**2).ravel()
        cost = (D2[0] * rise[:, None] ** 2 + D2[1] * rise**2).ravel()
        cheapest = np.minimum.accumulate(paid[order])
        best = np.min((cheapest[np.maximum(at, 0)] + cost)[(at >= 0) & leads], initial=best)
    return best


@given(seed=st.integers(0, 10**6), top=st.floats(0.2, 6.0))
def test_the_least_cost_is_a_tight_bound_of_a_grid_search(seed, top):
    g = gen(seed)
    own, opp = (torch.randn(1, 2, generator=g, dtype=F64) for _ in range(2))
    own[0, 0] = top
    floor = 0.2 * torch.rand(1, 2, generator=g, dtype=F64)
    D1, D2 = (0.5 + torch.rand(2, 2, generator=g, dtype=F64) for _ in range(2))
    shared = Sums(own, opp, floor, D1[:1].expand(2, 2), D2[:1].expand(2, 2), True)
    for sums in (shared, replace(shared, one_cost=False), Sums(own, opp, floor, D1, D2, False)):
        bound, best = float(least_cost(sums)), separable_grid(sums)
        assert bound <= best + 1e-9
        # the grid is off by its step, .05; ties and the fixed cost of a term below its floor may cost the rest
        assert math.sqrt(bound) >= 0.9 * math.sqrt(best) - 0.15


def test_opposite_terms_that_rise_together_are_not_forgotten():
    """As the second term is cheap while the first leads, both end level: 2 e^v = e^6 at cost 1.05 v^2."""
    z = torch.zeros(1, 2, dtype=F64)
    own, dear = torch.tensor([[6.0, -1]], dtype=F64), torch.full((2, 2), 500.0, dtype=F64)
    costs = torch.tensor([[1.0, 0.05], [100, 100]], dtype=F64)
    sums = Sums(own, z, z, dear, costs, False)
    best = 1.05 * math.log((math.exp(6) + 1) / 2) ** 2
    assert separable_grid(sums) == pytest.approx(best, rel=0.03)
    assert 0.8 * best <= float(least_cost(sums)) <= best


def test_a_single_cell_is_still_a_bound():
    """One own and one opposite term: they meet where D_1 (z_1 - v)^2 + D_2 (v - z_2)^2 is least."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax_leader, "CELLS", 1)
        for top in (0.5, 1.0, 3.0, 6.0):
            for D in (0.2, 1.0, 5.0):
                own, opp = torch.tensor([[top]], dtype=F64), torch.zeros(1, 1, dtype=F64)
                cost = torch.ones(1, 1, dtype=F64)
                sums = Sums(own, opp, opp, cost, D * cost, True)
                assert float(least_cost(sums)) <= top**2 * D / (1 + D)


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


@pytest.mark.parametrize("size", [1e3, 1e4, 1e100])
def test_large_logits_on_both_sides_keep_their_interval(size):
    """p e^v overflows for own and opposite terms alike; the half-spaces give .1 / sqrt(2) up to ln 3 / size."""
    labels = torch.tensor([1.0, 1, 1, -1, -1, -1], dtype=F64)
    net = MultiClassNet(size * torch.eye(6, dtype=F64).unsqueeze(1), labels)
    x = torch.tensor([[1, 0.2, 0.3, 0.9, 0.8, 0.7]], dtype=F64)
    found = radius(net, x, torch.ones(1, dtype=F64))
    assert float(found.upper) == pytest.approx(0.1 / math.sqrt(2), rel=1e-6)
    assert float(found.lower) >= (0.1 - 1.01 * math.log(3) / size) / math.sqrt(2) * (1 - 1e-8)
    assert by_sums(net, x, 1, found.upper).isfinite().all()


def test_small_logits_have_finite_intervals():
    """At 0 four own and two opposite terms; of weights s the radius is r/s for small s."""
    labels = torch.tensor([1.0, 1, 1, -1, -1, 1], dtype=F64)
    net = MultiClassNet(1e-3 * torch.eye(6, dtype=F64).unsqueeze(1), labels)
    found = radius(net, torch.zeros(1, 6, dtype=F64), torch.ones(1, dtype=F64))
    # both opposite logits at ln 2, or one at ln 3: the first is the shorter
    assert float(found.upper) == pytest.approx(1e3 * math.log(2) * math.sqrt(2), rel=1e-4)
    assert float(found.lower) >= 0.999 * float(found.upper)


def test_points_near_the_boundary_have_a_bound_of_sums():
    net = MultiClassNet(
        torch.eye(4, dtype=F64).unsqueeze(1), torch.tensor([1.0, 1, -1, -1]).to(F64)
    )
    x = torch.tensor([[2.0, 1, 1.99, 1]], dtype=F64)
    found = radius(net, x, torch.ones(1, dtype=F64))
    assert float(found.lower) >= 0.9 * float(found.upper)


def test_silent_leaders_of_both_classes_cost_no_number():
    """The largest own logit and an opposite one have weights 0: what breaks is x_2 at ln 2."""
    w = torch.tensor([[0.0, 0], [-1, 0], [0, 0], [0, 0], [0, 1]], dtype=F64).unsqueeze(1)
    net = MultiClassNet(w, torch.tensor([1.0, 1, 1, -1, -1], dtype=F64))
    x, y = torch.tensor([[1.0, -1]], dtype=F64), torch.ones(1, dtype=F64)
    found = radius(net, x, y)
    assert float(found.upper) == pytest.approx(1 + math.log(2), rel=1e-6)
    assert by_sums(net, x, 1, found.upper).isfinite().all()


@pytest.mark.parametrize("apart", [1e-2, 1e-6, 1e-8])
def test_nearly_equal_subclasses_of_both_classes(apart):
    """w and w + apart e_4: the boundary is x_4 = 0, at distance 1."""
    w = torch.tensor([3.0, 1, 2, 0.1], dtype=F64).repeat(2, 5, 1)
    w[1, :, 3] += apart
    net = MultiClassNet(w, torch.tensor([1.0, -1], dtype=F64))
    x = torch.tensor([[30.0, 10, 20, -1]], dtype=F64)
    assert 0.999 < float(by_pieces(net, x, 1)) <= 1


def test_short_weights_next_to_long_ones_count():
    """1e13 x_1 <= x_2 at x = (2, 1e13): distance 1. Rounding of such products costs a per cent."""
    w = torch.tensor([[1e13, 0], [0, 1.0]], dtype=F64).unsqueeze(1)
    net = MultiClassNet(w, torch.tensor([1.0, -1], dtype=F64))
    found = radius(net, torch.tensor([[2.0, 1e13]], dtype=F64), torch.ones(1, dtype=F64))
    assert 0.98 < float(found.lower) <= 1
    assert float(found.upper) == pytest.approx(1, abs=1e-8)


def test_broken_points_ensembles_and_silent_subclasses():
    net, x, y = trained_like(5, k=4, k1=2, height=8.0, d=40)
    x, y = x[:2], y[:2]
    found = radius(net, x, -y)
    assert not found.lower.any()
    assert not found.upper.any()
    both = radius(MultiClassNet(torch.stack([net.w, 2 * net.w]), net.labels), x, y)
    assert torch.allclose(both.upper[0], radius(net, x, y).upper, rtol=1e-9)
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
