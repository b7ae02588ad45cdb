"""Exact radii of ReLU nets: against a mixed-integer program, all subsets, closed forms, and by invariants."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import enumerated_radius, miqp_radius

from tacit.certify import radius
from tacit.certify.relu.radius import relu_radius
from tacit.data import min2024_mixture, sqrt_d_mixture
from tacit.errors import CallError
from tacit.nets import TwoLayerNet, average_net, decoupled_net, frei_net

NORMS = (2.0, math.inf, 1.0)


def draw(seed, D, h, n):
    """W, x standard normal, b of variance 1/4, balanced signs and random sizes of v; labels are f's own."""
    g = torch.Generator().manual_seed(seed)
    w, b, v, x = (torch.randn(s, generator=g).double() for s in ((h, D), (h,), (h,), (n, D)))
    v = v.abs() * f64([1.0, -1.0]).repeat(h)[:h]
    net = TwoLayerNet(w, v, b / 2)
    return net, x, torch.where(net(x) > 0, 1.0, -1.0).double()


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def norm_of(delta, norm):
    return torch.linalg.vector_norm(delta, ord=norm, dim=1)


def check(net, x, y, found, norm=2.0, slack=3e-8):
    """What must hold of any answer whose search has ended."""
    assert (found.lower <= found.upper).all()
    broken = torch.isfinite(found.upper)
    assert (y * net(x + found.delta) <= 0)[broken].all()
    assert torch.allclose(norm_of(found.delta, norm)[broken], found.upper[broken], rtol=1e-12)
    assert (found.upper - found.lower <= slack * found.upper)[broken].all()


def by_miqp(net, x, y, found, norm):
    tensors = [t.numpy() for t in (net.w, net.v, net.b)]
    for i, r in enumerate(found.upper.tolist()):
        exact = miqp_radius(*tensors, x[i].numpy(), float(y[i]), 1.2 * r, norm) if r else 0.0
        assert r == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("D", "h", "n"), [(2, 5, 4), (4, 7, 4), (20, 6, 3)])
def test_agrees_with_a_mixed_integer_program(D, h, n, norm):
    net, x, y = draw(100 + h, D, h, n)
    found = relu_radius(net, x, y, norm=norm)
    check(net, x, y, found, norm)
    by_miqp(net, x, y, found, norm)


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("D", "h", "n"), [(2, 12, 8), (10, 12, 6), (20, 12, 6), (20, 10, 8)])
def test_agrees_with_a_mixed_integer_program_up_to_twelve_neurons(D, h, n, norm):
    net, x, y = draw(200 + h, D, h, n)
    found = relu_radius(net, x, y, norm=norm)
    check(net, x, y, found, norm)
    by_miqp(net, x, y, found, norm)


@pytest.mark.parametrize("ties_break", [True, False])
@settings(max_examples=8)
@given(seed=st.integers(0, 9999), D=st.integers(1, 6), h=st.integers(2, 7))
def test_agrees_with_all_subsets(ties_break, seed, D, h):
    net, x, y = draw(seed, D, h, 4)
    found = relu_radius(net, x, y, ties_break=ties_break)
    check(net, x, y, found)
    tensors = [t.numpy() for t in (net.w, net.v, net.b)]
    for i, r in enumerate(found.upper.tolist()):
        exact = enumerated_radius(*tensors, x[i].numpy(), float(y[i]), ties_break=ties_break)
        assert r == pytest.approx(exact, rel=1e-7)
        assert found.lower[i] <= exact * (1 + 1e-10)


