"""Whether neurons point at class means or at subclass means, on nets that are known to do one or the other."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tacit.auditing.averaging import averaging, neurons_of
from tacit.auditing.subject import subject_of
from tacit.data import min2024_mixture
from tacit.nets import Linear, PolyReLUNet, TwoLayerNet, average_net, centre_net, prop48_net

MIXTURE = min2024_mixture(D=100, K=10, K1=6, alpha=0.1)
POINTS = MIXTURE.sample(1000, torch.Generator().manual_seed(0))


def looked_at(model: object, subclass: torch.Tensor | None = None, x: torch.Tensor = POINTS.x):
    subject = subject_of(model, x, "cpu", gradient=True)
    return averaging(subject, x.to(subject.dtype), POINTS.y, subclass, batch=300)


@pytest.mark.parametrize("given", [False, True])
def test_the_average_net_averages_and_the_centre_net_does_not(given: bool) -> None:
    subclass = POINTS.z if given else None
    average, centre = (
        looked_at(average_net(MIXTURE), subclass),
        looked_at(centre_net(MIXTURE, 3), subclass),
    )
    assert (average.verdict, centre.verdict) == ("averages", "subclasses")
    assert average.found_by == ("given" if given else "spherical k-means")
    assert sorted(average.subclasses) == [4, 6]
    assert average.class_cosine == pytest.approx(1, abs=0.02)
    # masses: 6 neurons of class +1 at 1/sqrt(6), 4 of class -1 at 1/sqrt(4)
    assert centre.class_cosine == pytest.approx(0.6 / math.sqrt(6) + 0.4 / math.sqrt(4), abs=0.02)
    assert centre.subclass_cosine == pytest.approx(1, abs=0.02)


def test_neurons_count_by_their_mass() -> None:
    net, far = average_net(MIXTURE), torch.zeros(1, 100, dtype=torch.float64)
    far[0, -1] = 1e3
    idle = TwoLayerNet(torch.cat([net.w, far]), torch.cat([net.v, torch.zeros(1).double()]))
    assert looked_at(idle).class_cosine == pytest.approx(looked_at(net).class_cosine)


def test_a_torch_net_is_read_as_tacits_own() -> None:
    net = average_net(MIXTURE)
    twin = nn.Sequential(
        nn.Flatten(), nn.Linear(100, 2, bias=False), nn.ReLU(), nn.Linear(2, 1)
    ).double()
    with torch.no_grad():
        twin[1].weight.copy_(net.w)
        twin[3].weight.copy_(net.v.unsqueeze(0))
    found, own = looked_at(twin.eval(), x=POINTS.x.reshape(-1, 4, 25)), looked_at(net)
    assert found.of == "first layer's weights"
    assert found.class_cosine == pytest.approx(own.class_cosine)
    assert found.verdict == "averages"


def test_a_convolutional_net_is_read_at_its_last_layer() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3)).eval()
    found = looked_at(net, x=POINTS.x.reshape(-1, 1, 10, 10).float())
    assert found.of == "last layer's weights, among its features"
    assert found.neurons == 3


def test_a_net_that_points_nowhere_is_told() -> None:
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(50, 100, generator=generator, dtype=torch.float64)
    net = TwoLayerNet(w, torch.ones(50, dtype=torch.float64))
    assert looked_at(net).verdict == "neither"


def test_one_subclass_a_class_tells_nothing() -> None:
    found = looked_at(average_net(MIXTURE), torch.zeros(1000, dtype=torch.long))
    assert found.verdict == "unknown"
    assert "nothing to tell apart" in found.reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Linear(torch.ones(100).double()), "a Linear has no hidden weights"),
        (nn.Flatten(), "no Linear layer"),
        (TwoLayerNet(torch.zeros(2, 100), torch.ones(2)), "no mass"),
    ],
)
def test_where_there_are_no_neurons_the_reason_is_given(model: object, reason: str) -> None:
    assert reason in str(neurons_of(model, (100,)))


def test_a_poly_relu_net_sees_centred_points_and_counts_all_outputs() -> None:
    points = MIXTURE.sample(200, torch.Generator().manual_seed(0))
    y = (points.y > 0).long()
    own = centre_net(MIXTURE, 3)
    v = torch.stack([-own.v, own.v]) / 2
    centre = torch.full((100,), 3.0).double()
    net = PolyReLUNet(own.w, v, None, 2.0, centre, normalize_input=True)
    x = points.x + centre
    subject = subject_of(net, x, "cpu", gradient=True)
    found = averaging(subject, x, y, points.z, 100)
    plain = averaging(
        subject_of(own, points.x, "cpu", gradient=True), points.x, points.y, points.z, 100
    )
    assert found.verdict == plain.verdict == "subclasses"
    assert found.subclass_cosine == pytest.approx(plain.subclass_cosine)


def test_the_neurons_of_a_multi_class_net_are_its_hidden_weights() -> None:
    found = neurons_of(prop48_net(MIXTURE), (100,))
    assert not isinstance(found, str)
    assert found.w.shape == (10, 100)
    assert float(found.mass.sum()) == pytest.approx(1)
