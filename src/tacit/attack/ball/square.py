r"""The Square attack: random search over images by queries alone (Andriushchenko et al. 2020, Algorithms 1 to 3).

A change is a square at a random place, and is kept where it lowers the margin. The side of the square is
sqrt(share * pixels); the share is halved at fixed parts of the search. No gradient is asked for, so that small,
masked or shattered gradients cannot hide a point from it.

    linf   the start is one sign a column, radius times; a square gets one sign a channel, radius times
    l2     the start is a grid of bumps; one square is emptied and what the ball has left goes to another one,
           as a pair of bumps of opposite sign added to the direction that is there

Perturbations stay in ball and box by the exact projection. What one ball of l2 has left is shared by all channels
(the paper has a budget for each channel; with one channel they are the same).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from tacit.attack.ball.black_box import Propose, by_queries, random_descent
from tacit.attack.ball.search import Search
from tacit.attack.ball.task import Attacked, Box, task_of
from tacit.attack.norms import Norm, l2_size, l2_steepest, positive
from tacit.base.shapes import Column, Rows
from tacit.errors import CallError

Shape = tuple[int, int, int]

SHARE = 0.8  # of the pixels, at first, as in AutoAttack (Croce & Hein 2020); .05 and .1 broke fewer digits
NORMS = (2.0, math.inf)
HALVED = (0.001, 0.005, 0.02, 0.1, 0.2, 0.4, 0.6, 0.8)  # parts of the search
TILES = 5  # of the first perturbation in l2, along each side


def square(
    model: Any,
    x: Float[Tensor, " n *shape"],
    y: Shaped[Tensor, " labels"],
    radii: Sequence[float],
    *,
    image: Shape,
    norm: float | str | Norm = math.inf,
    box: Box | None = None,
    steps: int = 5000,
    seed: int = 0,
    batch: int | None = None,
) -> Attacked:
    """Random search over squares, `steps` queries a point and radius, from one random start.

    `image` is the height, width and channels of a point, whose coordinates are in that order (a flat point has
    height * width * channels of them).
    """
    task = task_of(model, x, y, radii, norm=norm, box=box, batch=batch)
    if steps < 1:
        raise CallError(f"steps={steps}: at least one is needed")
    if task.norm.order not in NORMS:
        raise CallError(f"norm {task.norm.name}: the Square attack is for 2 and inf")
    if math.prod(image) != task.x.shape[1] or min(image) < 1:
        raise CallError(
            f"image {image}: its height * width * channels must be the {task.x.shape[1]} coordinates of a point"
        )
    if task.norm.order == 2 and min(image[:2]) < 2:
        raise CallError(f"image {image}: in l2 the attack needs 2 pixels each way; take black_box")
    generator = torch.Generator(task.x.device).manual_seed(seed)
    first = (stripes if task.norm.order == math.inf else grid_of_bumps)(task.x, image, generator)
    size = task.norm.size(first).unsqueeze(1)
    start = (first * (max(*task.radii, 1.0) / size)).unflatten(1, task.shape)
    # the start is projected on the ball of each radius
    return by_queries(task, random_descent(steps, random_square(image)), [start], None, seed)


def random_square(image: Shape) -> Propose:
    """A square of the image changed; it shrinks as the search goes on."""

    def propose(search: Search, delta: Rows, part: float) -> Rows:
        order = search.norm.order
        change = signed_square if order == math.inf else moved_bumps
        side = side_at(part, order, image)
        return change(delta, search.radius, image, side, search.generator)

    return propose


def side_at(part: float, order: float, image: Shape) -> int:
    """The side of the square when that part of the search is over."""
    share = SHARE / 2 ** sum(part >= mark for mark in HALVED)
    side = round(math.sqrt(share * image[0] * image[1]))
    # a pair of bumps needs at least three pixels a side
    return min(max(side, 1 if order == math.inf else 3), *image[:2])


def signs(like: Rows, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """-1 and +1 with equal chance."""
    bits = torch.randint(0, 2, shape, generator=generator, device=like.device)
    return (2 * bits - 1).to(like.dtype)


def windows(
    like: Rows, image: Shape, side: int, generator: torch.Generator
) -> Int[Tensor, "n side side C"]:
    """The coordinates of a square at a random place of each row."""
    H, W, C = image
    n, device = len(like), like.device
    top = torch.randint(0, H - side + 1, (n, 1, 1, 1), generator=generator, device=device)
    left = torch.randint(0, W - side + 1, (n, 1, 1, 1), generator=generator, device=device)
    along = torch.arange(side, device=device)
    rows, columns = top + along.view(1, -1, 1, 1), left + along.view(1, 1, -1, 1)
    return (rows * W + columns) * C + torch.arange(C, device=device)


def stripes(like: Rows, image: Shape, generator: torch.Generator) -> Rows:
    """One sign for each column and channel."""
    H, W, C = image
    return signs(like, (len(like), 1, W, C), generator).expand(-1, H, -1, -1).reshape(len(like), -1)


def signed_square(
    delta: Rows, radius: Column, image: Shape, side: int, generator: torch.Generator
) -> Rows:
    """The square at the radius, one sign a channel."""
    at = windows(delta, image, side, generator)
    sign = signs(delta, (len(delta), 1, 1, image[2]), generator).expand(at.shape)
    value = (sign * radius.view(-1, 1, 1, 1)).flatten(1)
    return delta.scatter(1, at.flatten(1), value)


@lru_cache(maxsize=64)
def bump(height: int, width: int) -> Float[Tensor, "height width"]:
    """1/(i+1)^2 on each of the rectangles around the middle, nested; of length 1."""
    rows, columns = (torch.arange(s, dtype=torch.float64) for s in (height, width))
    far = torch.maximum(
        (rows - height // 2).abs().unsqueeze(1), (columns - width // 2).abs().unsqueeze(0)
    ).long()
    rings = 1 / torch.arange(1, int(far.max()) + 2, dtype=torch.float64).square()
    heights = rings.flip(0).cumsum(0).flip(0)[far]
    return heights / heights.norm()


@lru_cache(maxsize=64)
def pair_of_bumps(side: int) -> Float[Tensor, "side side"]:
    """Two bumps of opposite sign, one above the other; of length 1."""
    half = side // 2
    both = torch.cat([bump(half, side), -bump(side - half, side)])
    return both / both.norm()


def grid_of_bumps(like: Rows, image: Shape, generator: torch.Generator) -> Rows:
    """Bumps side by side over the image, each of a random sign."""
    H, W, C = image
    side = max(min(H, W) // TILES, 1)
    tile = bump(side, side).to(like)
    down, across = H // side, W // side
    sign = signs(like, (len(like), down, 1, across, 1, C), generator)
    whole = (sign * tile.view(1, 1, side, 1, side, 1)).reshape(
        len(like), down * side, across * side, C
    )
    pad = (0, 0, 0, W - across * side, 0, H - down * side)
    return torch.nn.functional.pad(whole, pad).flatten(1)


def moved_bumps(
    delta: Rows, radius: Column, image: Shape, side: int, generator: torch.Generator
) -> Rows:
    """One square emptied, its share of the ball given to another."""
    to, source = (windows(delta, image, side, generator).flatten(1) for _ in range(2))
    emptied = delta.scatter(1, source, 0.0).scatter(1, to, 0.0)
    left = (radius.square() - emptied.square().sum(1, keepdim=True)).clamp_min(0).sqrt()
    there = l2_steepest(delta.gather(1, to))
    pair = pair_of_bumps(side).to(delta)
    turned = signs(delta, (len(delta), 1, 1), generator) > 0
    shape = torch.where(turned, pair, pair.T).unsqueeze(3)
    sign = signs(delta, (len(delta), 1, 1, image[2]), generator)
    way = (sign * shape).flatten(1) / math.sqrt(image[2]) + there
    return emptied.scatter(1, to, way * left / positive(l2_size(way)).unsqueeze(1))