def nearly_parallel(seed, angle, biases, n, D=4):
    """Two opposite neurons, each with two lighter ones of its sign at about `angle`, as trained nets have."""
    g = torch.Generator().manual_seed(seed)
    heavy = torch.linalg.qr(torch.randn(D, 2, generator=g, dtype=torch.float64)).Q.T
    size = f64([1.0, 0.1, 0.02]).repeat(2)
    off = torch.randn(6, D, generator=g, dtype=torch.float64) / math.sqrt(D)
    u = heavy.repeat_interleave(3, 0) + angle * (size < 1).unsqueeze(1) * off
    w = size.unsqueeze(1) * u / u.norm(dim=1, keepdim=True)
    b = 0.1 * size * torch.randn(6, generator=g, dtype=torch.float64) if biases else None
    net = TwoLayerNet(w, size * f64([1, 1, 1, -1, -1, -1]), b)
    y = f64([1.0, -1.0]).repeat(n)[:n]
    x = torch.where(y.unsqueeze(1) > 0, heavy[0], heavy[1]) - 0.3 * heavy.flip(0).repeat(n, 1)[:n]
    return net, x + 0.1 * torch.randn(n, D, generator=g, dtype=torch.float64), y


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
def test_nearly_parallel_neurons_are_exact_too(angle, biases):
    """No interval of 200 points is wide; the first few by all subsets, merged or not."""
    net, x, y = nearly_parallel(0, angle, biases, 200)
    check(net, x, y, relu_radius(net, x, y))
    few, sign = x[:6], y[:6]
    found = radius(net, few, sign)
    b = torch.zeros_like(net.v) if net.b is None else net.b
    tensors = [t.numpy() for t in (net.w, net.v, b)]
    exact = [enumerated_radius(*tensors, few[i].numpy(), float(sign[i])) for i in range(6)]
    assert found.upper.tolist() == pytest.approx(exact, rel=1e-9)
    assert found.lower.tolist() == pytest.approx(exact, rel=3e-8)
    assert (found.lower <= f64(exact) * (1 + 1e-12)).all()


@settings(max_examples=8)
@given(seed=st.integers(0, 9999), D=st.sampled_from([1, 3, 30]), h=st.integers(1, 10))
def test_no_random_move_within_the_certificate_breaks(seed, D, h):
    net, x, y = draw(seed, D, h, 8)
    g = torch.Generator().manual_seed(seed)
    found = relu_radius(net, x, y)
    check(net, x, y, found)
    towards = found.delta + 0.3 * norm_of(found.delta, 2.0)[:, None] * torch.randn(
        50, 8, D, generator=g, dtype=torch.float64
    )
    length = torch.where(torch.isinf(found.lower), 100.0, found.lower * (1 - 1e-9))
    towards *= (length / towards.norm(dim=2).clamp_min(1e-300)).unsqueeze(2)
    safe = length > 0
    assert (y * net((x + towards).reshape(-1, D)).reshape(50, 8) > 0)[:, safe].all()


@settings(max_examples=4)
@given(seed=st.integers(0, 9999), scale=st.sampled_from([1e-6, 1.0, 1e5]))
def test_rotation_scale_order_and_silent_neurons_do_not_matter(seed, scale):
    net, x, y = draw(seed, 6, 8, 5)
    g = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=g, dtype=torch.float64)).Q
    order = torch.randperm(8, generator=g)
    # f(c x) = c f(x) where the biases are c times as large
    other = TwoLayerNet(
        torch.cat([7 * net.w[order] @ turn, torch.zeros(1, 6), torch.ones(1, 6)]),
        torch.cat([3 * net.v[order], f64([1.0, 0.0])]),
        torch.cat([7 * scale * net.b[order], f64([-1.0, 1.0])]),
    )
    one, two = relu_radius(net, x, y).upper, relu_radius(other, scale * x @ turn, y).upper
    assert torch.allclose(one, two / scale, rtol=1e-8)


def test_norms_are_ordered_and_many_points_are_solved_alike():
    net, x, y = draw(5, 5, 9, 6)
    l2, linf, l1 = (relu_radius(net, x, y, norm=norm) for norm in NORMS)
    assert (linf.upper <= l2.upper * (1 + 1e-9)).all()
    assert (l2.upper <= l1.upper * (1 + 1e-9)).all()
    alone = [relu_radius(net, x[i : i + 1], y[i : i + 1]).upper for i in range(6)]
    assert torch.allclose(torch.cat(alone), l2.upper, rtol=1e-8)


