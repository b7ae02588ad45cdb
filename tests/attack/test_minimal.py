"""The shortest perturbation found, against exact radii and closed forms; it breaks what it says it breaks."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from tacit.attack.shortest.minimal import minimal
from tacit.certify import radius
from tacit.certify.relu.radius import relu_radius
from tacit.data import min2024_mixture, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import (
    Linear,
    PolyReLUNet,
    TwoLayerNet,
    average_net,
    centre_net,
    decoupled_net,
    frei_net,
)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def check(model, x, y, found, norm=2):
    """delta has the length that is said, and breaks; inf comes with no delta."""
    size = torch.linalg.vector_norm(found.delta.flatten(1), norm, dim=1)
    finite = torch.isfinite(found.radius)
    assert torch.allclose(size[finite], found.radius[finite], rtol=1e-12)
    assert not size[~finite].any()
    margin = y * model(x + found.delta)
    assert (margin[finite] <= 1e-12 * model(x).abs().amax()).all()


def ratios(found, exact, x):
    """attack / exact over the points with exact radius in (0, 3 ||x||]; and how many were not broken."""
    counted = (exact > 0) & (exact <= 3 * x.norm(dim=1))
    ratio = (found.radius / exact)[counted]
    return ratio[torch.isfinite(ratio)], int(torch.isinf(ratio).sum()), int(counted.sum())


CLUSTER_NETS = {
    "F": lambda: (min2024_mixture(40, 10, 6, 0.3, generator(0)), average_net),
    "F2": lambda: (min2024_mixture(40, 10, 6, 0.3, generator(1)), lambda m: centre_net(m, 2.0)),
    "F3": lambda: (min2024_mixture(40, 10, 6, 0.1, generator(2)), lambda m: centre_net(m, 3.0)),
    "F4": lambda: (min2024_mixture(40, 10, 6, 1.0, generator(3)), lambda m: centre_net(m, 4.0)),
    "F3 weighted": lambda: (
        min2024_mixture(40, 10, 6, 0.3, generator(4)),
        lambda m: centre_net(m, 3.0, 0.5 + torch.arange(10.0).double() / 10),
    ),
    "f_dec": lambda: (sqrt_d_mixture(40, 10, 6, 1.0, generator(5)), decoupled_net),
    "frei": lambda: (sqrt_d_mixture(40, 10, 6, 2.0, generator(6)), frei_net),
}


@pytest.mark.parametrize("name", CLUSTER_NETS)
def test_closed_form_nets_on_cluster_data_reach_their_exact_radius(name):
    mixture, build = CLUSTER_NETS[name]()
    net, points = build(mixture), mixture.sample(400, generator(7))
    found = minimal(net, points.x, points.y)
    check(net, points.x, points.y, found)
    exact = radius(net, points.x, points.y).upper
    ratio, unbroken, counted = ratios(found, exact, points.x)
    assert counted > 300
    assert unbroken == 0
    assert ratio.median() <= 1.0001
    assert ratio.quantile(0.99) <= 1.005
    assert ratio.min() >= 1 - 1e-6
    assert ((found.radius == 0) == (exact == 0)).all()


def random_case(seed, n):
    """2..12 neurons, D 2..20; W, v, x standard normal, b of variance 1/4; labels as the net says."""
    g = generator(seed)
    h, D = (int(torch.randint(2, top, (1,), generator=g)) for top in (13, 21))
    w, v, b, x = (
        torch.randn(*shape, generator=g, dtype=torch.float64)
        for shape in ((h, D), (h,), (h,), (n, D))
    )
    net = TwoLayerNet(w, v, b / 2)
    return net, x, torch.where(net(x) > 0, 1.0, -1.0).double()


def random_nets_reach_their_exact_radius(seeds, n):
    kept, unbroken, counted = [], 0, 0
    for seed in seeds:
        net, x, y = random_case(seed, n)
        found = minimal(net, x, y)
        check(net, x, y, found)
        exact = relu_radius(net, x, y)
        ratio, lost, these = ratios(found, exact.upper, x)
        kept, unbroken, counted = [*kept, ratio], unbroken + lost, counted + these
        # the certificate is not beaten either
        assert (found.radius >= exact.lower * (1 - 1e-6)).all()
    ratio = torch.cat(kept)
    assert unbroken <= 0.01 * counted
    assert ratio.median() <= 1.0001
    assert ratio.quantile(0.99) <= 1.005
    assert ratio.min() >= 1 - 1e-6
    return counted


def test_random_relu_nets_reach_their_exact_radius():
    assert random_nets_reach_their_exact_radius(range(8), 8) > 40


@pytest.mark.slow
def test_two_hundred_random_relu_nets_reach_their_exact_radius():
    assert random_nets_reach_their_exact_radius(range(1000, 1200), 20) > 3000


def test_the_critical_radius_of_the_cubic_centre_net_in_a_thousand_dimensions():
    # zero-start PGD finds nothing here below 1
    mixture = min2024_mixture(1000, 10, 6, 0.1, generator(0))
    net, points = centre_net(mixture, 3.0), mixture.sample(1000, generator(1))
    found = minimal(net, points.x, points.y).radius.median().item()
    exact = radius(net, points.x, points.y).upper.median().item()
    assert abs(found - exact) < 1e-3
    assert abs(found - 0.7045) < 1e-3


def test_a_closed_pocket_that_no_ray_hits_is_found():
    # f = 1 + ... is negative only in a small triangle far from x, reached by no ray of the start
    w = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1], [1, 0]]).double()
    b = torch.tensor([-5.1, 4.9, -5.1, 4.9, 10.0]).double()
    # own: |x1 - 5|, |x2 - 5| beyond .1, and a constant; opposite: a constant just below it
    net = TwoLayerNet(
        torch.cat([w[:4], torch.zeros(1, 2).double()]),
        torch.tensor([1.0, 1, 1, 1, -1]).double(),
        torch.cat([b[:4], torch.tensor([0.01]).double()]),
    )
    x, y = torch.tensor([[0.0, 1.0]]).double(), torch.ones(1).double()
    found = minimal(net, x, y)
    check(net, x, y, found)
    # broken where sum of the four is <= .01: the corner of the square cut off along the diagonal
    exact = min(
        math.hypot(4.9 - s, 3.9 - (0.01 - s)) for s in torch.linspace(0, 0.01, 10001).tolist()
    )
    assert found.radius.item() == pytest.approx(exact, rel=1e-6)


def test_broken_clean_is_zero_and_what_nothing_breaks_is_inf():
    net = TwoLayerNet(torch.eye(2).double(), torch.ones(2).double(), torch.ones(2).double())
    raised = TwoLayerNet(torch.zeros(1, 2).double(), torch.ones(1).double(), torch.ones(1).double())
    x, y = torch.zeros(2, 2).double(), torch.tensor([1.0, -1.0]).double()
    for p1, expected in ((net, math.sqrt(2)), (raised, math.inf)):
        found = minimal(p1, x, y)
        assert found.radius[1] == 0
        assert found.radius[0].item() == pytest.approx(expected, rel=1e-8)
    assert not found.delta.any()


def test_an_ensemble_is_its_members():
    net = TwoLayerNet(normal(2, 3, 6, 5, seed=0), normal(2, 3, 6, seed=1), normal(2, 3, 6, seed=2))
    x = normal(4, 5, seed=3)
    y = torch.ones(4).double()
    found = minimal(net, x, y)
    assert found.radius.shape == (2, 3, 4)
    assert found.delta.shape == (2, 3, 4, 5)
    one = minimal(TwoLayerNet(net.w[1, 2], net.v[1, 2], net.b[1, 2]), x, y)
    assert torch.equal(found.radius[1, 2], one.radius)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_merged_neurons_and_float32_still_break_the_net_that_was_given(p):
    mixture = min2024_mixture(60, 6, 3, 0.2, generator(0))
    k = torch.arange(120) % 6
    noise = normal(120, 60, seed=1)
    w = mixture.centres[k] + 1e-6 * noise / noise.norm(dim=1, keepdim=True)
    net = TwoLayerNet(w, mixture.labels[k], p=p)
    points = mixture.sample(200, generator(2))
    exact = radius(centre_net(mixture, p), points.x, points.y).upper if p > 1 else None
    double = minimal(net, points.x, points.y)
    check(net, points.x, points.y, double)
    single = TwoLayerNet(w.float(), net.v.float(), p=p)
    x, y = points.x.float(), points.y.float()
    found = minimal(single, x, y)
    assert found.delta.dtype == torch.float32
    assert (y * single(x + found.delta) <= 1e-6 * single(x).abs().max()).all()
    assert ((found.radius / double.radius - 1).abs() < 1e-4).all()
    if exact is not None:
        assert ((double.radius / exact - 1).abs() < 1e-5).all()


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.01, 100.0))
def test_scaling_space_scales_the_radius(seed, c):
    net, x, y = random_case(seed, 3)
    scaled = TwoLayerNet(net.w / c, net.v, net.b)
    a, b = minimal(net, x, y).radius, minimal(scaled, c * x, y).radius
    assert torch.allclose(c * a, b, rtol=1e-6)


def linear_case():
    u, x = normal(8, seed=0), torch.rand(40, 8, generator=generator(1), dtype=torch.float64)
    rule = Linear(u, -float((x @ u).mean()))
    return rule, x, torch.where(rule(x) > 0, 1.0, -1.0).double()


@pytest.mark.parametrize(("norm", "dual"), [(1, math.inf), (2, 2), (math.inf, 1)])
def test_a_linear_rule_has_its_closed_form_in_every_norm(norm, dual):
    rule, x, y = linear_case()
    found = minimal(rule, x, y, norm=norm)
    check(rule, x, y, found, norm)
    exact = y * rule(x) / torch.linalg.vector_norm(rule.u, dual)
    assert torch.allclose(found.radius, exact, rtol=1e-6)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_linear_rule_in_a_box_agrees_with_a_program(norm):
    rule, x, y = linear_case()
    x = x[:12]
    y = y[:12]
    found = minimal(rule, x, y, norm=norm, box=(0.0, 1.0))
    check(rule, x, y, found, norm)
    at = x + found.delta
    assert at.min() >= 0
    assert at.max() <= 1
    for i in range(len(x)):
        assert found.radius[i].item() == pytest.approx(boxed(rule, x[i], y[i], norm), rel=1e-5)


def boxed(rule, x, y, norm):
    """The least ||d|| with y f(x + d) <= 0 and 0 <= x + d <= 1: a linear program, or SLSQP in l2."""
    D = len(x)
    u, m = (y * rule.u).numpy(), float(y * rule(x.unsqueeze(0)))
    low, high = (-x).numpy(), (1 - x).numpy()
    if norm == 2:
        start = -u * m / (u @ u)
        found = minimize(
            lambda d: d @ d,
            start.clip(low, high),
            jac=lambda d: 2 * d,
            bounds=list(zip(low, high, strict=True)),
            constraints=[{"type": "ineq", "fun": lambda d: -(u @ d + m), "jac": lambda d: -u}],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return math.sqrt(found.fun) if found.success else math.inf
    # d = a - b with a, b >= 0; linf: one more variable t above all of them
    more = 1 if norm == math.inf else 0
    cost = [1.0] * (2 * D) if norm == 1 else [0.0] * (2 * D) + [1.0]
    A, right = [[*u, *-u] + [0.0] * more], [-m]
    if more:
        for j in range(2 * D):
            row = [0.0] * (2 * D + 1)
            row[j], row[-1] = 1.0, -1.0
            A.append(row)
            right.append(0.0)
    bounds = [(0, h) for h in high] + [(0, -lo) for lo in low] + [(0, None)] * more
    found = linprog(cost, A_ub=A, b_ub=right, bounds=bounds)
    return found.fun if found.success else math.inf


def test_any_callable_comes_close_to_the_exact_radius_of_the_same_net():
    mixture = min2024_mixture(20, 4, 2, 0.3, generator(0))
    points = mixture.sample(60, generator(1))
    for net in (average_net(mixture), centre_net(mixture, 3.0)):
        found = minimal(lambda x, net=net: net(x), points.x, points.y)
        check(net, points.x, points.y, found)
        ratio, unbroken, _ = ratios(found, radius(net, points.x, points.y).upper, points.x)
        assert unbroken == 0
        assert ratio.median() <= 1.0001
        assert ratio.quantile(0.99) <= 1.05
        assert ratio.min() >= 1 - 1e-6


def test_two_logits_of_two_neurons_have_the_exact_radius_of_the_same_net():
    """Where both are off the logits tie, which breaks, and their gradient is 0: the walk must not stall there.

    Nor may all its starts run to the half-space where the own neuron is off, and none to the other.
    """
    w, x = normal(2, 20, seed=12), normal(40, 20, seed=13)
    c = torch.tensor([1.4, 0.6]).double()
    head = PolyReLUNet(w, torch.diag(c))
    net = TwoLayerNet(w, torch.stack([c[0], -c[1]]))
    y = head(x).argmax(1)
    found, exact = minimal(head, x, y), radius(net, x, 1 - 2.0 * y).upper
    ratio = (found.radius / exact)[exact > 0]
    assert len(ratio) > 20
    assert ratio.min() >= 1 - 1e-6
    assert ratio.max() <= 1 + 1e-6


def other_norms_are_never_below_the_exact_radius_and_mostly_at_it(norm, seeds, n):
    kept = []
    for seed in seeds:
        net, x, y = random_case(seed, n)
        found = minimal(net, x, y, norm=norm)
        check(net, x, y, found, norm)
        exact = relu_radius(net, x, y, norm=norm)
        assert (found.radius >= exact.lower * (1 - 1e-6)).all()
        counted = torch.isfinite(exact.upper) & (exact.upper > 0)
        kept.append((found.radius / exact.upper)[counted])
    assert torch.cat(kept).median() <= 1.0001


@pytest.mark.parametrize("norm", [1, math.inf])
def test_relu_nets_in_other_norms_are_never_below_the_exact_radius(norm):
    other_norms_are_never_below_the_exact_radius_and_mostly_at_it(norm, [3], 4)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, math.inf])
def test_more_relu_nets_in_other_norms_are_never_below_the_exact_radius(norm):
    other_norms_are_never_below_the_exact_radius_and_mostly_at_it(norm, range(10), 8)


def test_logits_of_images_are_attacked_in_their_own_shape():
    w = normal(3, 12, seed=0)

    def model(x):
        return x.flatten(1) @ w.T

    x = torch.rand(20, 3, 2, 2, generator=generator(1), dtype=torch.float64)
    y = model(x).argmax(1)
    found = minimal(model, x, y)
    assert found.delta.shape == x.shape
    z = model(x)
    distance = torch.stack(
        [
            (z.gather(1, y[:, None]).squeeze(1) - z[:, k]) / (w[y] - w[k]).norm(dim=1)
            for k in range(3)
        ]
    )
    exact = torch.where(distance.isnan(), torch.inf, distance).amin(0)
    assert torch.allclose(found.radius, exact, rtol=1e-6)
    assert (model(x + found.delta).argmax(1) != y).float().mean() > 0.4  # ties at the boundary


def test_the_seed_decides_everything():
    net, x, y = random_case(3, 5)
    for model in (net, Linear(net.w[0])):
        a, b = (minimal(model, x, y, seed=1) for _ in range(2))
        assert torch.equal(a.radius, b.radius)
        assert torch.equal(a.delta, b.delta)


def test_wrong_calls_are_named():
    rule, x, y = linear_case()
    with pytest.raises(CallError, match="box"):
        minimal(rule, x + 1, y, box=(0.0, 1.0))
    with pytest.raises(CallError, match="NaN"):
        minimal(rule, x * torch.nan, y)
    with pytest.raises(CallError, match="labels"):
        minimal(TwoLayerNet(normal(2, 8, seed=0), normal(2, seed=1)), x, 3 * y)
    with pytest.raises(CallError, match="norm 3"):
        minimal(rule, x, y, norm=3)
