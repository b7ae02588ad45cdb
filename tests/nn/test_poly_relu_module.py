"""`tacit.nn.PolyReLU`: the formula, its gradient, and the manners of a torch module."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tacit.errors import CallError
from tacit.nets import PolyReLUNet
from tacit.nn import PolyReLU

POWERS = (1.0, 1.5, 2.0, 3.0, 4.0)


def made(p: float, normalize_input: bool = True, seed: int = 0, D: int = 4, h: int = 6) -> PolyReLU:
    layer = PolyReLU(D, h, p, normalize_input, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
    return layer


def points(n: int, D: int = 4, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, D, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("normalize_input", [True, False])
def test_it_is_the_formula_of_the_paper(p: float, normalize_input: bool) -> None:
    layer, x = made(p, normalize_input), points(5)
    wanted = (x @ layer.weight.T).relu() ** p / layer.weight.norm(dim=1) ** (p - 1)
    if normalize_input:
        wanted = wanted / x.norm(dim=1, keepdim=True) ** (p - 1)
    torch.testing.assert_close(layer(x), wanted)
    net = PolyReLUNet(
        layer.weight, layer.weight.new_zeros(3, 6), p=p, normalize_input=normalize_input
    )
    torch.testing.assert_close(layer(x), net.hidden(x))


@given(st.floats(1, 6), st.floats(0.01, 100), st.integers(0, 100))
def test_normalised_it_is_homogeneous_in_the_input(p: float, scale: float, seed: int) -> None:
    layer, x = made(p, seed=seed), points(3, seed=seed + 1)
    torch.testing.assert_close(layer(scale * x), scale * layer(x))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("normalize_input", [True, False])
def test_the_gradient_is_that_of_the_function(p: float, normalize_input: bool) -> None:
    layer, x = made(p, normalize_input), points(3).requires_grad_(True)

    def hidden(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"weight": w}, (x,))

    assert torch.autograd.gradcheck(hidden, (x, layer.weight))


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("normalize_input", [True, False])
def test_gradients_are_finite_at_zero_and_at_dead_neurons(p: float, normalize_input: bool) -> None:
    layer = made(p, normalize_input)
    with torch.no_grad():
        layer.weight[0] = 0.0
        layer.weight[1] = -points(1)[0]
    x = torch.cat([torch.zeros(1, 4, dtype=torch.float64), points(1)]).requires_grad_(True)
    out = layer(x)
    assert (out[0] == 0).all()
    assert (out[:, :2] == 0).all()
    out.sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is not None
    assert x.grad.isfinite().all()
    assert layer.weight.grad.isfinite().all()


def test_any_leading_dimensions() -> None:
    layer, x = made(3.0), points(6)
    wanted = layer(x)
    torch.testing.assert_close(layer(x.view(2, 3, 4)), wanted.view(2, 3, 6))
    torch.testing.assert_close(layer(x[0]), wanted[0])
    torch.testing.assert_close(torch.func.vmap(layer)(x), wanted)
    assert layer(x[:0]).shape == (0, 6)


def test_it_lives_in_a_model_and_learns() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(PolyReLU(4, 8, p=2.5), nn.Linear(8, 2)).double()
    x = points(40)
    y = (x[:, 0] > 0).long()
    step = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(60):
        step.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        step.step()
    assert float((model(x).argmax(1) == y).double().mean()) > 0.95
    copy = nn.Sequential(PolyReLU(4, 8, p=2.5), nn.Linear(8, 2)).double()
    copy.load_state_dict(model.state_dict())
    torch.testing.assert_close(copy(x), model(x))


def test_it_starts_kaiming_uniform_and_says_what_it_is() -> None:
    torch.manual_seed(1)
    layer = PolyReLU(24, 4000, p=3, normalize_input=False)
    edge = 0.5  # sqrt(6 / 24)
    assert float(layer.weight.detach().abs().max()) <= edge
    assert abs(float(layer.weight.detach().std()) - edge / 3**0.5) < 0.005
    assert repr(layer) == (
        "PolyReLU(in_features=24, out_features=4000, p=3, normalize_input=False)"
    )


@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, float("inf"), float("nan")])
def test_p_below_one_is_refused_at_once(p: float) -> None:
    with pytest.raises(CallError, match="p >= 1"):
        PolyReLU(3, 2, p)


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(CallError, match="in_features=0"):
        PolyReLU(0, 2)