def test_the_closed_forms_of_the_papers():
    mixture = min2024_mixture(12, 5, 3, 0.4)
    points = mixture.sample(60, torch.Generator().manual_seed(0))
    net = average_net(mixture)
    known = radius(net, points.x, points.y).upper
    assert torch.allclose(relu_radius(net, points.x, points.y).upper, known, rtol=1e-9)
    mixture = sqrt_d_mixture(40, 6, 3, 1.0)
    points = mixture.sample(60, torch.Generator().manual_seed(1))
    for make in (decoupled_net, frei_net):
        for ties in (True, False):
            net = make(mixture)
            known = radius(net, points.x, points.y, ties_break=ties).upper
            found = relu_radius(net, points.x, points.y, ties_break=ties)
            assert torch.allclose(found.upper, known, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
def test_planes_in_every_norm(norm):
    """A linear rule as two neurons, and F: the distance to a plane is the excess over the dual norm."""
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[norm]
    g = torch.Generator().manual_seed(3)
    u, x = (torch.randn(s, generator=g, dtype=torch.float64) for s in ((7,), (9, 7)))
    net = TwoLayerNet(torch.stack([u, -u]), f64([1.0, -1.0]))
    z = x @ u
    found = relu_radius(net, x, z.sign(), norm=norm)
    exact = z.abs() / torch.linalg.vector_norm(u, ord=dual)
    assert torch.allclose(found.upper, exact, rtol=1e-9)
    check(net, x, z.sign(), found, norm)
    mixture = min2024_mixture(8, 4, 2, 0.3, g)
    points, F = mixture.sample(12, g), average_net(mixture)
    own, opp = ((points.y[:, None] * F.v > 0), (points.y[:, None] * F.v < 0))
    z = (points.x @ F.w.T + F.b) * F.v.abs()
    w = F.w * F.v.abs()[:, None]
    size = torch.linalg.vector_norm(w, ord=dual, dim=1).expand_as(z)[own]
    tilt = torch.linalg.vector_norm(w[0] - w[1], ord=dual)
    exact = torch.minimum(z[own].clamp_min(0) / size, (z[own] - z[opp]).clamp_min(0) / tilt)
    found = relu_radius(F, points.x, points.y, norm=norm)
    assert torch.allclose(found.upper, exact, rtol=1e-9)


CROSS = f64([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1]])


@pytest.mark.parametrize("norm", NORMS)
def test_where_nothing_breaks_the_radius_is_infinite(norm):
    v, b = f64([1, 1, 1, 1, -0.3]), torch.ones(5).double()
    x = f64([[0.3, -2.0], [1.0, 5.0]])
    found = relu_radius(TwoLayerNet(CROSS, v, b), x, torch.ones(2).double(), norm=norm)
    assert torch.isinf(found.lower).all()
    assert torch.isinf(found.upper).all()
    assert (found.delta == 0).all()
    constant = TwoLayerNet(torch.zeros(1, 2).double(), v[:1], b[:1])
    assert torch.isinf(relu_radius(constant, x, torch.ones(2).double(), norm=norm).lower).all()


