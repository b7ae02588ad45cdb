r"""Figure 3 (middle and right): ResNet-18 with 2 labels and with 10, robust accuracy of the binary task.

Both nets are trained from scratch on the same images in the same order, from the same convolutions; one sees
which half of the classes an image is of, the other its class, and answers with a half by the paper's rule
(`binary`). SGD in batches of 128 with momentum .9 and weight decay 5e-4; CIFAR-10: steps of .1, falling as half a
cosine, 200 epochs; MNIST: steps of .001, 100 epochs. The paper prints no augmentation: CIFAR-10 has the usual
shifts by 4 pixels and mirror images here, MNIST none. Nor does its text have the steps of its PGD, or radii.

No theorem of the paper speaks of such nets: what is judged is the order of the two curves. The paper shows one
training of each kind, as `repeats` = 1 does. Small nets on MNIST (seed 0) have the paper's order with its own
small steps; with steps of .05 that fall as a cosine, 10 labels were behind.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tacit.errors import CallError
from tacit.lab import Bench, Outcome
from tacit.nn.residual import ResNet18
from tacit.papers._shared.deep import DeepImages, Job, deep_images, deep_nets
from tacit.papers.li2025.fig3b.binary import Halves, rightly, withstood
from tacit.papers.li2025.fig3b.claims import claims
from tacit.papers.li2025.fig3b.figure import draw as draw
from tacit.papers.li2025.fig3b.settings import Labels
from tacit.train.deep.recipe import Recipe

LABELS = (2, 10)
MOMENTUM, DECAY = 0.9, 5e-4


def run(config: Labels, bench: Bench) -> Outcome:
    """Train, attack, judge."""
    two, ten = (
        deep_images(config.dataset, train=config.train, side=config.side, merged=merged)
        for merged in (2, 0)
    )
    if config.points > len(two.test_y):
        raise CallError(
            f"points={config.points}: {config.dataset} has {len(two.test_y)} test images"
        )
    seeds = bench.seeds(config.repeats)
    jobs = {
        named(labels, seed): job_of(config, bench, images, labels, seed)
        for seed in seeds
        for labels, images in zip(LABELS, (two, ten), strict=True)
    }
    nets = deep_nets(bench, jobs)
    x, y = two.tested(len(two.test_y), bench.device)
    parts = {
        name: bench.part(name, partial(tried, net, x, y, config, bench.seed))
        for name, net in bench.steps(nets.items(), "attacks")
    }
    data = xr.concat(
        [xr.concat([parts[named(labels, seed)] for seed in seeds], "seed") for labels in LABELS],
        "labels",
    ).assign_coords(labels=list(LABELS), seed=seeds)
    return Outcome(data, tuple(claims(data, config, bench)))


def named(labels: int, seed: int) -> str:
    """A net of the run."""
    return f"labels{labels}-seed{seed}"


def job_of(config: Labels, bench: Bench, images: DeepImages, labels: int, seed: int) -> Job:
    """A training; of one seed all start from the same convolutions and see the same batches."""
    stream = bench.generator("net", seed=seed)
    net = ResNet18(labels, images.channels, config.width, generator=stream)
    recipe = Recipe(
        config.epochs, config.batch, config.step, MOMENTUM, decay=DECAY, schedule=config.schedule,
        crop=config.crop, flip=config.flip,
    )  # fmt: skip
    return Job(images.standardise(net), recipe, images, seed)


def tried(
    net: nn.Module,
    x: Float[Tensor, "n C H W"],
    y: Int64[Tensor, " n"],
    config: Labels,
    seed: int,
) -> xr.Dataset:
    """`right` (test), clean, of all test images; `kept` (radius, point) of the first ones, radius 0 first."""
    rule, radii = Halves(net).eval(), tuple(sorted(config.radius))
    right = rightly(rule, x, y)
    few = slice(config.points)
    left = withstood(rule, x[few], y[few], radii, steps=config.steps, seed=seed) & right[few]
    kept = torch.cat([right[few].unsqueeze(0), left])
    return xr.Dataset(
        {
            "right": ("test", right.cpu().numpy().astype(np.int8)),
            "kept": (("radius", "point"), kept.cpu().numpy().astype(np.int8)),
        },
        coords={"radius": [0.0, *radii]},
    )
