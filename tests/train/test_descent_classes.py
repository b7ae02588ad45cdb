"""Descent of the multi-class net, and points that are moved before each step."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rounding import same_numbers
from tacit.errors import CallError
from tacit.nets import MultiClassNet, TwoLayerNet
from tacit.train import descend

K, H, D, N = 4, 3, 5, 30


def subclasses(seed: int = 0, members: tuple[int, ...] = ()) -> tuple:
    """A random net, points and subclasses."""
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(*members, K, H, D, generator=g, dtype=torch.float64)
    x = torch.randn(N, D, generator=g, dtype=torch.float64)
    z = torch.randint(0, K, (N,), generator=g)
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    return MultiClassNet(w, labels), x, z


def by_torch(net: MultiClassNet, x, z, step: float, steps: int) -> torch.Tensor:
    """The same descent by autograd and torch's own cross-entropy."""
    w = net.w.clone().requires_grad_()
    for _ in range(steps):
        logits = torch.relu(torch.einsum("khd,nd->nkh", w, x)).mean(-1)
        (gradient,) = torch.autograd.grad(nn.functional.cross_entropy(logits, z), w)
        w = (w - step * gradient).detach().requires_grad_()
    return w.detach()


@given(seed=st.integers(0, 1000), steps=st.integers(1, 6))
def test_a_multi_class_net_moves_as_under_torch(seed, steps):
    net, x, z = subclasses(seed)
    found = descend(net, x, z, step=0.3, steps=steps, loss="logistic").net
    assert torch.allclose(found.w, by_torch(net, x, z, 0.3, steps), rtol=1e-12, atol=1e-14)
    assert torch.equal(found.labels, net.labels)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 4.0])
def test_with_another_power_it_moves_as_its_own_forward_pass_does_under_autograd(p):
    net, x, z = subclasses(3, (2,))
    net = replace(net, p=p)
    found = descend(net, x, z, step=0.3, steps=4, loss="logistic").net
    w = net.w.clone()
    for _ in range(4):
        w.requires_grad_()
        logits = replace(net, w=w).logits(x).flatten(0, 1)
        (gradient,) = torch.autograd.grad(nn.functional.cross_entropy(logits, z.repeat(2)) * 2, w)
        w = (w - 0.3 * gradient).detach()
    torch.testing.assert_close(found.w, w, rtol=1e-10, atol=1e-12)


def test_a_power_is_that_of_two_layer_nets_and_tiny_or_silent_weights_do_not_hurt():
    net, x, z = subclasses(4)
    net = replace(net, w=1e-7 * net.w, p=3.0)
    hidden = TwoLayerNet(net.w.flatten(0, 1), torch.ones(K * H).double(), p=3.0).hidden(x)
    torch.testing.assert_close(net.logits(x), hidden.unflatten(1, (K, H)).mean(2))
    silent = replace(net, w=net.w.index_fill(0, torch.tensor([1]), 0.0))
    found = descend(silent, x, z, step=0.3, steps=2, loss="logistic").net
    assert torch.isfinite(found.w).all()
    assert not found.w[1].any()
    with pytest.raises(CallError, match=r"p=0\.5"):
        replace(net, p=0.5)


def test_adam_moves_a_multi_class_net_as_torch_does_and_the_record_is_of_all_points():
    net, x, z = subclasses()
    found = descend(net, x, z, step=0.05, steps=9, optimizer="adam", loss="logistic", record=(9,))
    w = net.w.clone().requires_grad_()
    adam = torch.optim.Adam([w], lr=0.05)
    for _ in range(9):
        adam.zero_grad()
        logits = torch.relu(torch.einsum("khd,nd->nkh", w, x)).mean(-1)
        nn.functional.cross_entropy(logits, z).backward()
        adam.step()
    assert torch.allclose(found.net.w, w.detach(), rtol=1e-10, atol=1e-12)
    logits = found.net.logits(x)
    others = logits.scatter(-1, z.unsqueeze(-1), -torch.inf).amax(-1)
    own = logits.gather(-1, z.unsqueeze(-1)).squeeze(-1)
    (last,) = found.history
    assert float(last.loss) == pytest.approx(float(nn.functional.cross_entropy(logits, z)))
    assert float(last.margin) == pytest.approx(float((own - others).min()))


