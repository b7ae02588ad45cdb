"""Deep training, clean and with 7 steps of PGD: images a second of `fit`'s step against a plain loop, in one run.

The plain loop is what a careful user writes: bf16 autocast, channels_last, images on the GPU, cudnn.benchmark,
fused SGD, no reads by the host in the step; no recording, no compiler. On a GPU the net is depth 34, width 4,
batch 128; on a CPU a small one, to try the script.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from tacit.attack.inner import Ball
from tacit.nn import PreActResNet
from tacit.train.deep.fit import stream
from tacit.train.deep.pictures import epoch_of, shelf_of
from tacit.train.deep.recipe import Recipe
from tacit.train.deep.step import Training, kernels

LINF = Ball(math.inf, 8 / 255, 7, 2.5 / 7, random_start=True)


def plain_step(
    net: PreActResNet, x: Tensor, y: Tensor, ball: Ball | None, device: str
) -> Callable[[], None]:
    """The loop by hand: crop and flip as tensor operations, PGD, fused SGD."""
    optimiser = torch.optim.SGD(
        net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True
    )
    padded = torch.nn.functional.pad(x, (4, 4, 4, 4))
    side = x.shape[-1]

    def batch() -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(x), (128 if device == "cuda" else 32,), device=device)
        down, across = (torch.randint(9, (len(rows), 1), device=device) for _ in range(2))
        index = torch.arange(side, device=device)
        picked = padded[
            rows[:, None, None], :, (down + index)[:, :, None], (across + index)[:, None, :]
        ]
        flipped = torch.where(
            torch.rand(len(rows), 1, 1, 1, device=device) < 0.5, picked.flip(2), picked
        )
        images = flipped.permute(0, 3, 1, 2).float() / 255
        return images.contiguous(memory_format=torch.channels_last), y[rows]

    def attacked(images: Tensor, labels: Tensor) -> Tensor:
        assert ball is not None
        net.eval()
        delta = torch.empty_like(images).uniform_(-ball.radius, ball.radius)
        for _ in range(ball.steps):
            delta.requires_grad_(True)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                scores = net(images + delta)
            loss = torch.nn.functional.cross_entropy(scores.float(), labels, reduction="sum")
            (slope,) = torch.autograd.grad(loss, delta)
            delta = delta.detach() + ball.step * ball.radius * slope.sign()
            delta = delta.clamp(-ball.radius, ball.radius)
            delta = (images + delta).clamp(0, 1) - images
        net.train()
        return images + delta

    def step() -> None:
        images, labels = batch()
        shown = images if ball is None else attacked(images, labels)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores = net(shown)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(scores.float(), labels).backward()
        optimiser.step()

    return step


def rate(step: Callable[[], object], batch: int, steps: int, device: str) -> float:
    """Images a second, after a few steps that are not counted."""

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    wait()
    began = time.monotonic()
    for _ in range(steps):
        step()
    wait()
    return batch * steps / (time.monotonic() - began)


def main() -> None:
    """Both, clean and adversarial."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    gpu = device == "cuda"
    n, batch, side = (50_000, 128, 32) if gpu else (256, 32, 16)
    draws = torch.Generator().manual_seed(0)
    x = torch.randint(256, (n, side, side, 3), dtype=torch.uint8, generator=draws)
    y = torch.randint(10, (n,), generator=draws)
    for name, ball in (("clean", None), ("PGD-7", LINF)):
        steps = (300 if ball is None else 100) if gpu else 3
        recipe = Recipe(epochs=1, batch=batch, nesterov=True, ball=ball)
        with kernels(device, deterministic=False):
            net = PreActResNet(34, 4) if gpu else PreActResNet(10, 1)
            net.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
            mine = Training(
                net, shelf_of(x, y, recipe, device), recipe, device, deterministic=False
            )
            began = time.monotonic()
            ready = mine.ready()
            made_ready = time.monotonic() - began
            mine.begin(0, epoch_of(n, recipe, stream(0)), 0)
            fast = rate(ready, batch, min(steps, mine.count - 4), device)
            pixels = x.permute(0, 3, 1, 2).to(device)
            slow = rate(
                plain_step(net, pixels, y.to(device), ball, device), batch, steps // 3, device
            )
        print(
            f"deep_speed {name}: {fast:,.0f} images/s, plain {slow:,.0f}, ratio {fast / slow:.2f}; "
            f"ready after {made_ready:.0f} s"
        )


if __name__ == "__main__":
    main()
