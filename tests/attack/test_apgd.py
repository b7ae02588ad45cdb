"""APGD: its schedule, exact radii, the design's feature-averaging case, and a public implementation."""

import math
import warnings

import pytest
import torch
from sklearn.datasets import load_digits

from tacit.attack.apgd import apgd, checkpoints
from tacit.attack.losses import cross_entropy
from tacit.certify.radius import radius
from tacit.data import cluster_mixture, min2024_mixture, orthogonal_centres
from tacit.nets import average_net, centre_net

INF = math.inf


def gen(seed):
    return torch.Generator().manual_seed(seed)


def test_the_checkpoints_are_those_of_the_paper():
    # p = 0, .22, .41, .57, .70, .80, .87, .93, .99 (Croce & Hein 2020, Section 3)
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert checkpoints(10)[:3] == [3, 5, 6]


@pytest.mark.parametrize("norm", [2, INF])
def test_the_feature_averaging_net_is_broken_entirely(norm):
    # F of min2024 with two neurons, d = 100: delta = -y eps d0, d0 along S+ - S-, breaks all points
    d, K = 100, 10
    mixture = cluster_mixture(orthogonal_centres(K, d, math.sqrt(d), gen(0)), 5, 1.0)
    data, net = mixture.sample(300, gen(1)), average_net(mixture)
    d0 = mixture.labels @ mixture.centres
    d0 = d0 / d0.norm() if norm == 2 else d0.sign()
    enough = 0.1
    while ((data.y * net(data.x - enough * data.y.unsqueeze(1) * d0)) > 0).any():
        enough *= 1.05
    found = apgd(net, data.x, data.y, [enough], norm=norm, steps=50)
    assert found.robust_accuracy.item() == 0.0
    assert (found.clean > 0).double().mean() > 0.95


def test_the_radii_of_the_centre_net_are_met_to_a_hair():
    mixture = min2024_mixture(1000, 10, 6, 0.1, gen(0)).reduced()
    data, net = mixture.sample(100, gen(1)), centre_net(mixture, 3.0)
    exact = radius(net, data.x, data.y).upper
    radii = [0.69, 0.7, 0.71, 0.72]
    found = apgd(net, data.x, data.y, radii)
    truth = exact.unsqueeze(0) <= torch.tensor(radii).unsqueeze(1)
    assert not (found.broken & ~truth).any()
    close = exact.unsqueeze(0) <= torch.tensor(radii).unsqueeze(1) / 1.002
    assert found.broken[close].all()


@pytest.fixture(scope="module")
def digits():
    """A small net on the digits (8 x 8, in [0, 1]) and 300 test points."""
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16).float(), torch.tensor(y)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        order = torch.randperm(len(x))
        net = torch.nn.Sequential(
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 10),
        )
        train, test = order[:1200], order[1200:1500]
        adam = torch.optim.Adam(net.parameters(), 2e-3)
        for _ in range(200):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(x[train]), y[train]).backward()
            adam.step()
    return net.eval().requires_grad_(False), x[test], y[test]


def public(net, x, y, norm, radius, loss, steps):
    """How many points the authors' APGD breaks, checked to be in the ball."""
    from pyautoattack.autopgd_base import APGDAttack

    name = {1: "L1", 2: "L2", INF: "Linf"}[norm]
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where DLR has no gradient
        attack = APGDAttack(net, n_iter=steps, norm=name, eps=radius, loss=loss, device="cpu")
        moved = attack.perturb(x.clone(), y)
    assert ((moved - x).norm(p=norm, dim=1) <= radius * (1 + 1e-4)).all()
    return int((net(moved).argmax(1) != y).sum())


RADII = {1: [1.0, 2.0, 3.0], 2: [0.2, 0.5, 0.8], INF: [0.02, 0.08, 0.12]}


SLOW = [pytest.param(norm, marks=pytest.mark.slow) for norm in (1, 2)]


@pytest.mark.parametrize("norm", [*SLOW, INF])
def test_as_strong_as_the_public_apgd_on_digits(digits, norm):
    net, x, y = digits
    steps, half_a_point = 50, 0.005 * len(x)
    theirs = {
        loss: torch.tensor([public(net, x, y, norm, r, loss, steps) for r in RADII[norm]])
        for loss in ("ce", "dlr")
    }
    call = {"norm": norm, "box": (0.0, 1.0), "steps": steps}
    # one random start and the same loss, each radius by itself: the same algorithm
    same = apgd(net, x, y, RADII[norm], loss=cross_entropy, starts=("random",), **call)
    assert (same.alone.sum(1) - theirs["ce"] >= -half_a_point).all()
    # the margin, from all starts
    full = apgd(net, x, y, RADII[norm], **call)
    assert (full.alone.sum(1) >= torch.maximum(theirs["ce"], theirs["dlr"])).all()
