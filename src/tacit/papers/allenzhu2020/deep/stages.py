"""The three stages of Section 8.2: layer l random, clean and robust, on robust layers below it.

    stage 1    adversarial training of the whole net
    random     layers l, l + 1, ... of that net drawn anew
    clean      stage 2: these trained clean, layers below l frozen
    robust     stage 3: trained on against the attacker, until the accuracies of stage 1 are there (footnote 17)

Neurons may swap their places if stage 3 goes on for long, so it ends as soon as it may. A batch norm belongs to
the convolution behind it, and is frozen or drawn anew with it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tacit.attack.inner import Ball
from tacit.base.identity import identity_of
from tacit.lab import Bench
from tacit.measure.attacked import kept_right
from tacit.nn.layered import LayeredNet
from tacit.papers._shared.deep import DeepImages, Job, deep_nets, deep_trainings
from tacit.papers.allenzhu2020.deep.nets import ball_of, images_of, recipe_of, start_net
from tacit.papers.allenzhu2020.deep.settings import Stages
from tacit.train.deep.fit import Watch
from tacit.train.deep.recipe import Recipe

STAGES = ("random", "clean", "robust")


@dataclass(frozen=True, eq=False)
class Staged:
    """The net of stage 1, those of `STAGES` for one layer, the epochs of stage 3, and whether it got there."""

    first: LayeredNet
    nets: dict[str, LayeredNet]
    epochs: int
    reached: bool


def staged(config: Stages, bench: Bench, layer: int) -> Staged:
    """The nets of one layer, from the store or trained; all layers share stage 1."""
    images = images_of(config)
    adversarial = stage_recipe(config, config.attacker)
    job = Job(start_net(config, bench, images), adversarial, images, bench.seed)
    first = deep_nets(bench, {"stage 1": job})["stage 1"]
    seeds = bench.seed, bench.seed + 1, bench.seed + 2  # each stage in an order of its own
    watch = until_as_good(config, bench, images, first)
    jobs = {
        "clean": Job(
            first, stage_recipe(config), images, seeds[1], prepare=partial(drawn_anew, layer, bench)
        ),
        "robust": Job(
            "clean", adversarial, images, seeds[2], prepare=partial(frozen, layer),
            watch=watch,
        ),
    }  # fmt: skip
    found = deep_trainings(bench, jobs)
    looks = found["robust"].watched
    assert looks is not None
    assert watch.enough is not None
    random = drawn_anew(layer, bench, copy.deepcopy(first).to("cpu")).freeze_below(1).eval()
    nets = {"random": random.to(bench.device), **{name: each.net for name, each in found.items()}}
    epochs = len(looks) - 1
    # a training from the store that ended early got there, though measured anew the goal be a noisy copy higher
    early = epochs < adversarial.epochs
    return Staged(first, nets, epochs, early or watch.enough(torch.from_numpy(looks[-1])))


def stage_recipe(config: Stages, attacker: str = "") -> Recipe:
    """A stage: steps fall to a tenth after four fifths, l2 radii grow over a fifth (footnotes 14 and 17)."""
    plain = recipe_of(config, attacker)
    return replace(
        plain,
        nesterov=False,
        warmup=0.0,
        schedule="drops",
        drops=(max(1, 4 * plain.epochs // 5),),
        growth=plain.epochs / 5 if plain.growth else 0.0,
    )


def drawn_anew(layer: int, bench: Bench, net: LayeredNet) -> LayeredNet:
    """Layers from `layer` on random, the others frozen."""
    return frozen(layer, net.redraw_from(layer, bench.generator("drawn anew", layer)))


def frozen(layer: int, net: LayeredNet) -> LayeredNet:
    """Layers below `layer` frozen."""
    return net.freeze_below(layer)


def until_as_good(
    config: Stages, bench: Bench, images: DeepImages, first: LayeredNet
) -> Watch:  # fmt: skip
    """Looks at both accuracies on the first test images; enough are those of the net of stage 1."""
    x, y = images.tested(config.watch, bench.device)
    look = partial(accuracies, ball_of(config.attacker), x, y, bench.seed)
    return Watch(look, AsGood(look(first).tolist(), identity_of(first.state())))


def accuracies(
    ball: Ball, x: Float[Tensor, "n C H W"], y: Int64[Tensor, " n"], seed: int, net: nn.Module
) -> Float[Tensor, 2]:
    """Under the attacker, and without it; both of noisy copies, as the attacker's protocol has it."""
    robust = kept_right(net, x, y, ball, seed=seed)
    clean = kept_right(net, x, y, replace(ball, radius=0.0) if ball.sigma else None, seed=seed)
    return torch.stack([robust.mean(), clean.mean()])


@dataclass(frozen=True)
class AsGood:
    """Whether both accuracies are those of a net; `net` is what it is, from which they follow.

    A store knows it by the net: measured on a GPU again the accuracies may differ by one noisy copy, and stage 3
    would be trained again.
    """

    goal: list[float]
    net: str

    def __call__(self, found: Float[Tensor, 2]) -> bool:
        """Whether robust and clean accuracy both are as high."""
        return all(here >= there for here, there in zip(found.tolist(), self.goal, strict=True))

    def identity(self) -> tuple[object, ...]:
        """The net's, and the rule by its code."""
        return self.net, AsGood.__call__
