"""All attacks in one table, then FGM and PGD against closed forms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.attack.ball.apgd import apgd
from tacit.attack.ball.black_box import black_box
from tacit.attack.ball.gradient import fgm, pgd
from tacit.attack.ball.smooth import smooth_adv_pgd
from tacit.attack.ball.task import sealed
from tacit.attack.losses import cross_entropy, margin
from tacit.attack.norms import known_norm
from tacit.data import min2024_mixture
from tacit.errors import CallError, RunError
from tacit.nets import Linear, TwoLayerNet, centre_net

INF = math.inf
RADII = [0.0, 0.3, 1.0]


def smooth(model, *args, **options):
    return smooth_adv_pgd(model, *args, sigma=0.1, samples=4, **options)


def gen(seed):
    return torch.Generator().manual_seed(seed)


def labels(seed, n, classes):
    y = torch.randint(0, classes, (n,), generator=gen(seed))
    return y if classes > 2 else (2 * y - 1).double()


def mlp(classes, dtype):
    """A net on inputs of shape (2, 3) with a dead zone; logits, or one output."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        layers = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(6, 16),
            torch.nn.ReLU(),
            torch.nn.Linear(16, classes if classes > 2 else 1),
        )
    return layers.to(dtype).eval()


def nasty(x):
    """Gradients that are NaN at sqrt(0), huge, and zero, by turns."""
    z = x.flatten(1)
    return (
        (z[:, 0] - z[:, 0]).abs().sqrt()
        + 1e18 * (z[:, 1] - 0.3)
        + 1e-12 * z[:, 2]
        + torch.relu(z[:, 3] - 5)
    )


def two_layer():
    g = gen(2)
    w, v = torch.randn(8, 6, generator=g).double(), torch.randn(8, generator=g).double()
    return TwoLayerNet(w, v, torch.randn(8, generator=g).double() / 2)


TARGETS = {
    "two_layer": (two_layer(), (6,), 2, torch.float64),
    "logits32": (mlp(4, torch.float32), (2, 3), 4, torch.float32),
    "nasty32": (nasty, (2, 3), 2, torch.float32),
}
ATTACKS = {
    "fgm": (fgm, {}),
    "pgd": (pgd, {"steps": 4, "loss": cross_entropy}),
    "apgd": (apgd, {"steps": 6}),
    "apgd_targeted": (apgd, {"steps": 4, "loss": "targeted"}),
    "smooth": (smooth, {"steps": 3}),
    "black_box": (black_box, {"steps": 4}),
}


@pytest.mark.parametrize("box", [None, (0.0, 1.0)], ids=["free", "boxed"])
@pytest.mark.parametrize("norm", [1, 2, INF])
@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_attack_keeps_its_word(name, target, norm, box):
    attack, options = ATTACKS[name]
    model, shape, classes, dtype = TARGETS[target]
    x = torch.rand(8, *shape, generator=gen(1), dtype=torch.float64).to(dtype)
    x[0], x[1] = 0.0, 1.0  # corners of the box
    y = labels(3, 8, classes)
    found = attack(model, x, y, RADII, norm=norm, box=box, **options)
    size = torch.stack([known_norm(norm).size(d.flatten(1)) for d in found.delta])
    rounding = 1e-11 if dtype == torch.float64 else 1e-5
    assert (size <= torch.tensor(RADII, dtype=dtype).unsqueeze(1) * (1 + rounding)).all()
    moved = x + found.delta
    if box is not None:
        assert moved.min() >= -rounding
        assert moved.max() <= 1 + rounding
    # never worse than clean, and no worse at a larger radius
    assert (found.margin <= found.clean).all()
    assert torch.equal(found.broken, found.margin <= 0)
    assert (found.broken[1:] | ~found.broken[:-1]).all()
    assert (found.broken | ~found.alone).all()
    if name != "smooth":  # which has the margins of another classifier
        for k, z in enumerate(moved):
            scores = torch.as_tensor(model(z)).detach()
            scores = scores.squeeze(1) if scores.shape[1:] == (1,) else scores
            verdict = margin(scores, y.to(dtype) if scores.dim() == 1 else y)
            assert torch.allclose(verdict, found.margin[k], rtol=1e-6, atol=1e-6)
    # what is broken clean is left alone
    assert (found.delta[:, found.clean <= 0] == 0).all()
    assert found.broken[:, found.clean <= 0].all()
    assert (found.start[:, found.clean <= 0] == -1).all()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_seed_repeats_itself(name):
    attack, options = ATTACKS[name]
    x, y = torch.randn(5, 6, generator=gen(1)).double(), labels(3, 5, 2)
    one, two = (attack(two_layer(), x, y, [0.3], seed=11, **options) for _ in range(2))
    assert torch.equal(one.delta, two.delta)


