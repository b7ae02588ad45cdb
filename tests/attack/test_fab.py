"""FAB against closed forms, exact radii and AutoAttack's own."""

import math

import pytest
import torch

from tacit.attack import fab
from tacit.certify import radius
from tacit.data import min2024_mixture
from tacit.nets import Linear, average_net, centre_net, poly_relu_start


def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("norm", "dual"), [(1, math.inf), (2, 2), (math.inf, 1)])
def test_a_linear_rule_has_its_closed_form(norm, dual):
    u = torch.randn(8, generator=generator(0), dtype=torch.float64)
    x = torch.randn(30, 8, generator=generator(1), dtype=torch.float64)
    rule = Linear(u, 0.3)
    y = torch.where(rule(x) > 0, 1.0, -1.0).double()
    found = fab(rule, x, y, norm=norm)
    exact = y * rule(x) / torch.linalg.vector_norm(u, dual)
    assert (found.radius >= exact * (1 - 1e-9)).all()
    # every step goes ETA = 1.05 of the way
    assert (found.radius <= exact * 1.05).all()
    assert (y * rule(x + found.delta) <= 0).all()


def test_it_is_never_below_the_exact_radius_and_mostly_near_it():
    mixture = min2024_mixture(25, 6, 3, 0.05, generator(0))
    points = mixture.sample(40, generator(1))
    for net in (average_net(mixture), centre_net(mixture, 3.0)):
        exact = radius(net, points.x, points.y).upper
        found = fab(net, points.x, points.y)
        ratio = found.radius / exact
        assert (ratio >= 1 - 1e-6).all()
        assert ratio.median() <= 1.05
        at = torch.isfinite(found.radius)
        assert (points.y * net(points.x + found.delta) <= 0)[at].all()
        assert torch.equal(found.delta.norm(dim=1)[at], found.radius[at])


@pytest.mark.parametrize(("norm", "name"), [("2", "L2"), ("inf", "Linf")])
def test_in_the_box_it_finds_what_autoattacks_own_finds(norm, name):
    fab_pt = pytest.importorskip("pyautoattack.fab_pt")
    net = poly_relu_start(16, 12, 4, 2.0, [generator(0)], bound=0.5).members()[0]
    x = torch.rand(40, 16, generator=generator(1))
    y = net(x).argmax(1)
    ours = fab(net, x, y, norm=norm, box=(0.0, 1.0), steps=30).radius
    theirs = fab_pt.FABAttack_PT(
        net, norm=name, n_iter=30, eps=10.0, n_restarts=1, seed=0, device="cpu",
        targeted=True, n_target_classes=3,
    )  # fmt: skip
    size = torch.full_like(ours, torch.inf)
    for target in (2, 3, 4):
        theirs.target_class = target
        moved = theirs.attack_single_run(x, y, is_targeted=True)
        length = (moved - x).norm(dim=1, p=float(norm))
        size = torch.where((length > 0) & (length < size), length, size)
    torch.testing.assert_close(ours, size, rtol=1e-3, atol=0)  # what neither breaks is inf in both
    assert torch.isfinite(ours).sum() > 30
