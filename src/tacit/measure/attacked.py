"""Accuracy of a deep net on images: clean, and under the attacker of its training.

The search runs without reads by the host, in bfloat16 on a GPU. What it found is checked to lie in ball and box,
and whether it breaks the net is decided anew, in float32. So the accuracy is an upper bound of the truth,
whatever the search rounded.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tacit.attack.ball.task import sealed
from tacit.attack.inner import Ball, perturbation, seen
from tacit.attack.norms import known_norm
from tacit.base.device import full_float32
from tacit.nn.modules import check_in_use

AT_ONCE = 1000  # images


def kept_right(
    module: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    ball: Ball | None = None,
    *,
    starts: int = 1,
    seed: int = 0,
    known: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, " n"]:
    """The share of each image's noisy copies (one copy without noise: 0 or 1) that the module has right.

    Without a ball the images are as they are; in one of radius 0 they have its noise and no more. Otherwise
    `starts` attacks are made on each; what is kept is the least share, of these and of what is `known` already
    (an image without a copy left is not attacked again). Attacks and judgement share the noise, as in the
    released code of Salman et al. (2019).
    """
    check_in_use(module)
    generator = torch.Generator(x.device).manual_seed(seed)
    found = [torch.ones(0, device=x.device)]
    for part in parts(len(x)):
        here, labels = x[part], y[part]
        noise = None if ball is None else ball.noise(here, generator)
        least = torch.ones(len(here), device=x.device) if known is None else known[part].clone()
        for _ in range(starts if ball else 1):
            todo = (least > 0).nonzero().squeeze(1)  # a point that has lost all copies is done
            if not len(todo):
                break
            draws = None if noise is None else noise[:, todo]
            share = one_try(module, here[todo], labels[todo], ball, draws, generator)
            least[todo] = torch.minimum(least[todo], share)
        found.append(least)
    return torch.cat(found)


def one_try(
    module: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    ball: Ball | None,
    noise: Float[Tensor, "m n C H W"] | None,
    generator: torch.Generator,
) -> Float[Tensor, " n"]:
    """The share of copies that are right after one attack."""
    if ball is not None and ball.radius:
        start = ball.start(x, generator)
        x = x + delta_of(module, x, y, ball, start=start, noise=noise)
    with torch.no_grad(), full_float32():
        right = module(seen(x, noise)).argmax(1).view(-1, len(x)) == y
    return right.float().mean(0)


def delta_of(
    module: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    ball: Ball,
    *,
    start: Float[Tensor, "n C H W"] | None = None,
    noise: Float[Tensor, "m n C H W"] | None = None,
) -> Float[Tensor, "n C H W"]:
    """The perturbation after all steps, sealed: it is in the ball and in [0, 1]."""
    with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
        delta = perturbation(module, x, y, ball, start=start, noise=noise)
    flat = sealed(delta.flatten(1), x.flatten(1), known_norm(ball.norm), ball.radius, (0.0, 1.0))
    return flat.view_as(x)


def parts(n: int) -> Iterator[slice]:
    """Slices of so many images."""
    return (slice(k, min(k + AT_ONCE, n)) for k in range(0, n, AT_ONCE))