EXACT = {
    "fgm": (fgm, {}),
    "pgd": (pgd, {"steps": 8}),
    "apgd": (apgd, {"steps": 10}),
    "pgd_cross_entropy": (pgd, {"steps": 8, "loss": cross_entropy}),
    "apgd_cross_entropy": (apgd, {"steps": 10, "loss": cross_entropy}),
}


@pytest.mark.parametrize(("norm", "dual"), [(1, INF), (2, 2), (INF, 1)])
@pytest.mark.parametrize("name", EXACT)
def test_linear_models_break_exactly_at_their_radius(name, norm, dual):
    attack, options = EXACT[name]
    u = torch.randn(30, generator=gen(0)).double()
    x = torch.randn(3, 30, generator=gen(9)).double()
    rule = Linear(u, 0.2)
    y = rule(x).sign()
    exact = rule(x).abs() / torch.linalg.vector_norm(u, dual)
    radii = torch.cat([exact * (1 - 1e-6), exact * (1 + 1e-6)]).tolist()
    found = attack(rule, x, y, radii, norm=norm, **options)
    should = found.radii.unsqueeze(1) > exact
    assert torch.equal(found.broken, should)
    assert torch.equal(found.alone, should)


@pytest.mark.parametrize("norm", [1, 2, INF])
def test_linear_models_in_a_box_break_exactly_where_the_extreme_point_does(norm):
    u = torch.randn(30, generator=gen(0)).double()
    x = torch.rand(4, 30, generator=gen(9)).double()
    rule = Linear(u, -(x @ u).mean().item())
    y = rule(x).sign()
    room = (-x, 1 - x)
    low, high = torch.zeros(4, 1).double(), torch.full((4, 1), 20.0).double()
    for _ in range(60):
        middle = (low + high) / 2
        best = known_norm(norm).extreme(-y.unsqueeze(1) * u, middle, room)
        hit = (y * rule(x + best) <= 0).unsqueeze(1)
        low, high = torch.where(hit, low, middle), torch.where(hit, middle, high)
    radii = torch.cat([high * (1 - 1e-6), high * (1 + 1e-6)]).flatten().tolist()
    for attack, options in (EXACT["fgm"], EXACT["apgd"]):
        found = attack(rule, x, y, radii, norm=norm, box=(0.0, 1.0), **options)
        assert torch.equal(found.broken, found.radii.unsqueeze(1) > high.T)


@settings(max_examples=8)
@given(seed=st.integers(0, 99), norm=st.sampled_from([1, 2, INF]), boxed=st.booleans())
def test_points_do_not_see_each_other(seed, norm, boxed):
    x = torch.rand(7, 6, generator=gen(seed)).double()
    y = labels(seed, 7, 2)
    means = torch.rand(2, 6, generator=gen(1)).double()
    options = {"starts": ("zero", "towards"), "norm": norm, "steps": 5, "means": means}
    options["box"] = (0.0, 1.0) if boxed else None
    order = torch.randperm(7, generator=gen(seed))
    one = pgd(
        mlp(2, torch.float64), x.view(7, 2, 3), y, [0.2], **options | {"means": means.view(2, 2, 3)}
    )
    two = pgd(
        mlp(2, torch.float64),
        x[order].view(7, 2, 3),
        y[order],
        [0.2],
        **options | {"means": means.view(2, 2, 3)},
        batch=4,
    )
    assert torch.allclose(one.margin[:, order], two.margin, rtol=0, atol=1e-9)


@settings(max_examples=8)
@given(seed=st.integers(0, 99), scale=st.sampled_from([1e-3, 0.5, 40.0]))
def test_scaling_points_and_radii_scales_the_perturbations(seed, scale):
    x, y = torch.randn(5, 6, generator=gen(seed)).double(), labels(seed, 5, 2)
    net = two_layer()
    other = TwoLayerNet(net.w / scale, net.v, net.b)
    starts = ("zero", "towards")
    one = pgd(net, x, y, [0.4], steps=5, starts=starts)
    two = pgd(other, x * scale, y, [0.4 * scale], steps=5, starts=starts)
    assert torch.allclose(one.margin, two.margin, rtol=1e-6, atol=1e-9)


def test_a_dead_zone_is_left_by_chance_and_seen_as_flat():
    # f = 1 - relu(x1 - 1) has no gradient at 0, and breaks at 2
    def net(x):
        return 1 - 5 * torch.relu(x[:, 0] - 1)

    x, y = torch.zeros(4, 2).double(), torch.ones(4).double()
    for attack, options in ((pgd, {}), (apgd, {"steps": 40})):
        found = attack(net, x, y, [0.5, 2.0], starts=("zero", "random", "random"), **options)
        assert found.flat.all()
        assert found.broken[1].all()
        assert not found.broken[0].any()
    assert not pgd(net, x + 3, y, [0.5], starts=("zero",)).flat.any()


