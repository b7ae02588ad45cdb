"""The inner loop of adversarial training: as the public attacks, in ball and box, no reads by the host."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from host_reads import NoHostReads
from tacit.attack import cross_entropy, margin, pgd, smooth_adv_pgd
from tacit.attack.inner import Ball, mean_scores, perturbation, seen
from tacit.errors import CallError


def smooth_net(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(12, 20), torch.nn.Softplus(), torch.nn.Linear(20, 3)
    )
    return net.double().eval()


def points(n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(n, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    return 0.2 + 0.6 * x, smooth_net()(0.2 + 0.6 * x).argmax(1)


@pytest.mark.parametrize(("norm", "box"), [(math.inf, (0.0, 1.0)), (math.inf, None), (2, None)])
@pytest.mark.parametrize("begun", [False, True])
def test_it_takes_the_steps_of_the_public_attack(norm, box, begun):
    """In small balls, inside of which the margin falls step by step: the public attack's best is its last."""
    net, (x, y) = smooth_net(), points()
    ball = Ball(norm, 0.01, 5, 0.15)
    start = torch.full_like(x, 0.2) if begun else None
    given_start = "zero" if start is None else 0.01 * start
    public = pgd(
        net,
        x,
        y,
        [0.01],
        norm=norm,
        box=box,
        loss=cross_entropy,
        starts=[given_start],
        steps=5,
        step=0.15,
    )
    assert not public.broken.any()
    mine = perturbation(net, x, y, ball, start=start, box=box)
    torch.testing.assert_close(mine, public.delta[0])


def test_with_noise_it_takes_the_steps_of_smooth_adv_pgd():
    net, (x, y) = smooth_net(), points()
    public = smooth_adv_pgd(net, x, y, [0.01], sigma=0.1, samples=3, steps=4, step=0.2, seed=9)
    draws = torch.Generator().manual_seed(9)
    noise = torch.empty(3, 12, dtype=torch.float64).normal_(generator=draws) * 0.1
    noise = noise.view(3, 1, 3, 2, 2).expand(3, len(x), 3, 2, 2)
    mine = perturbation(net, x, y, Ball(2, 0.01, 4, 0.2, sigma=0.1, draws=3), noise=noise, box=None)
    left = ~public.broken[0]  # noise alone breaks one, whose search the public attack ends
    assert int(left.sum()) >= 4
    torch.testing.assert_close(mine[left], public.delta[0][left])


def test_scores_of_copies_are_averaged_as_probabilities():
    scores = torch.randn(2 * 5, 4, generator=torch.Generator().manual_seed(0))
    by_hand = torch.stack([scores[:5].softmax(1), scores[5:].softmax(1)]).mean(0).log()
    torch.testing.assert_close(mean_scores(scores, 2), by_hand)
    x, noise = torch.rand(5, 1, 2, 2), torch.randn(2, 5, 1, 2, 2)
    torch.testing.assert_close(seen(x, noise)[5:], x + noise[1])


@given(
    norm=st.sampled_from([2, math.inf]),
    radius=st.floats(0, 2),
    scale=st.floats(0, 1),
    step=st.floats(0, 3),
    sigma=st.sampled_from([0.0, 0.3]),
)
def test_it_stays_in_ball_and_box(norm, radius, scale, step, sigma):
    net, (x, y) = smooth_net(), points()
    ball = Ball(norm, radius, 3, step, random_start=True, sigma=sigma, draws=2)
    draws = torch.Generator().manual_seed(0)
    noise, start = ball.noise(x, draws), ball.start(x, draws)
    delta = perturbation(net, x, y, ball, start=start, noise=noise, scale=scale)
    size = delta.flatten(1).norm(dim=1) if norm == 2 else delta.flatten(1).abs().amax(1)
    assert float(size.max()) <= radius * scale * (1 + 1e-12) + 1e-15
    assert float((x + delta).min()) >= -1e-15
    assert float((x + delta).max()) <= 1 + 1e-15


@pytest.mark.parametrize("radius", [1e-6, 1e-3])
def test_small_balls_are_kept_in_float32(radius):
    net, (x, y) = smooth_net().float(), points()
    delta = perturbation(net, x.float(), y, Ball(2, radius, 3, 0.9))
    assert float(delta.flatten(1).norm(dim=1).max()) <= radius * (1 + 1e-6)


def test_it_lowers_the_margin():
    net, (x, y) = smooth_net(), points()
    delta = perturbation(net, x, y, Ball(2, 0.2, 7, 2.5 / 7))
    assert bool((margin(net(x + delta), y) < margin(net(x), y)).all())


@pytest.mark.parametrize("norm", [2, math.inf])
def test_nothing_is_read_by_the_host(norm):
    net, (x, y) = smooth_net(), points()
    ball = Ball(norm, 0.1, 3, 0.5, random_start=True, sigma=0.1, draws=2)
    draws = torch.Generator().manual_seed(0)
    noise, start = ball.noise(x, draws), ball.start(x, draws)
    with NoHostReads():
        perturbation(net, x, y, ball, start=start, noise=noise, scale=torch.tensor(0.5))


def test_what_is_refused():
    with pytest.raises(CallError, match="norm=1: adversarial training has 2 and inf"):
        Ball(1, 0.1, 3, 0.5)
    with pytest.raises(CallError, match="radius=-1"):
        Ball(2, -1, 3, 0.5)
    with pytest.raises(CallError, match="steps=0"):
        Ball(2, 1, 0, 0.5)
