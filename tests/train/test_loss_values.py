import math

import pytest
import torch

from tacit.train.losses import loss_at, pull_at

M = torch.tensor([-30.0, -2.0, 0.0, 0.7, 12.0, 40.0, 500.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("loss", "smoothing"), [("exp", 0.0), ("logistic", 0.0), ("logistic", 0.2)]
)
def test_the_pull_is_minus_the_derivative(loss, smoothing):
    m = M.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss_at(m, loss, smoothing).sum(), m)
    torch.testing.assert_close(pull_at(M, loss, smoothing), -slope, rtol=1e-12, atol=0)


def test_values_are_those_of_the_formulas():
    values = M[:5].tolist()
    for m, exp, logistic in zip(
        values, loss_at(M, "exp").tolist(), loss_at(M, "logistic").tolist(), strict=False
    ):
        assert exp == pytest.approx(math.exp(-m), rel=1e-14)
        assert logistic == pytest.approx(math.log1p(math.exp(-m)), rel=1e-14)
    # the tail of the logistic loss is the exponential one, to the last digit
    assert float(loss_at(M, "logistic")[-1]) == pytest.approx(math.exp(-500), rel=1e-14)


def test_smoothing_is_cross_entropy_with_soft_targets():
    s = 0.3
    soft = (1 - s / 2) * loss_at(M, "logistic") + (s / 2) * loss_at(-M, "logistic")
    torch.testing.assert_close(loss_at(M, "logistic", s), soft, rtol=1e-12, atol=1e-14)
    best = torch.tensor([math.log(2 / s - 1)], dtype=torch.float64)
    assert abs(float(pull_at(best, "logistic", s))) < 1e-15
