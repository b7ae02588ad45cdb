r"""The nets of the table: how each starts and what it is told.

All are ResNet-18s, at one seed from the same convolutions and with the same batches. Four of them have another
activation or head:

    head, both    `PolyHeadResNet18`: the pooled features, centred and scaled by a batch norm, then PolyReLU
                  neurons ||c|| ||w_j|| relu(cos(w_j, c))^p, p = 3 as in min2024, then a linear layer
    control       the same head at p = 1, which is ReLU
    throughout    relu(z)^power where z comes out of a batch norm: at the stem and inside blocks. What blocks put
                  out has plain ReLU, else powers would pile up along identity shortcuts. power = 2 and not 3:
                  for standard normal z the fourth moment of relu(z)^p is 6, 23 and 92 times its squared second
                  at p = 1, 2 and 3; the larger it is, the more do a few pixels decide the next batch norm

Labels are halves of the classes, classes, or five numbers a half that spherical k-means finds in the features
of the net with 2 labels (`measure.subclasses`), so that a row's logits always halve as the paper's rule has them.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.attack.inner import Ball
from tacit.lab import Bench
from tacit.measure.subclasses import find_subclasses
from tacit.nn.layered import LayeredNet
from tacit.nn.poly_head import PolyHeadResNet18
from tacit.nn.residual import ResNet18
from tacit.papers._shared.deep import DeepImages, Job, deep_images, deep_nets
from tacit.papers.li2025.deep_story.settings import CLASSES, DeepStory, Row
from tacit.papers.li2025.fig3b.binary import AT_ONCE
from tacit.papers.li2025.fig3b.exhibit import DECAY, MOMENTUM
from tacit.train.deep.recipe import Recipe

HALF = CLASSES // 2  # classes a half, and subclasses a half
LENGTH = 2.5  # of all inner steps together, in radii: Madry et al. (2018)
POLY = ("head", "control", "both")
FINE = ("ten", "both", "discovered")

Features = Callable[[Tensor], Tensor]


def images_of(config: DeepStory) -> DeepImages:
    """The images with their ten classes."""
    return deep_images(config.dataset, train=config.train, side=config.side)


def halves_of(images: DeepImages) -> DeepImages:
    """The same with 2 labels."""
    return replace(images, y=images.y // HALF, test_y=images.test_y // HALF)


def start_of(
    config: DeepStory, bench: Bench, images: DeepImages, row: Row, seed: int
) -> LayeredNet:
    """The net before training."""
    stream, labels = bench.generator("net", seed=seed), CLASSES if row in FINE else 2
    if row in POLY:
        net: LayeredNet = PolyHeadResNet18(
            labels,
            images.channels,
            config.width,
            config.hidden,
            1 if row == "control" else config.p,
            stream,
        )
    else:
        power = config.power if row == "throughout" else 1
        net = ResNet18(labels, images.channels, config.width, stream, power)
    return images.standardise(net)


def recipe_of(config: DeepStory, row: Row) -> Recipe:
    """How it is trained."""
    clean = Recipe(
        config.epochs, config.batch, config.step, MOMENTUM, decay=DECAY, schedule=config.schedule,
        crop=config.crop, flip=config.flip,
    )  # fmt: skip
    if row != "adversarial":
        return clean
    ball = Ball(2.0, config.ball, config.inner, LENGTH / config.inner)
    return replace(clean, epochs=config.hard_epochs, ball=ball)


def net_of(
    config: DeepStory, bench: Bench, images: DeepImages, row: Row, seed: int
) -> tuple[LayeredNet, DeepImages]:
    """The trained net, from the store where it is known, and the images with the labels that it was told."""
    told = images if row in FINE else halves_of(images)
    if row == "discovered":
        two = net_of(config, bench, images, "two", seed)[0]
        told = found_labels(two.features, images, bench, seed)
    name = f"{row}-seed{seed}"
    job = Job(start_of(config, bench, images, row, seed), recipe_of(config, row), told, seed)
    return deep_nets(bench, {name: job})[name], told


def found_labels(features: Features, images: DeepImages, bench: Bench, seed: int) -> DeepImages:
    """The images with labels that k-means finds within each half, in these features of theirs."""
    halves = images.y // HALF
    x, _ = replace(images, test_x=images.x, test_y=halves).tested(len(halves), "cpu")
    rows, stream = read(features, x, bench.device), bench.generator("subclasses", seed=seed)
    return replace(images, y=halves * HALF + find_subclasses(rows, halves, stream, HALF))


def read(function: Features, x: Float[Tensor, "n C H W"], device: str) -> Float[Tensor, "n c"]:
    """A function of images, some at a time, in float64 on the host."""
    with torch.no_grad():
        parts = [function(part.to(device)).double().cpu() for part in x.split(AT_ONCE)]
    return torch.cat(parts)
