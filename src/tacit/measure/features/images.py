r"""The image that excites a neuron, by plain gradient ascent (allenzhu2020, Section 8.1, footnote 16).

From a random image, pixels uniform on [0, 1], `steps` times

    x <- clip(x + rate (g / ||g||_2 - decay (x - rest)), 0, 1),      g = the gradient of the neuron's output at x

with `rest` mid-grey (.5), or black (0) as in the paper's Figure 6. The paper prints the 2000 steps and where the
decay pulls to, neither the rate nor the decay. Three things are our choice:

- The gradient has length 1, image by image, so that one rate and one decay serve all layers and nets: a neuron
  <w, x> ends at clip(rest + w / (decay ||w||), 0, 1), however large w is. One over the decay is the length of
  x - rest; .1 is .18 a pixel for 3 x 32 x 32. The start is forgotten like (1 - rate decay)^steps, here e^-20.
- Pixels are clipped at every step: the neuron is excited by the image that is shown, not by one outside [0, 1].
- A neuron without a gradient at the start is dead: its image stays as it was drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tacit.base.recording import recorded
from tacit.errors import CallError, RunError

Images = Float[Tensor, "n C H W"]
Neurons = Int64[Tensor, " n"]
Activation = Callable[[Tensor, Tensor], Tensor]  # images, neurons -> (n,): image i at neuron i


@dataclass(frozen=True)
class FeatureImages:
    """images (n, C, H, W) with pixels in [0, 1], one for each neuron; dead (n,): there was no gradient."""

    images: Images
    dead: Bool[Tensor, " n"]


def at_centre(outputs: Callable[[Tensor], Tensor]) -> Activation:
    """The neurons of a layer: channel i of (n, channels, h, w) at (h // 2, w // 2), or column i of (n, outputs).

    For a deep net: at_centre(partial(net.output_of, layer)), the net in eval mode.
    """

    def activation(images: Tensor, neurons: Tensor) -> Tensor:
        found = outputs(images)
        if found.ndim == 4:
            found = found[:, :, found.shape[2] // 2, found.shape[3] // 2]
        return found.gather(1, neurons.unsqueeze(1)).squeeze(1)

    return activation


def feature_images(
    activation: Activation,
    shape: tuple[int, int, int],
    *,
    neurons: Neurons,
    generator: torch.Generator,
    steps: int = 2000,
    rate: float = 0.1,
    decay: float = 0.1,
    rest: float = 0.5,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> FeatureImages:
    """The images of all `neurons` at once, each of `shape` (C, H, W): activation(images, neurons) is (n,).

    Each image's output must depend on that image alone: a net with batch normalisation is in eval mode.
    `dtype` is what the activation takes; images are held in float32, or float64 if it is that.
    """
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    if not (rate > 0 and decay > 0 and rate * decay <= 1):
        raise CallError(f"rate={rate:g}, decay={decay:g}: both > 0, and their product at most 1")
    if not 0 <= rest <= 1:
        raise CallError(f"rest={rest:g}: a pixel lies in [0, 1], mid-grey is .5")
    held = torch.float64 if dtype == torch.float64 else torch.float32
    start = torch.rand(
        len(neurons), *shape, generator=generator, dtype=held, device=generator.device
    )
    x, index = start.to(device, copy=True), neurons.to(device)
    moves = torch.zeros(len(x), 1, 1, 1, dtype=torch.bool, device=x.device)

    def step() -> None:
        """In place: a GPU records it."""
        gradient = gradient_of(activation, x, index, dtype)
        # lengths in float64: squares of a gradient of 1e-20 vanish in float32, and it would seem dead
        size = torch.linalg.vector_norm(gradient, dim=(1, 2, 3), keepdim=True, dtype=torch.float64)
        moves.logical_or_(size != 0)
        unit = gradient / torch.where(size == 0, 1.0, size).to(held)
        x.copy_(torch.where(moves, (x + rate * (unit - decay * (x - rest))).clamp(0, 1), x))

    make = recorded(step) if x.is_cuda else step
    x.copy_(start)
    moves.zero_()
    for _ in range(steps):
        make()
    if not bool(x.isfinite().all()):
        raise RunError("a neuron's gradient is NaN or inf: look at the net's weights")
    return FeatureImages(x, ~moves.flatten())


def gradient_of(activation: Activation, x: Tensor, neurons: Tensor, dtype: torch.dtype) -> Tensor:
    """Row i: the gradient of neuron i's output at image i, by one backward pass of their sum."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        out = activation(leaf.to(dtype), neurons)
        if out.shape != neurons.shape:
            raise CallError(
                f"the activation gives {tuple(out.shape)}: one output for each of {len(x)} images is needed"
            )
        if not out.requires_grad:
            raise CallError("the activation has no gradient: do not detach or round inside it")
        (gradient,) = torch.autograd.grad(out.sum(dtype=x.dtype), leaf)
    return gradient
