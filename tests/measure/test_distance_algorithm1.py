import math

import pytest
import torch

from tacit.data import min2024_mixture
from tacit.errors import CallError
from tacit.measure.distance.algorithm1 import RELEASED_OFFSET, algorithm1
from tacit.measure.distance.function import function_distance
from tacit.nets import TwoLayerNet, average_net, centre_net


def nets(p, D=12, seed=0, noise=0.1):
    g = torch.Generator().manual_seed(seed)
    mixture = min2024_mixture(D, 4, 2, 0.1, g)
    F = average_net(mixture) if p == 1 else centre_net(mixture, p)
    w = F.w + noise * torch.randn(F.w.shape, generator=g, dtype=torch.float64)
    return TwoLayerNet(w, 5 * F.v, p=p), F


def to_the_letter(f, F, step, N1, N2, max_iter, generator, offset):
    """Algorithm 1 in the whole space with autograd, as it stands in the appendix."""

    def sphere(n):
        x = torch.randn(n, f.w.shape[1], generator=generator, dtype=torch.float64)
        return x / x.norm(dim=1, keepdim=True)

    x = sphere(N1)
    c = float((f(x) * F(x)).sum() / (f(x) ** 2).sum())
    x = sphere(N2)
    for _ in range(max_iter):
        x = x.detach().requires_grad_()
        (c * f(x) - F(x)).square().sum().backward()
        # a point where all neurons are off has no gradient (0/0 as printed): it stays
        length = x.grad.norm(dim=1, keepdim=True) + offset
        x = x.detach() + step * x.grad / length.clamp_min(1e-300)
        x = x / x.norm(dim=1, keepdim=True)
    return float((c * f(x) - F(x)).abs().max()), c


@pytest.mark.parametrize("offset", [0.0, RELEASED_OFFSET])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_it_is_the_printed_algorithm(p, offset):
    f, F = nets(p)
    sizes = {"step": 0.02, "N1": 300, "N2": 40, "max_iter": 60, "offset": offset}
    ours = algorithm1(f, F, **sizes, generator=torch.Generator().manual_seed(1))
    value, c = to_the_letter(f, F, **sizes, generator=torch.Generator().manual_seed(1))
    assert ours.value == pytest.approx(value, rel=1e-6)
    assert ours.c == pytest.approx(c, rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_at_its_scale_it_finds_the_supremum_and_never_more(p):
    f, F = nets(p)
    found = algorithm1(
        f, F, N1=2000, N2=100, max_iter=600, generator=torch.Generator().manual_seed(2)
    )
    strong = function_distance(f, F)
    # its c is another one, so that its supremum is no smaller than dist
    assert found.value >= 0.98 * strong.lower
    moved = TwoLayerNet(f.w, f.v * found.c / strong.c, p=p)
    x = strong.x.unsqueeze(0)
    assert float((strong.c * moved(x) - F(x)).abs()) <= found.value * 1.2


def test_an_offset_beside_a_tiny_gradient_holds_the_points_where_they_start():
    """p = 4, D = 300: points start where the difference is flat, and stay (the released code's stall)."""
    f, F = nets(4.0, D=300, noise=1e-4)
    draws = {"N1": 500, "N2": 50, "max_iter": 300}
    printed = algorithm1(f, F, **draws, generator=torch.Generator().manual_seed(3))
    released = algorithm1(f, F, **draws, offset=1e-4, generator=torch.Generator().manual_seed(3))
    assert released.value < 0.1 * printed.value


def test_a_net_that_is_zero_has_scale_zero():
    _, F = nets(3.0)
    zero = TwoLayerNet(
        torch.zeros(2, 12, dtype=torch.float64), torch.ones(2, dtype=torch.float64), p=3.0
    )
    found = algorithm1(
        zero, F, N1=10, N2=50, max_iter=500, generator=torch.Generator().manual_seed(0)
    )
    assert found.c == 0
    assert found.value == pytest.approx(1, rel=1e-3)
    assert math.isfinite(found.value)


@pytest.mark.parametrize(
    "wrong", [{"step": 0.0}, {"N1": 0}, {"N2": 0}, {"max_iter": -1}, {"offset": -1.0}]
)
def test_impossible_sizes_are_refused(wrong):
    f, F = nets(3.0)
    with pytest.raises(CallError, match=next(iter(wrong))):
        algorithm1(f, F, **wrong, generator=torch.Generator())
