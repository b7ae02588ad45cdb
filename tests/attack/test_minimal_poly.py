"""The shortest perturbation found of PolyReLU nets, against least distances by NNLS and against SLSQP."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from tacit.attack.shortest.cone import multipliers
from tacit.attack.shortest.minimal import minimal
from tacit.data import min2024_mixture
from tacit.nets import TwoLayerNet, centre_net


def generator(seed):
    return torch.Generator().manual_seed(seed)


def least_distance(G, h):
    """The shortest d with G d <= h, by NNLS on the dual (Lawson & Hanson, chapter 23); inf where none is."""
    E = np.vstack([-G.T, -h[None]])
    last = np.zeros(len(E))
    last[-1] = 1
    nu, _ = nnls(E, last, maxiter=1000)
    rest = E @ nu - last
    return np.linalg.norm(rest[:-1] / rest[-1]) if np.linalg.norm(rest) > 1e-9 else np.inf


def own_off(net, x):
    """The least distance to where all neurons with v > 0 are off."""
    own = net.v > 0
    norm = net.w[own].norm(dim=1)
    shift = 0.0 if net.b is None else net.b[own]
    z = (x @ net.w[own].T + shift) / norm
    G = (net.w[own] / norm.unsqueeze(1)).numpy()
    return torch.tensor([least_distance(G, -row.numpy()) for row in z], dtype=torch.float64)


def own_heavy_case(seed, own, opposite, D, p, shifted):
    """Own neurons with masses up to 1, opposite ones up to .3, at points that all have label 1."""
    g = generator(seed)
    w = torch.randn(own + opposite, D, generator=g, dtype=torch.float64)
    mass = torch.rand(own + opposite, generator=g, dtype=torch.float64)
    v = torch.cat([mass[:own] + 0.1, -0.3 * mass[own:]])
    b = 0.3 * torch.randn(own + opposite, generator=g, dtype=torch.float64)
    net = TwoLayerNet(w, v, b if shifted else None, p)
    x = torch.randn(30, D, generator=g, dtype=torch.float64)
    return net, x[net(x) > 0]


@pytest.mark.parametrize("p", [1.5, 3.0])
@pytest.mark.parametrize(
    ("own", "D", "shifted"), [(4, 3, False), (4, 8, True), (8, 5, True), (70, 50, True)]
)
def test_own_neurons_alone_break_where_all_are_off(own, D, shifted, p):
    for seed in range(4):
        net, x = own_heavy_case(seed, own, 0, D, p, shifted)
        found = minimal(net, x, torch.ones(len(x)).double())
        exact = own_off(net, x)
        finite = torch.isfinite(exact)
        assert torch.allclose(found.radius[finite], exact[finite], rtol=1e-7)
        assert (net(x + found.delta)[finite] <= 0).all()


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_opposite_neurons_never_make_it_longer_than_switching_the_own_ones_off(p):
    for seed, opposite in ((10, 1), (11, 1), (12, 2), (13, 2)):
        net, x = own_heavy_case(seed, 4, opposite, 3, p, shifted=False)
        found = minimal(net, x, torch.ones(len(x)).double())
        assert (found.radius <= own_off(net, x) * (1 + 1e-7)).all()
        assert (net(x + found.delta) <= 0).all()


def test_own_neurons_that_span_the_space_positively_are_broken_at_zero_alone():
    w = torch.tensor([[1.0, 0], [-1, 1], [-1, -1]]).double()
    for p in (1.0, 3.0):
        net = TwoLayerNet(w, torch.ones(3).double(), p=p)
        x = torch.randn(20, 2, generator=generator(0), dtype=torch.float64)
        found = minimal(net, x, torch.ones(20).double())
        assert torch.allclose(found.radius, x.norm(dim=1), rtol=1e-12)
        assert (net(x + found.delta) <= 0).all()


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 8))
def test_multipliers_are_those_of_the_least_distance(seed, k, r):
    g = generator(seed)
    u = torch.randn(k, r, generator=g, dtype=torch.float64)
    u = u / u.norm(dim=1, keepdim=True)
    z = torch.randn(5, k, generator=g, dtype=torch.float64)
    mu, solved = multipliers(u @ u.T, z, torch.full((5,), 1e4).double())
    exact = torch.tensor([least_distance(u.numpy(), -row.numpy()) for row in z]).double()
    counted = (exact < 1e3) & (exact > 0)
    assert solved[counted].all()
    assert (mu >= 0).all()
    assert torch.allclose((mu @ u).norm(dim=1)[counted], exact[counted], rtol=1e-6)
    assert not solved[torch.isinf(exact)].any()


@pytest.mark.parametrize("p", [1.2, 1.5, 1.8])
def test_below_p_2_nothing_near_what_was_found_is_shorter(p):
    mixture = min2024_mixture(12, 10, 6, 0.3, generator(1))
    net, points = centre_net(mixture, p), mixture.sample(30, generator(2))
    found = minimal(net, points.x, points.y)
    ratio = torch.stack(
        [
            found.radius[i] / by_slsqp(net, points.x[i], points.y[i], found.delta[i])
            for i in range(30)
        ]
    )
    assert ratio.median() <= 1.0001
    assert ratio.max() <= 1.001


def by_slsqp(net, x, y, start):
    """The shortest broken perturbation that SLSQP finds from `start` and from points around it."""

    def margin(d):
        return -float(y * net((x + torch.from_numpy(d)).unsqueeze(0)))

    def slope(d):
        z = (x + torch.from_numpy(d)).unsqueeze(0).requires_grad_(True)
        (g,) = torch.autograd.grad((-y * net(z)).sum(), z)
        return g.squeeze(0).numpy()

    best = start.norm()
    g = generator(0)
    for kick in (0.0, 0.1, 0.3):
        way = torch.randn(len(x), generator=g, dtype=torch.float64)
        at = start + kick * start.norm() * way / way.norm()
        done = minimize(
            lambda d: d @ d,
            at.numpy(),
            jac=lambda d: 2 * d,
            constraints=[{"type": "ineq", "fun": margin, "jac": slope}],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 200},
        )
        size = torch.tensor(done.fun).double().sqrt()
        if margin(done.x) >= -1e-9 and size < best:
            best = size
    return best
