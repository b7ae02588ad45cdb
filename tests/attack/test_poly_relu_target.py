"""The closed-form gradient of the multi-class PolyReLU net against autograd."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rounding import same_verdicts
from tacit.attack import apgd, cross_entropy
from tacit.attack.target import PolyReLUTarget, TorchTarget, target_of
from tacit.errors import CallError
from tacit.nets import PolyReLUNet, poly_relu_start

READINGS = {"released": (True, False), "written": (False, True), "raw": (False, False)}


def a_net(p: float, reading: str, members: int = 1, bias: bool = True) -> PolyReLUNet:
    normalize, unit = READINGS[reading]
    generators = [torch.Generator().manual_seed(seed) for seed in range(members)]
    centre = torch.full((9,), 0.4, dtype=torch.float64)
    return poly_relu_start(
        9, 6, 4, p, generators, centre=centre, normalize_input=normalize, unit=unit, bias=bias,
        dtype=torch.float64,
    )  # fmt: skip


def alone(net: PolyReLUNet) -> PolyReLUNet:
    b = None if net.b is None else net.b[0]
    return PolyReLUNet(net.w[0], net.v[0], b, net.p, net.centre, net.normalize_input, net.unit)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
def test_scores_and_pullback_are_autograds(p: float, reading: str, bias: bool) -> None:
    net = alone(a_net(p, reading, bias=bias))
    x = torch.rand(11, 9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    target = target_of(net, (9,))
    assert isinstance(target, PolyReLUTarget)
    scores, pullback = target.with_pullback(x)
    wanted, slow = TorchTarget(net, (9,)).with_pullback(x)
    torch.testing.assert_close(scores, wanted, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(target.scores(x), wanted, rtol=1e-12, atol=1e-13)
    cotangent = torch.randn(11, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    torch.testing.assert_close(pullback(cotangent), slow(cotangent), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_weights_that_training_left_as_dust_give_no_subnormal_gradients(reading: str) -> None:
    # products that give subnormal numbers take 30 times as long
    net = alone(a_net(4.0, reading))
    clean = net.w.index_fill(1, torch.tensor([2, 5]), 0.0).float()
    dust = torch.zeros_like(clean).index_fill(1, torch.tensor([2, 5]), 1e-40)
    assert net.b is not None
    assert net.centre is not None
    x = torch.rand(11, 9, generator=torch.Generator().manual_seed(2))
    x[:, [2, 5]] = net.centre[0].float()
    answers = []
    for w in (clean, clean + dust):
        tried = replace(net, w=w, v=net.v.float(), b=net.b.float(), centre=net.centre.float())
        scores, pullback = PolyReLUTarget(tried).with_pullback(x)
        answers.append((scores, pullback(torch.ones(11, 4))))
    assert torch.equal(answers[0][0], answers[1][0])
    assert torch.equal(answers[0][1], answers[1][1])
    assert answers[1][1][:, [2, 5]].count_nonzero() == 0


@pytest.mark.parametrize("reading", READINGS)
def test_gradients_at_the_centre_are_finite(reading: str) -> None:
    net = alone(a_net(3.0, reading))
    assert net.centre is not None
    _, pullback = PolyReLUTarget(net).with_pullback(net.centre[None])
    assert bool(pullback(torch.ones(1, 4, dtype=torch.float64)).isfinite().all())


def test_apgd_finds_what_it_finds_by_autograd() -> None:
    net = alone(a_net(3.0, "released"))
    x = torch.rand(20, 9, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    y = net(x).argmax(1)
    radii = (0.05, 0.2)
    fast, slow = (
        apgd(
            model,
            x,
            y,
            radii,
            norm="inf",
            box=(0, 1),
            loss=cross_entropy,
            steps=20,
            starts=("random",),
        )
        for model in (net, lambda z: net(z))
    )
    assert same_verdicts(fast.broken, slow.broken, slow.margin, terms=20 * 100)
    assert 0 < float(fast.robust_accuracy[0]) < 1


def test_an_ensemble_is_refused() -> None:
    with pytest.raises(CallError, match="member by member"):
        target_of(a_net(2.0, "raw", members=2), (9,))