def test_a_point_that_needs_a_far_move_is_not_called_unbreakable():
    """relu(z) + relu(-z) + 1 > 0.001 relu(t) until t = 1000: far beyond every kink."""
    w = f64([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    net = TwoLayerNet(w, f64([1, 1, 1, -1e-3]), f64([0, 0, 1, 0]))
    found = relu_radius(net, f64([[0.0, 0.5]]), torch.ones(1).double())
    assert found.upper.item() == pytest.approx(999.5, rel=1e-8)
    check(net, f64([[0.0, 0.5]]), torch.ones(1).double(), found)


@pytest.mark.parametrize("norm", NORMS)
def test_a_constant_neuron_moves_the_threshold(norm):
    w = f64([[0.0, 0.0], [1.0, 0.0]])
    net = TwoLayerNet(w, f64([1.0, -2.0]), f64([3.0, 0.0]))
    x = f64([[0.5, 1.0], [-2.0, 0.0], [4.0, 0.0]])
    found = relu_radius(net, x, torch.ones(3).double(), norm=norm)
    assert found.upper.tolist() == pytest.approx([1.0, 3.5, 0.0])


@pytest.mark.parametrize("norm", NORMS)
def test_a_broken_set_without_interior_is_found_up_to_rounding(norm):
    net = TwoLayerNet(CROSS[:2], f64([1.0, 0.7]), f64([0.1, -0.1]))
    x = f64([[0.3, 2.0], [-1.7, 0.0]])
    found = relu_radius(net, x, torch.ones(2).double(), norm=norm)
    assert found.upper.tolist() == pytest.approx([0.4, 1.6], rel=1e-9)
    assert found.lower.tolist() == pytest.approx([0.4, 1.6], rel=1e-8)
    strict = relu_radius(net, x, torch.ones(2).double(), norm=norm, ties_break=False)
    assert torch.isinf(strict.upper).all()  # f >= 0 everywhere


def test_ties_in_a_dead_zone():
    """All neurons off: f = 0 is broken already, or, strictly, where the opposite neuron goes on."""
    net = TwoLayerNet(torch.eye(2).double(), f64([1.0, -1.0]))
    x, y = f64([[-1.0, -3.0]]), torch.ones(1).double()
    assert relu_radius(net, x, y).upper.item() == 0
    strict = relu_radius(net, x, y, ties_break=False)
    assert strict.upper.item() == pytest.approx(3.0, rel=1e-9)
    assert strict.lower.item() == pytest.approx(3.0, rel=1e-8)
    assert (y * net(x + strict.delta)).item() < 0


def test_a_budget_ends_with_an_interval_that_holds_the_radius():
    net, x, y = draw(7, 6, 16, 6)
    exact = relu_radius(net, x, y).upper
    widths = []
    for budget in (1, 10, 1000):
        found = relu_radius(net, x, y, budget=budget)
        assert (found.lower <= exact * (1 + 1e-12)).all()
        assert (found.upper >= exact * (1 - 1e-9)).all()
        widths.append(float((found.upper - found.lower).sum()))
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 1e-6


def test_float32_and_no_biases_are_welcome():
    net, x, _ = draw(8, 4, 6, 10)
    bare = TwoLayerNet(net.w.float(), net.v.float())
    zero = TwoLayerNet(net.w, net.v, torch.zeros(6).double())
    label = torch.where(zero(x) > 0, 1.0, -1.0)
    one = relu_radius(bare, x.float(), label)
    assert one.upper.dtype == torch.float64
    assert torch.allclose(one.upper, relu_radius(zero, x, label.double()).upper, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"norm": 3.0}, "norm=3.0"),
        ({"budget": 0}, "budget=0"),
        ({"y": torch.zeros(3).double()}, "labels are -1"),
        ({"x": torch.full((3, 2), math.nan).double()}, "NaN"),
        ({"x": torch.ones(3, 5).double()}, "5 columns"),
        ({"net": TwoLayerNet(torch.eye(2), torch.ones(2), p=3.0)}, "p=3.0"),
        ({"net": TwoLayerNet(torch.eye(2)[None], torch.ones(1, 2))}, r"\(1, 2, 2\)"),
    ],
)
def test_wrong_calls_are_refused(change, words):
    call = {
        "net": TwoLayerNet(torch.eye(2), torch.ones(2)),
        "x": torch.ones(3, 2).double(),
        "y": torch.ones(3).double(),
    } | change
    with pytest.raises(CallError, match=words):
        relu_radius(**call)