def test_batches_of_a_multi_class_net_are_batches_of_its_points():
    net, x, z = subclasses()
    g = torch.Generator().manual_seed(0)
    found = descend(net, x, z, step=0.1, epochs=1, batch=N, generator=g, loss="logistic").net
    assert torch.allclose(found.w, by_torch(net, x, z, 0.1, 1), rtol=1e-12, atol=1e-14)


def test_each_multi_class_member_is_what_it_is_alone():
    net, x, z = subclasses(members=(3,))
    together = descend(net, x, z, step=0.2, steps=5, loss="logistic", record=(5,))
    for i in range(3):
        alone = descend(
            MultiClassNet(net.w[i], net.labels),
            x,
            z,
            step=0.2,
            steps=5,
            loss="logistic",
            record=(5,),
        )
        # 5 steps, each a sum over N points and a product of D
        assert same_numbers(together.net.w[i], alone.net.w, terms=5 * (N + D))
        assert torch.allclose(together.history[0].loss[i], alone.history[0].loss)
        assert torch.allclose(together.history[0].margin[i], alone.history[0].margin)


def test_relu_at_zero_is_a_choice_for_multi_class_nets():
    net, x, z = subclasses()
    silent = MultiClassNet(torch.zeros_like(net.w), net.labels)
    assert not descend(silent, x, z, step=1.0, steps=1, loss="logistic").net.w.any()
    moved = descend(silent, x, z, step=1.0, steps=1, loss="logistic", at_kink=1.0).net.w
    expected = torch.stack([((z == j).double() - 1 / K) @ x / (H * N) for j in range(K)]).unsqueeze(
        1
    )
    assert torch.allclose(moved, expected.expand_as(moved))


def test_perturbed_points_take_the_place_of_the_given_ones():
    g = torch.Generator().manual_seed(0)
    w, v = (torch.randn(*s, generator=g, dtype=torch.float64) for s in ((6, D), (6,)))
    x = torch.randn(N, D, generator=g, dtype=torch.float64)
    y = torch.where(torch.rand(N, generator=g) < 0.5, 1.0, -1.0).double()
    shift = torch.randn(D, generator=g, dtype=torch.float64)
    seen = []

    def move(net, points, labels):
        seen.append((net, labels))
        return points + labels.unsqueeze(-1) * shift

    net = TwoLayerNet(0.1 * w, 0.1 * v)
    found = descend(net, x, y, step=0.1, steps=4, perturb=move, record=(4,))
    plain = descend(net, x + y.unsqueeze(-1) * shift, y, step=0.1, steps=4)
    assert torch.allclose(found.net.w, plain.net.w, rtol=1e-13)
    assert len(seen) == 4
    assert torch.equal(seen[0][0].w, net.w)
    assert not torch.equal(seen[3][0].w, net.w)
    # what is recorded is of the points as given
    assert torch.allclose(found.history[0].margin, (y * found.net(x)).min())


def test_bad_subclasses_and_bad_perturbations_are_refused():
    net, x, z = subclasses()
    for labels, settings, words in (
        (z.double(), {}, "whole numbers 0 to 3"),
        (z + 1, {}, "whole numbers 0 to 3"),
        (z - 1, {}, "whole numbers 0 to 3"),
        (z[1:], {}, "one label a point"),
        (z, {"loss": "exp"}, "cross-entropy"),
        (z, {"label_smoothing": 0.1}, "cross-entropy"),
        (z, {"perturb": lambda net, points, labels: points[1:]}, "as many points"),
        (z, {"perturb": lambda net, points, labels: points.float()}, "as many points"),
    ):
        with pytest.raises(CallError, match=words):
            descend(net, x, labels, **{"step": 0.1, "steps": 2, "loss": "logistic", **settings})
    with pytest.raises(CallError, match="both end in the dimension"):
        descend(net, x[:, 1:], z, step=0.1, steps=1, loss="logistic")


def test_a_fitted_point_still_pulls_with_all_its_digits():
    # one neuron a subclass along its own axis: logits 45 and 0, a loss of 3 e^-45: lost next to 1
    w = 45 * torch.eye(K, D, dtype=torch.float64).unsqueeze(1)
    net = MultiClassNet(w, torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64))
    x = torch.eye(K, D, dtype=torch.float64)
    step = 1e20
    moved = descend(net, x, torch.arange(K), step=step, steps=1, loss="logistic").net.w - w
    pull = (K - 1) * math.exp(-45) * step / K
    assert moved.squeeze(1).diagonal().tolist() == pytest.approx([pull] * K, rel=1e-9)
