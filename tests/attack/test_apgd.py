"""APGD: its schedule, exact radii, the design's feature-averaging case, and a public implementation."""

import copy
import math
import warnings
from dataclasses import dataclass

import pytest
import torch
from sklearn.datasets import load_digits

from rounding import rounding, same_numbers, same_verdicts
from tacit.attack.ball import search as search_module
from tacit.attack.ball.apgd import apgd, checkpoints, kth_largest, sparse_direction
from tacit.attack.ball.search import Search, slope_of
from tacit.attack.losses import cross_entropy, margin
from tacit.attack.norms import NORMS
from tacit.attack.target import PolyReLUTarget
from tacit.certify.radius import radius
from tacit.data import cluster_mixture, min2024_mixture, orthogonal_centres
from tacit.errors import CallError
from tacit.nets import PolyReLUNet, average_net, centre_net

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


def small_search(norm, n=40, D=12, boxed=True):
    """Points in [0, 1] with pixels at both ends, and a random net of 5 neurons."""
    g = gen(3)
    x = torch.rand(n, D, generator=g).mul(3).sub(1).clamp(0, 1).double()
    w, v = (torch.randn(*s, generator=g).double() for s in ((5, D), (3, 5)))
    none = torch.zeros(n, dtype=torch.long)
    return Search(
        PolyReLUTarget(PolyReLUNet(w, v)),
        margin,
        NORMS[norm],
        g,
        x=x,
        y=none,
        radius=torch.full((n, 1), 0.7, dtype=torch.float64),
        room=(-x, 1 - x) if boxed else None,
        goal=None,
        point=torch.arange(n),
        id=torch.arange(n),
        best_delta=torch.zeros_like(x),
        best_margin=torch.full((n,), INF, dtype=torch.float64),
        broken=none.bool(),
    )


@pytest.mark.parametrize("boxed", [False, True])
def test_the_sparse_direction_has_the_signs_of_the_largest_entries_that_can_move(boxed):
    search = small_search("1", boxed=boxed)
    g = gen(4)
    down = torch.randn(search.x.shape, generator=g).double()
    down[:, 0] = down[:, 1] = 0.0  # ties, and no way at all
    delta = search.project(torch.randn(search.x.shape, generator=g).double())
    k = torch.rand(len(down), generator=g).double() * 12 + 0.5
    way = sparse_direction(search, delta, down, k)
    for i in range(len(down)):
        size = down[i].abs().clone()
        if boxed:
            low, high = search.room[0][i], search.room[1][i]
            size[(down[i] > 0) & (delta[i] >= high)] = 0
            size[(down[i] < 0) & (delta[i] <= low)] = 0
        least = size.sort(descending=True).values[max(int(k[i]), 1) - 1]
        signs = torch.where((size >= least) & (size > 0), down[i].sign(), 0.0)
        assert torch.equal(way[i], signs / signs.abs().sum().clamp_min(1))


def test_the_kth_largest_is_that_of_sorting():
    t = torch.randn(20, 33, generator=gen(5)).round(decimals=1)
    k = torch.randint(1, 34, (20, 1), generator=gen(6))
    assert torch.equal(kth_largest(t, k), t.sort(dim=1, descending=True).values.gather(1, k - 1))


@pytest.mark.parametrize("norm", ["1", "2", "inf"])
@pytest.mark.parametrize("boxed", [False, True])
def test_the_search_projects_as_its_norm_does(norm, boxed):
    search = small_search(norm, boxed=boxed)
    z = 2 * torch.randn(search.x.shape, generator=gen(7)).double()
    room = (-search.x, 1 - search.x) if boxed else None
    assert torch.equal(search.project(z), NORMS[norm].project(z, search.radius, room))


