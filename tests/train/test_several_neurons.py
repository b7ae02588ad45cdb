"""KKT points of several neurons: closed forms, the two-neuron program, an independent residual, refusals."""

import math

import pytest
import torch

from tacit.data import cluster_mixture, sqrt_d_mixture
from tacit.errors import CallError
from tacit.measure import kkt_residual
from tacit.train import several_neuron_max_margin, two_neuron_max_margin

pytest.importorskip("clarabel")
F = torch.float64


def opposed(d=40, p=3.0):
    """Two positive means with the product -p, and a negative one orthogonal to both."""
    gram = d * torch.eye(3, dtype=F)
    gram[0, 1] = gram[1, 0] = -p
    centres = torch.zeros(3, d, dtype=F)
    centres[:, :3] = torch.linalg.cholesky(gram)
    return cluster_mixture(centres, 2, 0.0)


def means_of(mixture):
    return mixture.centres, mixture.labels


def test_all_on_is_the_two_neuron_program():
    g = torch.Generator().manual_seed(3)
    samples = sqrt_d_mixture(30, 4, 2, 0.3, g).sample(60, g)
    sign = torch.tensor([1.0, -1.0])
    found = several_neuron_max_margin(
        samples.x, samples.y, sign, torch.ones(60, 2, dtype=torch.bool)
    )
    theirs = two_neuron_max_margin(samples.x, samples.y)
    assert found.settled
    assert found.value == pytest.approx(theirs.value, rel=1e-7)
    torch.testing.assert_close(found.net(samples.x), theirs.net(samples.x), rtol=1e-5, atol=1e-5)


def test_a_neuron_for_each_opposed_mean_is_a_kkt_point_in_closed_form():
    """u_q = x~_q / |x~_q|^2 for each: margins 1, off at the other mean, and longer than the class average.

    <x~_0, x~_1> = 1 - p < 0; the negative mean has <x~_2, x~_q> = 1 > 0, so that it takes multipliers too.
    """
    x, y = means_of(opposed())
    sign = torch.tensor([1.0, 1.0, -1.0])
    apart = several_neuron_max_margin(x, y, sign, torch.eye(3, dtype=torch.bool))
    joint = several_neuron_max_margin(
        x, y, sign[1:], torch.tensor([[True, False], [True, False], [False, True]])
    )
    for point in (apart, joint):
        assert point.settled
        found = kkt_residual(point.net, x, y, slack=1e-6, kink=1e-6, enough=1e-7)
        assert found.stationarity < 1e-6
        assert point.stationarity < 1e-6
        assert point.slackness < 1e-8
    assert len(apart.net.v) == 3
    assert len(joint.net.v) == 2
    rough = 3 / math.sqrt(
        41
    )  # three neurons of length 1/|x~| but for the products with the negative mean
    assert apart.value == pytest.approx(rough, rel=0.05)
    assert apart.value > joint.value * 1.1
    off = x @ apart.net.w.T + apart.net.b
    assert float(off[0, 1]) < 0
    assert float(off[1, 0]) < 0


def test_orthogonal_points_have_the_lengths_of_a_closed_form():
    """Where the x~ are orthogonal nothing interacts: a neuron for a group of g points is sqrt(g)/|x~| long."""
    angle = torch.tensor([0.0, 2 * math.pi / 3, 4 * math.pi / 3], dtype=F)
    x = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1)
    y = torch.tensor([1.0, 1.0, -1.0], dtype=F)
    found = several_neuron_max_margin(
        x, y, torch.tensor([1.0, -1.0]), torch.ones(3, 2, dtype=torch.bool)
    )
    assert found.value == pytest.approx((math.sqrt(2) + 1) / math.sqrt(3), rel=1e-6)


def test_neurons_that_do_not_stay_apart_meet():
    """Positive products: whatever the start, the function is that of one neuron a sign."""
    g = torch.Generator().manual_seed(1)
    mixture = sqrt_d_mixture(60, 4, 2, 1e-3, g)
    samples = mixture.sample(40, g)
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0])
    on = torch.stack([samples.z == q for q in range(4)], 1)
    found = several_neuron_max_margin(samples.x, samples.y, sign, on)
    theirs = two_neuron_max_margin(samples.x, samples.y)
    probe = torch.randn(100, 60, generator=g, dtype=F)
    torch.testing.assert_close(found.net(probe), theirs.net(probe), rtol=1e-3, atol=1e-4)


def test_a_point_without_a_neuron_and_a_wrong_shape_are_refused():
    x, y = means_of(opposed())
    on = torch.tensor([[True, False], [False, False], [False, True]])
    with pytest.raises(CallError, match="1 points have no neuron of their sign that is on"):
        several_neuron_max_margin(x, y, torch.tensor([1.0, -1.0]), on)
    with pytest.raises(CallError, match="one column a neuron"):
        several_neuron_max_margin(x, y, torch.tensor([1.0, -1.0, 1.0]), on)
