"""Accuracy under the attacker of a training: closed forms of linear nets, and what noise and starts do."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tacit.attack import apgd
from tacit.attack.inner import Ball
from tacit.errors import CallError
from tacit.measure.attacked import delta_of, kept_right


def linear(w: torch.Tensor) -> nn.Module:
    """Two classes: logits -f and f, f = <w, x - 1/2>."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(len(w), 2))
    with torch.no_grad():
        net[1].weight.copy_(torch.stack([-w, w]))
        net[1].bias.copy_(torch.stack([w.sum() / 2, -w.sum() / 2]))
    return net.eval()


W = torch.randn(12, generator=torch.Generator().manual_seed(0))
X = 0.3 + 0.4 * torch.rand(200, 3, 2, 2, generator=torch.Generator().manual_seed(1))
F = (X.flatten(1) - 0.5) @ W
Y = (F > 0).long()


@pytest.mark.parametrize(("norm", "dual"), [(2, W.norm()), (math.inf, W.abs().sum())])
def test_a_linear_net_loses_the_points_nearer_than_the_radius(norm, dual):
    """The distance of x to the boundary is |f| over the dual norm of w; the box is far away."""
    radius = 0.08 if norm == 2 else 0.03
    right = kept_right(linear(W), X, Y, Ball(norm, radius, 10, 0.3, random_start=True))
    assert torch.equal(right > 0, F.abs() / dual > radius)
    assert torch.equal(kept_right(linear(W), X, Y), torch.ones(200))
    assert torch.equal(kept_right(linear(W), X, 1 - Y), torch.zeros(200))


def test_the_box_holds_what_the_ball_would_reach():
    """At white pixels nothing can be added: the perturbation is 0 where it would leave the box."""
    x = torch.ones(1, 3, 2, 2)
    delta = delta_of(linear(W.abs()), x, torch.zeros(1, dtype=torch.long), Ball(2, 1.0, 5, 0.5))
    assert float(delta.abs().max()) == 0.0


def test_what_decides_is_computed_in_full_float32():
    """cuDNN's 10 bits are good enough to search with, not to judge by: the last look at each point is exact."""

    class Noting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.coarse = linear(W), []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.coarse.append(torch.backends.cudnn.allow_tf32)
            return self.net(x)

    assert torch.backends.cudnn.allow_tf32
    ours, public = Noting().eval(), Noting().eval()
    kept_right(ours, X, Y, Ball(2, 0.08, 3, 0.5))
    apgd(public, X, Y, [0.08], norm=2, steps=3)
    for net in (ours, public):
        assert net.coarse[-1] is False
        assert any(net.coarse)


def test_more_starts_keep_less():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 30), nn.ReLU(), nn.Linear(30, 3)).eval()
    with torch.no_grad():  # steep, and centred at grey
        net[1].bias.copy_(-net[1].weight.mul_(8).sum(1) / 2)
    y = net(X).argmax(1)
    ball = Ball(math.inf, 0.25, 1, 0.1, random_start=True)
    one, five = (kept_right(net, X, y, ball, starts=s, seed=4) for s in (1, 5))
    assert bool((five <= one).all())
    assert float(five.mean()) < float(one.mean())


def test_noise_gives_the_share_of_copies_that_are_right():
    """Radius 0: copy by copy the chance that <w, noise> does not turn f, Phi(|f| / (sigma |w|))."""
    ball = Ball(2, 0.0, 1, 1.0, sigma=0.1, draws=400)
    share = kept_right(linear(W), X[:50], Y[:50], ball)
    chance = torch.special.ndtr(F[:50].abs() / (0.1 * W.norm()))
    assert float((share - chance).abs().max()) < 4 * 0.5 / 400**0.5
    assert float((share - chance).mean().abs()) < 0.01


def test_a_module_in_train_mode_is_refused():
    with pytest.raises(CallError, match="train mode"):
        kept_right(linear(W).train(), X, Y)