@pytest.mark.parametrize("loss", [margin, cross_entropy])
def test_known_slopes_are_those_of_autograd(loss):
    scores = 5 * torch.randn(50, 4, generator=gen(8)).double()
    scores[:10, 1] = scores[:10, 2]  # ties share the slope
    y = torch.arange(50) % 4
    value, slope = slope_of(loss, scores, y)
    plain, by_autograd = slope_of(lambda s, y: loss(s, y), scores, y)
    assert torch.equal(value, plain)
    assert torch.allclose(slope, by_autograd, rtol=0, atol=rounding(4, scores))


def test_rows_that_wait_to_be_dropped_change_nothing_that_is_found(digits, monkeypatch):
    net, x, y = digits
    # in float64: of slopes next to 0, which float32 leaves to rounding, APGD takes the sign
    net, x = copy.deepcopy(net).double(), x.double()
    found = []
    for worth in (0.0, 5.0):
        monkeypatch.setattr(search_module, "WORTH_DROPPING", worth)
        call = {"norm": INF, "box": (0.0, 1.0), "steps": 20, "starts": ("random",)}
        found.append(apgd(net, x[:60], y[:60], RADII[INF], loss=cross_entropy, **call))
    # 20 steps through layers of 64
    assert same_verdicts(found[0].broken, found[1].broken, found[0].margin, terms=20 * 3 * 64)
    assert same_numbers(found[0].delta, found[1].delta, terms=20 * 3 * 64)


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


def public(net, x, y, norm, radius, loss, steps, **changes):
    """How many points the authors' APGD breaks, checked to be in the ball."""
    from pyautoattack.autopgd_base import APGDAttack

    name = {1: "L1", 2: "L2", INF: "Linf"}[norm]
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where DLR has no gradient
        attack = APGDAttack(
            net, n_iter=steps, norm=name, eps=radius, loss=loss, device="cpu", **changes
        )
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


def test_through_larger_balls_as_strong_as_the_public_apgd_on_digits(digits):
    net, x, y = (part[:200] if torch.is_tensor(part) else part for part in digits)
    theirs = public(net, x, y, 1, 2.0, "ce", 50, use_largereps=True, n_restarts=5)
    ours = apgd(net, x, y, [2.0], norm=1, box=(0.0, 1.0), steps=50, loss=cross_entropy,
                starts=("random",) * 5, larger_balls=True)  # fmt: skip
    assert 0.2 * len(x) < theirs < len(x)
    assert abs(int(ours.alone.sum()) - theirs) <= 2
    assert (ours.delta.abs().sum(2) <= 2.0 * (1 + 1e-6)).all()


def test_a_wider_search_breaks_nothing_and_leaves_the_other_alone():
    search = small_search("1")
    wide = search.widened(3.0)
    far = 30 * torch.randn(search.x.shape, generator=gen(5), dtype=search.x.dtype)
    found = wide.query(far)
    assert (found <= 0).any()
    assert not wide.broken.any()
    assert torch.equal(wide.prune(Kept(far)).delta, far)
    assert torch.equal(wide.radius, 3 * search.radius)
    assert not search.broken.any()
    assert torch.isinf(search.best_margin).all()


@dataclass
class Kept:
    """The state of an attack that remembers where it is."""

    delta: torch.Tensor


def test_what_breaks_a_point_in_a_larger_ball_does_not_count():
    # of a linear model the l1 radius is known: |f| over the largest weight
    w = torch.randn(12, generator=gen(0), dtype=torch.float64)
    x = torch.randn(60, 12, generator=gen(1), dtype=torch.float64)
    y, exact = (x @ w).sign(), (x @ w).abs() / w.abs().max()
    middle = float(exact.median())
    found = apgd(lambda x: x @ w, x, y, [middle * 0.999], norm=1, steps=20, larger_balls=True)
    assert (found.broken[0] == (exact <= middle * 0.999)).all()
    with pytest.raises(CallError, match="larger balls in l1 alone"):
        apgd(lambda x: x @ w, x, y, [1.0], norm=2, larger_balls=True)
