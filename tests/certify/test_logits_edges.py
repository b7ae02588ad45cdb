"""Numbers at the edge of float64: nothing is called proved or unbroken that is not."""

import math
from functools import partial

import pytest
import torch

from tacit.attack import apgd, square
from tacit.certify.logits.parabola import parabolas, phi
from tacit.certify.logits.radius import logits_certified, logits_radius
from tacit.errors import TacitError
from tacit.nets import PolyReLUNet

F64 = torch.float64


def t64(*rows):
    return torch.tensor(rows, dtype=F64)


@pytest.mark.parametrize("gap", [1e-6, 1e-7, 1e-8, 1e-9])
def test_a_parabola_that_touches_next_to_the_end_lies_below(gap):
    # mean 0: z0 = t + var / reach = hi - gap * reach
    t, reach, p = 2.0, 1.9, 1.5
    share = torch.linspace(1, 2, 200, dtype=F64).unsqueeze(1)
    full = torch.full_like(share, reach)
    var = (reach - gap * share * reach) * reach
    alpha, beta, k = parabolas(
        torch.ones_like(share), torch.full_like(share, t), full, torch.zeros_like(share), var, p
    )
    s = torch.linspace(-1, 1, 2001, dtype=F64) * reach
    assert (alpha + beta * s + k * s * s / 2 - phi(t + s, p)).max() < 1e-10


def test_a_point_too_long_to_be_squared_is_not_called_unbreakable():
    net = PolyReLUNet(torch.eye(2, dtype=F64), torch.eye(2, dtype=F64), None, 3.0)
    x, y = t64([2e154, 1e154]), torch.tensor([0])
    try:
        radius = logits_radius(net, x, y).lower
        proved = logits_certified(net, x, y, t64(1.2e154)[0:1])
    except TacitError:
        return
    assert (radius <= 0.7072e154).all()
    assert not proved.any()


def test_neurons_too_short_to_be_squared_count():
    s = 1e-170
    net = PolyReLUNet(t64([1.0, 0.0], [0.0, s]), t64([1.0, 0.0], [0.0, 3 / s]), None, 1.0)
    x, y = t64([1.0, 0.1]), torch.tensor([0])
    assert net(t64([1.0, 0.4])).argmax(1) == 1  # 0.3 away
    try:
        radius = logits_radius(net, x, y).lower
    except TacitError:
        return
    assert (radius <= 0.3).all()


@pytest.mark.parametrize("norm", [2, math.inf])
def test_a_radius_whose_power_overflows_proves_nothing(norm):
    net = PolyReLUNet(torch.eye(3, dtype=F64), torch.eye(3, dtype=F64), None, 3.0)
    x, y = t64([2.0, 1.0, 0.0]), torch.tensor([0])
    assert not logits_certified(net, x, y, torch.tensor([1e110], dtype=F64), norm=norm).any()


def test_raw_points_next_to_the_centre_get_a_radius():
    net = PolyReLUNet(
        torch.eye(3, dtype=F64),
        t64([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        t64(1.0, 0.0).flatten(),
        7.0,
        None,
        normalize_input=False,
    )
    x = torch.full((1, 3), 1e-7, dtype=F64)
    assert (logits_radius(net, x, torch.tensor([0])).lower >= 0).all()


@pytest.mark.parametrize(
    "attack", [partial(apgd, steps=3), partial(square, image=(1, 2, 1), norm=math.inf, steps=3)]
)
def test_a_net_whose_logits_are_nan_is_refused_and_not_called_robust(attack):
    w = torch.eye(2, dtype=F64)
    w[0, 0] = math.nan
    net = PolyReLUNet(w, torch.eye(2, dtype=F64), None, 3.0)
    with pytest.raises(TacitError, match="NaN"):
        attack(net, t64([2.0, 1.0]), torch.tensor([0]), [1.0])


@pytest.mark.parametrize("image", [(1, 8, 1), (8, 1, 1)])
def test_the_square_attack_in_l2_wants_two_pixels_each_way(image):
    net = PolyReLUNet(torch.eye(8, dtype=F64), torch.eye(8, dtype=F64)[:3], None, 3.0)
    x = torch.eye(8, dtype=F64)[:1]
    with pytest.raises(TacitError, match="2 pixels"):
        square(net, x, torch.tensor([0]), [0.1], image=image, norm=2, steps=5)