def test_a_saturated_loss_falls_back_on_the_margin():
    rule = Linear(torch.tensor([1e4, 0.0]), 0.0)
    x, y = torch.ones(1, 2), torch.ones(1)
    found = pgd(rule, x, y, [1.1], loss=cross_entropy, starts=("zero",))
    assert found.flat.all()  # the cross-entropy of float32 has no gradient here
    assert found.broken.all()


def test_starts_are_named_and_the_winner_is_known():
    net, x = two_layer(), torch.randn(20, 6, generator=gen(7)).double()
    y = net(x).sign()
    found = pgd(net, x, y, [0.1, 0.3], starts=("zero", "random", "random", torch.ones_like(x)))
    assert found.starts == ("zero", "random", "random", "given", "smaller radius")
    assert found.start.max() <= 4
    assert found.lowered.all()
    many = apgd(mlp(4, torch.float64), x.view(20, 2, 3), labels(1, 20, 4), [0.1], steps=2)
    assert many.starts[:3] == ("gradient", "random", "towards 1")
    assert len(many.starts) == 6
    aimed = pgd(mlp(4, torch.float64), x.view(20, 2, 3), labels(1, 20, 4), [0.1], loss="targeted")
    assert aimed.starts[:3] == ("zero to 1", "zero to 2", "zero to 3")


def test_a_test_of_the_test_zero_start_pgd_is_blind_where_the_truth_is_zero():
    # F^(3), K = 10, D = 1000, alpha = .1: -eps mu_k is a strict local minimum of the margin, which
    # zero-start PGD runs into; beyond .7072 every point at a centre is broken
    mixture = min2024_mixture(1000, 10, 6, 0.1, gen(0)).reduced()
    data = mixture.sample(200, gen(1))
    net = centre_net(mixture, 3.0)
    blind = pgd(net, data.x, data.y, [0.75], starts=("zero",), loss=cross_entropy)
    assert blind.robust_accuracy.item() > 0.95
    assert apgd(net, data.x, data.y, [0.75]).robust_accuracy.item() == 0
    assert pgd(net, data.x, data.y, [0.75]).robust_accuracy.item() == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"radii": [-1.0]}, "radii"),
        ({"radii": []}, "radii"),
        ({"radii": [INF]}, "radii"),
        ({"norm": 3}, "norm 3"),
        ({"box": (0.5, 1.0)}, "outside the box"),
        ({"box": (1.0, 0.0)}, "low end"),
        ({"y": torch.tensor([0.0, 1.0])}, "labels -1 and"),
        ({"y": torch.ones(3)}, "2 points with 3 labels"),
        ({"x": torch.tensor([[math.nan, 0], [0, 0]])}, "NaN"),
        ({"x": torch.zeros(0, 2), "y": torch.ones(0)}, "at least one point"),
        ({"x": torch.zeros(2, 2).float()}, "float64"),
        ({"starts": ("north",)}, "start 'north'"),
        ({"starts": ()}, "at least one"),
        ({"starts": (torch.zeros(3, 2),)}, "given start"),
        ({"steps": 0}, "steps=0"),
        ({"batch": 0}, "batch=0"),
        ({"loss": "hinge"}, "loss 'hinge'"),
    ],
)
def test_a_wrong_call_is_told_so(change, says):
    net = TwoLayerNet(torch.eye(2).double(), torch.ones(2).double())
    call = {"x": torch.zeros(2, 2).double(), "y": torch.ones(2), "radii": [0.1]} | change
    with pytest.raises(CallError, match=says):
        pgd(net, call.pop("x"), call.pop("y"), call.pop("radii"), **call)


def test_labels_outside_the_classes_are_refused():
    with pytest.raises(CallError, match="from 0 to 3"):
        pgd(mlp(4, torch.float64), torch.zeros(1, 2, 3).double(), torch.tensor([4]), [0.1])


def test_what_leaves_the_ball_or_the_box_never_returns():
    x, norm = torch.zeros(1, 2).double(), known_norm(2)
    with pytest.raises(RunError, match="left the l2 ball"):
        sealed(x + 1, x, norm, 1.0, None)
    with pytest.raises(RunError, match="left the l2 ball"):
        sealed(x + math.nan, x, norm, 1.0, None)
    with pytest.raises(RunError, match="left the box"):
        sealed(x - 0.1, x, norm, 1.0, (0.0, 1.0))
