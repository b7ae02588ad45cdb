"""Radii of thresholded models and of coordinates with menus, against grids, certificates and brute force."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.certify import radius
from tacit.certify.menus import CLOSE, Menus, choose, falls, shortest_squares
from tacit.certify.thresholded import l2_radius, linf_radius
from tacit.errors import CallError
from tacit.nets import SymmetricNet, ThresholdedNet, load_net, save_net
from tacit.nets.thresholded import kept


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def labelled(net, n, d, seed):
    x = torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)
    return x, torch.where(net(x) >= 0, 1.0, -1.0).double()


def net_of(v, b, hard):
    return ThresholdedNet(
        torch.eye(len(v), dtype=torch.float64), torch.tensor(v, dtype=torch.float64), b, hard
    )


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("v", [[1.0, -1.0], [1.3, -0.7], [1.0, 1.0]])
def test_no_point_of_a_fine_grid_is_nearer(hard, v):
    net = net_of(v, 0.3, hard)
    x, y = labelled(net, 6, 2, 1)
    found = radius(net, x, y)
    side = torch.linspace(-2.4, 2.4, 601, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    for i in range(len(x)):
        if not float(y[i] * net(x[i : i + 1])) > 0:
            assert found.upper[i] == 0
            continue
        broken = y[i] * net(x[i] + grid) <= 0
        seen = float(grid.norm(dim=1)[broken].min()) if bool(broken.any()) else math.inf
        assert float(found.lower[i]) <= seen + 1e-12
        if seen < 2.3:
            assert float(found.upper[i]) == pytest.approx(seen, abs=0.012)


def test_soft_agrees_with_the_certificate_of_relu_nets():
    d, b = 4, 0.3
    net = net_of([1.0] * d, b, False)
    x, y = labelled(net, 12, d, 2)
    pairs = SymmetricNet(net.w, torch.full((d,), b, dtype=torch.float64))
    assert torch.allclose(pairs(x), net(x))
    ours, theirs = radius(net, x, y), radius(pairs.two_layer(), x, y)
    assert torch.allclose(ours.upper, theirs.upper, atol=1e-6)
    assert torch.allclose(ours.lower, theirs.lower, atol=1e-6)


@pytest.mark.parametrize("hard", [True, False])
def test_unequal_weights_that_are_nearly_equal_give_the_same(hard):
    """Equal weights take the short way: those that leave are the lowest ones."""
    d, b = 9, 0.4
    same, other = net_of([1.0] * d, b, hard), net_of([1.0] * (d - 1) + [1.0 + 1e-9], b, hard)
    x, y = labelled(same, 40, d, 3)
    one, two = radius(same, x, y), radius(other, x, y)
    assert torch.allclose(one.upper, two.upper, rtol=CLOSE, atol=1e-6)
    assert (one.lower <= two.upper + 1e-6).all()
    assert (two.lower <= one.upper + 1e-6).all()


def test_no_random_walk_is_shorter():
    net = net_of([1.0] * 30, 0.25, True)
    x, y = labelled(net, 20, 30, 4)
    found = radius(net, x, y)
    way = torch.randn(3000, 30, generator=seeded(5), dtype=torch.float64)
    way = way / way.norm(dim=1, keepdim=True)
    for i in range(len(x)):
        inside = x[i] + 0.999 * found.lower[i] * way
        assert (y[i] * net(inside) > 0).all()


@given(seed=st.integers(0, 10_000), hard=st.booleans())
@settings(deadline=None, max_examples=30)
def test_linf_is_where_the_worst_corner_breaks(seed, hard):
    v = [1.0, -1.0, 0.5, 2.0]
    net = net_of(v, 0.3, hard)
    x, y = labelled(net, 10, 4, seed)
    far = radius(net, x, y, norm="inf").upper
    corner = -torch.tensor(v, dtype=torch.float64).sign() * y.unsqueeze(1)
    at = far.unsqueeze(1)
    assert (y * net(x + corner * (at + 1e-9)) <= 1e-12).all()
    inner = far > 0
    for share in (0.1, 0.5, 0.9, 0.999999):
        assert (y * net(x + share * at * corner) > 0)[inner].all()


def test_a_linear_model_is_the_threshold_zero():
    t = torch.randn(20, 7, generator=seeded(6), dtype=torch.float64)
    one = torch.ones(7, dtype=torch.float64)
    margin = t.sum(1).clamp_min(0)
    assert torch.allclose(l2_radius(t, one, 0.0, True).upper, margin / math.sqrt(7), rtol=1e-6)
    assert torch.allclose(linf_radius(t, one, 0.0, True), margin / 7, atol=1e-9)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_menus_against_every_combination(seed):
    """Four coordinates with three pieces: 81 combinations, each solved by a scan of multipliers."""
    g = seeded(seed)
    low = torch.rand(1, 4, 3, generator=g, dtype=torch.float64)
    low[..., 0] = 0
    high = low + torch.rand(1, 4, 3, generator=g, dtype=torch.float64)
    slope = torch.rand(1, 4, 3, generator=g, dtype=torch.float64)
    gain = torch.rand(1, 4, 3, generator=g, dtype=torch.float64) - 0.3
    gain[..., 0] = 0
    need = torch.full((1,), 1.2, dtype=torch.float64)
    lower, upper = shortest_squares(Menus(low, high, slope, gain), need)
    mu = torch.linspace(0, 20, 40_001, dtype=torch.float64).unsqueeze(1)
    best = math.inf
    for pieces in itertools.product(range(3), repeat=4):
        lo, hi, a, c = (t[0, range(4), pieces] for t in (low, high, slope, gain))
        s = (mu * a / 2).clamp(min=lo, max=hi)
        enough = (a * s + c).sum(1) >= need
        if bool(enough.any()):
            best = min(best, float(s.square().sum(1)[enough].min()))
    most = (slope * high + gain).amax(-1).sum()
    if float(most) < float(need):
        assert math.isinf(float(upper))
        return
    if math.isinf(best):  # the scan of multipliers is too coarse for a need that is only just met
        assert float(most) < float(need) + 1e-2
        return
    assert float(lower) <= best + 1e-9
    assert float(upper) == pytest.approx(best, rel=2 * CLOSE, abs=2e-3)


@given(seed=st.integers(0, 10**6), mu=st.floats(0, 100))
def test_a_search_takes_off_what_is_chosen(seed: int, mu: float) -> None:
    """Pieces that are missing, and pieces that tie, too."""
    stream = torch.Generator().manual_seed(seed)
    low, more, slope = (
        torch.rand(3, 4, 5, generator=stream, dtype=torch.float64) for _ in range(3)
    )
    gain = torch.randint(3, (3, 4, 5), generator=stream).to(low)
    low = torch.where(torch.rand(low.shape, generator=stream) < 0.3, torch.inf, low)
    low[..., 0] = 0.0
    menus = Menus(low, torch.where(low.isinf(), low, low + more), slope.round(decimals=1), gain)
    at = torch.tensor([0.0, 1.0, mu], dtype=torch.float64)
    assert torch.equal(falls(menus)(at), choose(menus, at).fall.sum(1))


def test_zeroing_every_feature_is_found_whatever_rounding_says():
    """Moving every active feature below the threshold leaves f = 0: two sums of the same numbers decide."""
    t = torch.tensor([[.3250469415651544, .39876971073826795, .19485021063662356, .05976524782704105,
                       .3436158798406245, .6895156507339437]], dtype=torch.float64)  # fmt: skip
    b = 0.2069654822349548
    alone = (t - b).clamp_min(0).norm()  # all active ones to just below the threshold: f = 0
    found = l2_radius(t, torch.ones(6, dtype=torch.float64), b, True)
    assert float(found.lower) <= float(alone) + 1e-9
    assert float(found.upper) <= float(alone) * (1 + CLOSE)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_dropping_active_features_bounds_the_radius(seed):
    g = seeded(seed)
    t, b = torch.rand(4, 6, generator=g, dtype=torch.float64), 0.2
    alone = (t - b).clamp_min(0).norm(dim=1)
    found = l2_radius(t, torch.ones(6, dtype=torch.float64), b, True)
    assert (found.lower <= alone + 1e-9).all()


def test_what_is_refused(tmp_path):
    net = ThresholdedNet(torch.ones(2, 3, dtype=torch.float64), torch.ones(2).double(), 0.1)
    x, y = torch.zeros(1, 3).double(), torch.ones(1).double()
    with pytest.raises(CallError, match="orthonormal"):
        radius(net, x, y)
    turned = torch.linalg.qr(torch.randn(3, 3, generator=seeded(0), dtype=torch.float64)).Q
    with pytest.raises(CallError, match="axes"):
        radius(ThresholdedNet(turned, torch.ones(3).double(), 0.1), x, y, norm="inf")
    with pytest.raises(CallError, match="threshold"):
        ThresholdedNet(turned, torch.ones(3).double(), -1.0)


def test_kept_is_odd_and_saved_nets_come_back(tmp_path):
    t = torch.linspace(-1, 1, 21, dtype=torch.float64)
    for hard in (True, False):
        assert torch.equal(kept(-t, 0.3, hard), -kept(t, 0.3, hard))
    net = net_of([1.0, -2.0], 0.25, False)
    save_net(tmp_path / "net.safetensors", net)
    again = load_net(tmp_path / "net.safetensors")
    assert isinstance(again, ThresholdedNet)
    assert (again.b, again.hard) == (0.25, False)
    assert torch.equal(again.v, net.v)
