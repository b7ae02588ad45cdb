"""Feature images against the fixed point of a linear neuron, and gradients against one image at a time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tacit.errors import CallError, RunError
from tacit.measure.features import at_centre, feature_images
from tacit.measure.features.images import gradient_of

SHAPE = (3, 4, 5)
FAST = {"steps": 200, "rate": 1.0}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(n: int, *, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(n, *SHAPE, generator=seeded(3), dtype=dtype)


def linear(w: torch.Tensor):
    return at_centre(lambda x: x.flatten(1) @ w.flatten(1).T)


def small_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 6, 3, padding=1))


@given(st.floats(-30, 8), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.1, 0.5, 4.0]))
def test_a_linear_neuron_ends_at_its_clipped_direction(log_scale: float, rest: float, decay: float):
    w = weights(5) * 10**log_scale
    found = feature_images(
        linear(w), SHAPE, neurons=torch.arange(5), generator=seeded(), steps=100, rate=0.2 / decay,
        decay=decay, rest=rest, dtype=torch.float64,
    )  # fmt: skip
    unit = w / w.flatten(1).norm(dim=1)[:, None, None, None]
    torch.testing.assert_close(found.images, (rest + unit / decay).clamp(0, 1))
    assert not found.dead.any()


def test_inside_the_box_nothing_is_clipped_and_neurons_keep_their_order():
    w, neurons = weights(6), torch.tensor([4, 1, 1])
    found = feature_images(
        linear(w), SHAPE, neurons=neurons, generator=seeded(), decay=5.0, rate=0.1, steps=400,
        dtype=torch.float64,
    )  # fmt: skip
    assert float(found.images.min()) > 0
    assert float(found.images.max()) < 1
    offset = (found.images - 0.5).flatten(1)
    torch.testing.assert_close(offset.norm(dim=1), torch.full((3,), 0.2, dtype=torch.float64))
    cosines = torch.cosine_similarity(offset, w[neurons].flatten(1))
    torch.testing.assert_close(cosines, torch.ones(3, dtype=torch.float64))


def test_the_first_step_is_the_formula():
    net, neurons = small_net().double(), torch.arange(6)
    start = torch.rand(6, *SHAPE, generator=seeded(1), dtype=torch.float64)
    found = feature_images(
        at_centre(net), SHAPE, neurons=neurons, generator=seeded(1), steps=1, dtype=torch.float64
    )
    for i in range(6):
        x = start[i : i + 1].clone().requires_grad_()
        (g,) = torch.autograd.grad(net(x)[0, i, 2, 2], x)
        wanted = (x + 0.1 * (g / g.norm() - 0.1 * (x - 0.5))).clamp(0, 1)
        torch.testing.assert_close(found.images[i : i + 1], wanted.detach())


def test_one_backward_gives_each_image_the_gradient_of_its_own_neuron():
    net, neurons = small_net().double(), torch.tensor([5, 0, 3])
    x = torch.rand(3, 3, 7, 6, generator=seeded(2), dtype=torch.float64)
    found = gradient_of(at_centre(net), x, neurons, torch.float64)
    for i, neuron in enumerate(neurons.tolist()):
        alone = x[i : i + 1].clone().requires_grad_()
        (wanted,) = torch.autograd.grad(net(alone)[0, neuron, 3, 3], alone)
        torch.testing.assert_close(found[i : i + 1], wanted)
    assert all(weight.grad is None for weight in net.parameters())


def test_images_excite_and_pixels_outside_the_field_come_to_rest():
    net, neurons = small_net(), torch.arange(6)
    found = feature_images(
        at_centre(net), (3, 11, 11), neurons=neurons, generator=seeded(), **FAST, decay=0.1
    )
    start = torch.rand(6, 3, 11, 11, generator=seeded())
    here, before = (at_centre(net)(x, neurons) for x in (found.images, start))
    assert (here > before + 0.1).all()
    outside = torch.ones(11, 11, dtype=torch.bool)
    outside[3:8, 3:8] = False  # two convolutions of 3 x 3 see 5 x 5
    torch.testing.assert_close(
        found.images[:, :, outside], torch.full((6, 3, 96), 0.5), atol=1e-6, rtol=0
    )


def test_a_dead_neuron_keeps_its_start_and_is_told():
    bias = torch.tensor([0.0, -1e6, 0.0])  # the second never fires
    w = weights(3, dtype=torch.float32)
    activation = at_centre(lambda x: torch.relu(x.flatten(1) @ w.abs().flatten(1).T + bias))
    found = feature_images(
        activation, SHAPE, neurons=torch.arange(3), generator=seeded(7), rest=0.0, **FAST
    )
    start = torch.rand(3, *SHAPE, generator=seeded(7))
    assert found.dead.tolist() == [False, True, False]
    assert torch.equal(found.images[1], start[1])
    assert not torch.isclose(found.images[[0, 2]], start[[0, 2]]).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_nets_of_any_dtype(dtype: torch.dtype):
    wanted = feature_images(
        linear(weights(4)), SHAPE, neurons=torch.arange(4), generator=seeded(), **FAST, decay=1.0,
        dtype=torch.float64,
    )  # fmt: skip
    found = feature_images(
        linear(weights(4).to(dtype)), SHAPE, neurons=torch.arange(4), generator=seeded(), **FAST,
        decay=1.0, dtype=dtype,
    )  # fmt: skip
    assert found.images.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(found.images.double(), wanted.images, atol=2e-3, rtol=0)


def test_what_is_refused():
    call = {"neurons": torch.arange(2), "generator": seeded()}
    fine = linear(weights(2, dtype=torch.float32))
    for wrong in ({"steps": 0}, {"rate": 0.0}, {"rate": 20.0}, {"decay": -1.0}, {"rest": 128.0}):
        with pytest.raises(CallError, match=next(iter(wrong))):
            feature_images(fine, SHAPE, **call, **wrong)
    with pytest.raises(CallError, match="one output for each of 2 images"):
        feature_images(lambda x, _: x.flatten(1), SHAPE, **call)
    with pytest.raises(CallError, match="no gradient"):
        feature_images(lambda x, _: x.detach().sum((1, 2, 3)), SHAPE, **call)
    with pytest.raises(RunError, match="NaN"):
        feature_images(lambda x, _: (x * torch.nan).sum((1, 2, 3)), SHAPE, **call, steps=2)


@pytest.mark.cuda
def test_on_a_gpu_it_is_the_same_picture():
    net, neurons = small_net(), torch.arange(6)
    call = {"neurons": neurons, "steps": 300, "rate": 0.5, "decay": 0.5}
    here = feature_images(at_centre(net), (3, 11, 11), generator=seeded(), **call)
    there = feature_images(
        at_centre(net.cuda()), (3, 11, 11), generator=seeded(), **call, device="cuda"
    )
    torch.testing.assert_close(there.images.cpu(), here.images, atol=0.05, rtol=0)
