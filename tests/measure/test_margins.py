"""Margins against plain sums, and in log space against exact arithmetic."""

import math
from decimal import Decimal, getcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CallError
from tacit.measure import margins as module
from tacit.measure.margins import log_loss, margins, normalised_margin, smoothed_margin
from tacit.nets import TwoLayerNet


def drawn(seed, *, e=(), h=4, D=3, n=6, p=1.0, biases=False, fixed_v=False):
    g = torch.Generator().manual_seed(seed)
    w, v, b, x = (
        torch.randn(*shape, generator=g, dtype=torch.float64)
        for shape in ((*e, h, D), (*e, h), (*e, h), (n, D))
    )
    y = torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0).double()
    return TwoLayerNet(w, v, b if biases else None, p, fixed_v), x, y


@pytest.mark.parametrize("p", [1.0, 2.5])
def test_margins_of_an_ensemble_are_those_of_its_members_whatever_the_blocks(p, monkeypatch):
    net, x, y = drawn(0, e=(2,), p=p, biases=True)
    monkeypatch.setattr(module, "LARGEST_BLOCK", 20)
    found = margins(net, x, y)
    for k in range(2):
        for i in range(len(x)):
            z = (net.w[k] @ x[i] + net.b[k]).clamp_min(0)
            f = (net.v[k] * z**p * net.w[k].norm(dim=1) ** (1 - p)).sum()
            assert float(found[k, i]) == pytest.approx(float(y[i] * f), rel=1e-12)


@given(
    seed=st.integers(0, 999),
    factor=st.floats(1e-3, 1e3),
    p=st.sampled_from([1.0, 3.0]),
    fixed_v=st.booleans(),
    biases=st.booleans(),
)
def test_the_normalised_margin_knows_only_the_direction(seed, factor, p, fixed_v, biases):
    net, x, y = drawn(seed, p=p, fixed_v=fixed_v, biases=biases)
    b = None if net.b is None else net.b * factor
    larger = TwoLayerNet(net.w * factor, net.v * (1 if fixed_v else factor), b, p, fixed_v)
    torch.testing.assert_close(normalised_margin(larger, x, y), normalised_margin(net, x, y))


def test_the_normalised_margin_of_one_neuron_by_hand():
    net = TwoLayerNet(torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))
    x, y = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.ones(2)
    assert float(normalised_margin(net, x, y)) == pytest.approx(15 / 50)
    fixed = TwoLayerNet(net.w, net.v, fixed_v=True)
    assert float(normalised_margin(fixed, x, y)) == pytest.approx(15 / 5)


@pytest.mark.parametrize("loss", ["exp", "logistic"])
@pytest.mark.parametrize("level", [-30.0, 0.0, 1.0, 35.0, 39.9, 40.1, 300.0, 1000.0])
def test_log_loss_and_its_inverse_agree_with_hundreds_of_digits(loss, level):
    getcontext().prec = 600
    m = [level, level + 0.3, level + 2.0]
    each = [(-Decimal(k)).exp() for k in m]
    if loss == "logistic":
        each = [(1 + k).ln() for k in each]
    total = sum(each)
    tensor = torch.tensor(m, dtype=torch.float64)
    assert float(log_loss(tensor, loss)) == pytest.approx(
        float((total / 3).ln()), rel=1e-13, abs=1e-13
    )
    wanted = -total.ln() if loss == "exp" else -(total.exp() - 1).ln()
    # three points on a line: f = m exactly, ||theta||^2 = 2
    net = TwoLayerNet(torch.tensor([[1.0]]).double(), torch.tensor([1.0]).double())
    flip = TwoLayerNet(torch.tensor([[1.0], [-1.0]]).double(), torch.tensor([1.0, -1.0]).double())
    net, square = (net, 2.0) if level > 0 else (flip, 4.0)
    found = smoothed_margin(net, tensor.unsqueeze(1), torch.ones(3), loss)
    assert float(found) == pytest.approx(float(wanted) / square, rel=1e-12)


@given(seed=st.integers(0, 999), loss=st.sampled_from(["exp", "logistic"]))
def test_the_smoothed_margin_is_below_the_margin_and_near_it_when_weights_are_large(seed, loss):
    net, x, y = drawn(seed)
    y = torch.where(net(x) >= 0, 1.0, -1.0).double()
    below = normalised_margin(net, x, y) - smoothed_margin(net, x, y, loss)
    assert float(below) >= -1e-12
    large = TwoLayerNet(net.w * 30, net.v * 30)
    square = 900 * (net.w.square().sum() + net.v.square().sum())
    if float(margins(large, x, y).min()) > 40:
        near = normalised_margin(large, x, y) - smoothed_margin(large, x, y, loss)
        assert -1e-12 <= float(near) <= math.log(len(x)) / float(square) + 1e-12


def test_wrong_calls_are_named():
    net, x, y = drawn(3)
    with pytest.raises(CallError, match="dimension 2 for a net of dimension 3"):
        margins(net, x[:, :2], y)
    with pytest.raises(CallError, match="6 points with 5 labels"):
        margins(net, x, y[:5])
    with pytest.raises(CallError, match=r"labels \[.*2"):
        margins(net, x, 2 * y)
    with pytest.raises(CallError, match="no points"):
        margins(net, x[:0], y[:0])
    with pytest.raises(CallError, match="NaN or inf"):
        margins(net, x * torch.inf, y)
    with pytest.raises(CallError, match="training diverged"):
        margins(TwoLayerNet(net.w * torch.nan, net.v), x, y)
    with pytest.raises(CallError, match="the net is zero"):
        normalised_margin(TwoLayerNet(net.w * 0, net.v * 0), x, y)
    with pytest.raises(CallError, match="at least one point"):
        log_loss(torch.zeros(0), "exp")
