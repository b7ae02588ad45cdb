"""li2025.fig3b and fig3c: the rule of the halves, its attack, and what is judged of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from benches import new_bench
from tacit.errors import CallError
from tacit.papers._shared.deep import deep_images
from tacit.papers.li2025.fig3b.binary import Halves, rightly, withstood
from tacit.papers.li2025.fig3b.claims import claims, comparable, gains, regime_of
from tacit.papers.li2025.fig3b.exhibit import job_of, run
from tacit.papers.li2025.fig3b.settings import CIFAR10, EXHIBITS, MNIST, Labels

SMOKE = EXHIBITS[0].scales["smoke"]


def scores_of(logits: torch.Tensor) -> torch.Tensor:
    """The two scores, of images that are their own logits."""
    return Halves(nn.Flatten())(logits[..., None, None])


class Linear(nn.Module):
    """Logits that are linear in the pixels."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ self.weight.T + self.bias


# ---- the rule


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.1, 30))
def test_the_scores_are_the_paper_s_difference_of_probabilities(seed, size):
    logits = size * torch.randn(
        5, 10, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    p = logits.softmax(1)
    difference = p[:, :5].sum(1) - p[:, 5:].sum(1)
    a, b = scores_of(logits).T
    torch.testing.assert_close(torch.tanh((a - b) / 2), difference)


def test_many_small_classes_outvote_the_largest():
    p = torch.tensor([[0.45, 0, 0, 0, 0, 0.11, 0.11, 0.11, 0.11, 0.11]]).clamp_min(1e-9)
    assert bool(rightly(Halves(nn.Flatten()), p.log()[..., None, None], torch.tensor([1])))
    assert int(p.argmax()) == 0


def test_two_labels_are_their_own_scores():
    logits = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(scores_of(logits), logits)


def test_a_tie_is_an_error():
    assert not rightly(Halves(nn.Flatten()), torch.zeros(2, 10, 1, 1), torch.tensor([0, 1])).any()


def test_labels_are_merged_as_the_scores_are():
    two, ten = (deep_images("digits", merged=merged) for merged in (2, 0))
    assert torch.equal(two.y, (ten.y >= 5).long())
    assert torch.equal(two.test_y, (ten.test_y >= 5).long())


# ---- the attack


def test_the_attack_finds_the_radius_of_a_linear_rule():
    """With one weight vector for each half a - b is linear: the radius is |a - b| / ||w||, inside the box."""
    stream = torch.Generator().manual_seed(1)
    first, second = torch.randn(2, 12, generator=stream)
    weight = torch.stack([first] * 5 + [second] * 5)
    bias = torch.randn(10, generator=stream)
    rule = Halves(Linear(weight, bias)).eval()
    x = 0.5 + 0.05 * torch.randn(40, 3, 2, 2, generator=stream)
    a, b = rule(x).detach().T
    y = (b > a).long()
    radius = (a - b).abs() / (first - second).norm()
    levels = (0.05, 0.1, 0.2, 0.3)
    kept = withstood(rule, x, y, levels, steps=20, seed=0)
    for level, each in zip(levels, kept, strict=True):
        sure = (radius / level - 1).abs() > 1e-3
        assert torch.equal(each[sure], (radius > level)[sure])
    assert kept[0].any()
    assert not kept[-1].all()


def test_the_attack_breaks_the_rule_and_not_the_largest_logit():
    """Against the shortest way over the boundary on two pixels, by a fine grid of angles and lengths.

    Five different logits against five with one weight vector: the margin of label 0 is convex, so that what a
    descent finds is the least there is.
    """
    stream = torch.Generator().manual_seed(4)
    weight, bias = 4 * torch.randn(10, 2, generator=stream), torch.randn(10, generator=stream)
    weight[5:] = weight[5]
    rule = Halves(Linear(weight, bias)).eval()
    x = (0.5 + 0.15 * torch.randn(60, 1, 1, 2, generator=stream)).clamp(0.1, 0.9)
    x = x[rightly(rule, x, torch.zeros(60, dtype=torch.long))][:4]
    n, lengths, angle = len(x), torch.linspace(0, 0.4, 201), torch.linspace(0, 2 * torch.pi, 361)
    way = torch.stack([angle.cos(), angle.sin()], 1)
    around = x.view(n, 1, 1, 2) + lengths[:, None, None] * way  # (point, length, angle, pixel)
    inside = ((around >= 0) & (around <= 1)).all(-1).flatten()
    here = around.reshape(-1, 1, 1, 2)
    broken, by_largest = (
        (wrong & inside).view(n, len(lengths), -1).any(2)
        for wrong in (
            ~rightly(rule, here, torch.zeros(len(here), dtype=torch.long)),
            rule.net(here).argmax(1) > 4,
        )
    )
    near = broken.any(1).nonzero().squeeze(1).tolist()
    assert len(near) > 2
    assert (broken.sum(1) > 1.1 * by_largest.sum(1)).all()  # the largest logit is another rule
    for index in near:
        shortest = float(lengths[broken[index].int().argmax()])
        one = slice(index, index + 1)
        label, radii = (
            torch.zeros(1, dtype=torch.long),
            (max(shortest - 0.004, 0.0), shortest + 0.004),
        )
        kept = withstood(rule, x[one], label, radii, steps=20, seed=0)
        assert kept.squeeze(1).tolist() == [True, False]


# ---- trainings


def test_nets_of_both_kinds_start_from_the_same_convolutions_and_batches():
    bench = new_bench()
    two, ten = (deep_images("digits", merged=merged) for merged in (2, 0))
    jobs = [job_of(SMOKE, bench, two, 2, 3), job_of(SMOKE, bench, ten, 10, 3)]
    assert jobs[0].seed == jobs[1].seed
    assert jobs[0].recipe == jobs[1].recipe
    assert (jobs[0].recipe.momentum, jobs[0].recipe.decay) == (0.9, 5e-4)
    for mine, other in zip(*(job.start.convolutions for job in jobs), strict=True):
        assert torch.equal(mine.weight, other.weight)
    assert [job.start.head.out_features for job in jobs] == [2, 10]


# ---- what is judged


def measured(two: list[float], ten: list[float], seeds: int = 1, points: int = 400) -> xr.Dataset:
    """Data in which the first points of each radius are kept."""
    shares = np.array([[1.0, *two], [1.0, *ten]])
    kept = np.arange(points) < (shares * points)[..., None]
    kept = np.repeat(kept[:, None].astype(np.int8), seeds, 1)
    return xr.Dataset(
        {
            "kept": (("labels", "seed", "radius", "point"), kept),
            "right": (("labels", "seed", "test"), np.ones((2, seeds, 50), np.int8)),
        },
        coords={"labels": [2, 10], "radius": [0.0, 0.1, 0.2, 0.3], "seed": range(seeds)},
    )


def test_gains_are_paired():
    """The difference of each point, not of two independent shares: what both nets keep adds nothing."""
    data = measured([0.9, 0.5, 0.1], [0.95, 0.7, 0.1])
    found = gains(data, of=3)
    assert [e.value for e in found.values()] == pytest.approx([0.05, 0.2, 0.0])
    assert found[0.1].low > 0  # 20 of 400 gained and none lost
    assert found[0.3].low < 0 < found[0.3].high
    assert found[0.1].over == "points"


def test_radii_that_leave_nothing_to_compare_are_not_judged():
    data = measured([1.0, 0.5, 0.0], [1.0, 0.7, 0.0])
    assert comparable(data) == [0.2]


@pytest.mark.parametrize(
    ("ten", "verdict"), [([0.95, 0.7], "holds"), ([0.95, 0.4], "differs"), ([0.95, 0.5], "undecided")]
)  # fmt: skip
def test_the_order_is_that_of_every_radius(ten, verdict):
    data = measured([0.9, 0.5, 0.0], [*ten, 0.0])
    first, *_ = claims(data, MNIST, new_bench(scale="paper"))
    assert (first.id, first.verdict, len(first.members)) == ("order", verdict, 2)
    assert first.regime.startswith("inside")
    assert "one training of each kind" in first.regime


def test_nothing_to_compare_cannot_be_judged():
    (only,) = claims(measured([0, 0, 0], [0, 0, 0]), MNIST, new_bench(scale="paper"))
    assert only.verdict == "not testable here"


def test_small_nets_on_cifar10_decide_nothing():
    laptop = next(e.scales["laptop"] for e in EXHIBITS if e.id == "li2025.fig3c")
    data = measured([0.9, 0.5, 0.0], [0.95, 0.7, 0.0])
    for config, verdict in ((laptop, "not testable here"), (replace(CIFAR10, epochs=100), "holds")):
        first, *_ = claims(data, config, new_bench())
        assert first.verdict == verdict


def test_regimes():
    assert [regime_of(c).split(":")[0] for c in (MNIST, CIFAR10)] == ["inside", "inside"]
    assert regime_of(replace(MNIST, points=500, radius=(1.0,))).startswith("inside")
    assert "width = 8 (64)" in regime_of(replace(CIFAR10, width=8, repeats=3))
    assert regime_of(replace(CIFAR10, width=8)).startswith("shortened")
    assert regime_of(replace(CIFAR10, flip=False)).startswith("outside")
    assert regime_of(SMOKE).startswith("other data")


# ---- what is refused


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"radius": ()}, "radius"),
        ({"radius": (0.1, 0.1)}, "radius"),
        ({"radius": (0.0,)}, "radius"),
        ({"width": 4}, "width"),
        ({"epochs": 0}, "epochs"),
        ({"step": 0.0}, "step"),
        ({"side": -1}, "side"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changed, named):
    with pytest.raises(CallError, match=named):
        Labels(**changed)


@pytest.mark.parametrize(("changed", "told"), [({"points": 600}, "599"), ({"side": 3}, "divisor")])
def test_what_the_images_do_not_have_is_refused_before_any_training(changed, told):
    with pytest.raises(CallError, match=told):
        run(replace(SMOKE, **changed), new_bench())
