"""The smoothed classifier: its gradient, and what is left of it without noise."""

import pytest
import torch

from rounding import same_verdicts
from tacit.attack.ball.gradient import pgd
from tacit.attack.ball.smooth import SmoothedTarget, smooth_adv_pgd
from tacit.attack.losses import cross_entropy
from tacit.attack.target import loss_and_gradient, target_of
from tacit.errors import CallError
from tacit.nets import Linear


def gen(seed):
    return torch.Generator().manual_seed(seed)


X = torch.randn(6, 5, generator=gen(0)).double()
U = torch.randn(5, generator=gen(1)).double()
SIGNS = torch.tensor([1.0, -1, 1, -1, 1, -1]).double()
CLASSES = torch.tensor([0, 1, 2, 0, 1, 2])


def logits(x):
    w = torch.randn(5, 3, generator=gen(2)).double()
    return torch.tanh(x @ w) * 3


def test_on_a_linear_model_the_gradient_is_along_its_normal():
    noise = torch.randn(50, 5, generator=gen(3)).double()
    smooth = SmoothedTarget(target_of(Linear(U), (5,)), noise)
    _, value, gradient = loss_and_gradient(smooth, X, SIGNS, cross_entropy)
    cosine = torch.nn.functional.cosine_similarity(gradient, SIGNS.unsqueeze(1) * U)
    assert torch.allclose(cosine, torch.ones(6).double())
    # log of the mean probability
    p = torch.sigmoid(SIGNS.unsqueeze(1) * ((X.unsqueeze(1) + noise) @ U)).mean(1)
    assert torch.allclose(value, p.log())


def test_the_gradient_of_logits_is_that_of_the_log_mean_probability():
    noise = 0.5 * torch.randn(7, 5, generator=gen(3)).double()
    smooth = SmoothedTarget(target_of(logits, (5,)), noise)
    _, value, gradient = loss_and_gradient(smooth, X, CLASSES, cross_entropy)
    x = X.clone().requires_grad_(True)
    p = torch.softmax(logits((x.unsqueeze(1) + noise).flatten(0, 1)), 1).view(6, 7, 3).mean(1)
    log_p = p[torch.arange(6), CLASSES].log()
    assert torch.allclose(value, log_p.detach())
    (theirs,) = torch.autograd.grad(log_p.sum(), x)
    assert torch.allclose(gradient, theirs)


@pytest.mark.parametrize(("model", "y"), [(Linear(U), SIGNS), (logits, CLASSES)])
def test_without_noise_it_is_pgd_on_the_cross_entropy(model, y):
    call = {"steps": 9, "starts": ("zero",), "norm": 2}
    plain = pgd(model, X, y, [0.2, 0.6], loss=cross_entropy, **call)
    smooth = smooth_adv_pgd(model, X, y, [0.2, 0.6], sigma=0.0, samples=1, **call)
    assert torch.allclose(plain.delta, smooth.delta, rtol=0, atol=1e-9)
    assert same_verdicts(plain.broken, smooth.broken, plain.margin, terms=9 * 5)


@pytest.mark.parametrize("change", [{"sigma": -1.0}, {"samples": 0}, {"steps": 0}])
def test_a_wrong_call_is_told_so(change):
    with pytest.raises(CallError, match=next(iter(change))):
        smooth_adv_pgd(Linear(U), X, SIGNS, [0.1], **{"sigma": 0.1} | change)
