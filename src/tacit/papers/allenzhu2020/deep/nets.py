"""The nets of Section 8: clean, adversarial from random weights, adversarial from the clean net.

clean           vanilla training
linf8           against linf(8/255), from the random weights that the clean net started from
linf8.clean     the same, from the clean net
linf8.sixteen   the same as linf8, of a ResNet-16
"""

from collections.abc import Iterable
from dataclasses import asdict, replace

from tacit.attack.inner import Ball
from tacit.lab import Bench
from tacit.nn.alexnet import AlexNet
from tacit.nn.layered import LayeredNet
from tacit.nn.residual import PreActResNet
from tacit.papers._shared.deep import DeepImages, Job, deep_images, deep_nets
from tacit.papers.allenzhu2020.deep.settings import ATTACKERS, GROWN, Alex, Deep, Trained
from tacit.train.deep.recipe import Recipe


def ball_of(name: str) -> Ball:
    """The attacker of that name."""
    told = asdict(ATTACKERS[name])
    return Ball(**{key: value for key, value in told.items() if key != "told"})


def images_of(config: Trained) -> DeepImages:
    """The images of the exhibit."""
    return deep_images(config.dataset, train=config.train, side=config.side)


def start_net(config: Deep, bench: Bench, images: DeepImages) -> LayeredNet:
    """Random weights, the same for every training of one depth."""
    generator = bench.generator("deep start", config.depth)
    net = PreActResNet(config.depth, config.width, 10, images.channels, generator=generator)
    return images.standardise(net).eval()


def recipe_of(config: Trained, attacker: str = "") -> Recipe:
    """The training, with an attacker if one is named; crops by an eighth of the side, as 4 of 32."""
    plain = Recipe(
        epochs=config.clean_epochs,
        batch=config.batch,
        step=config.step,
        nesterov=True,
        decay=config.decay,
        warmup=min(1.0, config.clean_epochs / 2),
        crop=config.side // 8 if config.side else 4 if config.dataset == "cifar10" else 1,
        flip=config.dataset == "cifar10",
    )
    if not attacker:
        return plain
    ball = ball_of(attacker)
    return replace(
        plain,
        epochs=config.epochs,
        warmup=min(1.0, config.epochs / 2),
        ball=ball,
        growth=config.epochs / GROWN if ball.sigma else 0.0,
    )


def jobs_of(config: Deep, bench: Bench, images: DeepImages, names: Iterable[str]) -> dict[str, Job]:
    """The trainings of these nets; the clean one comes first where another goes on from it."""
    names = list(names)
    if any(name.endswith(".clean") for name in names) and "clean" not in names:
        names.insert(0, "clean")
    found: dict[str, Job] = {}
    for name in sorted(names, key=lambda each: each != "clean"):
        attacker, _, start = name.partition(".")
        here = replace(config, depth=16) if start == "sixteen" else config
        begin = "clean" if start == "clean" else start_net(here, bench, images)
        recipe = recipe_of(config, "" if name == "clean" else attacker)
        found[name] = Job(begin, recipe, images, bench.seed)
    return found


def nets_of(config: Deep, bench: Bench, names: Iterable[str]) -> dict[str, LayeredNet]:
    """Those nets, in eval mode on the bench's device, and what was trained on the way to them."""
    return deep_nets(bench, jobs_of(config, bench, images_of(config), names))


def alex_jobs(config: Alex, bench: Bench, images: DeepImages) -> dict[str, Job]:
    """AlexNet: `clean`, and `robust`, which goes on from it against the attacker (Section 1: w, then w')."""
    recipes = {"clean": recipe_of(config), "robust": recipe_of(config, config.attacker)}
    starts: dict[str, LayeredNet | str] = {
        "clean": alex_start(config, bench, images),
        "robust": "clean",
    }
    return {name: Job(starts[name], recipes[name], images, bench.seed) for name in recipes}


def clean_from(start: str, config: Alex, bench: Bench, images: DeepImages, epochs: int) -> Job:
    """So many epochs of clean training that go on from the net of that name."""
    return Job(start, recipe_of(replace(config, clean_epochs=epochs)), images, bench.seed)


def alex_start(config: Alex, bench: Bench, images: DeepImages) -> AlexNet:
    """Its random weights."""
    net = AlexNet(10, images.channels, config.width, generator=bench.generator("alex start"))
    return images.standardise(net).eval()


def alex_nets(config: Alex, bench: Bench) -> dict[str, LayeredNet]:
    """`random`, `clean` and `robust`, in eval mode on the bench's device."""
    images = images_of(config)
    random = alex_start(config, bench, images).to(bench.device)
    return {"random": random, **deep_nets(bench, alex_jobs(config, bench, images))}
