"""Targets: closed-form gradients against autograd, and what is said of models that do not fit."""

import pytest
import torch

from rounding import same_numbers
from tacit.attack.losses import cross_entropy, margin
from tacit.attack.target import loss_and_gradient, target_of
from tacit.errors import CallError
from tacit.nets import TwoLayerNet


def task(seed=0, n=9, D=5):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, D, generator=g).double()
    return g, x, torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("loss", [margin, cross_entropy])
def test_the_closed_form_gradient_is_that_of_autograd(p, bias, loss):
    g, x, y = task()
    w, v = torch.randn(7, 5, generator=g).double(), torch.randn(7, generator=g).double()
    w[3] = 0
    b = torch.randn(7, generator=g).double() if bias else None
    net = TwoLayerNet(w, v, b, p)
    mine = loss_and_gradient(target_of(net, (5,)), x, y, loss)
    # a lambda hides the net's kind
    theirs = loss_and_gradient(target_of(lambda z: net(z), (5,)), x, y, loss)
    for a, b in zip(mine, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_inputs_of_any_shape_are_flattened_and_back():
    g, x, y = task(D=12)
    w = torch.randn(2, 3, 2, generator=g).double()
    seen = []

    def model(z):
        seen.append(z.shape)
        return (z * w).sum((1, 2, 3)).unsqueeze(1)

    scores, value, gradient = loss_and_gradient(target_of(model, (2, 3, 2)), x, y, margin)
    assert seen == [(9, 2, 3, 2)]
    assert torch.allclose(value, y * (x @ w.flatten()))
    assert scores.shape == (9,)
    assert torch.allclose(gradient, y.unsqueeze(1) * w.flatten())


def test_parameters_gather_no_gradient():
    _, x, y = task()
    model = torch.nn.Linear(5, 1).double().eval()
    loss_and_gradient(target_of(model, (5,)), x, y, margin)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda x: x.sum(1).detach(), "no gradient"),
        (lambda x: x.sum(1) / 0, "NaN or inf"),
        (lambda x: [x], "returned list"),
        (lambda x: x[:3, 0], "shape"),
        (lambda x: x.reshape(-1, 5, 1), "shape"),
        (lambda x: x[:, :0], "shape"),
        (lambda x: x.sum(1) > 0, r"returned torch.bool: .*\.float\(\)"),
        (lambda x: (x > 0).long(), r"returned torch.int64: .*\.float\(\)"),
        (lambda x: x.sqrt().sum(1) * 0, "NaN or inf"),
        (
            lambda x: torch.from_numpy(x.numpy()).sum(1),
            "gives scores, but fails where a grad.*black",
        ),
        (lambda x: x @ torch.ones(4, 1).double(), r"not take points of shape \(5,\): RuntimeError"),
        (lambda x: {}["key"], "the model failed: KeyError: 'key'"),
    ],
)
def test_what_does_not_fit_is_said(model, says):
    _, x, y = task()
    with pytest.raises(CallError, match=says):
        loss_and_gradient(target_of(model, (5,)), x, y, margin)


def test_a_gradient_of_nan_is_no_gradient():
    _, x, y = task()
    model = target_of(lambda x: x.sum(1) + (0 * x).sqrt().sum(1), (5,))
    assert torch.equal(loss_and_gradient(model, x, y, margin)[2], torch.zeros_like(x))


def test_train_mode_and_ensembles_are_refused():
    with pytest.raises(CallError, match=r"model\.eval\(\)"):
        target_of(torch.nn.Dropout(), (5,))
    with pytest.raises(CallError, match="one net at a time"):
        target_of(TwoLayerNet(torch.zeros(2, 3, 5), torch.zeros(2, 3)), (5,))


def squeezed(width):
    return lambda x: (x @ torch.ones(5, width, dtype=x.dtype)).squeeze()


@pytest.mark.parametrize(("width", "shape"), [(1, (1,)), (3, (1, 3))])
def test_a_batch_of_one_may_be_squeezed(width, shape):
    _, x, _ = task()
    target = target_of(squeezed(width), (5,))
    assert target.scores(x[:1]).shape == shape
    assert same_numbers(target.scores(x)[:1], target.scores(x[:1]), terms=2 * 5)
    assert target.with_pullback(x[:1])[0].shape == shape


def test_a_model_may_write_into_what_it_is_given():
    _, x, y = task()
    kept, w = x.clone(), torch.arange(5.0).double()
    target = target_of(lambda z: z.mul_(2).relu_() @ w, (5,))
    _, value, gradient = loss_and_gradient(target, x, y, margin)
    assert torch.equal(x, kept)
    assert torch.allclose(value, y * target.scores(x))
    assert torch.allclose(gradient, y.unsqueeze(1) * 2 * w * (x > 0))
    assert torch.equal(x, kept)


def test_scores_have_the_type_of_the_points():
    _, x, y = task()
    target = target_of(lambda z: z.double().sum(1), (5,))
    scores, value, gradient = loss_and_gradient(target, x.float(), y.float(), margin)
    assert {scores.dtype, value.dtype, gradient.dtype, target.scores(x.float()).dtype} == {
        torch.float32
    }
